"""Reading components, and what operators may ask of one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from fastapi import Path as PathParameter

from fractal_cloud.control.api.answers import (
    ComponentId,
    Cursor,
    Limit,
    LiveSystemId,
    StrictRoute,
    TheStore,
    answer,
    page,
)
from fractal_cloud.control.store import components, journal, livesystems, mutations

router = APIRouter(prefix="/livesystems/{id}", tags=["components"], route_class=StrictRoute)


@router.get("/components")
def list_all(live_system_id: LiveSystemId, store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """The components of a LiveSystem, by id."""
    with store.read() as tx:
        livesystems.require(tx, live_system_id)
        found = components.list_page(tx, live_system_id, limit, cursor)
    return page(found, limit, lambda item: str(item["componentId"]))


@router.get("/components/{componentId}")
def get(live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore) -> Response:
    """One component."""
    with store.read() as tx:
        livesystems.require(tx, live_system_id)
        return answer(components.get(tx, live_system_id, component_id))


@router.get("/components/{componentId}/journal")
def read_journal(
    live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Every write made to the cloud for a component, newest first (C7)."""
    with store.read() as tx:
        found = journal.list_of(tx, live_system_id, component_id, limit, cursor)
        if not found:
            livesystems.require(tx, live_system_id)
            components.require(tx, live_system_id, component_id)
    return page(found, limit, lambda item: str(item["id"]))


@router.get("/mutations/{mutationId}", tags=["mutations"])
def get_mutation(
    live_system_id: LiveSystemId,
    mutation_id: Annotated[str, PathParameter(alias="mutationId", max_length=64)],
    store: TheStore,
) -> Response:
    """One deploy or delete: how it is doing, component by component (C3, C8)."""
    with store.read() as tx:
        return answer(mutations.get(tx, live_system_id, mutation_id))
