"""Deploys and deletes as records (C3)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Cursor, Limit, LiveSystemId, StrictRoute, TheStore, answer, page
from fractal_cloud.control.store import livesystems, mutations

router = APIRouter(prefix="/livesystems/{id}/mutations", tags=["mutations"], route_class=StrictRoute)


@router.get("", responses={200: {"model": views.MutationPage}})
def list_all(live_system_id: LiveSystemId, store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """The deploys and deletes of a LiveSystem, newest first, also of one that is gone."""
    with store.read() as tx:
        if not mutations.has_any(tx, live_system_id):
            livesystems.require(tx, live_system_id)
        return page(lambda most: mutations.list_of(tx, live_system_id, most, cursor), limit, "id")


@router.get("/{mutationId}", responses={200: {"model": views.Mutation}})
def get(
    live_system_id: LiveSystemId,
    mutation_id: Annotated[str, Path(alias="mutationId", pattern="^[0-9a-f]{1,64}$")],
    store: TheStore,
) -> Response:
    """One deploy or delete: how it is doing, component by component (C3, C8)."""
    with store.read() as tx:
        return answer(mutations.get(tx, live_system_id, mutation_id))
