"""Agents and keys that wait for approval, and how a visitor approves them (A2). Their page is that of all agents."""

from __future__ import annotations

from fastapi import Response

from fractal_cloud.control.api.approvals import approve_agent
from fractal_cloud.control.dashboard.pages import see
from fractal_cloud.control.dashboard.sessions import Visitor
from fractal_cloud.control.store import Store, approvals
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.visibility import covers


def waiting(tx: Tx, visitor: Visitor) -> list[Json]:
    """Who waits for approval, in the environments that a visitor sees."""
    return [approvals.described(row) for row in approvals.waiting(tx) if covers(visitor.who.sees, row.environment)]


def approve(store: Store, visitor: Visitor, wanted: str) -> str | None:
    """Approve one agent at all realms where it waits, if the visitor is shown it; else returns why not."""
    with store.read() as tx:
        shown = {one["agentId"] for one in waiting(tx, visitor)}
        every_environment = {row.environment for row in approvals.waiting(tx) if row.agent_id == wanted}
    if wanted not in shown or not all(covers(visitor.who.sees, environment) for environment in every_environment):
        return f"no agent {wanted!r} waits for approval" if wanted else ""
    try:
        approve_agent(store, wanted, visitor.who.name)
    except NotFound as error:
        return error.message
    return None


def approved() -> Response:
    """Back to the page of all agents."""
    return see("/ui/agents")
