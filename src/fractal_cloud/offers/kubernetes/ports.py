"""Which of several ports a component declares: never the one at a place in the list, where anybody's may stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.errors import Overtaken
from fractal_cloud.offers.kubernetes.kinds import Object

NAME: Final = "main"
"""What a port of ours is called from its creation on."""
DEFAULT_PROTOCOL: Final = "TCP"


def protocol_of(port: Mapping[str, Any]) -> str:
    """The protocol of a port; the server fills it in, and older answers leave it out."""
    return str(port.get("protocol") or DEFAULT_PROTOCOL)


def find(ports: Sequence[Object], key: str, *known: Mapping[str, Any]) -> int | None:
    """The index of our port: the first in ``known`` whose number and protocol stand there, else ours by name, else the
    only one; None where none of several is ours. ``key``: what the number is called in a port.
    """
    for wanted in known:
        for index, port in enumerate(ports):
            if port.get(key) == wanted.get(key) and protocol_of(port) == protocol_of(wanted):
                return index
    for index, port in enumerate(ports):
        if port.get("name") == NAME:
            return index
    return 0 if len(ports) == 1 else None


def still(ports: Sequence[Object], key: str, seen: Mapping[str, Any], name: str) -> int | None:
    """The index of the port that was taken for ours; None where none was. Raises ``Overtaken`` where it is gone."""
    if seen.get(key) is None:
        return None
    for index, port in enumerate(ports):
        if port.get(key) == seen[key] and protocol_of(port) == protocol_of(seen):
            return index
    raise Overtaken(f"the ports of {name!r} were changed by somebody: nothing was written, and it is tried again")
