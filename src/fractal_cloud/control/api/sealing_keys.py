"""Sealing keys: which keys secrets are sealed to, and how one is withdrawn or an agent's replaced (A5)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import StringConstraints

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, Who, answer, page_of
from fractal_cloud.control.auth.principal import Principal
from fractal_cloud.control.store import key_withdrawals, sealing_keys, visibility
from fractal_cloud.control.store.key_withdrawals import Asked
from fractal_cloud.model.declaration import Wire

router = APIRouter(tags=["agents"], route_class=StrictRoute)
Line = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
AgentId = Annotated[str, Path(alias="id", max_length=300)]
Fingerprint = Annotated[str, Path(max_length=64)]


class Withdrawal(Wire):
    """Why a key is withdrawn, for the events."""

    reason: Line


@router.get("/sealing-keys", responses={200: {"model": views.SealingKeyPage}})
def list_all(store: TheStore, who: Who, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Every key that an agent registered with, for each realm it reached; bound to environments, those in them."""
    with store.read() as tx:
        visible = [one for one in sealing_keys.list_all(tx) if visibility.covers(who.sees, one["environment"])]
        return page_of(visible, limit, cursor, "id")


@router.post("/sealing-keys/{fingerprint}/withdraw", responses={200: {"model": views.WithdrawnKey}})
def withdraw(fingerprint: Fingerprint, wanted: Withdrawal, store: TheStore, who: Who) -> Response:
    """Withdraw a key: what was sealed to it is revoked, and provided anew for the keys that are left."""
    with store.write() as tx:
        return answer(key_withdrawals.withdraw(tx, fingerprint, _asked(who, wanted)))


@router.post("/agents/{id}/rotate-key", responses={200: {"model": views.WithdrawnKey}})
def rotate(agent_id: AgentId, wanted: Withdrawal, store: TheStore, who: Who) -> Response:
    """Withdraw the key of an agent, which makes a new one as soon as it hears of it."""
    with store.write() as tx:
        return answer(key_withdrawals.withdraw_of_agent(tx, agent_id, _asked(who, wanted)))


def _asked(who: Principal, wanted: Withdrawal) -> Asked:
    return Asked(who.name, wanted.reason, who.sees)
