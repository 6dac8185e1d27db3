"""Components that host others (a cluster): which of them are published, and what agents need to reach them.

What is in a host is in no scope, and reconciled by nobody, until an agent has said which realm the host is. Changes of
hosts are counted on a scope without a realm, which never has components: agents that can reach declared hosts listen
to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from fractal_cloud.control.store import offers
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import among
from fractal_cloud.control.store.records import ComponentRecord
from fractal_cloud.control.store.schema import components, reaches, scopes
from fractal_cloud.model.host import HOST_NAMES, HostName, host_of, reach_name
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.status import Status
from fractal_cloud.model.wire import Host, Hosts
from fractal_cloud.rules.grants import Grants


@dataclass(frozen=True, slots=True)
class HostState:
    """A declared host. ``name``: what agents call it; None where it is not published. ``since``: its last change."""

    host: HostName
    name: str | None
    vendor: str
    realm: str | None
    status: str
    is_absent: bool
    since: datetime


def host_scope_key(provider: str, environment: str) -> str:
    """The key of the scope on which changes of an environment's hosts are counted."""
    return Scope(provider, "", environment).key


def host_scope_keys(asked: Iterable[tuple[str, str, str]]) -> set[str]:
    """The same for the hosts of components, each given by provider, environment and the name of its realm."""
    return {host_scope_key(provider, environment) for provider, environment, name in asked if host_of(name) is not None}


def states(tx: Tx, provider: str, names: Collection[str]) -> dict[str, HostState]:
    """The state of each host of these names that is declared, as components of this provider need it."""
    wanted = {name: host for name in names if (host := host_of(name)) is not None}
    if not wanted:
        return {}
    needed = offers.hosts(tx, provider)
    c = components.c
    query = select(
        *(c.live_system_id, c.component_id, c.type, c.place, c.parent, c.name),
        *(c.provider, c.realm, c.output_fields, c.status, c.absent_since, c.last_updated),
    ).where(
        among(c.live_system_id, {host.live_system_id for host in wanted.values()}),
        among(c.component_id, {host.component_id for host in wanted.values()}),
    )
    found: dict[str, HostState] = {}
    for row in tx.connection.execute(query):
        host = HostName(*row[:6])
        if str(host) not in wanted:
            continue
        outputs = needed.get(row.type, [])
        is_absent = row.absent_since is not None
        is_early = row.status == Status.INSTANTIATING.value
        found[str(host)] = HostState(
            host=host,
            name=None if is_early or is_absent else _reach_name(row, outputs),
            vendor=row.provider,
            realm=row.realm,
            status=row.status,
            is_absent=is_absent,
            since=row.last_updated,
        )
    return found


def _reach_name(row: Any, outputs: Sequence[str]) -> str | None:
    """What agents call the host of a row; None where it is in no realm yet, or not published."""
    if row.realm is None:
        return None
    identity = (row.type, row.provider, row.realm, row.place, row.parent, row.name)
    return reach_name(identity, row.output_fields, outputs)


def declared(tx: Tx, environment: str, provider: str) -> set[str]:
    """The names of all hosts that have, or are to have, components of a provider."""
    c = components.c
    here = (c.environment == environment, c.provider == provider)
    found: set[str] = set()
    for column in (c.realm_name, c.declared_realm_name):
        query = select(column).where(*here, column.startswith(HOST_NAMES, autoescape=True)).distinct()
        found.update(tx.connection.execute(query).scalars())
    return found


def realms(
    tx: Tx, reached: Mapping[tuple[str, str, str], str], asked: Iterable[tuple[str, str, str]]
) -> dict[tuple[str, str, str], str]:
    """The realms of hosts, by (environment, provider, name), as far as an agent reaches what they published."""
    by_provider: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for environment, provider, name in asked:
        if host_of(name) is not None:
            by_provider[provider].add((environment, name))
    found = {}
    for provider, pairs in by_provider.items():
        published = states(tx, provider, {name for _, name in pairs})
        for environment, name in pairs:
            known = published[name].name if name in published else None
            realm = reached.get((environment, provider, known)) if known is not None else None
            realm = realm and reached.get((environment, provider, name), realm)  # what it was first counts (S26)
            if realm is not None:
                found[environment, provider, name] = realm
    return found


