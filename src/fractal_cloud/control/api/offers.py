"""What can be declared: every component type with the schema of its parameters and its link contracts."""

from __future__ import annotations

from fastapi import APIRouter, Response

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, page_of
from fractal_cloud.control.store import offers

router = APIRouter(tags=["offers"], route_class=StrictRoute)


@router.get("/offers", responses={200: {"model": views.OfferPage}})
def list_all(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All component types that are installed here, or that an agent brought along, by type."""
    with store.read() as tx:
        catalog = store.catalog(tx)
    return page_of((facts.to_json() for facts in catalog.values()), limit, cursor, "type")


@router.get("/types", responses={200: {"model": views.TypeOwnerPage}})
def list_owners(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All component types, and whose each of them is."""
    with store.read() as tx:
        catalog, owners = store.catalog(tx), offers.owners(tx)
    found = (
        {
            "type": name,
            "provider": facts.provider,
            "installed": name in store.installed_types,
            "owner": None if name in store.installed_types else owners.get(name),
        }
        for name, facts in catalog.items()
    )
    return page_of(found, limit, cursor, "type")
