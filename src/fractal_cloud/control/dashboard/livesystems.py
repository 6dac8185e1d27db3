"""The pages of LiveSystems: all of them, one of them, and what deleting one would do."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from fractal_cloud.control.api import livesystems as api
from fractal_cloud.control.api.routing import LiveSystemId, TheStore
from fractal_cloud.control.dashboard import filters, graph
from fractal_cloud.control.dashboard.pages import PageRoute, render, see
from fractal_cloud.control.dashboard.sessions import ActingForm, TheVisitor, Visitor, enter_by_link, find_visitor
from fractal_cloud.control.store import Store, components, events, livesystems, mutations, previews, recovery
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.records import Json

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
LIVE_SYSTEMS: Final = 50
COMPONENTS: Final = 50
EVENTS: Final = 20
AT_ONCE: Final = 500
DRIFT: Final = "drift"

After = Annotated[str | None, Query(max_length=100)]


@router.get("")
@router.get("/")
def overview(request: Request, store: TheStore, token: str = "", after: After = None) -> Response:
    """All LiveSystems; with ``?token=`` the page a printed link leads to."""
    if token:
        return enter_by_link(request, token)
    visitor = find_visitor(request)
    with store.read() as tx:
        found = livesystems.list_page(tx, LIVE_SYSTEMS + 1, after)
        newest = events.list_page(tx, None, EVENTS, None)
        restored = recovery.status(tx)
    return render(
        "livesystems.html",
        visitor=visitor,
        recovery=restored,
        live_systems=found[:LIVE_SYSTEMS],
        more=found[LIVE_SYSTEMS - 1]["id"] if len(found) > LIVE_SYSTEMS else None,
        after=after,
        events=newest,
    )


@router.get("/livesystems/{id}")
def one(
    live_system_id: LiveSystemId,
    store: TheStore,
    visitor: TheVisitor,
    show: Annotated[str, Query(max_length=40)] = "",
    after: After = None,
) -> Response:
    """One LiveSystem: its components, what differs, and what happened."""
    with store.read() as tx:
        live_system = livesystems.get(tx, live_system_id)
        mutation = mutations.newest(tx, live_system_id)
        found = _some(tx, live_system_id, show, after)
        newest = events.list_page(tx, live_system_id, EVENTS, None)
    is_whole = not show and after is None and len(found) <= COMPONENTS
    return render(
        "livesystem.html",
        visitor=visitor,
        live_system=live_system,
        mutation=mutation,
        components=found[:COMPONENTS],
        more=found[COMPONENTS - 1]["componentId"] if len(found) > COMPONENTS else None,
        show=show,
        after=after,
        drawing=graph.draw(found) if is_whole else None,
        events=newest,
    )


def _some(tx: Tx, live_system_id: str, show: str, after: str | None) -> list[Json]:
    """The components of one page and one more: all of them, those with a status, or those with drift."""
    if not show:
        return components.list_page(tx, live_system_id, COMPONENTS + 1, after)
    found: list[Json] = []
    while len(found) <= COMPONENTS:
        some = components.list_page(tx, live_system_id, AT_ONCE, after)
        found += [c for c in some if (filters.drift(c) if show == DRIFT else c["status"] == show)]
        if len(some) < AT_ONCE:
            break
        after = some[-1]["componentId"]
    return found[: COMPONENTS + 1]


@router.get("/livesystems/{id}/delete")
def ask_delete(live_system_id: LiveSystemId, store: TheStore, visitor: TheVisitor) -> Response:
    """What deleting it would do (O14), with the warning of O7."""
    return _delete_page(live_system_id, store, visitor)


@router.post("/livesystems/{id}/delete")
def delete(live_system_id: LiveSystemId, store: TheStore, visitor: TheVisitor, form: ActingForm) -> Response:
    """Delete it, if its name was typed."""
    if form.get("name") != live_system_id:
        error = f"Nothing was deleted: type {live_system_id!r} to confirm."
        return _delete_page(live_system_id, store, visitor, 422, error)
    api.delete(live_system_id, store, visitor.who)
    return see(f"/ui/livesystems/{live_system_id}")


def _delete_page(live_system_id: str, store: Store, visitor: Visitor, status: int = 200, error: str = "") -> Response:
    with store.read() as tx:
        warnings, preview = previews.previewed(tx, live_system_id, store.catalog(tx))
    endings: dict[str, list[Any]] = {}
    for component in preview["components"]:
        endings.setdefault(component["ending"], []).append(component)
    return render(
        "delete.html",
        status,
        visitor=visitor,
        live_system_id=live_system_id,
        warnings=warnings,
        endings=endings,
        error=error,
    )
