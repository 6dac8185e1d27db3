"""Which events follow from a component's published state before and after (C4). Pure.

What only the agent can know (a race it lost, a request it refused) it reports as an event of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.rules.diff_words import event_text
from fractal_cloud.rules.nested.path import root

UNKNOWN = "unknown"


class Published(NamedTuple):
    """What of a component's observed half can lead to an event; ``is_being_created``: a creation of ours is open."""

    stance: Stance
    status: Status
    message: str = ""
    owner: str | None = None
    resource_id: str | None = None
    output_fields: Mapping[str, Any] = MappingProxyType({})
    is_absent: bool = False
    override_by: str | None = None
    override_reason: str | None = None
    is_being_created: bool = False

    @property
    def drift(self) -> Any:
        """Declared against actual, if they differ."""
        return self.output_fields.get("drift")


class DerivedEvent(NamedTuple):
    """One event: ``by`` is None where it was the agent's own doing."""

    kind: EventKind
    message: str = ""
    before: Any = None
    after: Any = None
    by: str | None = None


def derive_events(
    before: Published, after: Published, live_system_id: str, *, deleting: bool, linked: Collection[str] = ()
) -> list[DerivedEvent]:
    """The events of one publication, in the order in which a reader wants them.

    ``linked``: the parameters of its type that only links set. What differs in them is no drift: nobody declared it.
    """
    found = [*_status(before, after), *_glass(before, after), *_owner(before, after, live_system_id)]
    if not deleting:
        found.extend(_loss(before, after, live_system_id))
    found.extend(_differences(before, after, linked))
    return found


def _status(before: Published, after: Published) -> Iterator[DerivedEvent]:
    if before.status is not after.status:
        yield DerivedEvent(EventKind.STATUS_CHANGED, after.message, before.status.value, after.status.value)


def _glass(before: Published, after: Published) -> Iterator[DerivedEvent]:
    # S9 passes through the stance override on its way to managed: only ManualOverride is a broken glass.
    is_broken = after.stance is Stance.OVERRIDE and after.status is Status.MANUAL_OVERRIDE and not after.is_absent
    if is_broken and before.stance in (Stance.MANAGED, Stance.NONE):
        why = after.override_reason or after.message
        yield DerivedEvent(
            EventKind.GLASS_BROKEN, why, before.stance.value, after.stance.value, after.override_by or UNKNOWN
        )
    if before.stance is Stance.OVERRIDE and after.stance is Stance.MANAGED:
        yield DerivedEvent(EventKind.READOPTED, after.message, before.stance.value, after.stance.value)


def _owner(before: Published, after: Published, live_system_id: str) -> Iterator[DerivedEvent]:
    is_same_resource = before.resource_id is not None and before.resource_id == after.resource_id
    # The answer to a create call names the resource; that it has an owner shows when it is read.
    is_shown_now = before.is_being_created and before.owner is None and after.owner == live_system_id
    if is_same_resource and before.owner != after.owner and not is_shown_now:
        yield DerivedEvent(
            EventKind.OWNER_CHANGED,
            f"owner of {after.resource_id} was {_named(before.owner)}, is {_named(after.owner)}",
            before.owner,
            after.owner,
            UNKNOWN,
        )


def _named(owner: str | None) -> str:
    return "nobody" if owner is None else repr(owner)


def _loss(before: Published, after: Published, live_system_id: str) -> Iterator[DerivedEvent]:
    is_missing_now = after.status is Status.MISSING and before.status is not Status.MISSING
    was_ours = before.resource_id is not None and before.owner == live_system_id and not before.is_absent
    if before.resource_id is not None and (is_missing_now or (was_ours and after.is_absent)):
        what = before.resource_id
        yield DerivedEvent(
            EventKind.RESOURCE_LOST, after.message or f"{what} is gone", before.resource_id, None, UNKNOWN
        )


def _differences(before: Published, after: Published, linked: Collection[str]) -> Iterator[DerivedEvent]:
    """Drift of what is declared, and apart from it what links bring or take away.

    No event: an importer's difference (O5), one that went with its resource, what the agent's own work passes by.
    """
    if after.stance is Stance.IMPORTED or before.drift == after.drift:
        return
    drift = _part(before.drift, linked, of_links=False), _part(after.drift, linked, of_links=False)
    yield from _difference(before, after, drift, (EventKind.DRIFT_FOUND, EventKind.DRIFT_CORRECTED))
    if not linked:
        return
    of_links = _part(before.drift, linked, of_links=True), _part(after.drift, linked, of_links=True)
    yield from _difference(before, after, of_links, (EventKind.LINK_CHANGE_FOUND, EventKind.LINK_CHANGE_APPLIED))


def _part(drift: Any, linked: Collection[str], *, of_links: bool) -> Any:
    found = {name: both for name, both in (drift or {}).items() if (root(name) in linked) is of_links}
    return found or None


def _difference(
    before: Published, after: Published, drift: tuple[Any, Any], kinds: tuple[EventKind, EventKind]
) -> Iterator[DerivedEvent]:
    was, is_now = drift
    if was == is_now:
        return
    found, corrected = kinds
    if is_now:
        if after.status in (Status.INSTANTIATING, Status.RECONCILE_REQUESTED):
            return
        if before.status is Status.MUTATING and after.status is Status.MUTATING:
            return
        yield DerivedEvent(found, event_text(found, was, is_now), was, is_now)
    elif not after.is_absent and before.status is not Status.INSTANTIATING:
        yield DerivedEvent(corrected, event_text(corrected, was, None), was, None)
