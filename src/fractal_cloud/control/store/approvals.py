"""Who is known at a realm: agents by the name of their token and their sealing key, and who of them waits (A2).

An agent that comes with another key, or reaches a further realm, is new there. In an environment that requires approval
it waits: nothing is leased, handed or sealed to it until an operator has approved it, nor after that was withdrawn.
What it means for an agent to be let in, or held back, stands in ``agents``.

Agents that come with a new key each time fill nothing (A9): so many of a token wait, and so many are known that nobody
was asked about. What an operator approved is forgotten with its token alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update

from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.driver import insert_missing, upsert
from fractal_cloud.control.store.errors import AgentRefused, NotFound, Refused
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import agents, approvals, environments, reaches, tokens, withdrawn_keys
from fractal_cloud.control.store.tokens import ADMIN_ID
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.sealing import fingerprint

Realm = tuple[str, str]
"""A provider, and an account (or the like) there."""
NOT_ASKED: Final = ""
"""Who approved what came while nobody had to."""
MOST_WAITING: Final = 50
"""So many keys of one token wait at a time; who comes with another one is refused."""
MOST_KNOWN: Final = 20_000
"""So much is known of the keys of one token, each at a realm, that nobody was asked about; the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Who registers: an agent, by what it is recognised again."""

    agent_id: str
    environment: str
    token_name: str
    public_key: str

    @property
    def key(self) -> str:
        """Its sealing key as people name it."""
        return fingerprint(self.public_key) if self.public_key else "none"


# --- whether anybody has to be approved


def requiring(tx: Tx) -> set[str]:
    """The environments that require approval of whoever is new."""
    return set(tx.connection.execute(select(environments.c.name).where(environments.c.approve_agents)).scalars())


def described_environments(tx: Tx) -> list[Json]:
    """Every environment of which something was set, by name."""
    rows = tx.connection.execute(select(environments).order_by(environments.c.name))
    return [{"name": row.name, "approveAgents": row.approve_agents} for row in rows]


def require(tx: Tx, environment: str, *, approval: bool, by: str) -> list[Json]:
    """Require approval of whoever comes from now on, or no longer; then all who wait are let in, and returned.

    Whoever was there before is not new, and needs none.
    """
    if (environment in requiring(tx)) is not approval:
        word = "is" if approval else "is no longer"
        message = f"approval of new agents and keys {word} required in environment {environment!r}"
        tx.record(
            PendingEvent("", EventKind.APPROVAL_CHANGED, by, message=message, before=not approval, after=approval)
        )
    upsert(tx.connection, environments, [{"name": environment, "approve_agents": approval}])
    return [] if approval else _approve(tx, approvals.c.environment == environment, by)


# --- who comes


def note(tx: Tx, who: Newcomer, reached: Iterable[Realm]) -> set[Realm]:
    """Note an agent at the realms it reaches, with an event where it is new; returns those where it waits."""
    c = approvals.c
    here = and_(c.environment == who.environment, c.token_name == who.token_name)
    # Locked: an approval that is withdrawn at this moment is so before the agent is let in, or after it, not beside.
    query = select(c.provider, c.realm, c.public_key, c.approved_at).where(here).with_for_update(read=True)
    known = tx.connection.execute(query).all()
    of_key = {(row.provider, row.realm): row.approved_at for row in known if row.public_key == who.public_key}
    new = sorted(set(reached) - of_key.keys())
    if new:
        waits = _guarded(tx, who.environment, new)
        approved = {realm: None if realm in waits else tx.now for realm in new}
        if waits:
            _refuse_another_waiting(tx, who)
        if len(waits) < len(new):
            _forget_unasked(tx, who.token_name)
        insert_missing(tx.connection, approvals, [_row(who, realm, tx, approved[realm]) for realm in new])
        of_key |= approved
        _record_new(tx, who, new, {(row.provider, row.realm) for row in known}, waits=bool(waits))
    return {realm for realm in reached if of_key[realm] is None}


def _refuse_another_waiting(tx: Tx, who: Newcomer) -> None:
    c = approvals.c
    query = select(c.public_key).where(c.token_name == who.token_name, c.approved_at.is_(None)).distinct()
    others = set(tx.connection.execute(query).scalars()) - {who.public_key}
    if len(others) >= MOST_WAITING:
        raise AgentRefused(
            f"{len(others)} keys of token {who.token_name!r} wait for approval already: approve those you know with "
            "`fractal agent approve`, or revoke the token"
        )


def _forget_unasked(tx: Tx, token_name: str) -> None:
    """Forget the oldest of what nobody was asked about, where there is too much of it; not what agents have in use."""
    c = approvals.c
    unasked = and_(c.token_name == token_name, c.approved_by == NOT_ASKED, c.approved_at.is_not(None))
    too_many = (tx.connection.execute(select(func.count()).where(unasked)).scalar() or 0) - MOST_KNOWN + 1
    if too_many <= 0:
        return
    in_use = select(agents.c.public_key).where(agents.c.token_name == token_name, agents.c.deadline > tx.now)
    key = (c.environment, c.provider, c.realm, c.public_key)
    query = select(*key).where(unasked, c.public_key.not_in(in_use)).order_by(c.first_at).limit(max(too_many, 1))
    for row in tx.connection.execute(query).all():
        is_it = and_(*(column == value for column, value in zip(key, row, strict=True)))
        tx.connection.execute(delete(approvals).where(c.token_name == token_name, is_it))


def _guarded(tx: Tx, environment: str, realms: Collection[Realm]) -> set[Realm]:
    """Those of some realms at which who is new waits: of an environment that requires it, or shared with such a one."""
    asking = requiring(tx)
    if not asking or environment in asking:
        return set(realms) if asking else set()
    query = select(reaches.c.provider, reaches.c.realm).where(reaches.c.environment.in_(asking))
    return set(realms) & {(row.provider, row.realm) for row in tx.connection.execute(query)}


def _row(who: Newcomer, realm: Realm, tx: Tx, approved: Any) -> Json:
    return {
        "environment": who.environment,
        "provider": realm[0],
        "realm": realm[1],
        "token_name": who.token_name,
        "public_key": who.public_key,
        "agent_id": who.agent_id,
        "first_at": tx.now,
        "approved_at": approved,
        "approved_by": NOT_ASKED,
    }


def _record_new(tx: Tx, who: Newcomer, new: Sequence[Realm], of_token: Collection[Realm], *, waits: bool) -> None:
    """One event for the realms where the token is new, and one for those where only its key is."""
    kinds = {EventKind.NEW_AGENT: False, EventKind.NEW_KEY: True}
    for kind, is_known in kinds.items():
        where = [realm for realm in new if (realm in of_token) is is_known]
        if not where:
            continue
        what = "brings a new sealing key" if is_known else "is new"
        message = (
            f"agent {who.agent_id!r} with token {who.token_name!r} {what} at {named(where)} "
            f"in environment {who.environment!r} (key {who.key})"
        )
        if waits:
            message += f"; it waits until somebody approves it: fractal agent approve {who.agent_id}"
        tx.record(PendingEvent("", kind, who.agent_id, message=message, after=[list(realm) for realm in where]))


def named(realms: Iterable[Realm]) -> str:
    """Realms as people read them; the one without a name stands for the clusters that are declared."""
    return ", ".join(
        f"{provider} {realm!r}" if realm else f"declared hosts of {provider}" for provider, realm in realms
    )


# --- who was approved


def approve(tx: Tx, wanted: str, by: str) -> list[Json]:
    """Approve whoever waits under this agent's id, or with this key or fingerprint of one; returns what waited."""
    c = approvals.c
    of_key = {row.public_key for row in waiting(tx) if wanted in (row.public_key, fingerprint(row.public_key))}
    found = _approve(tx, (c.agent_id == wanted) | c.public_key.in_(of_key), by)
    if not found:
        raise NotFound(f"no agent {wanted!r} waits for approval, nor a key of that name: GET /agents lists who waits")
    return found


