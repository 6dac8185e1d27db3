"""How a file of realms names what is reached on Aruba Cloud."""

from __future__ import annotations

from pydantic import Field

from fractal_cloud.offers.listed_realms import ListedRealm


class ArubaRealm(ListedRealm):
    """``project``: the id of a project, or its name where no other has it."""

    project: str = Field(min_length=1, max_length=500)

    @property
    def wanted(self) -> str:
        """What the session calls it."""
        return self.project