def names_of(tx: Tx, environment: str, reached: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """The realms an agent reaches, by (provider, name), with every host named as the rows of its components do."""
    found = {}
    for provider in {provider for provider, _ in reached}:
        for name, host in states(tx, provider, declared(tx, environment, provider)).items():
            if host.name is not None and (provider, host.name) in reached:
                found[provider, name] = reached[provider, host.name]
    return found


def number(tx: Tx, environment: str, providers: Collection[str]) -> int:
    """A number that changes with every news of the hosts of these providers."""
    if not providers:
        return 0
    keys = [host_scope_key(provider, environment) for provider in providers]
    return sum(tx.connection.execute(_VERSIONS, {"keys": keys}).scalars())


_VERSIONS = select(scopes.c.version).where(among(scopes.c.key, "keys"))


def for_agents(tx: Tx, environment: str, providers: Collection[str], grants: Grants) -> Hosts:
    """All hosts that agents of these providers are to reach with a token that is bound to this (A1)."""
    found = {
        (provider, host.name): _host(provider, host)
        for provider in sorted(providers)
        for host in covered(tx, environment, provider, grants).values()
        if host.name is not None
    }
    return Hosts(number=number(tx, environment, providers), hosts=[found[key] for key in sorted(found)])


def _host(provider: str, state: HostState) -> Host:
    assert state.name is not None, "only what is published is reached"
    return Host(
        provider=provider,
        name=state.name,
        type=state.host.type,
        vendor=state.vendor,
        realm=state.realm or "",
        place=state.host.place,
        resource=state.host.name,
    )


def covered(tx: Tx, environment: str, provider: str, grants: Grants) -> dict[str, HostState]:
    """The declared hosts that a token covers: by LiveSystem/component, or by the id that each is known to have (A1)."""
    if not (grants.has_provider(provider) and grants.has_environment(environment)):
        return {}
    c = reaches.c
    known = select(c.name, c.realm).where(
        c.environment == environment, c.provider == provider, c.name.startswith(HOST_NAMES, autoescape=True)
    )
    by_id = {row.name for row in tx.connection.execute(known) if grants.has_realm(row.realm)}
    every = states(tx, provider, declared(tx, environment, provider))
    return {name: state for name, state in every.items() if name in by_id or grants.has_realm(state.host.shown)}


def places(tx: Tx) -> list[tuple[str, str]]:
    """Provider and environment wherever components are, or ever were, in a host."""
    return [(row.provider, row.place) for row in tx.connection.execute(_PLACES)]


_PLACES = select(scopes.c.provider, scopes.c.place).where(scopes.c.realm == "")


def insides(tx: Tx, records: Iterable[ComponentRecord]) -> Iterator[tuple[str, str, str]]:
    """Where the components in these hosts are: uid and LiveSystem of the host, and how their scopes' keys begin."""
    needed: dict[str, dict[str, dict[str, list[str]]]] = {}
    for record in records:
        environment = record.environment
        if environment not in needed:
            providers = [provider for provider, place in places(tx) if place == environment]
            needed[environment] = {provider: offers.hosts(tx, provider) for provider in providers}
        for provider, outputs in needed[environment].items():
            name = _reach_name(record, outputs.get(record.type, ()))
            realm = _realm(tx, environment, provider, name) if name is not None else None
            if realm is not None:
                yield record.uid, record.live_system_id, Scope(provider, realm, "").key


def _realm(tx: Tx, environment: str, provider: str, name: str) -> str | None:
    c = reaches.c
    query = select(c.realm).where(c.environment == environment, c.provider == provider, c.name == name)
    return tx.connection.execute(query).scalar()
