"""How a file of realms names what is reached on Google Cloud."""

from __future__ import annotations

from pydantic import Field

from fractal_cloud.offers.listed_realms import ListedRealm


class GcpRealm(ListedRealm):
    """``project``: the id of a project."""

    project: str = Field(min_length=1, max_length=500)

    @property
    def wanted(self) -> str:
        """What the session calls it."""
        return self.project
