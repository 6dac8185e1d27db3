"""Everything that people hold by hand, over all LiveSystems: who, since and until when, why, and what differs (G13)."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from fractal_cloud.control.api.filters import ComponentFilters
from fractal_cloud.control.api.routing import TheStore
from fractal_cloud.control.auth.sensitive_texts import SensitiveTexts
from fractal_cloud.control.dashboard import paging
from fractal_cloud.control.dashboard.pages import PageRoute, render
from fractal_cloud.control.dashboard.sessions import TheVisitor
from fractal_cloud.control.store import components, visibility

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
OVERRIDES: Final = 50


@router.get("/overrides")
def every(
    request: Request, store: TheStore, visitor: TheVisitor, filters: ComponentFilters, page: paging.Number = 1
) -> Response:
    """All overrides, the overdue first, of each the oldest first."""
    with store.read() as tx:
        seen = SensitiveTexts(visitor.who, lambda: store.catalog(tx))
        found = components.list_overrides(tx, paging.place(page, OVERRIDES), filters, visitor.who.sees)
        items = seen.components(found.items)
        environments = visibility.environments(tx, visitor.who.sees, 50)
    here = paging.Paging.of(request, page, OVERRIDES, found)
    return render("overrides.html", visitor=visitor, components=items, here=here, environments=environments)
