"""Tokens: who may speak to the control plane, in which role. Only their hashes are kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, func, insert, or_, select, update

from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.driver import Now, PreparedStatement, among, among_many
from fractal_cloud.control.store.errors import Forbidden, NotFound, Refused
from fractal_cloud.control.store.realm_bindings import NOBODYS
from fractal_cloud.control.store.records import Json, new_id
from fractal_cloud.control.store.schema import agents, tokens
from fractal_cloud.control.store.signals import TOKENS
from fractal_cloud.model.access_token import new_token
from fractal_cloud.model.event import EventKind
from fractal_cloud.rules.grants import NOTHING, Grants

ADMIN_ID: Final = "admin"
"""By what the admin's own token is known, which stands in no table."""
EXPIRED_NOTED_EVERY: Final = timedelta(hours=1)
"""How often it is recorded, at most, that somebody still comes with a token that has expired."""
USE_NOTED_EVERY: Final = timedelta(seconds=60)
"""How exactly it is known when a token was last used: not every request costs a write."""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token as it is asked for: whose, in which role, bound to what, until when, and who makes it."""

    name: str
    role: str
    grants: Grants = NOTHING
    expires_at: datetime | None = None
    created_by: str = ""


def new_secret() -> str:
    """A token nobody can guess."""
    return new_token(secrets.choice)


def hashed(secret: str) -> str:
    """What is kept of a token: it is long and random, so a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def create(tx: Tx, wanted: NewToken) -> tuple[str, Json]:
    """A new token: the secret, which is shown once, and what is known of it."""
    if tx.connection.execute(select(tokens.c.id).where(tokens.c.name == wanted.name)).first() is not None:
        raise Refused(f"there is a token {wanted.name!r} already: revoke it first, or choose another name")
    secret = new_secret()
    row = {
        "id": new_id(),
        "hash": hashed(secret),
        "name": wanted.name,
        "role": wanted.role,
        "providers": sorted(wanted.grants.providers),
        "environments": sorted(wanted.grants.environments),
        "realms": sorted(wanted.grants.realms),
        "created_at": tx.now,
        "created_by": wanted.created_by,
        "expires_at": wanted.expires_at,
    }
    tx.connection.execute(insert(tokens), [row])
    _audit(tx, EventKind.TOKEN_CREATED, wanted.created_by, f"token {wanted.name!r}, {_kind(wanted)}, was made")
    return secret, _described(tx.connection.execute(select(tokens).where(tokens.c.id == row["id"])).one())


def find(tx: Tx, hashes: Iterable[str]) -> list[Any]:
    """The rows of the tokens with these hashes, as far as there are such tokens."""
    return _FOUND.rows(tx.connection, {"hashes": hashes})


_FOUND: Final = PreparedStatement(
    select(
        *(tokens.c.id, tokens.c.hash, tokens.c.name, tokens.c.role, tokens.c.waits, tokens.c.expires_at),
        *(tokens.c.providers, tokens.c.environments, tokens.c.realms, tokens.c.last_used_at, Now().label("now")),
    ).where(among_many(tokens.c.hash, "hashes"))
)


def grants(tx: Tx, ids: Collection[str]) -> dict[str, Grants]:
    """What the tokens with these ids are bound to, as far as there are such tokens."""
    query = select(tokens).where(among(tokens.c.id, ids))
    return {row.id: grants_of(row) for row in tx.connection.execute(query)}


def grants_of_agents(tx: Tx, *, but: str) -> list[Grants]:
    """What all tokens of agents are bound to, but for one of them."""
    query = select(tokens).where(tokens.c.role == "agent", tokens.c.id != but)
    return [grants_of(row) for row in tx.connection.execute(query)]


def serves(tx: Tx, name: str, environment: str) -> bool:
    """Whether the token of this name is bound to an environment; an admin's serves all."""
    row = tx.connection.execute(select(tokens).where(tokens.c.name == name)).first()
    return name == ADMIN_ID if row is None else grants_of(row).has_environment(environment)


def grants_of(row: Any) -> Grants:
    """What a token is bound to, from its row."""
    return Grants.of(row.providers, row.environments, row.realms)


def list_all(tx: Tx) -> list[Json]:
    """Every token, without its secret; an agent's was last used when an agent that has it was last heard of."""
    seen = select(agents.c.token_id, func.max(agents.c.last_seen).label("at")).group_by(agents.c.token_id)
    heard = {row.token_id: row.at for row in tx.connection.execute(seen)}
    found = [_described(row) for row in tx.connection.execute(select(tokens).order_by(tokens.c.name))]
    return [{**one, "lastUsedAt": heard.get(one["id"], one["lastUsedAt"])} for one in found]


def note_uses(tx: Tx, ids: Iterable[str]) -> None:
    """Store that tokens were used now."""
    tx.connection.execute(update(tokens).where(tokens.c.id.in_(set(ids))).values(last_used_at=tx.now))


