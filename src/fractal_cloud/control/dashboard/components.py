"""The page of one component: everything that is known of it, and what can be done with it."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Response

from fractal_cloud.control.api.routing import ComponentId, LiveSystemId, TheStore
from fractal_cloud.control.dashboard import requests
from fractal_cloud.control.dashboard.pages import PageRoute, render
from fractal_cloud.control.dashboard.sessions import TheVisitor
from fractal_cloud.control.store import components, events, glass, journal, livesystems, resources
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.control.store.records import Json

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
JOURNAL: Final = 20
EVENTS: Final = 20
# The store lists events by LiveSystem; a component's own are searched for among the newest of them.
EVENTS_SEARCHED: Final = 500


@router.get("/livesystems/{id}/components/{componentId}")
def one(live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore, visitor: TheVisitor) -> Response:
    """Everything of one component."""
    with store.read() as tx:
        livesystems.require(tx, live_system_id)
        component = components.get(tx, live_system_id, component_id)
        catalog = store.catalog(tx)
        newest = events.list_page(tx, live_system_id, EVENTS_SEARCHED, None)
        values = {
            "component": component,
            "glass": glass.commands(tx, live_system_id, component_id, catalog),
            "journal": journal.list_of(tx, live_system_id, component_id, JOURNAL, None),
            "resource": _resource(tx, component),
            "actions": requests.offered(tx, live_system_id, component_id, catalog),
            "events": [event for event in newest if event["componentId"] == component_id][:EVENTS],
        }
    return render("component.html", visitor=visitor, **values)


def _resource(tx: Tx, component: Json) -> Any:
    """The resource with its owner and importers (O13); None while nobody has seen it."""
    if component["resourceKey"] is None:
        return None
    try:
        return resources.get(tx, component["resourceKey"])
    except NotFound:
        return None
