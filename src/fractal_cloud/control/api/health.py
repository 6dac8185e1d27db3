"""For machines that watch the control plane: is it up, is its database, and what does it count."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from fractal_cloud.control.api.metrics import Metrics
from fractal_cloud.control.api.routing import StrictRoute, TheStore
from fractal_cloud.control.store.metrics import probe, probe_write

router = APIRouter(tags=["health"], route_class=StrictRoute)
PLAIN: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@router.get("/healthz", responses=PLAIN)
async def alive() -> Response:
    """The process answers."""
    return Response("ok\n", media_type="text/plain")


@router.get("/readyz", responses=PLAIN)
def ready(store: TheStore) -> Response:
    """The database answers too, and can be written."""
    with store.read() as tx:
        probe(tx)
    if store.database.is_unwritable:  # a write failed: has somebody freed space since?
        with store.write() as tx:
            probe_write(tx)
    return Response("ok\n", media_type="text/plain")


@router.get("/metrics", responses=PLAIN)
def metrics(request: Request) -> Response:
    """Prometheus."""
    counted: Metrics = request.app.state.metrics
    return Response(counted.exposition(), media_type="text/plain; version=1.0.0; charset=utf-8")
