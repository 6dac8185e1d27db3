"""How a file of realms names what is reached on Oracle Cloud."""

from __future__ import annotations

from pydantic import Field

from fractal_cloud.offers.listed_realms import ListedRealm


class OciRealm(ListedRealm):
    """``compartment``: the id of a compartment, or its path of names; the tenancy is the root."""

    compartment: str = Field(min_length=1, max_length=500)

    @property
    def wanted(self) -> str:
        """What the session calls it."""
        return self.compartment