def note_expired_use(tx: Tx, token_id: str) -> None:
    """Record that somebody came with a token that had expired, once in ``EXPIRED_NOTED_EVERY``."""
    due = or_(tokens.c.refused_at.is_(None), tokens.c.refused_at <= tx.now - EXPIRED_NOTED_EVERY)
    noted = update(tokens).where(tokens.c.id == token_id, tokens.c.expires_at <= tx.now, due)
    name = tx.connection.execute(noted.values(refused_at=tx.now).returning(tokens.c.name)).scalar()
    if name is not None:
        _audit(tx, EventKind.TOKEN_EXPIRED, name, f"token {name!r} has expired and was refused")


WAITS: Final = (
    "this control plane was restored from a backup, and its agents' tokens wait until an admin has confirmed them: "
    "run `fractal restored confirm-tokens`"
)


def name_of(tx: Tx, token_id: str) -> str:
    """The name of a token, which outlives its rotation; the admin's own, which stands in no table, is its id."""
    return str(tx.connection.execute(select(tokens.c.name).where(tokens.c.id == token_id)).scalar() or token_id)


def refuse_void(tx: Tx, token_id: str, bound_to: Grants) -> None:
    """Refuse a token of a backup that nobody has confirmed (C9), and one that was revoked or changed since it was read.

    The admin's own stands in no table.
    """
    row = tx.connection.execute(select(tokens).where(tokens.c.id == token_id)).first()
    if row is None and token_id != ADMIN_ID:
        raise Forbidden("the token was revoked: use another one")
    if row is not None and row.waits:
        raise Forbidden(f"token {row.name!r}: {WAITS}")
    if row is not None and row.role == "agent" and grants_of(row) != bound_to:
        raise Forbidden(f"token {row.name!r} was bound to something else just now: try again")


def have_wait(tx: Tx, as_of: datetime | None) -> list[str]:
    """Have the agents' tokens wait that stood in a backup: those made up to then, or all of them; their names."""
    of_backup = tokens.c.role == "agent"
    if as_of is not None:
        of_backup &= tokens.c.created_at <= as_of
    tx.connection.execute(update(tokens).where(of_backup).values(waits=True))
    return [token["name"] for token in waiting(tx)]


def waiting(tx: Tx) -> list[Json]:
    """The tokens that wait until an admin has confirmed them, by name."""
    query = select(tokens).where(tokens.c.waits).order_by(tokens.c.name)
    return [_described(row) for row in tx.connection.execute(query)]


def confirm(tx: Tx, ids: Iterable[str]) -> list[str]:
    """Let these tokens in again; their names."""
    wanted = set(ids)
    chosen = [token for token in waiting(tx) if token["id"] in wanted]
    unknown = wanted - {token["id"] for token in chosen}
    if unknown:
        raise Refused(f"there is no token {min(unknown)!r} that waits: read the list again (GET /recovery)")
    tx.connection.execute(update(tokens).where(tokens.c.id.in_(wanted)).values(waits=False))
    return [token["name"] for token in chosen]


def find_named(tx: Tx, token: str) -> Any:
    """The row of the token of this id or name; None if there is none."""
    return tx.connection.execute(select(tokens).where((tokens.c.id == token) | (tokens.c.name == token))).first()


def require(tx: Tx, token: str) -> Any:
    """The row of the token of this id or name."""
    row = find_named(tx, token)
    if row is None:
        raise NotFound(f"there is no token {token!r}: GET /tokens lists them")
    return row


def revoke(tx: Tx, row: Any, by: str) -> None:
    """Make a token worthless: its sessions and open streams end; its agents lose what they have by ``access``."""
    tx.connection.execute(delete(tokens).where(tokens.c.id == row.id))
    _audit(tx, EventKind.TOKEN_REVOKED, by, f"token {row.name!r} was revoked")
    tx.wake([TOKENS])


def rotate(tx: Tx, row: Any, by: str) -> tuple[str, Json]:
    """A token with a new secret in the place of one, with its name and all that it is bound to.

    Its id is another one: whoever still believes in the old secret for a moment speaks for nobody.
    """
    secret = new_secret()
    new = {"id": new_id(), "hash": hashed(secret), "created_at": tx.now, "created_by": by, "waits": False}
    tx.connection.execute(update(tokens).where(tokens.c.id == row.id).values(**new, last_used_at=None, refused_at=None))
    _audit(tx, EventKind.TOKEN_ROTATED, by, f"token {row.name!r} has a new secret; the old one is void")
    tx.wake([TOKENS])
    return secret, _described(tx.connection.execute(select(tokens).where(tokens.c.id == new["id"])).one())


def _audit(tx: Tx, kind: EventKind, by: str, message: str) -> None:
    tx.record(PendingEvent(NOBODYS, kind, by, None, message))


def _kind(wanted: NewToken) -> str:
    """What a new token is for, in words."""
    granted = wanted.grants
    bound = [", ".join(sorted(names)) for names in (granted.providers, granted.environments, granted.realms) if names]
    until = "" if wanted.expires_at is None else f", until {wanted.expires_at:%Y-%m-%d %H:%M} UTC"
    return f"role {wanted.role}" + (f", bound to {'; '.join(bound)}" if bound else "") + until


def _described(row: Any) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "role": row.role,
        "providers": row.providers,
        "environments": row.environments,
        "realms": row.realms,
        "createdAt": row.created_at,
        "createdBy": row.created_by,
        "expiresAt": row.expires_at,
        "lastUsedAt": row.last_used_at,
        "waits": row.waits,
    }
