"""Tokens: who may speak to the control plane, in which role. Only their hashes are kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, insert, select, update

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import PreparedStatement, among_many
from fractal_cloud.control.store.errors import Forbidden, NotFound, Refused
from fractal_cloud.control.store.records import Json, new_id
from fractal_cloud.control.store.schema import tokens

PREFIX = "fc_"


def new_secret() -> str:
    """A token nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """What is kept of a token: it is long and random, so a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def create(tx: Tx, name: str, role: str, providers: Iterable[str]) -> tuple[str, Json]:
    """A new token: the secret, which is shown once, and what is known of it."""
    if tx.connection.execute(select(tokens.c.id).where(tokens.c.name == name)).first() is not None:
        raise Refused(f"there is a token {name!r} already: revoke it first, or choose another name")
    secret = new_secret()
    row = {
        "id": new_id(),
        "hash": hashed(secret),
        "name": name,
        "role": role,
        "providers": sorted(set(providers)),
        "created_at": tx.now,
    }
    tx.connection.execute(insert(tokens), [row])
    return secret, _described(tx.connection.execute(select(tokens).where(tokens.c.id == row["id"])).one())


def find(tx: Tx, hashes: Iterable[str]) -> list[Any]:
    """The rows of the tokens with these hashes, as far as there are such tokens."""
    return _FOUND.rows(tx.connection, {"hashes": hashes})


_FOUND: Final = PreparedStatement(
    select(tokens.c.id, tokens.c.hash, tokens.c.name, tokens.c.role, tokens.c.providers, tokens.c.waits).where(
        among_many(tokens.c.hash, "hashes")
    )
)


def list_all(tx: Tx) -> list[Json]:
    """Every token, without its secret."""
    return [_described(row) for row in tx.connection.execute(select(tokens).order_by(tokens.c.name))]


WAITS: Final = (
    "this control plane was restored from a backup, and its agents' tokens wait until an admin has confirmed them: "
    "run `fractal restored confirm-tokens`"
)


def refuse_waiting(tx: Tx, token_id: str) -> None:
    """Refuse a token of a backup that nobody has confirmed (C9): it may have been revoked since."""
    query = select(tokens.c.name).where(tokens.c.id == token_id, tokens.c.waits)
    name = tx.connection.execute(query).scalar()
    if name is not None:
        raise Forbidden(f"token {name!r}: {WAITS}")


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


def revoke(tx: Tx, token: str) -> None:
    """Make a token, given by its id or its name, worthless."""
    gone = tx.connection.execute(delete(tokens).where((tokens.c.id == token) | (tokens.c.name == token)))
    if gone.rowcount == 0:
        raise NotFound(f"there is no token {token!r}: GET /tokens lists them")


def _described(row: Any) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "role": row.role,
        "providers": row.providers,
        "createdAt": row.created_at,
        "waits": row.waits,
    }
