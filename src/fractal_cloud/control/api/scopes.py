"""Who works where: the agents, and the scopes with their holders, when each was last read, and how that went."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, Who, page_in_order
from fractal_cloud.control.store import agents, scopes
from fractal_cloud.control.store.scopes import ScopeFilters

router = APIRouter(tags=["agents"], route_class=StrictRoute)


@router.get("/agents", responses={200: {"model": views.AgentPage}})
def list_agents(store: TheStore, who: Who, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All agents that were heard of lately, the dead first; with a token bound to environments, those in them."""
    with store.read() as tx:
        every = agents.list_all(tx, who.sees)
    rest = [agent for agent in every if cursor is None or agent["order"] > cursor]
    return page_in_order(rest, limit)


@router.get("/scopes", responses={200: {"model": views.ScopePage}})
def list_scopes(
    store: TheStore,
    who: Who,
    stale: bool | None = None,
    holder: Annotated[str | None, Query(max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """All scopes with components, the stale first; with a token bound to environments, those with components there."""
    with store.read() as tx:
        found = scopes.list_page(tx, limit + 1, cursor, ScopeFilters(stale, holder), who.sees)
    return page_in_order(found, limit)
