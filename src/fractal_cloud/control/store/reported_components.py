"""The components that reports are about: locked first, then read by one statement with all that a check needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import Now, PreparedStatement, among
from fractal_cloud.control.store.placement import lock_live_systems_of
from fractal_cloud.control.store.records import ComponentRecord, select_records, to_record
from fractal_cloud.control.store.schema import components, live_systems, scopes, types
from fractal_cloud.control.store.summaries import Kept
from fractal_cloud.rules.hiding import Hiding, Marks


@dataclass(slots=True)
class ReportedComponents:
    """Components by uid, and the versions their scopes' work had when read.

    ``linked``: of their types, the parameters that only links set, as their agents registered them.
    ``hidden``: of their types, how what may hold a secret is hidden (A8).
    ``in_recovery``: those of whose LiveSystem nothing may be written (C9).
    ``kept``: what is kept of their LiveSystems.
    """

    records: dict[str, ComponentRecord] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    linked: dict[str, list[str]] = field(default_factory=dict)
    hidden: dict[str, Hiding] = field(default_factory=dict)
    in_recovery: set[str] = field(default_factory=set)
    kept: dict[str, Kept] = field(default_factory=dict)


# The time is read here, and not sooner: a deploy that this report had to wait for came before it (S2, S4a).
# Looked up row by row: joined, PostgreSQL reads all scopes for the few that are asked for.
_COMPONENTS: Final = PreparedStatement(
    select_records()
    .add_columns(
        Now().label("now"),
        select(scopes.c.version).where(scopes.c.key == components.c.scope_key).scalar_subquery().label("scope_version"),
        select(live_systems.c.in_recovery)
        .where(live_systems.c.id == components.c.live_system_id)
        .scalar_subquery()
        .label("in_recovery"),
        select(types.c.linked).where(types.c.type == components.c.type).scalar_subquery().label("linked"),
        select(types.c.hidden).where(types.c.type == components.c.type).scalar_subquery().label("hidden"),
    )
    .where(among(components.c.uid, "uids"))
)


def lock_components(tx: Tx, uids: Collection[str]) -> ReportedComponents:
    """Lock the LiveSystems of components, and read these; none of them changes any more until the transaction ends."""
    found = ReportedComponents()
    held = found.kept = lock_live_systems_of(tx, uids)
    for row in _COMPONENTS.rows(tx.connection, {"uids": uids}):
        if row.live_system_id not in held:
            continue  # deployed since the others were locked
        tx.set_time(row.now)
        record = found.records[row.uid] = to_record(row)
        if record.scope_key is not None:
            found.versions[record.scope_key] = row.scope_version
        found.linked[record.type] = row.linked or []
        if record.type not in found.hidden:
            found.hidden[record.type] = Hiding(Marks.from_json(row.hidden))
        if row.in_recovery:
            found.in_recovery.add(row.uid)
    return found
