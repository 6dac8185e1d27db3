"""What somebody may see whose token is bound to environments: the LiveSystems deployed there, and nothing of others.

What an id once was in an environment that they may not see stays hidden, also if a LiveSystem of that id is in theirs
now: its events and mutations are of both.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from sqlalchemy import Column, ColumnElement, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import insert_missing
from fractal_cloud.control.store.errors import Forbidden, NotFound
from fractal_cloud.control.store.schema import live_system_environments, live_systems

Environments = frozenset[str] | None
"""Patterns of the environments that somebody is bound to; None for all of them."""


def note(tx: Tx, live_system_id: str, environment: str) -> None:
    """Store that a LiveSystem of that id was deployed in an environment."""
    row = {"live_system_id": live_system_id, "environment": environment}
    insert_missing(tx.connection, live_system_environments, [row])


def environments(tx: Tx, bound_to: Environments, most: int) -> list[str]:
    """The environments in which somebody may see LiveSystems, by name; empty if there are more than so many."""
    query = select(live_systems.c.environment).distinct().order_by(live_systems.c.environment).limit(10 * most)
    found = [name for name in tx.connection.execute(query).scalars() if covers(bound_to, name)]
    return found if len(found) <= most else []


def covers(bound_to: Environments, environment: str) -> bool:
    """Whether somebody may see what is in an environment."""
    return bound_to is None or any(fnmatchcase(environment, pattern) for pattern in bound_to)


def require_visible(tx: Tx, bound_to: Environments, live_system_id: str) -> None:
    """Raise ``NotFound`` for a LiveSystem that somebody may not see, as for one that never was."""
    if bound_to is not None and live_system_id not in visible_ids(tx, bound_to, [live_system_id]):
        raise NotFound(f"there is no LiveSystem {live_system_id!r}: GET /livesystems lists them")


def visible_ids(tx: Tx, bound_to: frozenset[str], among: Iterable[str]) -> set[str]:
    """Those of these LiveSystems that somebody may see."""
    c = live_system_environments.c
    found: dict[str, list[str]] = {}
    for row in tx.connection.execute(select(c.live_system_id, c.environment).where(c.live_system_id.in_(set(among)))):
        found.setdefault(row.live_system_id, []).append(row.environment)
    return {name for name, known in found.items() if all(covers(bound_to, one) for one in known)}


def refuse_foreign(tx: Tx, bound_to: Environments, live_system_id: str) -> None:
    """Raise ``Forbidden`` where something of that id is, or was, in an environment beyond the token's."""
    c = live_system_environments.c
    known = tx.connection.execute(select(c.environment).where(c.live_system_id == live_system_id)).scalars()
    for environment in known:
        refuse_environment(bound_to, environment)


def refuse_environment(bound_to: Environments, environment: str) -> None:
    """Raise ``Forbidden`` where something is to be deployed, or planned, in an environment beyond the token's."""
    if bound_to is not None and not covers(bound_to, environment):
        names = ", ".join(sorted(bound_to))
        raise Forbidden(
            f"this token is bound to the environment {names}, and {environment!r} is another: "
            f"use a token made with `fractal token create --environment {environment}`"
        )


def is_visible(tx: Tx, bound_to: frozenset[str], live_system_id: Column[str]) -> ColumnElement[bool]:
    """The condition on a column with ids of LiveSystems that somebody may see what is there."""
    c = live_system_environments.c
    known = list(tx.connection.execute(select(c.environment).distinct()).scalars())
    hidden = [name for name in known if not covers(bound_to, name)]
    shown = [name for name in known if covers(bound_to, name)]
    return live_system_id.in_(select(c.live_system_id).where(c.environment.in_(shown))) & live_system_id.not_in(
        select(c.live_system_id).where(c.environment.in_(hidden))
    )
