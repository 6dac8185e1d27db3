"""Finds orphans in the cloud: resources whose owner tag names a LiveSystem that no longer exists (O17).

Checked at the end of every history, crash and chaos test. A resource that its deletion reported as left in the cloud is
no orphan, nor is one that a person tagged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import httpx2 as httpx

from fractal_sandbox.owned_resources import Owned

_STAYS = ("left in the cloud", "left, not confirmed", "reference dropped")


def orphans(owned: Iterable[Owned], api: httpx.Client, tagged_by_people: Collection[str] = ()) -> list[str]:
    """The resources whose owner is gone, and which no deletion reported as left in the cloud."""
    by_owner: dict[str, list[Owned]] = {}
    for one in owned:
        if one.id not in tagged_by_people and one.name not in tagged_by_people:
            by_owner.setdefault(one.owner, []).append(one)
    found: list[str] = []
    for owner, resources in by_owner.items():
        if api.get(f"/livesystems/{owner}").status_code == 200:
            continue
        reported = list(_reported_as_left(api, owner))
        found += [
            f"{one}; its deletion reported {reported}"
            for one in resources
            if not any(_is_named_in(message, one) for message in reported)
        ]
    return found


def assert_nothing_is_orphaned(world: Any, tagged_by_people: Collection[str] = ()) -> None:
    """SAFETY: «Deleted» is a fact about the cloud."""
    found = orphans(world.cloud.owned_resources(), world.api, tagged_by_people)
    assert not found, "\n".join(found)


def _reported_as_left(api: httpx.Client, live_system: str) -> Iterable[str]:
    """The messages of a LiveSystem's mutations about components that were left or released."""
    answer = api.get(f"/livesystems/{live_system}/mutations", params={"limit": 100})
    for mutation in answer.json()["items"] if answer.status_code == 200 else ():
        record = api.get(f"/livesystems/{live_system}/mutations/{mutation['id']}").json()
        for component in record["components"].values():
            if component["message"].startswith(_STAYS):
                yield f"{component['message']} ({component.get('resourceId')})"


def _is_named_in(message: str, one: Owned) -> bool:
    return one.id in message or (bool(one.name) and one.name in message)
