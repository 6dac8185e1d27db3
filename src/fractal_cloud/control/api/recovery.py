"""After a backup was restored: what waits for a person, what confirming it would do, and confirming it (C9)."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from fractal_cloud.control.api import views
from fractal_cloud.control.api.plans import LONGEST_SECONDS, wait_for_agents
from fractal_cloud.control.api.routing import LiveSystemId, StrictRoute, TheStore, Who, answer
from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.principal import Principal, Role
from fractal_cloud.control.store import Store, plans, recovery
from fractal_cloud.control.store.errors import Forbidden
from fractal_cloud.control.store.failures import again
from fractal_cloud.control.store.plans import Asked
from fractal_cloud.control.store.records import Json
from fractal_cloud.model.declaration import Wire

router = APIRouter(prefix="/recovery", tags=["recovery"], route_class=StrictRoute)
Seconds = Annotated[float, Query(ge=0, le=LONGEST_SECONDS, description="How many seconds to wait for the agents.")]
TokenId = Annotated[str, StringConstraints(max_length=100, pattern=r"^[0-9a-f]+$")]


class Shown(Wire):
    """The fingerprint of the plan that was shown to whoever confirms."""

    fingerprint: Annotated[str, StringConstraints(max_length=64, pattern=r"^[0-9a-f]{64}$")]


class ShownTokens(Wire):
    """The tokens that were shown to the admin who confirms them, by id."""

    tokens: list[TokenId] = Field(max_length=10_000)


@router.get("", responses={200: {"model": views.Recovery}})
def get(store: TheStore) -> Response:
    """Whether anything waits for a person since a restore, and what."""
    with store.read() as tx:
        return answer(recovery.status(tx))


@router.post("", status_code=202, responses={202: {"model": views.Recovery}})
def begin(store: TheStore, who: Who, request: Request) -> Response:
    """The database was restored from a backup: write nothing for any LiveSystem until it is confirmed."""
    only_admin(who)
    with store.write() as tx:
        found = recovery.begin(tx, who.name)
    _forget_tokens(request)
    return answer(found, 202)


@router.post("/livesystems/{id}/plan", responses={200: {"model": views.RecoveryPlan}})
async def plan(live_system_id: LiveSystemId, store: TheStore, timeout: Seconds = LONGEST_SECONDS) -> Response:
    """What would be created, changed and deleted if the LiveSystem were confirmed, and the word that confirms it."""
    return answer(await shown_plan(store, live_system_id, timeout))


async def shown_plan(store: Store, live_system_id: str, timeout: float) -> Json:
    """Ask the agents what confirming would do, and remember that it was shown."""
    started = time.monotonic()
    asked = await run_in_threadpool(_ask, store, live_system_id)
    await wait_for_agents(store, asked, timeout - (time.monotonic() - started))
    return await run_in_threadpool(again, lambda: _show(store, asked, timeout))


def _ask(store: Store, live_system_id: str) -> Asked:
    with store.write() as tx:
        recovery.require_held(tx, live_system_id)
        return plans.ask_as_it_stands(tx, live_system_id)


def _show(store: Store, asked: Asked, waited: float) -> Json:
    with store.write() as tx:
        return recovery.show(tx, asked.live_system_id, plans.conclude(tx, asked, waited))


@router.post("/livesystems/{id}/confirm", status_code=204)
def confirm(live_system_id: LiveSystemId, shown: Shown, store: TheStore, who: Who) -> None:
    """Let the LiveSystem be written to again, with the fingerprint of the plan that was shown."""
    with store.write() as tx:
        recovery.confirm(tx, live_system_id, shown.fingerprint, who.name)


@router.post("/tokens/confirm", responses={200: {"model": views.ConfirmedTokens}})
def confirm_tokens(shown: ShownTokens, store: TheStore, who: Who, request: Request) -> Response:
    """Let these agents' tokens in again; others go on waiting."""
    only_admin(who)
    with store.write() as tx:
        names = recovery.confirm_tokens(tx, shown.tokens, who.name)
    _forget_tokens(request)
    return answer({"confirmed": names})


def only_admin(who: Principal) -> None:
    """Refuse everybody else."""
    if who.role is not Role.ADMIN:
        raise Forbidden(f"token {who.name!r} is no admin's: only an admin says that a backup was restored")


def _forget_tokens(request: Request) -> None:
    authenticator: Authenticator = request.app.state.authenticator
    authenticator.forget()
