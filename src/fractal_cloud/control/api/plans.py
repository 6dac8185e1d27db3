"""Planning a deploy: the question goes to the scopes' agents, and the answer is waited for (C6)."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from starlette.concurrency import run_in_threadpool

from fractal_cloud.control.api import learning, views
from fractal_cloud.control.api.livesystems import OPTIONAL_BODY
from fractal_cloud.control.api.routing import Document, StrictRoute, TheStore, Who, answer, known_id
from fractal_cloud.control.auth.principal import Principal
from fractal_cloud.control.store import Store, livesystems, plans, visibility
from fractal_cloud.control.store.declarations import checked
from fractal_cloud.control.store.deploy_warnings import surprises
from fractal_cloud.control.store.failures import again
from fractal_cloud.control.store.livesystems import Deploy
from fractal_cloud.control.store.plans import Asked
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.signals import plan_topic
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.offers.installed_types import family_warnings
from fractal_cloud.offers.link_validation import LinkChecks
from fractal_cloud.offers.reference_validation import clear_secrets

router = APIRouter(tags=["plans"], route_class=StrictRoute)
LONGEST_SECONDS = 60.0


@router.post("/livesystems/{id}/plan", openapi_extra=OPTIONAL_BODY, responses={200: {"model": views.Plan}})
async def plan(
    live_system_id: Annotated[str, Path(alias="id")],
    document: Document,
    store: TheStore,
    who: Who,
    timeout: Annotated[
        float, Query(ge=0, le=LONGEST_SECONDS, description="How many seconds to wait for the agents.")
    ] = LONGEST_SECONDS,
) -> Response:
    """What a deploy of the body (without one: of the stored declaration) would do, component by component."""
    started = time.monotonic()
    asked = await run_in_threadpool(_ask, store, who, live_system_id, document)
    await wait_for_agents(store, asked, timeout - (time.monotonic() - started))
    return answer(await run_in_threadpool(again, lambda: _conclude(store, asked, timeout)))


async def wait_for_agents(store: Store, asked: Asked, seconds: float) -> None:
    """Return as soon as every agent that was asked has answered, or after so many seconds."""
    until = time.monotonic() + seconds
    with store.signals.subscribe([plan_topic(asked.plan_id)]) as subscription:
        while not await run_in_threadpool(again, lambda: _is_answered(store, asked)):
            if not await subscription.wait(until - time.monotonic()):
                return


def _ask(store: Store, who: Principal, live_system_id: str, document: object) -> Asked:
    with store.read() as tx:
        visibility.refuse_foreign(tx, who.sees, live_system_id)
        if document is None:
            document = livesystems.declaration(tx, known_id("LiveSystem", live_system_id))
    learned = learning.learn(store, who, document)
    with store.read() as tx:
        catalog = store.catalog(tx).with_declared(document)
    try:
        declaration, identities = checked(document, catalog, live_system_id)
    except DeclarationError as error:
        raise learned.explain(error) from None
    visibility.refuse_environment(who.sees, declaration.environment)
    links = LinkChecks(catalog)
    with store.write() as tx:
        asked = plans.ask(tx, declaration, identities, links.unserved(declaration))
        asked.warnings = [
            *livesystems.warnings(tx, Deploy(declaration, identities, by="")),
            *surprises(tx, declaration.id, asked.rows, catalog),
            *links.warnings(declaration),
            *clear_secrets(declaration, catalog),
            *family_warnings(declaration, catalog),
        ]
        return asked


def _is_answered(store: Store, asked: Asked) -> bool:
    with store.read() as tx:
        return plans.is_answered(tx, asked)


def _conclude(store: Store, asked: Asked, waited: float) -> Json:
    with store.write() as tx:
        return plans.conclude(tx, asked, waited)
