"""What becomes of components in a host (a cluster) when agents reach it, cannot reach it, or it is gone.

Gone with its host is only what is being deleted, and only where the host was seen to be gone: never because nobody
reaches it (S0), nor because another one answers in its place, before that is accepted (S26).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from sqlalchemy import select

from fractal_cloud.control.store import access, agents, hosts, realms
from fractal_cloud.control.store.access import Access, Said
from fractal_cloud.control.store.agents import Agent
from fractal_cloud.control.store.database import Database, Tx
from fractal_cloud.control.store.driver import among
from fractal_cloud.control.store.ended_deletions import end_deletions
from fractal_cloud.control.store.events import status_changed
from fractal_cloud.control.store.periodic import when_due
from fractal_cloud.control.store.placement import lock_live_systems
from fractal_cloud.control.store.records import (
    ComponentRecord,
    records,
    select_records,
    update_records,
)
from fractal_cloud.control.store.schema import components, live_systems
from fractal_cloud.model.host import HOST_NAMES, host_of
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import Reach
from fractal_cloud.rules.grants import Grants
from fractal_cloud.rules.words import waits_for

BY: Final = "control plane"
PATIENCE: Final = 1.5
"""For how many cycles a host may be out of reach after it was published, before that counts as a failure."""


def place(database: Database, agent: Agent, speaker: Access) -> None:
    """Place the components whose host an agent reaches already: another LiveSystem named the same one before."""
    with database.write() as tx:
        reaches = [Reach(provider=p, name=name, realm=realm) for (p, name), realm in agent.realms.items()]
        allowed = access.allowed_still(tx, speaker, Said(agent.id, agent.environment, reaches))
        agents.enter(tx, agent.id, agent.environment, allowed)
        realms.accept_recreated(tx, agent.environment)
        for provider in agent.hosted:
            _let_wait(tx, agent, provider, hosts.covered(tx, agent.environment, provider, speaker.grants))


def _let_wait(tx: Tx, agent: Agent, provider: str, covered: Collection[str]) -> None:
    """Let components wait for their host again that failed because nobody served it: now somebody does."""
    c = components.c
    waiting = select_records().where(
        *(c.environment == agent.environment, c.provider == provider, c.realm.is_(None)),
        *(c.status == Status.FAILED.value, c.stance == Stance.NONE.value, ~c.established, ~c.deleting),
        among(c.realm_name, covered),
    )
    found = records(tx, waiting)
    lock_live_systems(tx, (record.live_system_id for record in found))
    for record in found:
        host = host_of(record.realm_name)
        record.waits_for = [host.component_id] if host is not None else []
        record.status, record.message = Status.INSTANTIATING.value, waits_for(record.waits_for)
        record.stuck = False
        record.last_updated = tx.now
        tx.record(status_changed(record, agent.id, Status.FAILED.value))
    update_records(tx, found, ("status", "message", "waits_for", "stuck", "last_updated"))


# --- an agent cannot reach it


def has_unreached_news(tx: Tx, agent: Agent, grants: Grants, unreached: Mapping[str, str]) -> bool:
    """Whether any hosted component does not say yet why its host is not reached."""
    return bool(_unreached_news(tx, agent, grants, unreached))


def report_unreached(database: Database, agent: Agent, grants: Grants, unreached: Mapping[str, str]) -> None:
    """Say at hosted components why an agent does not reach their host; some time later that is a failure (S21)."""
    with database.write() as tx:
        news = _unreached_news(tx, agent, grants, unreached)
        if not news:
            return
        lock_live_systems(tx, (record.live_system_id for record in news))
        news = _unreached_news(tx, agent, grants, unreached)
        for record in news:
            record.last_updated = tx.now
            if record.status == Status.FAILED.value:
                tx.record(status_changed(record, agent.id, Status.INSTANTIATING.value))
        update_records(tx, news, ("message", "status", "dealt_generation", "waits_for", "stuck", "last_updated"))


def _unreached_news(tx: Tx, agent: Agent, grants: Grants, unreached: Mapping[str, str]) -> list[ComponentRecord]:
    """The hosted components that no agent reconciles because of it, with the new message."""
    found: list[ComponentRecord] = []
    alive = _alive(tx)
    for provider in agent.hosted:
        known = hosts.covered(tx, agent.environment, provider, grants)
        failing = {name: host for name, host in known.items() if host.name in unreached}
        for record in _hosted_in(tx, agent.environment, provider, failing):
            host = failing[record.realm_name]
            if record.realm is not None and (provider, record.realm) in alive:
                continue  # somebody else reaches it
            why = f"{host.host.component_id!r} is not reached: {unreached[str(host.name)]}"
            is_late = host.since + PATIENCE * timedelta(seconds=agent.cycle_seconds) <= tx.now
            fails = is_late and was_never_reconciled(record)
            if record.message == why and record.stuck == is_late and not fails:
                continue
            record.message, record.stuck = why, is_late
            record.waits_for = [host.host.component_id] if record.realm is None and not fails else []
            if fails:
                record.status, record.dealt_generation = Status.FAILED.value, record.generation
            found.append(record)
    return found


def _hosted_in(tx: Tx, environment: str, provider: str, names: Mapping[str, object]) -> list[ComponentRecord]:
    if not names:
        return []
    c = components.c
    query = select_records().where(
        c.environment == environment, c.provider == provider, c.realm_name.in_(sorted(names))
    )
    return records(tx, query)


def _alive(tx: Tx) -> set[tuple[str, str]]:
    return {reach for agent in agents.all_agents(tx) if agent.deadline > tx.now for reach in agent.reaches}


def was_never_reconciled(record: ComponentRecord) -> bool:
    """Whether no agent has begun with it: then it fails where none can."""
    return (
        record.stance == Stance.NONE.value
        and record.status == Status.INSTANTIATING.value
        and not record.established
        and not record.deleting
    )


# --- it is gone


def end_without_host(database: Database) -> None:
    """End the deletion of what was, or should have been, in a host that is gone or has become another one (O10)."""
    when_due(database, _without_host, _end)


def _end(tx: Tx) -> None:
    lock_live_systems(tx, (record.live_system_id for record in _without_host(tx)))
    end_deletions(tx, _without_host(tx), BY)


def _without_host(tx: Tx) -> list[ComponentRecord]:
    c = components.c
    going: list[ComponentRecord] = []
    for provider, environment in hosts.places(tx):
        here = (c.environment == environment, c.provider == provider)
        in_hosts = c.realm_name.startswith(HOST_NAMES, autoescape=True)
        confirmed = c.live_system_id.not_in(select(live_systems.c.id).where(live_systems.c.in_recovery))
        going += records(tx, select_records().where(*here, in_hosts, c.deleting, confirmed))
    if not going:
        return []
    alive = _alive(tx)
    found = []
    for provider in {record.provider for record in going}:
        of_it = [record for record in going if record.provider == provider]
        known = hosts.states(tx, provider, {record.realm_name for record in of_it})
        for record in of_it:
            why = _why_gone(record, known.get(record.realm_name))
            if why and (provider, record.realm) not in alive:
                found.append(replace(record, message=why))
    return found


def _why_gone(record: ComponentRecord, host: hosts.HostState | None) -> str:
    """Why nothing of it can be there any more; empty where that is not certain."""
    named = host_of(record.realm_name)
    called = repr(named.component_id) if named is not None else "its host"
    if record.realm is None and not record.established and (host is None or host.name is None):
        return f"it was never made: {called} was not there"
    if host is None or host.is_absent:
        return f"it is gone with {called}, in which it was"
    return ""
