"""Sealing keys: which public keys belong to a realm, so that secrets for what lives there are sealed to them and to no
others (A5), and which were withdrawn.

A key belongs to a realm while an agent that registered with it was let in there, with a token that is valid and bound
to the environment. How a key is withdrawn, and who hears of keys, is in ``key_withdrawals``; who is let in, in
``approvals``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, bindparam, func, select, true

from fractal_cloud.control.store import approvals, hosts, tokens
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import PreparedStatement, pair_among
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import agent_reaches, agents, withdrawn_keys
from fractal_cloud.control.store.schema import approvals as known
from fractal_cloud.control.store.schema import tokens as token_table
from fractal_cloud.model.host import ANY_HOST
from fractal_cloud.model.sealing import fingerprint
from fractal_cloud.rules.grants import Grants

RECENT: Final = timedelta(hours=1)
"""How long an agent that is not heard of any more still counts: it may just be starting anew, with the same key."""
MOST: Final = 100
"""To how many keys of one realm a value is sealed: those of the agents that were heard of last."""
Realm = tuple[str, str]
"""A provider, and a realm of it."""
Place = tuple[str, str, str]
"""An environment, a provider, and a realm of it in which something of that environment lives."""


def of_places(tx: Tx, places: Iterable[Place]) -> dict[Place, list[str]]:
    """The keys to which a secret for a source in each of these places is sealed: every key of its realm (A5)."""
    found: dict[Place, list[str]] = {place: [] for place in places}
    wanted = [place for place in found if place[2]]  # what is in no realm yet has no keys
    if not wanted:
        return found
    asked = {"realms": list({(provider, realm) for _, provider, realm in wanted}), "since": tx.now - RECENT}
    by_realm: dict[Realm, list[Any]] = defaultdict(list)
    for row in _REGISTERED.rows(tx.connection, asked):
        by_realm[row.provider, row.realm].append(row)
    approved = approvals.approved(tx, {environment for environment, _, _ in wanted})
    hosted = _Hosted(tx)
    for environment, provider, realm in wanted:
        keys = (
            row.public_key
            for row in by_realm[provider, realm]
            if _may_serve(row, environment, tx.now, hosted)
            and approved.has(environment, (provider, realm), row.token_name, row.public_key)
        )
        found[environment, provider, realm] = sorted(list(dict.fromkeys(keys))[:MOST])
    return found


class _Hosted:
    """What people call the declared clusters, by what agents call them; read where an agent reaches one."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[tuple[str, str], dict[str, set[str]]] = {}

    def named(self, environment: str, provider: str, name: str) -> set[str]:
        """The declared clusters that agents call so, as LIVESYSTEM/COMPONENT; none where it is no such name."""
        if not name.startswith(ANY_HOST):
            return set()
        if (environment, provider) not in self._known:
            found = self._known[environment, provider] = defaultdict(set)
            declared = hosts.declared(self._tx, environment, provider)
            for state in hosts.states(self._tx, provider, declared).values():
                if state.name is not None:
                    found[state.name].add(f"{state.host.live_system_id}/{state.host.component_id}")
        return self._known[environment, provider].get(name, set())


def _may_serve(row: Any, environment: str, now: datetime, hosted: _Hosted) -> bool:
    """Whether the agent's token is valid, and bound to what the secret is for."""
    if row.token_id == tokens.ADMIN_ID:
        return True
    if row.role != "agent" or row.waits or (row.expires_at is not None and row.expires_at <= now):
        return False
    grants = Grants.of(row.providers, row.environments, row.realms)
    names = {one["name"] for one in row.reaches if (one["provider"], one["realm"]) == (row.provider, row.realm)}
    names |= {called for name in names for called in hosted.named(environment, row.provider, name)}
    return any(grants.may_serve(row.provider, environment, row.realm, name) for name in names)


