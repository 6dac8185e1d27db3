"""How a file of realms names what is reached on Azure."""

from __future__ import annotations

from pydantic import Field

from fractal_cloud.offers.listed_realms import ListedRealm


class AzureRealm(ListedRealm):
    """``subscription``: the id of a subscription, or its name where no other has it."""

    subscription: str = Field(min_length=1, max_length=500)

    @property
    def wanted(self) -> str:
        """What the session calls it."""
        return self.subscription.lower()
