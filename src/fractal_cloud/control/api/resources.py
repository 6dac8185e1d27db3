"""Every cloud resource known, with its owner and its importers (O13)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from fractal_cloud.control.api import views
from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, answer, page
from fractal_cloud.control.store import resources
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.model.errors import InputError

router = APIRouter(tags=["resources"], route_class=StrictRoute)


@router.get("/resources", responses={200: {"model": views.ResourcePage}})
def list_all(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All resources, by identity."""
    try:
        after = None if cursor is None else resources.from_key(cursor)
    except NotFound as error:
        raise BadRequest([InputError("cursor", "is not one of ours: take it from the page before")]) from error
    with store.read() as tx:
        return page(lambda most: resources.list_page(tx, most, after), limit, "key")


@router.get("/resources/{key}", responses={200: {"model": views.Resource}})
def get(key: Annotated[str, Path(max_length=2048)], store: TheStore) -> Response:
    """One resource."""
    with store.read() as tx:
        return answer(resources.get(tx, key))
