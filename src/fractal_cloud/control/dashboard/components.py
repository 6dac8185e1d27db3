"""The page of one component: everything that is known of it, and what can be done with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from fractal_cloud.control.api.filters import ComponentFilters
from fractal_cloud.control.api.routing import ComponentId, LiveSystemId, TheStore
from fractal_cloud.control.auth.sensitive_texts import SensitiveTexts
from fractal_cloud.control.dashboard import paging, requests
from fractal_cloud.control.dashboard.absorb import absorption
from fractal_cloud.control.dashboard.pages import PageRoute, render
from fractal_cloud.control.dashboard.sessions import TheVisitor
from fractal_cloud.control.store import components, events, glass, journal, livesystems, resources, visibility
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.control.store.records import Json
from fractal_cloud.model.status import Status
from fractal_cloud.rules import acts

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
COMPONENTS: Final = 50
JOURNAL: Final = 20
ACTS: Final = 20
# The store lists events by LiveSystem; a component's own are searched for among the newest of them.
EVENTS_SEARCHED: Final = 500


@router.get("/components")
def every(
    request: Request, store: TheStore, visitor: TheVisitor, wanted: ComponentFilters, page: paging.Number = 1
) -> Response:
    """Components of all LiveSystems: those that failed or are missing, and what a search finds."""
    with store.read() as tx:
        seen = SensitiveTexts(visitor.who, lambda: store.catalog(tx))
        found = components.list_all(tx, paging.place(page, COMPONENTS), wanted, sees=visitor.who.sees)
        items = seen.components(found.items)
        environments = visibility.environments(tx, visitor.who.sees, COMPONENTS)
    here = paging.Paging.of(request, page, COMPONENTS, found)
    return render("components.html", visitor=visitor, components=items, here=here, environments=environments)


@router.get("/livesystems/{id}/components/{componentId}")
def one(live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore, visitor: TheVisitor) -> Response:
    """Everything of one component."""
    with store.read() as tx:
        livesystems.require(tx, live_system_id)
        catalog = store.catalog(tx)
        seen = SensitiveTexts(visitor.who, lambda: catalog)
        component = seen.component(components.get(tx, live_system_id, component_id))
        newest = events.list_page(tx, live_system_id, EVENTS_SEARCHED, None)
        values = {
            "component": component,
            "glass": glass.commands(tx, live_system_id, component_id, catalog, store.installed_types),
            "journal": journal.list_of(tx, live_system_id, component_id, JOURNAL, None),
            "resource": _resource(tx, component),
            "actions": requests.offered(tx, live_system_id, component_id, catalog),
            "acts": acts.acts([event for event in newest if event["componentId"] == component_id])[:ACTS],
            "advice": requests.ADVICE[component["status"] == Status.MANUAL_OVERRIDE.value],
            "absorption": absorption(component, catalog.get(component["type"])),
        }
    now = datetime.now(UTC)
    return render("component.html", visitor=visitor, now=now, ends=requests.ends(now), **values)


def _resource(tx: Tx, component: Json) -> Any:
    """The resource with its owner and importers (O13); None while nobody has seen it."""
    if component["resourceKey"] is None:
        return None
    try:
        return resources.get(tx, component["resourceKey"])
    except NotFound:
        return None