def _approve(tx: Tx, which: ColumnElement[bool], by: str) -> list[Json]:
    c = approvals.c
    here = and_(which, c.approved_at.is_(None))
    found = tx.connection.execute(select(approvals).where(here).order_by(c.environment, c.agent_id)).all()
    tx.connection.execute(update(approvals).where(here).values(approved_at=tx.now, approved_by=by))
    for row in found:
        message = (
            f"agent {row.agent_id!r} with token {row.token_name!r} is approved at "
            f"{named([(row.provider, row.realm)])} in environment {row.environment!r} (key {_key(row)})"
        )
        tx.record(PendingEvent("", EventKind.AGENT_APPROVED, by, message=message))
    return [described(row) for row in found]


def withdraw(tx: Tx, wanted: str, by: str, reason: str) -> list[Json]:
    """Withdraw the approval of an agent, given by its id, or of a key or its fingerprint; returns what it loses.

    It waits from now on, in the environments that require approval; ``agents.hold_back`` takes from it what it has.
    """
    c = approvals.c
    approved = tx.connection.execute(select(approvals).where(c.approved_at.is_not(None))).all()
    of_agent = select(agents.c.environment, agents.c.token_name, agents.c.public_key).where(agents.c.id == wanted)
    now = {tuple(row) for row in tx.connection.execute(of_agent)}
    meant = [
        row
        for row in approved
        if wanted in (row.agent_id, row.public_key, _key(row))
        or (row.environment, row.token_name, row.public_key) in now
    ]
    if not meant:
        raise NotFound(f"no agent {wanted!r} is approved, nor a key of that name: GET /sealing-keys lists them")
    asking = requiring(tx)
    found = [row for row in meant if row.environment in asking]
    if not found:
        raise Refused(
            f"environment {meant[0].environment!r} does not require approval, and lets in whoever comes: revoke the "
            f"token with `fractal token revoke {meant[0].token_name}`, or require approval first"
        )
    for row in found:
        message = (
            f"agent {row.agent_id!r} with token {row.token_name!r} is no longer approved at "
            f"{named([(row.provider, row.realm)])} in environment {row.environment!r} (key {_key(row)}): {reason}"
        )
        tx.record(PendingEvent("", EventKind.APPROVAL_WITHDRAWN, by, message=message))
    return _let_wait(tx, found)


