"""Overrides that stand: until when, and by whom, changed by an operator (G13).

Who, why and until when are remembered here and nowhere else: nothing is written to a cloud, and no agent is needed. An
agent publishes them with every report; one that was judged before the change does not undo it (``reports``). How an
override begins and ends does not belong here: see ``requests``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fractal_cloud.control.store import components as component_store
from fractal_cloud.control.store import scopes
from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.errors import Refused
from fractal_cloud.control.store.placement import lock_live_systems
from fractal_cloud.control.store.records import ComponentRecord, Json, iso, update_records
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.wire import RequestKind
from fractal_cloud.rules.status_words import dated_time

UNKNOWN = "nobody known"


@dataclass(frozen=True, slots=True)
class Terms:
    """What an operator changes of an override; None stays as it is. ``asked_by``: the operator's own name."""

    asked_by: str
    until: datetime | None = None
    to: str | None = None
    reason: str | None = None


def extend(tx: Tx, live_system_id: str, component_id: str, terms: Terms) -> Json:
    """Give an override another end, which is no longer overdue then; it stays with whom it is."""
    if terms.until is None or terms.to is not None:
        raise ValueError("an extension names an end, and nobody else")
    return _change(tx, live_system_id, component_id, terms, EventKind.OVERRIDE_EXTENDED)


def hand_over(tx: Tx, live_system_id: str, component_id: str, terms: Terms) -> Json:
    """Put an override in somebody else's name, also one that was found on the cloud and is in nobody's."""
    if terms.to is None:
        raise ValueError("a hand-over names somebody")
    return _change(tx, live_system_id, component_id, terms, EventKind.OVERRIDE_HANDED_OVER)


def _change(tx: Tx, live_system_id: str, component_id: str, terms: Terms, kind: EventKind) -> Json:
    lock_live_systems(tx, [live_system_id])
    record = component_store.require(tx, live_system_id, component_id)
    before = _current(record)
    if before is None:
        raise Refused(_why_not(record))
    after = _with(before, terms)
    if after != before:
        _write(tx, record, terms)
        text = _text(kind, before, after, terms)
        tx.record(PendingEvent(live_system_id, kind, terms.asked_by, component_id, text, before, after))
    return {
        "liveSystemId": live_system_id,
        "componentId": component_id,
        "changed": after != before,
        "before": before,
        "override": after,
        "overdue": record.overdue,
    }


def _current(record: ComponentRecord) -> Json | None:
    """The override as people read it; one that was asked for and not carried out yet has no beginning."""
    if record.override is not None:
        return {name: record.override.get(name) for name in ("since", "by", "reason", "until")}
    if (request := _open_break(record)) is not None:
        return {"since": None, **{name: request.get(name) for name in ("by", "reason", "until")}}
    return None


def _open_break(record: ComponentRecord) -> Json | None:
    request = record.request
    return request if request is not None and request["kind"] == RequestKind.BREAK.value else None


def _why_not(record: ComponentRecord) -> str:
    own = f"fractal glass {record.live_system_id} {record.component_id} --break"
    return (
        f"{record.component_id!r} is {record.status} and not in manual override: nobody holds it, so there is nothing "
        f"to extend or to hand over. Break the glass first: {own}"
    )


def _with(terms_before: Json, terms: Terms) -> Json:
    """Who, why and until when, with what the operator changes."""
    changed = dict(terms_before)
    if terms.until is not None:
        changed["until"] = iso(terms.until)
    if terms.to is not None:
        changed["by"] = terms.to
    if terms.reason is not None:
        changed["reason"] = terms.reason
    return changed


def _write(tx: Tx, record: ComponentRecord, terms: Terms) -> None:
    if record.override is not None:
        record.override = _with(record.override, terms)
    if (request := _open_break(record)) is not None:  # else its agent would publish what was asked for before
        record.request = _with(request, terms)
    if terms.until is not None:
        record.overdue = False
    record.last_updated = tx.now
    versions = scopes.renew_work(tx, {record.scope_key} if record.scope_key is not None else ())
    record.declared_in(versions.get(record.scope_key or "", 0))
    columns = ("override", "request", "overdue", "last_updated", "work_version", "declared_version")
    update_records(tx, [record], columns)


def _text(kind: EventKind, before: Json, after: Json, terms: Terms) -> str:
    if kind is EventKind.OVERRIDE_EXTENDED:
        text = f"{_end(after)}; it was {_end(before)}"
    else:
        text = f"from {before['by'] or UNKNOWN} to {after['by']}, {_end(after)}"
    return f"{text}: {terms.reason}" if terms.reason else text


def _end(override: Json) -> str:
    return f"until {dated_time(override['until'])}" if override["until"] is not None else "without an end"
