"""Seen from the cloud's side: nothing names as its owner a LiveSystem that is gone, unless its end said so (O17).

Asked at the end of every history, crash and chaos test. What people stamped themselves is their own business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import httpx2 as httpx

from fractal_sandbox.owned import Owned

_STAYS = ("left in the cloud", "left, not confirmed", "reference dropped")


def orphans(owned: Iterable[Owned], api: httpx.Client, stamped_by_people: Collection[str] = ()) -> list[str]:
    """The resources whose owner is gone, and whose end no deletion has told of."""
    by_owner: dict[str, list[Owned]] = {}
    for one in owned:
        if one.id not in stamped_by_people and one.name not in stamped_by_people:
            by_owner.setdefault(one.owner, []).append(one)
    found: list[str] = []
    for owner, standing in by_owner.items():
        if api.get(f"/livesystems/{owner}").status_code == 200:
            continue
        ended = list(_ends(api, owner))
        found += [f"{one}; its end says {ended}" for one in standing if not any(_names(end, one) for end in ended)]
    return found


def assert_nothing_is_orphaned(world: Any, stamped_by_people: Collection[str] = ()) -> None:
    """SAFETY: «Deleted» is a fact about the cloud."""
    found = orphans(world.cloud.owned_resources(), world.api, stamped_by_people)
    assert not found, "\n".join(found)


def _ends(api: httpx.Client, live_system: str) -> Iterable[str]:
    """What the records of a LiveSystem's deploys and deletion say of the components that were left or let go."""
    answer = api.get(f"/livesystems/{live_system}/mutations", params={"limit": 100})
    for mutation in answer.json()["items"] if answer.status_code == 200 else ():
        record = api.get(f"/livesystems/{live_system}/mutations/{mutation['id']}").json()
        for component in record["components"].values():
            if component["message"].startswith(_STAYS):
                yield f"{component['message']} ({component.get('resourceId')})"


def _names(end: str, one: Owned) -> bool:
    return one.id in end or (bool(one.name) and one.name in end)
