"""Realms as operators list them, and how another one is accepted in the place of the one a name was bound to (S26).

An operator accepts it, or it follows by itself where the realm is a cluster that we made anew. Everything in it is then
as after a lost memory: searched for by its name, judged by its tags, and, where it is absent, ``Missing`` until the
LiveSystem is deployed again. To which realm a name is bound is in ``realm_bindings``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import and_, exists, or_, select

from fractal_cloud.control.store import access, realm_bindings, resources
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.ended_deletions import end_deletions
from fractal_cloud.control.store.errors import NotFound, Refused
from fractal_cloud.control.store.placement import lock_live_systems, move
from fractal_cloud.control.store.realm_bindings import Bound
from fractal_cloud.control.store.records import (
    ComponentRecord,
    Json,
    iso,
    records,
    select_records,
    update_records,
)
from fractal_cloud.control.store.schema import components, journal
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.host import called, host_of
from fractal_cloud.model.observed import OBSERVED, blank_columns
from fractal_cloud.model.status import Stance

BY: Final = "control plane"
_KEPT: Final = frozenset({"status", "observed_generation", "refusal", "restored"})
_FORGOTTEN: Final = tuple(name for name in OBSERVED if name not in _KEPT)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an operator accepts: ``name`` is what declarations call it, a declared cluster, or either realm's id."""

    environment: str
    provider: str
    name: str
    reason: str
    by: str


def accept(tx: Tx, wanted: Wanted) -> Json:
    """Bind the names that lead to another realm to that one; what is in them is as after a lost memory."""
    waiting = [
        bound
        for bound in realm_bindings.every(tx, wanted.environment)
        if bound.provider == wanted.provider and bound.other is not None
    ]
    meant = [bound for bound in waiting if wanted.name in _names(bound)]
    pairs = {(bound.realm, str(bound.other)) for bound in meant}
    if not pairs:
        known = ", ".join(sorted(repr(bound.shown) for bound in waiting))
        raise NotFound(
            f"no other realm is reached as {wanted.name!r} of {wanted.provider!r} in environment "
            f"{wanted.environment!r}: nothing to accept" + (f"; other realms are reached as {known}" if known else "")
        )
    if len(pairs) > 1:
        raise Refused(f"{wanted.name!r} may mean {sorted(pairs)}: name the id of the realm that is accepted")
    [(before, after)] = pairs
    same = [bound for bound in waiting if (bound.realm, bound.other) == (before, after)]
    return _bind_to_other(tx, same, wanted.by, wanted.reason)


def accept_recreated(tx: Tx, environment: str) -> None:
    """Accept, by itself, the realms of declared clusters that we made anew after the old one was first reached."""
    for bound in realm_bindings.every(tx, environment):
        if bound.other is not None and _was_recreated(tx, bound):
            _bind_to_other(tx, [bound], BY, f"{called(bound.name)!r} was created again")


def described(tx: Tx) -> list[Json]:
    """Every name with the realm it is bound to, and the other one that is reached by it, where there is one."""
    return [
        {
            "id": f"{bound.environment}/{bound.provider}/{bound.shown}",
            "environment": bound.environment,
            "provider": bound.provider,
            "name": bound.shown,
            "realm": bound.realm,
            "firstReached": None if bound.first_at is None else iso(bound.first_at),
            "other": bound.other,
            "otherSince": None if bound.other_at is None else iso(bound.other_at),
            "otherBy": bound.other_by,
        }
        for bound in realm_bindings.every(tx)
    ]


def _names(bound: Bound) -> set[str]:
    """By what a person may mean it."""
    host = host_of(bound.name)
    names = {bound.name, bound.shown, bound.realm, str(bound.other)}
    return names | ({host.component_id, called(bound.name)} if host is not None else set())


def _was_recreated(tx: Tx, bound: Bound) -> bool:
    """Whether a declared cluster was made by us, once more, after the one before it had been reached."""
    host = host_of(bound.name)
    if host is None or bound.first_at is None:
        return False
    c = journal.c
    ours = and_(c.live_system_id == host.live_system_id, c.component_id == host.component_id)
    created = and_(c.verb == "create", c.outcome == "done", c.at > bound.first_at)
    return bool(tx.connection.execute(select(exists().where(ours, created))).scalar())


def _bind_to_other(tx: Tx, same: Sequence[Bound], by: str, reason: str) -> Json:
    before, after = same[0].realm, str(same[0].other)
    c = components.c
    first = same[0]
    names = [bound.name for bound in same]
    inside = and_(
        *(c.environment == first.environment, c.provider == first.provider, c.realm == before),
        or_(c.realm_name.in_(names), c.declared_realm_name.in_(names)),
    )
    lock_live_systems(tx, {record.live_system_id for record in records(tx, select_records().where(inside))})
    found = records(tx, select_records().where(inside))
    for bound in same:
        realm_bindings.bind(tx, replace(bound, realm=after, first_at=tx.now, other=None, other_by=None, other_at=None))
    why = f"it is gone with {before!r}, in which it was: {first.title} is {after!r} now"
    ended = [replace(record, message=why) for record in found if record.deleting]
    kept = [record for record in found if not record.deleting]
    live_systems = sorted({record.live_system_id for record in found})
    end_deletions(tx, ended, by)
    _forget(tx, kept, f"{first.title} is {after!r} now: not read there yet")
    access.refresh(tx, {(first.provider, before), (first.provider, after)})
    old = [record.identity_key for record in kept if record.identity_key is not None]
    move(tx, kept, dict.fromkeys((record.uid for record in kept), after))
    resources.forget_gone(tx, old)
    message = f"{first.title} is {after!r} from now on, it was {before!r}: {reason}"
    realm_bindings.record_event(tx, EventKind.REALM_ACCEPTED, by, message, (before, after), live_systems)
    return {"before": before, "after": after, "components": len(kept), "ended": len(ended)}


def _forget(tx: Tx, kept: Sequence[ComponentRecord], message: str) -> None:
    """Forget all that was known of what is in another realm now: what is there says its tags.

    As an import it is judged by them, shown before anything is written, and not created while nobody deploys it again.
    """
    for record in kept:
        blank = blank_columns()
        for name in _FORGOTTEN:
            setattr(record, name, blank[name])
        record.stance, record.message, record.last_updated = Stance.IMPORTED.value, message, tx.now
        record.request, record.overdue = None, False
    update_records(tx, kept, (*_FORGOTTEN, "request", "overdue", "last_updated"))
