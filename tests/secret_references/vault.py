"""A third party's logins, as a package of theirs would bring them: a password that is written and never returned."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.referable import SecretText
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.offer import Provider, Query, Wanted
from tests.links.clouds import Store, ToyCloud, ToySession
from tests.links.offers import ToyOffer

SERVICE = Store("vault")
WRITES: list[set[str]] = []
"""What each update wrote, by name."""
vault = Provider("vault", "Vault", lambda: ToySession(SERVICE))


class VaultLogin(Component):
    """A login."""

    type = "Security.PaaS.VaultLogin"
    provider = "vault"

    password: SecretText = parameter(secret=True, write_only=True, description="What it is opened with.")
    title: str | None = parameter(default=None, description="What people call it.")


class VaultLoginOffer(ToyOffer[VaultLogin]):
    """How logins are kept: what is read never has the password."""

    component = VaultLogin
    title = "Login"

    def _values(self, component: VaultLogin) -> dict[str, Any]:
        return {"password": str(component.password), "title": component.title}

    def sightings(self, cloud: ToyCloud, query: Query) -> Any:
        """All logins, without their passwords."""
        return map(_shown, super().sightings(cloud, query))

    def read(self, cloud: ToyCloud, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One of them, without its password."""
        found = super().read(cloud, resource_id, sweep)
        return None if found is None else _shown(found)

    def update(self, cloud: ToyCloud, sighting: Sighting, wanted: Wanted[VaultLogin], drift: Collection[str]) -> None:
        """Change what differs."""
        WRITES.append(set(drift))
        super().update(cloud, sighting, wanted, drift)


def _shown(sighting: Sighting) -> Sighting:
    return replace(sighting, actual={name: value for name, value in sighting.actual.items() if name != "password"})
