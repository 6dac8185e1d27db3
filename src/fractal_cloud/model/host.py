"""Components in which others live (a cluster that is declared): what they are called, and what becomes known of them.

Whoever lives in one is looked for where its host published that it is. How a host is reached is known to the
provider of those who live in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

_DECLARED: Final = "declared:"
HOST_NAMES: Final = f"{_DECLARED}["
"""What the name of every host begins with in which components live, as their rows hold it."""
ANY_HOST: Final = _DECLARED
"""The name under which an agent says that it accepts hosts; it stands for no realm."""


@dataclass(frozen=True, slots=True)
class HostName:
    """What a declaration calls a realm that is a component of its own: which one, and the resource that is meant.

    The resource is part of it, so that a component that is declared anew as another cluster is another realm's name.
    """

    live_system_id: str
    component_id: str
    type: str
    place: str
    parent: str
    name: str

    @property
    def shown(self) -> str:
        """What operators and tokens call it."""
        return f"{self.live_system_id}/{self.component_id}"

    def __str__(self) -> str:
        words = [self.live_system_id, self.component_id, self.type, self.place, self.parent, self.name]
        return _DECLARED + json.dumps(words, separators=(",", ":"))


def host_of(realm_name: str) -> HostName | None:
    """The component that a realm's name speaks of; None where it is an agent's own name."""
    if not realm_name.startswith(HOST_NAMES):
        return None
    try:
        return HostName(*json.loads(realm_name.removeprefix(_DECLARED)))
    except (ValueError, TypeError):
        return None


def called(realm_name: str) -> str:
    """A realm's name as people declared it; of a component, with the name of its resource where that is another."""
    host = host_of(realm_name)
    if host is None:
        return realm_name
    return host.component_id if host.name == host.component_id else f"{host.component_id} ({host.name})"


def reach_name(identity: Sequence[str], outputs: Mapping[str, Any], needed: Sequence[str]) -> str | None:
    """What agents call a host, made of its natural identity and of what it published; None while that is not complete.

    Whoever publishes anything else is another host: what an agent once reached by an old name is never taken for it.
    And whoever publishes the same as another host is not that one.
    """
    published = [outputs.get(name) for name in needed]
    if not needed or not all(isinstance(value, str) and value for value in published):
        return None
    text = json.dumps([*identity, *published])
    return f"{_DECLARED}{sha256(text.encode()).hexdigest()[:40]}"
