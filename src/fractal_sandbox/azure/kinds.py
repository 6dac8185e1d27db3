"""The kinds of resources that the sandbox's Azure has, and how they look while it is at work on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fractal_sandbox.monitor_rules import PROTOCOL_KEYS
from fractal_sandbox.rest import Body, Draft, Kind, Phase, Place, Refused

__all__ = ["ArmKind", "Rules", "etag_name", "group_of", "name_of", "no_rules", "the_kind"]

_STATES: Mapping[Phase, str] = {"creating": "Creating", "updating": "Updating", "deleting": "Deleting"}


def name_of(resource_id: str) -> str:
    """The last name in an id."""
    return resource_id.rpartition("/")[2]


def group_of(resource_id: str) -> str:
    """The resource group in an id, in small letters; empty where it is in none."""
    parts = resource_id.lower().split("/")
    return parts[4] if len(parts) > 4 and parts[3] == "resourcegroups" else ""


@dataclass(frozen=True)
class Rules:
    """What a service does with a resource beside storing it.

    `complete` fills in what Azure sets itself, and refuses what it would refuse: it gets the draft, the new body and
    the one before (None for a new one). `shown` adds what follows from other resources. `leave` is called when it goes:
    it refuses, or takes along what goes with it.
    """

    complete: Callable[[Draft, Body, Body | None], Body] = lambda _, body, __: body
    shown: Callable[[Draft, Body], Body] = lambda _, body: body
    leave: Callable[[Draft, Body], None] = lambda _, __: None


no_rules = Rules()


@dataclass(frozen=True)
class ArmKind:
    """One kind: `etag` names the field that holds it, where there is one; `deletes_guarded`: a deletion respects it.

    `state` is the field of the properties that says what Azure is doing. What `is_global` has one name in the world.
    `created`: with which status a creation is answered, about which the vendor's SDKs are strict.
    `answers`: what a creation is answered with. Storage accounts send nothing but where the result will be; database
    servers send their operation, also when they are changed; all others send the resource.
    """

    namespace: str
    plural: str
    service: str
    etag: str = ""
    deletes_guarded: bool = False
    is_global: bool = False
    state: str = "provisioningState"
    states: Mapping[str, str] = field(default_factory=dict)
    is_async: bool = True
    created: int = 201
    answers: Literal["resource", "nothing", "operation"] = "resource"
    goes_with: Callable[[Body], Iterable[str]] | None = None
    rules: Rules = no_rules

    @property
    def type(self) -> str:
        return f"{self.namespace}/{self.plural}"

    def stored(self) -> Kind:
        """The kind as the store and the monitor know it."""
        return Kind(
            name=self.plural,
            place=lambda body: Place(name_of(body["id"]).lower(), "" if self.is_global else group_of(body["id"])),
            tags=_neutral_tags,
            in_phase=self._in_phase,
            passing=frozenset({self.etag} if self.etag else ()),
            goes_with=self.goes_with,
            carries_tags=True,
        )

    def _in_phase(self, body: Body, phase: Phase) -> Body:
        state = self.states.get(phase, _STATES[phase])
        return {**body, "properties": {**body["properties"], self.state: state}}


def the_kind(kinds: tuple[ArmKind, ...], plural: str) -> ArmKind:
    """The kind with that collection; refuses as Azure refuses types that nobody registered."""
    for kind in kinds:
        if kind.plural.lower() == plural.lower():
            return kind
    raise Refused(404, "InvalidResourceType", f"The resource type '{plural}' could not be found.")


def etag_name(body: Body) -> str:
    """Which etag a resource has now."""
    return str(body.get("etag") or body.get("eTag") or "")


def _neutral_tags(body: Body) -> dict[str, str]:
    tags: dict[str, Any] = body.get("tags") or {}
    known = {key: key for key in PROTOCOL_KEYS}
    return {known.get(key.lower(), key): value for key, value in tags.items()}
