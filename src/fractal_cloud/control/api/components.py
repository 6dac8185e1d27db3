"""Reading components; what operators may ask of one stands in ``requests``."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from fractal_cloud.control.api import views
from fractal_cloud.control.api.filters import ComponentFilters, in_order
from fractal_cloud.control.api.routing import (
    ComponentId,
    Cursor,
    Limit,
    LiveSystemId,
    StrictRoute,
    TheStore,
    Who,
    answer,
    listed,
    page,
)
from fractal_cloud.control.auth.sensitive_texts import SensitiveTexts
from fractal_cloud.control.store import components, journal, livesystems
from fractal_cloud.control.store.listing import ComponentOrder, Place

BY_ID: Final = ComponentOrder.ID
router = APIRouter(tags=["components"], route_class=StrictRoute)
ONE: Final = "/livesystems/{id}/components"


@router.get("/components", responses={200: {"model": views.ComponentPage}})
def list_everywhere(
    store: TheStore,
    who: Who,
    filters: ComponentFilters,
    sort: Annotated[ComponentOrder, Query(description="By LiveSystem and id, or the oldest override first.")] = BY_ID,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The components of all LiveSystems; with a token that is bound to environments, those in them.

    ``sort=override`` shows only what somebody holds by hand.
    """
    with store.read() as tx:
        seen = SensitiveTexts(who, lambda: store.catalog(tx)).components
        found = in_order(lambda: components.list_all(tx, Place(limit, cursor), filters, sort, who.sees))
        return answer(listed(seen(found.items), found.next, found.total))


@router.get(ONE, responses={200: {"model": views.ComponentPage}})
def list_all(
    live_system_id: LiveSystemId, store: TheStore, who: Who, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The components of a LiveSystem, by id."""
    with store.read() as tx:
        livesystems.require(tx, live_system_id)
        seen = SensitiveTexts(who, lambda: store.catalog(tx)).components
        return page(lambda most: seen(components.list_page(tx, live_system_id, most, cursor)), limit, "componentId")


@router.get(f"{ONE}/{{componentId}}", responses={200: {"model": views.Component}})
def get(live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore, who: Who) -> Response:
    """One component."""
    with store.read() as tx:
        livesystems.require(tx, live_system_id)
        seen = SensitiveTexts(who, lambda: store.catalog(tx)).component
        return answer(seen(components.get(tx, live_system_id, component_id)))


@router.get(f"{ONE}/{{componentId}}/journal", responses={200: {"model": views.JournalPage}})
def read_journal(
    live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Every write made to the cloud for a component, newest first (C7)."""
    with store.read() as tx:
        if not journal.has_any(tx, live_system_id, component_id):
            livesystems.require(tx, live_system_id)
            components.require(tx, live_system_id, component_id)
        return page(lambda most: journal.list_of(tx, live_system_id, component_id, most, cursor), limit, "id")
