"""After a backup was restored: first what confirming a LiveSystem would do, then the button that confirms it (C9)."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from fractal_cloud.control.api import recovery as api
from fractal_cloud.control.api.routing import LiveSystemId, TheStore
from fractal_cloud.control.dashboard.pages import PageRoute, render, see
from fractal_cloud.control.dashboard.sessions import ActingForm, TheVisitor, Visitor
from fractal_cloud.control.store import Store, livesystems, recovery
from fractal_cloud.control.store.errors import Refused

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
WAIT_SECONDS: Final = 20.0
"""How long a page waits for the agents to say what would be done."""


@router.get("/livesystems/{id}/confirm")
async def ask(live_system_id: LiveSystemId, store: TheStore, visitor: TheVisitor) -> Response:
    """What would be created, changed and deleted."""
    return await _page(store, live_system_id, visitor)


@router.post("/livesystems/{id}/confirm")
async def confirm(live_system_id: LiveSystemId, store: TheStore, visitor: TheVisitor, form: ActingForm) -> Response:
    """Confirm it as it was shown; where that is no longer so, it is shown again."""
    if not await run_in_threadpool(_is_held, store, live_system_id):
        return see(f"/ui/livesystems/{live_system_id}")
    try:
        await run_in_threadpool(_confirm, store, live_system_id, form.get("fingerprint"), visitor)
    except Refused as error:
        return await _page(store, live_system_id, visitor, 409, error.message)
    return see(f"/ui/livesystems/{live_system_id}")


def _is_held(store: Store, live_system_id: str) -> bool:
    with store.read() as tx:
        return bool(livesystems.require(tx, live_system_id).in_recovery)


def _confirm(store: Store, live_system_id: str, fingerprint: str, visitor: Visitor) -> None:
    with store.write() as tx:
        recovery.confirm(tx, live_system_id, fingerprint, visitor.who.name)


async def _page(store: Store, live_system_id: str, visitor: Visitor, status: int = 200, error: str = "") -> Response:
    if not await run_in_threadpool(_is_held, store, live_system_id):
        return see(f"/ui/livesystems/{live_system_id}")
    plan = await api.shown_plan(store, live_system_id, WAIT_SECONDS)
    actions: dict[str, list[Any]] = {}
    for component in plan["components"]:
        actions.setdefault(component["action"], []).append(component)
    values = {"live_system_id": live_system_id, "plan": plan, "actions": actions, "error": error}
    return render("confirm.html", status, visitor=visitor, **values)
