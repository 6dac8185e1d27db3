"""Reading components; what operators may ask of one stands in ``requests``."""

from __future__ import annotations

from fastapi import APIRouter, Response

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import (
    ComponentId,
    Cursor,
    Limit,
    LiveSystemId,
    StrictRoute,
    TheStore,
    answer,
    page,
)
from fractal_cloud.control.store import components, journal, livesystems

router = APIRouter(prefix="/livesystems/{id}", tags=["components"], route_class=StrictRoute)


@router.get("/components", responses={200: {"model": views.ComponentPage}})
def list_all(live_system_id: LiveSystemId, store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """The components of a LiveSystem, by id."""
    with store.read() as tx:
        livesystems.require(tx, live_system_id)
        return page(lambda most: components.list_page(tx, live_system_id, most, cursor), limit, "componentId")


@router.get("/components/{componentId}", responses={200: {"model": views.Component}})
def get(live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore) -> Response:
    """One component."""
    with store.read() as tx:
        livesystems.require(tx, live_system_id)
        return answer(components.get(tx, live_system_id, component_id))


@router.get("/components/{componentId}/journal", responses={200: {"model": views.JournalPage}})
def read_journal(
    live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Every write made to the cloud for a component, newest first (C7)."""
    with store.read() as tx:
        if not journal.has_any(tx, live_system_id, component_id):
            livesystems.require(tx, live_system_id)
            components.require(tx, live_system_id, component_id)
        return page(lambda most: journal.list_of(tx, live_system_id, component_id, most, cursor), limit, "id")
