"""Who works where: the agents, and the scopes with their holders and when each was last read."""

from __future__ import annotations

from fastapi import APIRouter, Response

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, page, page_of
from fractal_cloud.control.store import agents, scopes

router = APIRouter(tags=["agents"], route_class=StrictRoute)


@router.get("/agents", responses={200: {"model": views.AgentPage}})
def list_agents(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All agents that were heard of lately, the dead too, by id."""
    with store.read() as tx:
        found = [agents.described(agent, tx.now) for agent in agents.all_agents(tx)]
    return page_of(found, limit, cursor, "id")


@router.get("/scopes", responses={200: {"model": views.ScopePage}})
def list_scopes(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All scopes with components, by key."""
    with store.read() as tx:
        return page(lambda most: scopes.list_page(tx, most, cursor), limit, "key")
