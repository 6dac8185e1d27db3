"""Ends deletions that no agent can confirm: because an operator says so (O20), or because what held them is gone.

No cloud is written to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from fractal_cloud.control.store import livesystems, mutations, resources, scopes
from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.errors import NotFound, Refused
from fractal_cloud.control.store.events import status_changed
from fractal_cloud.control.store.listeners import Speaking, listeners
from fractal_cloud.control.store.placement import lock_live_systems
from fractal_cloud.control.store.records import ComponentRecord, delete_records, records_of
from fractal_cloud.control.store.reports import leave_what_they_need, notify_listeners
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import KnownResource


def forget(tx: Tx, live_system_id: str, component_ids: Collection[str], by: str, reason: str) -> str:
    """End the deletion of components without any proof, in an operator's name; returns the mutation's id.

    Their resources are left as they are, «not confirmed», and stay known under their natural identity.
    """
    lock_live_systems(tx, [live_system_id])
    live_system = livesystems.require(tx, live_system_id)
    chosen = _chosen(live_system_id, records_of(tx, live_system_id), component_ids)
    ended = [_ended(record, by, reason) for record in chosen]
    mutations.keep(tx, live_system.mutation_id, ended)
    _remember_resources(tx, ended)
    _leave_their_scopes(tx, ended)
    for record in ended:
        about = (by, record.component_id, record.message, record.resource_id)
        tx.record(PendingEvent(live_system_id, EventKind.FORGOTTEN, *about))
    livesystems.end_if_gone(tx, {live_system_id})
    return str(live_system.mutation_id)


def end_deletions(tx: Tx, ended: Sequence[ComponentRecord], by: str) -> None:
    """End deletions of what can be nowhere any more; each says why in its message."""
    left = [(record.scope_key, record.uid) for record in ended if record.scope_key is not None]
    versions = scopes.renew_work(tx, {key for key, _ in left})
    scopes.depart(tx, left, versions)
    newest = mutations.newest_of(tx, {record.live_system_id for record in ended})
    for record in ended:
        before, record.status = record.status, Status.DELETED.value
        tx.record(status_changed(record, by, before))
        mutations.keep(tx, newest[record.live_system_id], [record])
    delete_records(tx, ended)
    resources.forget_gone(tx, (record.identity_key for record in ended if record.identity_key is not None))
    livesystems.end_if_gone(tx, newest.keys())


def _chosen(live_system_id: str, rows: Sequence[ComponentRecord], names: Collection[str]) -> list[ComponentRecord]:
    """The components that are meant; refused where one is not being deleted, or is needed by what has not ended."""
    by_id = {record.component_id: record for record in rows}
    unknown = sorted(name for name in names if name not in by_id)
    if unknown:
        raise NotFound(f"LiveSystem {live_system_id!r} has no component {', '.join(map(repr, unknown))}")
    declared = sorted(name for name in names if not by_id[name].deleting)
    if declared:
        raise Refused(
            f"{', '.join(declared)} is not being deleted: delete the LiveSystem, or take the component out of its "
            "declaration first"
        )
    for name in names:
        inside = sorted(r.component_id for r in rows if r.component_id not in names and _needs(r, name))
        if inside:
            raise Refused(f"{', '.join(inside)} depends on {name!r} and has not ended: forget it too, or wait")
    return [by_id[name] for name in sorted(names)]


def _needs(record: ComponentRecord, name: str) -> bool:
    return (name, "dependency") in record.references()


def _ended(record: ComponentRecord, by: str, reason: str) -> ComponentRecord:
    what = record.resource_id or f"{record.name!r}, of which no id was ever published"
    return replace(
        record, status=Status.DELETED.value, message=f"left, not confirmed: {what}; {by} ended its deletion: {reason}"
    )


def _remember_resources(tx: Tx, ended: Sequence[ComponentRecord]) -> None:
    """Who owns what was left, and who left it, stays known (O10)."""
    for record in ended:
        if record.identity_key is None or record.scope_key is None:
            continue
        known = KnownResource(
            identity=record.identity_key,
            owner=record.owner,
            resource_id=record.resource_id,
            left_by=record.live_system_id,
            overridden=record.stance == Stance.OVERRIDE.value,
        )
        resources.write(tx, record.scope_key, [known])


def _leave_their_scopes(tx: Tx, ended: Sequence[ComponentRecord]) -> None:
    """Their agents hear that they are gone, and so do the agents of those they referred to."""
    speaking = Speaking({record.uid: record for record in ended}, owners={}, finished={record.uid for record in ended})
    heard = listeners(tx, speaking)
    left = [(record.scope_key, record.uid) for record in ended if record.scope_key is not None]
    needed = leave_what_they_need(tx, ended)
    also_left = {record.uid: record.scope_key for record in needed if record.scope_key is not None}
    keys = {*(key for key, _ in left), *also_left.values()}
    scopes.lock_existing(tx, keys | heard.scope_keys | heard.host_scope_keys)
    versions = scopes.renew_work(tx, keys)
    scopes.mark_news(tx, also_left, versions)
    delete_records(tx, ended)
    scopes.depart(tx, left, versions)
    notify_listeners(tx, ended, heard)