def _registered() -> Select[Any]:
    """Agents with keys that are not withdrawn, by the realms at which they were let in, those heard of last first."""
    a, t = agents.c, token_table.c
    who = (a.public_key, a.token_id, a.token_name, a.reaches)
    bound = (t.role, t.waits, t.expires_at, t.providers, t.environments, t.realms)
    return (
        select(agent_reaches.c.provider, agent_reaches.c.realm, *who, *bound)
        .join(agents, a.id == agent_reaches.c.agent_id)
        .outerjoin(token_table, t.id == a.token_id)
        .where(pair_among(agent_reaches.c.provider, agent_reaches.c.realm, "realms"))
        .where(a.public_key != "", ~a.key_withdrawn, a.deadline > bindparam("since", type_=a.deadline.type))
        .order_by(a.deadline.desc(), a.id)
    )


_REGISTERED: Final = PreparedStatement(_registered())


# --- withdrawn ones


def withdrawn(tx: Tx, realms: Iterable[Realm]) -> dict[Realm, list[str]]:
    """The fingerprints of the keys of each realm that were withdrawn."""
    wanted = set(realms)
    found: dict[Realm, list[str]] = defaultdict(list)
    if wanted:
        for row in _WITHDRAWN.rows(tx.connection, {}):
            if (row.provider, row.realm) in wanted:
                found[row.provider, row.realm].append(row.fingerprint)
    return found


_WITHDRAWN: Final = PreparedStatement(
    select(known.c.provider, known.c.realm, withdrawn_keys.c.fingerprint)
    .join(withdrawn_keys, withdrawn_keys.c.public_key == known.c.public_key)
    .distinct()
    .order_by(known.c.provider, known.c.realm, withdrawn_keys.c.fingerprint)
)


def is_withdrawn(tx: Tx, public_key: str) -> bool:
    """Whether nothing is sealed to a key any more."""
    query = select(withdrawn_keys.c.fingerprint).where(withdrawn_keys.c.public_key == public_key)
    return tx.connection.execute(query).first() is not None


# --- what operators see


def list_all(tx: Tx) -> list[Json]:
    """Every key that was ever seen at a realm, and whether an agent with it is alive."""
    return sorted(_list(tx, true()), key=lambda one: str(one["id"]))


def find(tx: Tx, key: str) -> str | None:
    """The public key of a fingerprint, if it was ever seen at a realm."""
    every = tx.connection.execute(select(known.c.public_key).distinct()).scalars()
    return next((public_key for public_key in every if public_key and fingerprint(public_key) == key), None)


def of_key(tx: Tx, public_key: str) -> list[Json]:
    """A key at every realm where it was seen."""
    return _list(tx, known.c.public_key == public_key)


def _list(tx: Tx, which: ColumnElement[bool]) -> list[Json]:
    alive = select(func.count()).where(agents.c.public_key == known.c.public_key, agents.c.deadline > tx.now)
    gone = withdrawn_keys.c
    query = (
        select(known, gone.at, gone.by, gone.reason, alive.scalar_subquery().label("alive"))
        .outerjoin(withdrawn_keys, gone.public_key == known.c.public_key)
        .where(which, known.c.public_key != "", known.c.realm != "")
        .order_by(known.c.environment, known.c.provider, known.c.realm, known.c.token_name)
    )
    return [_described(row) for row in tx.connection.execute(query)]


def _described(row: Any) -> Json:
    key = fingerprint(row.public_key)
    return {
        "id": "/".join((key, row.environment, row.provider, row.realm, row.token_name)),
        "fingerprint": key,
        "environment": row.environment,
        "provider": row.provider,
        "realm": row.realm,
        "token": row.token_name,
        "agentId": row.agent_id,
        "firstAt": row.first_at,
        "approved": row.approved_at is not None,
        "alive": bool(row.alive),
        "withdrawnAt": row.at,
        "withdrawnBy": row.by,
        "reason": row.reason,
    }
