"""Agents and keys that wait until somebody approves them, and which environments require that (A2)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import StringConstraints

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, Who, answer, page_of
from fractal_cloud.control.store import Store, agents, approvals
from fractal_cloud.control.store.records import Json
from fractal_cloud.model.declaration import Wire

router = APIRouter(tags=["agents"], route_class=StrictRoute)
Name = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
EnvironmentName = Annotated[str, Path(alias="name", min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]


class Approval(Wire):
    """Who is approved: an agent by its id, or a sealing key, whole or by its fingerprint."""

    agent: Name


class Withdrawal(Approval):
    """Whose approval is withdrawn, and why."""

    reason: Name = "withdrawn"


class EnvironmentSettings(Wire):
    """What holds in an environment."""

    approve_agents: bool


@router.get("/approvals", responses={200: {"model": views.WaitingPage}})
def list_waiting(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All agents and keys that wait for approval, with the realms at which they do."""
    with store.read() as tx:
        found = [approvals.described(row) for row in approvals.waiting(tx)]
    return page_of(found, limit, cursor, "id")


@router.post("/approvals", responses={200: {"model": views.Approved}})
def approve(wanted: Approval, store: TheStore, who: Who) -> Response:
    """Approve an agent, or a key, at all realms where it waits."""
    return answer({"approved": approve_agent(store, wanted.agent, who.name)})


def approve_agent(store: Store, wanted: str, by: str) -> list[Json]:
    """Approve whoever waits under that name, and have it register again; returns what waited."""
    with store.write() as tx:
        approved = approvals.approve(tx, wanted, by)
        agents.admit(tx, approved)
    return approved


@router.post("/approvals/withdraw", responses={200: {"model": views.ApprovalWithdrawn}})
def withdraw(wanted: Withdrawal, store: TheStore, who: Who) -> Response:
    """Withdraw the approval of an agent, or of a key: its leases end now, and it waits where approval is required."""
    with store.write() as tx:
        withdrawn = approvals.withdraw(tx, wanted.agent, who.name, wanted.reason)
        agents.hold_back(tx, withdrawn)
    return answer({"withdrawn": withdrawn})


@router.get("/environments", responses={200: {"model": views.EnvironmentPage}})
def list_environments(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All environments of which something was set, by name."""
    with store.read() as tx:
        return page_of(approvals.described_environments(tx), limit, cursor, "name")


@router.put("/environments/{name}", responses={200: {"model": views.EnvironmentChanged}})
def set_environment(name: EnvironmentName, wanted: EnvironmentSettings, store: TheStore, who: Who) -> Response:
    """Say whether new agents and keys of an environment wait for approval; if not, those who wait are let in."""
    with store.write() as tx:
        let_in = approvals.require(tx, name, approval=wanted.approve_agents, by=who.name)
        agents.admit(tx, let_in)
    return answer({"name": name, "approveAgents": wanted.approve_agents, "approved": let_in})
