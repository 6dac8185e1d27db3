"""Which resources of a cloud carry an owner tag, whoever put it there: what tests hold against the control plane.

Every cloud answers it from its own state, past all knobs: nothing is hidden, throttled or on a later page. What the
tag means, and whether the resource should be there, is decided by whoever asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fractal_sandbox.monitor_rules import OWNER

__all__ = ["Owned", "owned"]


@dataclass(frozen=True)
class Owned:
    """A resource with an owner tag.

    `kind` and `id` are the cloud's own; `owner` is what its tag says (the LiveSystem behind a hashed owner where the
    sandbox knows it); `tags` are under the protocol's neutral names, all others under their own.
    """

    cloud: str
    kind: str
    id: str
    name: str
    owner: str
    tags: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        return {
            "cloud": self.cloud,
            "kind": self.kind,
            "id": self.id,
            "name": self.name,
            "owner": self.owner,
            "tags": dict(self.tags),
        }

    def __str__(self) -> str:
        return f"{self.cloud}: {self.kind} {self.id} ({self.name!r}), owned by {self.owner!r}"


def owned(cloud: str, kind: str, resource_id: str, name: str, tags: Mapping[str, str]) -> list[Owned]:
    """One resource as a list of one; empty where its tags name no owner."""
    owner = tags.get(OWNER)
    return [] if owner is None else [Owned(cloud, kind, resource_id, name, owner, dict(tags))]
