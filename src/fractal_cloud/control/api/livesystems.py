"""Deploying, deleting and reading LiveSystems."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Response

from fractal_cloud.control.api import learning, views
from fractal_cloud.control.api.filters import LiveSystemFilters, in_order
from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import (
    Cursor,
    Document,
    Limit,
    LiveSystemId,
    StrictRoute,
    TheStore,
    Who,
    answer,
    listed,
)
from fractal_cloud.control.auth.principal import Principal
from fractal_cloud.control.auth.sensitive_texts import SensitiveTexts
from fractal_cloud.control.store import Store, ended_deletions, livesystems, offers, previews, visibility
from fractal_cloud.control.store.declarations import checked, refuse
from fractal_cloud.control.store.deploy_warnings import surprises
from fractal_cloud.control.store.listing import Order, Place
from fractal_cloud.control.store.livesystems import Deploy
from fractal_cloud.control.store.records import records_of
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.offers.installed_types import family_warnings
from fractal_cloud.offers.link_validation import LinkChecks
from fractal_cloud.offers.reference_validation import clear_secrets

router = APIRouter(tags=["livesystems"], route_class=StrictRoute)
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/LiveSystemDeclaration"}}},
    }
}
OPTIONAL_BODY: dict[str, Any] = {"requestBody": {**BODY["requestBody"], "required": False}}
ACCEPTED: dict[int | str, dict[str, Any]] = {202: {"model": views.Accepted}}
IfMatch = Annotated[str | None, Header(alias="If-Match", max_length=1024)]


@router.post("/livesystems", status_code=202, openapi_extra=BODY, responses=ACCEPTED)
def create(document: Document, store: TheStore, who: Who) -> Response:
    """Deploy a LiveSystem that is not there yet."""
    return _deploy(store, who, document, None, frozenset(), must_be_new=True)


@router.put("/livesystems/{id}", status_code=202, openapi_extra=BODY, responses=ACCEPTED)
def deploy(
    live_system_id: Annotated[str, Path(alias="id")],
    document: Document,
    store: TheStore,
    who: Who,
    if_match: IfMatch = None,
) -> Response:
    """Deploy a LiveSystem, new or again; every deploy is a new generation."""
    return _deploy(store, who, document, live_system_id, expected(if_match), must_be_new=False)


def expected(if_match: str | None) -> frozenset[str]:
    """The generations an ``If-Match`` header names."""
    if if_match is None:
        return frozenset()
    return frozenset(tag.strip().strip('"') for tag in if_match.split(",")) - {""} or frozenset({"none"})


def _deploy(
    store: Store,
    who: Principal,
    document: object,
    expected_id: str | None,
    generations: frozenset[str],
    *,
    must_be_new: bool,
) -> Response:
    with store.read() as tx:
        if expected_id is not None:
            visibility.refuse_foreign(tx, who.sees, expected_id)
    learned = learning.learn(store, who, document)
    with store.read() as tx:
        catalog = store.catalog(tx).with_declared(document)
    try:
        declaration, identities = checked(document, catalog, expected_id)
        visibility.refuse_environment(who.sees, declaration.environment)
        with store.write() as tx:
            visibility.refuse_foreign(tx, who.sees, declaration.id)
            offers.keep_used(tx, (one.type for one in declaration.components), catalog)
            wanted = Deploy(declaration, identities, who.name, generations, must_be_new=must_be_new)
            mutation_id = livesystems.deploy(tx, wanted)
            warnings = [
                *livesystems.warnings(tx, wanted),
                *surprises(tx, declaration.id, records_of(tx, declaration.id), catalog),
                *LinkChecks(catalog).warnings(declaration),
                *clear_secrets(declaration, catalog),
                *family_warnings(declaration, catalog),
            ]
    except DeclarationError as error:
        with store.write() as tx:
            refuse(tx, document, expected_id, who.name, error)
        raise learned.explain(error) from None
    return answer(
        {"liveSystemId": declaration.id, "mutationId": mutation_id, "warnings": warnings},
        202,
        {"Location": f"/livesystems/{declaration.id}/mutations/{mutation_id}"},
    )


@router.get("/livesystems", responses={200: {"model": views.LiveSystemPage}})
def list_all(
    store: TheStore,
    who: Who,
    filters: LiveSystemFilters,
    sort: Annotated[Order, Query(description="By id, the worst first, or what changed last first.")] = Order.ID,
    include: Annotated[list[Literal["components"]] | None, Query(description="What else to show of each.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """All LiveSystems, by id, as summaries; with a token that is bound to environments, those in them.

    ``include=components``: with all that is declared.
    """
    with store.read() as tx:
        found = in_order(lambda: livesystems.list_page(tx, Place(limit, cursor), filters, sort, who.sees))
        items = found.items
        if include:
            items = SensitiveTexts(who, lambda: store.catalog(tx)).live_systems(livesystems.with_components(tx, items))
    return answer(listed(items, found.next, found.total))


@router.get("/livesystems/{id}", responses={200: {"model": views.LiveSystem}})
def get(live_system_id: LiveSystemId, store: TheStore, who: Who) -> Response:
    """One LiveSystem: its declaration, and how it is doing."""
    with store.read() as tx:
        found = SensitiveTexts(who, lambda: store.catalog(tx)).live_system(livesystems.get(tx, live_system_id))
    return answer(found, headers={"ETag": f'"{found["generation"]}"'})


@router.delete("/livesystems/{id}", status_code=202, responses={**ACCEPTED, 200: {"model": views.DeletePreview}})
def delete(
    live_system_id: LiveSystemId,
    store: TheStore,
    who: Who,
    dry_run: Annotated[bool, Query(alias="dryRun")] = False,
    forgotten: Annotated[list[str] | None, Query(alias="forget")] = None,
    reason: Annotated[str, Query(max_length=500)] = "",
    if_match: IfMatch = None,
) -> Response:
    """Delete a LiveSystem, or with ``dryRun`` only say what that would do.

    With ``forget`` the deletion of these components ends without any proof, for that ``reason`` (O20).
    """
    if forgotten:
        return _forget(store, live_system_id, forgotten, who.name, reason)
    if dry_run:
        with store.read() as tx:
            warnings, preview = previews.previewed(tx, live_system_id, store.catalog(tx))
        return answer({"liveSystemId": live_system_id, "warnings": warnings, "preview": preview})
    with store.write() as tx:
        warnings, _ = previews.previewed(tx, live_system_id, store.catalog(tx))
        mutation_id = livesystems.remove(tx, live_system_id, who.name, expected(if_match))
    return answer({"liveSystemId": live_system_id, "mutationId": mutation_id, "warnings": warnings}, 202)


def _forget(store: Store, live_system_id: str, component_ids: list[str], by: str, reason: str) -> Response:
    if not reason.strip():
        raise BadRequest([InputError("reason", "is missing: say why nobody can confirm that these resources are gone")])
    with store.write() as tx:
        mutation_id = ended_deletions.forget(tx, live_system_id, frozenset(component_ids), by, reason.strip())
    return answer({"liveSystemId": live_system_id, "mutationId": mutation_id, "warnings": []}, 202)
