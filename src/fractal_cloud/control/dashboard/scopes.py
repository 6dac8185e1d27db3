"""The page of all scopes: who reads which account and place, when it was last read, and what that took (C11)."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from fractal_cloud.control.api.filters import Search
from fractal_cloud.control.api.routing import TheStore
from fractal_cloud.control.dashboard import paging
from fractal_cloud.control.dashboard.pages import PageRoute, render
from fractal_cloud.control.dashboard.sessions import TheVisitor
from fractal_cloud.control.store import scopes
from fractal_cloud.control.store.scopes import ScopeFilters

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
SCOPES: Final = 50


@router.get("/scopes")
def every(
    request: Request,
    store: TheStore,
    visitor: TheVisitor,
    search: Search = "",
    stale: bool | None = None,
    page: paging.Number = 1,
) -> Response:
    """All scopes with components, the unread ones first."""
    with store.read() as tx:
        filters = ScopeFilters(stale, search=search.strip())
        found = scopes.find(tx, paging.place(page, SCOPES), filters, visitor.who.sees)
    here = paging.Paging.of(request, page, SCOPES, found)
    return render("scopes.html", visitor=visitor, scopes=found.items, here=here)
