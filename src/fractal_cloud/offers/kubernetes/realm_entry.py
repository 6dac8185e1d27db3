"""How a file of realms names what is reached on Kubernetes."""

from __future__ import annotations

from pydantic import Field

from fractal_cloud.offers.listed_realms import ListedRealm


class KubernetesRealm(ListedRealm):
    """``context``: a context of the kubeconfig."""

    context: str = Field(min_length=1, max_length=500)

    @property
    def wanted(self) -> str:
        """What the session calls it."""
        return self.context