def let_wait_at(tx: Tx, environment: str, realms: Collection[Realm], may_serve: Callable[[str], bool]) -> list[Json]:
    """An environment comes to these realms: where it requires approval, agents of others wait that were let in unasked.

    Only those whose tokens, given by their names, may serve that environment at all; returns what they are left out of.
    """
    if not realms or environment not in requiring(tx):
        return []
    c = approvals.c
    query = select(approvals).where(
        c.environment != environment, c.approved_by == NOT_ASKED, c.approved_at.is_not(None), c.realm != ""
    )
    found = [
        row for row in tx.connection.execute(query) if (row.provider, row.realm) in realms and may_serve(row.token_name)
    ]
    for row in found:
        message = (
            f"agent {row.agent_id!r} with token {row.token_name!r} waits at {named([(row.provider, row.realm)])} until "
            f"somebody approves it: environment {environment!r} is there, too (fractal agent approve {row.agent_id})"
        )
        tx.record(PendingEvent("", EventKind.APPROVAL_WITHDRAWN, row.agent_id, message=message))
    return _let_wait(tx, found)


def _let_wait(tx: Tx, rows: Iterable[Any]) -> list[Json]:
    key = [column.name for column in approvals.primary_key]
    for row in rows:
        is_it = and_(*(approvals.c[name] == getattr(row, name) for name in key))
        tx.connection.execute(update(approvals).where(is_it).values(approved_at=None, approved_by=NOT_ASKED))
    return [described(row) for row in rows]


def forget_waiting(tx: Tx, token_name: str) -> None:
    """A token is void: nobody waits with it any more. What was approved stays known, for a token of its name."""
    c = approvals.c
    tx.connection.execute(delete(approvals).where(c.token_name == token_name, c.approved_at.is_(None)))


# --- what is forgotten


def has_old(tx: Tx, keep: timedelta) -> bool:
    """Whether anything may be forgotten."""
    old_keys = select(withdrawn_keys.c.public_key).where(_is_old_key(tx.now - keep)).limit(1)
    old_tokens = select(approvals.c.token_name).where(_is_of_old_token(tx.now - keep)).limit(1)
    return any(tx.connection.execute(query).first() is not None for query in (old_keys, old_tokens))


def forget_old(tx: Tx, keep: timedelta) -> None:
    """Forget keys that were withdrawn long ago, and what is known of tokens that are gone for as long.

    Whoever comes with such a key then is new, as with any other key.
    """
    before = tx.now - keep
    keys = select(withdrawn_keys.c.public_key).where(_is_old_key(before))
    tx.connection.execute(delete(approvals).where(approvals.c.public_key.in_(keys)))
    tx.connection.execute(delete(withdrawn_keys).where(_is_old_key(before)))
    tx.connection.execute(delete(approvals).where(_is_of_old_token(before)))


def _is_old_key(before: datetime) -> ColumnElement[bool]:
    return and_(withdrawn_keys.c.at < before, withdrawn_keys.c.public_key.not_in(select(agents.c.public_key)))


def _is_of_old_token(before: datetime) -> ColumnElement[bool]:
    c = approvals.c
    seen = or_(c.approved_at.is_(None), c.approved_at < before)
    return and_(c.first_at < before, seen, c.token_name.not_in(select(tokens.c.name)), c.token_name != ADMIN_ID)


def waiting(tx: Tx) -> list[Any]:
    """The rows of all who wait, by environment and agent."""
    c = approvals.c
    query = select(approvals).where(c.approved_at.is_(None)).order_by(c.environment, c.agent_id, c.provider, c.realm)
    return list(tx.connection.execute(query))


def described(row: Any) -> Json:
    """One who waits, or waited, as the API shows it."""
    return {
        "id": "/".join((row.environment, row.provider, row.realm, row.token_name, _key(row))),
        "agentId": row.agent_id,
        "environment": row.environment,
        "provider": row.provider,
        "realm": row.realm,
        "token": row.token_name,
        "key": _key(row),
        "since": row.first_at,
    }


def _key(row: Any) -> str:
    return fingerprint(row.public_key) if row.public_key else ""


@dataclass(frozen=True, slots=True)
class Approved:
    """Who was approved, where environments require that (A5)."""

    requiring: Collection[str]
    rows: Collection[tuple[str, ...]]

    def has(self, environment: str, realm: Realm, token_name: str, public_key: str) -> bool:
        """Whether an agent with this token's name and key may be trusted with what is of this environment there."""
        return environment not in self.requiring or (environment, *realm, token_name, public_key) in self.rows


def approved(tx: Tx, environments: Collection[str]) -> Approved:
    """Who was approved in these environments, as far as they require it."""
    asking = requiring(tx) & set(environments)
    if not asking:
        return Approved(asking, ())
    c = approvals.c
    query = select(c.environment, c.provider, c.realm, c.token_name, c.public_key).where(
        c.approved_at.is_not(None), c.environment.in_(asking)
    )
    return Approved(asking, {tuple(row) for row in tx.connection.execute(query)})
