"""The page of all agents: the dead ones first, and those that wait for approval above them (C11, A2)."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from fractal_cloud.control.api.routing import TheStore
from fractal_cloud.control.dashboard import approvals, paging
from fractal_cloud.control.dashboard.pages import PageRoute, render
from fractal_cloud.control.dashboard.sessions import ActingForm, TheVisitor, Visitor
from fractal_cloud.control.store import Store, agents
from fractal_cloud.control.store.listing import Page

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
AGENTS: Final = 50


@router.get("/agents")
def every(request: Request, store: TheStore, visitor: TheVisitor, page: paging.Number = 1) -> Response:
    """All agents, and those that wait."""
    return _page(request, store, visitor, page)


@router.post("/agents")
def approve(request: Request, store: TheStore, visitor: TheVisitor, form: ActingForm) -> Response:
    """Approve one agent at all realms where it waits; only one that the visitor is shown."""
    error = approvals.approve(store, visitor, form.get("agent"))
    return _page(request, store, visitor, 1, error) if error is not None else approvals.approved()


def _page(request: Request, store: Store, visitor: Visitor, page: int, error: str = "") -> Response:
    with store.read() as tx:
        every = agents.list_all(tx, visitor.who.sees)
        waiting = approvals.waiting(tx, visitor)
    shown = every[(page - 1) * AGENTS : page * AGENTS]
    found = Page(shown, shown[-1]["order"] if len(every) > page * AGENTS else None, len(every))
    here = paging.Paging.of(request, page, AGENTS, found)
    return render("agents.html", visitor=visitor, agents=found.items, waiting=waiting, here=here, error=error)
