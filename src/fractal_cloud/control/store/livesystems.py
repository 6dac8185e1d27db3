"""LiveSystems: deployed, deleted, read. What becomes of each component is computed in ``merge`` and written here."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, delete, exists, func, insert, select, update

from fractal_cloud.control.store import hosts, links, listing, mutations, scopes, staleness, visibility
from fractal_cloud.control.store import realm_bindings as realm_store
from fractal_cloud.control.store.agents import all_agents, realms
from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.declaration_merge import Merge, Target, merge, remove_all
from fractal_cloud.control.store.driver import among, chunks, insert_missing
from fractal_cloud.control.store.errors import NotFound, Refused, Stale
from fractal_cloud.control.store.listing import NO_FILTERS, Filters, Order, Page, Place
from fractal_cloud.control.store.placement import foreign_message, forget_left, lock_live_systems, recall_overrides
from fractal_cloud.control.store.records import (
    ComponentRecord,
    Json,
    delete_records,
    insert_records,
    records_of,
    update_records,
)
from fractal_cloud.control.store.schema import components, live_systems, refers
from fractal_cloud.control.store.staleness import LiveSystemStaleness
from fractal_cloud.control.store.visibility import Environments
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.host import ANY_HOST, host_of
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.observed import BEGUN_ANEW
from fractal_cloud.model.wire import refused_event
from fractal_cloud.rules.identify import DeclaredIdentity

# What a deploy or delete changes in a row that stands; the observed half but for its message is the agent's.
_DESIRED: Final = (
    *("component_id", "position", "type", "provider", "environment", "declaration", "generation", "deleting"),
    *("request", "message", "last_updated", "work_version", "declared_version", "realm", "scope_key", "identity_key"),
    *("place", "name", "parent", "declared_place", "declared_name", "declared_parent"),
    *("realm_name", "declared_realm_name", "waits_for", "stuck", *BEGUN_ANEW, "bound", "left_dependents"),
)


@dataclass(frozen=True, slots=True)
class Deploy:
    """A declaration that was found good, who deploys it, and what must hold for it to be taken.

    ``expected``: the generations of which one must stand (``If-Match``); empty for none. ``must_be_new``: ``POST``.
    """

    declaration: LiveSystemDeclaration
    identities: Mapping[str, DeclaredIdentity]
    by: str
    expected: frozenset[str] = frozenset()
    must_be_new: bool = False


def deploy(tx: Tx, wanted: Deploy) -> str:
    """Replace the declaration of a LiveSystem, or add it; returns the id of the mutation that carries it out."""
    declaration = wanted.declaration
    lock_live_systems(tx, [declaration.id])
    if find(tx, declaration.id) is None:
        _reserve(tx, declaration)
    stored = find(tx, declaration.id)
    _check_preconditions(declaration.id, stored if stored.generation else None, wanted)
    generation = stored.generation + 1
    rows = records_of(tx, declaration.id)
    reached = realms(tx, also=host_names(declaration, wanted.identities))
    merged = merge(rows, Target(declaration, wanted.identities, reached, generation, tx.now))
    if merged.errors:
        raise DeclarationError(merged.errors)
    forget_left(tx, recall_overrides(tx, merged.added))
    _write_live_system(tx, declaration, generation)
    visibility.note(tx, declaration.id, declaration.environment)
    mutation_id = mutations.begin(tx, declaration.id, "deploy", generation, wanted.by)
    tx.recount.add(declaration.id)
    _explain_others(tx, merged)
    _write(tx, rows, merged)
    _point_at(tx, declaration.id, mutation_id)
    tx.record(PendingEvent(declaration.id, EventKind.DEPLOYED, wanted.by, message=f"generation {generation}"))
    if stored.in_recovery:
        end_recovery(tx, declaration.id, "deployed again after a restore; not reconciled yet")
        tx.record(PendingEvent(declaration.id, EventKind.RECOVERY_CONFIRMED, wanted.by, message="deployed again"))
    _record_voided(tx, merged)
    return mutation_id


def end_recovery(tx: Tx, live_system_id: str, message: str) -> None:
    """Let a LiveSystem of a backup be written to again; each component is shown for a cycle before that (C9, S12a)."""
    here = update(live_systems).where(live_systems.c.id == live_system_id)
    tx.connection.execute(here.values(in_recovery=False, recovery_plan=None))
    of_backup = update(components).where(components.c.live_system_id == live_system_id, components.c.restored)
    tx.connection.execute(of_backup.values(message=message, stuck=False, last_updated=tx.now))
    tx.recount.add(live_system_id)


def host_names(
    declaration: LiveSystemDeclaration, identities: Mapping[str, DeclaredIdentity]
) -> set[tuple[str, str, str]]:
    """What a declaration calls the realms its components are in, with environment and provider."""
    return {(declaration.environment, c.provider, identities[c.id].realm) for c in declaration.components}


def find(tx: Tx, live_system_id: str) -> Any:
    """The row of a LiveSystem, or None."""
    return tx.connection.execute(select(live_systems).where(live_systems.c.id == live_system_id)).first()


def require(tx: Tx, live_system_id: str) -> Any:
    """The row of a LiveSystem that must be there."""
    row = find(tx, live_system_id)
    if row is None:
        raise NotFound(f"there is no LiveSystem {live_system_id!r}: GET /livesystems lists them")
    return row


def _check_preconditions(live_system_id: str, stored: Any, wanted: Deploy) -> None:
    if stored is not None and wanted.must_be_new:
        raise Refused(f"LiveSystem {live_system_id!r} exists: redeploy it with PUT /livesystems/{live_system_id}")
    if stored is not None and stored.deleting and not stored.in_recovery:
        raise Refused(f"LiveSystem {live_system_id!r} is being deleted: deploy it again once it is gone")
    check_expected(live_system_id, stored, wanted.expected)
    check_environment(stored, wanted.declaration)


def check_environment(stored: Any, declaration: LiveSystemDeclaration) -> None:
    """Refuse another environment: what is there would stay with the agents of the one before (C10)."""
    if stored is not None and stored.environment != declaration.environment:
        raise DeclarationError(
            [
                InputError(
                    "environment",
                    f"is {declaration.environment!r}, but LiveSystem {declaration.id!r} is deployed in "
                    f"{stored.environment!r}, and that cannot change: deploy it under another id, or delete it and "
                    "deploy it again",
                )
            ]
        )


def check_expected(live_system_id: str, stored: Any, expected: frozenset[str]) -> None:
    """Refuse where the caller expects another generation than the stored one (``If-Match``)."""
    if not expected:
        return
    if stored is None:
        raise Stale(f"there is no LiveSystem {live_system_id!r}, but If-Match expects one: leave If-Match out")
    if "*" not in expected and str(stored.generation) not in expected:
        raise Stale(
            f"LiveSystem {live_system_id!r} is at generation {stored.generation}, not at the one If-Match names: "
            "read it again, and decide anew"
        )


def _reserve(tx: Tx, declaration: LiveSystemDeclaration) -> None:
    """Reserve a new id, or wait for whoever is just reserving it: then it has a generation already."""
    row = {
        "id": declaration.id,
        **_header(declaration),
        "generation": 0,
        "deployed_at": tx.now,
        "deleting": False,
        "mutation_id": "",
        "last_updated": tx.now,
    }
    insert_missing(tx.connection, live_systems, [row])
    lock_live_systems(tx, [declaration.id])


def _header(declaration: LiveSystemDeclaration) -> Json:
    return {
        "environment": declaration.environment,
        "description": declaration.description,
        "readoption": declaration.readoption,
        "tags": declaration.tags,
    }


def _write_live_system(tx: Tx, declaration: LiveSystemDeclaration, generation: int) -> None:
    tx.connection.execute(
        update(live_systems)
        .where(live_systems.c.id == declaration.id)
        .values(**_header(declaration), generation=generation, deployed_at=tx.now, deleting=False)
    )


def _point_at(tx: Tx, live_system_id: str, mutation_id: str) -> None:
    tx.connection.execute(
        update(live_systems).where(live_systems.c.id == live_system_id).values(mutation_id=mutation_id)
    )


def _write(tx: Tx, before: Sequence[ComponentRecord], merged: Merge) -> None:
    """Write the rows of a merge, and notify every scope that has or had one of them."""
    keys = {r.scope_key for r in (*before, *merged.all) if r.scope_key is not None}
    linked = links.elsewhere(tx, before) | links.elsewhere(tx, merged.all)
    host_scopes = hosts.host_scope_keys(
        (r.provider, r.environment, name)
        for r in (*before, *merged.all)
        for name in (r.realm_name, r.declared_realm_name)
    )
    versions = scopes.renew_work(tx, keys | set(linked.values()) | host_scopes)
    scopes.mark_news(tx, linked, versions)
    for record in merged.all:
        record.declared_in(versions.get(record.scope_key or "", 0))
    changed = [r for r in (*merged.kept, *merged.removed) if r.uid not in merged.replaced]
    replaced = [r for r in merged.kept if r.uid in merged.replaced]
    delete_records(tx, merged.replaced.values())
    _free_ids(tx, before, changed)
    update_records(tx, changed, _DESIRED)
    insert_records(tx, [*merged.added, *replaced])
    left = [(str(old.scope_key), old.uid) for old in merged.replaced.values() if old.scope_key is not None]
    scopes.depart(tx, left, versions)
    _write_references(tx, merged.all)


def _free_ids(tx: Tx, before: Sequence[ComponentRecord], changed: Sequence[ComponentRecord]) -> None:
    """Let go of ids that are about to be handed from row to row: they are unique in a LiveSystem at every step."""
    old = {record.uid: record.component_id for record in before}
    rows = [{"_uid": r.uid} for r in changed if old.get(r.uid) != r.component_id]
    if rows:
        statement = update(components).where(components.c.uid == bindparam("_uid"))
        tx.connection.execute(statement.values(component_id=components.c.uid), rows)


def _write_references(tx: Tx, rows: Sequence[ComponentRecord]) -> None:
    if not rows:
        return
    live_system_id = rows[0].live_system_id
    tx.connection.execute(delete(refers).where(refers.c.live_system_id == live_system_id))
    found = [
        {"live_system_id": live_system_id, "source": record.component_id, "target": target, "kind": kind}
        for record in rows
        for target, kind in sorted(record.references())
    ]
    if found:
        tx.connection.execute(insert(refers), found)


def _explain_others(tx: Tx, merged: Merge) -> None:
    """Say at once of what is in a realm that another one is reached for that nobody can tend it (S26)."""
    others = realm_store.others(tx)
    if not others:
        return
    for record in merged.all:
        other = others.get((record.environment, record.provider, record.realm_name))
        if other and record.realm and not realm_store.is_reached(tx, record.provider, record.realm):
            record.message, record.stuck = foreign_message(record, other), True


def _record_voided(tx: Tx, merged: Merge) -> None:
    for record, kind in merged.voided:
        tx.record(
            PendingEvent(
                record.live_system_id,
                refused_event(kind),
                "control plane",
                record.component_id,
                "the LiveSystem was deployed again since: ask once more",
            )
        )


def remove(tx: Tx, live_system_id: str, by: str, expected: frozenset[str] = frozenset()) -> str:
    """Begin to delete a LiveSystem; asked twice, the answer is the same mutation, and what was refused is tried now."""
    lock_live_systems(tx, [live_system_id])
    stored = require(tx, live_system_id)
    check_expected(live_system_id, stored, expected)
    if stored.deleting:
        _try_again(tx, live_system_id)
        return str(stored.mutation_id)
    generation = stored.generation + 1
    rows = records_of(tx, live_system_id)
    merged = remove_all(rows, generation, tx.now)
    mutation_id = mutations.begin(tx, live_system_id, "delete", generation, by)
    tx.recount.add(live_system_id)
    _explain_others(tx, merged)
    _write(tx, rows, merged)
    tx.connection.execute(
        update(live_systems)
        .where(live_systems.c.id == live_system_id)
        .values(deleting=True, generation=generation, mutation_id=mutation_id)
    )
    tx.record(PendingEvent(live_system_id, EventKind.DELETE_REQUESTED, by))
    _record_voided(tx, merged)
    end_if_gone(tx, {live_system_id})
    return mutation_id


def _try_again(tx: Tx, live_system_id: str) -> None:
    """Have refused deletions tried at once, whatever their back-off (S21)."""
    refused = [record for record in records_of(tx, live_system_id) if record.refusal is not None]
    versions = scopes.renew_work(tx, {record.scope_key for record in refused if record.scope_key is not None})
    for record in refused:
        record.refusal = None
        record.declared_in(versions.get(record.scope_key or "", 0))
    update_records(tx, refused, ("refusal", "work_version", "declared_version"))


def end_if_gone(tx: Tx, live_system_ids: Collection[str]) -> None:
    """Let those of these LiveSystems go that are being deleted and of which nothing is left."""
    if not live_system_ids:
        return
    for live_system_id in list(tx.connection.execute(_GONE, {"ids": live_system_ids}).scalars()):
        mutations.freeze(tx, live_system_id)
        tx.connection.execute(delete(live_systems).where(live_systems.c.id == live_system_id))
        tx.record(PendingEvent(live_system_id, EventKind.DELETED, "control plane"))


_GONE: Final = (
    select(live_systems.c.id)
    .where(among(live_systems.c.id, "ids"), live_systems.c.deleting)
    .where(~exists().where(components.c.live_system_id == live_systems.c.id))
    .order_by(live_systems.c.id)
)


def get(tx: Tx, live_system_id: str) -> Json:
    """One LiveSystem: what is declared, and how it is doing."""
    return with_components(tx, _summaries(tx, [require(tx, live_system_id)]))[0]


def summary(tx: Tx, live_system_id: str) -> Json:
    """How one LiveSystem is doing, without what it declares."""
    return _summaries(tx, [require(tx, live_system_id)])[0]


def declaration(tx: Tx, live_system_id: str) -> Json:
    """What is declared, as it could be deployed again."""
    described = get(tx, live_system_id)
    names = ("id", "environment", "description", "readoption", "tags", "components")
    return {name: described[name] for name in names}


def list_page(
    tx: Tx, place: Place, filters: Filters = NO_FILTERS, order: Order = Order.ID, sees: Environments = None
) -> Page:
    """Summaries of LiveSystems, as far as somebody may see them, and how many there are in all."""
    found = listing.ranked(listing.live_system_conditions(tx, filters, sees))
    total = tx.connection.execute(select(func.count()).select_from(found)).scalar_one()
    query = select(found).order_by(*listing.ordered(found, order)).offset(place.offset).limit(place.limit + 1)
    if place.cursor is not None:
        query = query.where(listing.after(found, order, place.cursor))
    rows = tx.connection.execute(query).all()
    shown = rows[: place.limit]
    more = listing.cursor_of(shown[-1], order) if len(rows) > place.limit else None
    return Page(_summaries(tx, shown), more, total)


def with_components(tx: Tx, found: Sequence[Json]) -> list[Json]:
    """Summaries with all that is declared."""
    declared: dict[str, list[Json]] = {one["id"]: [] for one in found}
    c = components.c
    for some in chunks(declared):
        declarations = (
            select(c.live_system_id, c.declaration).where(c.live_system_id.in_(some), ~c.deleting).order_by(c.position)
        )
        for row in tx.connection.execute(declarations):
            declared[row.live_system_id].append(row.declaration)
    return [{**one, "components": declared[one["id"]]} for one in found]


def _summaries(tx: Tx, rows: Sequence[Any]) -> list[Json]:
    stale = staleness.of_live_systems(tx, [row.id for row in rows])
    return [_summary(row, stale[row.id]) for row in rows]


def _summary(row: Any, stale: LiveSystemStaleness) -> Json:
    return {
        "id": row.id,
        "environment": row.environment,
        "description": row.description,
        "readoption": row.readoption,
        "tags": row.tags,
        "status": row.status,
        "counts": row.counts,
        "overrides": row.overrides,
        "overdue": row.overdue,
        "oldestOverride": row.oldest_override,
        "drifted": row.drifted,
        **stale.described(),
        "generation": row.generation,
        "mutationId": row.mutation_id,
        "deleting": row.deleting,
        "inRecovery": row.in_recovery,
        "deployedAt": row.deployed_at,
        "lastUpdated": row.last_updated,
    }


def warnings(tx: Tx, wanted: Deploy) -> list[str]:
    """What a deployer should know at once: which providers, or realms in them, no agent serves."""
    declaration = wanted.declaration
    served = {
        name
        for agent in all_agents(tx)
        if agent.environment == declaration.environment and agent.deadline > tx.now
        for name in agent.realms
    }
    providers = {provider for provider, _ in served}
    unserved = {(c.provider, _asked(wanted.identities[c.id].realm)) for c in declaration.components} - served
    named = sorted({(provider, realm if provider in providers else "") for provider, realm in unserved})
    return [
        unserved_message(provider, declaration.environment, "" if name == ANY_HOST else name)
        for provider, name in named
    ]


def _asked(realm_name: str) -> str:
    """The name by which an agent must reach a realm, or say that it can reach declared hosts."""
    return ANY_HOST if host_of(realm_name) is not None else realm_name


def never_served_message(provider: str, environment: str) -> str:
    """That it waits for the first agent of its environment, and what to do (S21)."""
    return (
        f"waits for an agent: none has registered in environment {environment!r} yet; "
        f"start one with `fractal agent --provider {shlex.quote(provider)} --environment {shlex.quote(environment)}`"
    )


def unbound_message(provider: str, realm: str, environment: str, agents: Sequence[str]) -> str:
    """That the agents that reach a realm have tokens for other environments only, and what to do (A1)."""
    return (
        f"no token of the agents that reach {realm!r} of {provider!r} ({', '.join(agents)}) is bound to environment "
        f"{environment!r}: start one with a token of `{_token_command(provider, [environment], realm)}`"
    )


def shared_message(scope: Scope, environments: Iterable[str], lacking: Mapping[str, Iterable[str]]) -> str:
    """That several environments share a scope, and no agent's token is bound to all of them (A1)."""
    every = sorted(environments)
    missing = "; ".join(f"that of {agent} lacks {', '.join(map(repr, sorted(of)))}" for agent, of in lacking.items())
    command = _token_command(scope.provider, every, scope.realm)
    return (
        f"the environments {', '.join(map(repr, every))} share the scope {scope.key!r}, and no running agent's token "
        f"is bound to all of them ({missing}): start one with a token of `{command}`"
    )


def _token_command(provider: str, environments: Iterable[str], realm: str) -> str:
    flags = [word for environment in environments for word in ("--environment", environment)]
    words = ["fractal", "token", "create", "--role", "agent", "--provider", provider, *flags, "--realm", realm]
    return shlex.join(words)


def unserved_message(provider: str, environment: str, name: str = "") -> str:
    """That nobody serves a provider, or reaches the realm that declarations call so, and what to do (S21)."""
    if name:
        return (
            f"no running agent in environment {environment!r} reaches {name!r} of {provider!r}: "
            "start one that does, or see in the log of the agents why they do not"
        )
    return (
        f"no running agent serves {provider!r} in environment {environment!r}: "
        f"start one with `fractal agent --provider {shlex.quote(provider)} --environment {shlex.quote(environment)}`"
    )


def unapproved_message(provider: str, environment: str, agents: Sequence[str]) -> str:
    """That nobody approved the agents which would serve a provider, and what to do (A2, C8)."""
    names = ", ".join(map(repr, agents))
    return (
        f"nobody approved the agent that reaches {provider!r} in environment {environment!r} ({names}): "
        f"approve it with `fractal agent approve {agents[0]}`, or revoke its token"
    )
