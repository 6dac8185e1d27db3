"""Puts the control plane together: store, access, routes. How it is served is not said here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI

import fractal_cloud
from fractal_cloud.control.api import (
    agents,
    components,
    events,
    health,
    livesystems,
    mutations,
    offers,
    plans,
    problems,
    realms,
    recovery,
    requests,
    resources,
    scopes,
    tokens,
)
from fractal_cloud.control.api.metrics import Metrics, Timing
from fractal_cloud.control.api.middleware import BodyLimit, FullComponentIds
from fractal_cloud.control.api.openapi import install as install_openapi
from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.middleware import Authentication
from fractal_cloud.control.dashboard import routes as dashboard
from fractal_cloud.control.housekeeping import keep_house_forever
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store, open_store
from fractal_cloud.control.store.tokens import new_secret

# A path is held against all routes before its own: who asks most often comes first.
ROUTED = (
    *(agents, livesystems, plans, mutations, components, requests, events, resources),
    *(offers, realms, scopes, tokens, recovery, health, dashboard),
)


def create_app(settings: ControlSettings, store: Store | None = None) -> FastAPI:
    """The control plane as an ASGI app; the store may be given, else the settings' database is opened.

    ``app.state`` holds ``store``, ``admin_token``, ``settings``, ``authenticator``, ``reports`` and ``metrics``.
    """
    store = store or open_store(settings.resolved_database_url(), limits=settings.limits)
    app = FastAPI(
        title="Fractal Cloud",
        version=fractal_cloud.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        responses=problems.RESPONSES,
    )
    app.state.settings = settings
    app.state.store = store
    app.state.admin_token = settings.admin_token or new_secret()
    app.state.authenticator = Authenticator(store, app.state.admin_token)
    app.state.reports = agents.report_batcher(store)
    app.state.metrics = Metrics(store)
    problems.install(app)
    install_openapi(app)
    for module in ROUTED:
        app.include_router(module.router)
    app.add_middleware(FullComponentIds)
    app.add_middleware(BodyLimit)
    app.add_middleware(Authentication, authenticator=app.state.authenticator, refuse=problems.problem)
    app.add_middleware(Timing, metrics=app.state.metrics)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    store: Store = app.state.store
    house = asyncio.create_task(keep_house_forever(store, app.state.settings))
    yield
    store.signals.close()
    house.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await house
    store.close()
