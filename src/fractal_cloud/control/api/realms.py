"""Realms: which account, project or cluster every name is bound to, and how another one is accepted (S26)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import StringConstraints

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, Who, answer, page_of
from fractal_cloud.control.store import realms, visibility
from fractal_cloud.model.declaration import Wire

router = APIRouter(prefix="/realms", tags=["agents"], route_class=StrictRoute)
Text = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]


class AcceptedRealm(Wire):
    """Another realm is accepted for good; ``name``: what declarations call it, or the id of either realm."""

    provider: Text
    name: Text
    reason: Text
    environment: Text = "default"


@router.get("", responses={200: {"model": views.RealmPage}})
def list_all(store: TheStore, who: Who, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Every name, the realm it is bound to, and the other one that is reached by it now, where there is one."""
    with store.read() as tx:
        visible = [one for one in realms.described(tx) if visibility.covers(who.sees, one["environment"])]
        return page_of(visible, limit, cursor, "id")


@router.post("/accept", responses={200: {"model": views.RealmAccepted}})
def accept(wanted: AcceptedRealm, store: TheStore, who: Who) -> Response:
    """Accept the realm that is reached now: what is absent there is Missing until it is deployed again."""
    visibility.refuse_environment(who.sees, wanted.environment)
    with store.write() as tx:
        asked = realms.Wanted(wanted.environment, wanted.provider, wanted.name, wanted.reason, who.name)
        return answer(realms.accept(tx, asked))
