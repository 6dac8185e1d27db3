"""Puts the control plane together: store, access, routes. How it is served is not said here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

import fractal_cloud
from fractal_cloud.control.api import agents, components, livesystems, problems
from fractal_cloud.control.api.middleware import BodyLimit, FullComponentIds
from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.middleware import Authentication
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store, open_store
from fractal_cloud.control.store.tokens import new_secret

ROUTERS = (livesystems.router, components.router, agents.router)


def create_app(settings: ControlSettings, store: Store | None = None) -> FastAPI:
    """The control plane as an ASGI app; the store may be given, else the settings' database is opened.

    ``app.state`` holds ``store``, ``admin_token``, ``settings`` and ``authenticator``.
    """
    store = store or open_store(settings.resolved_database_url())
    app = FastAPI(
        title="Fractal Cloud",
        version=fractal_cloud.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.settings = settings
    app.state.store = store
    app.state.admin_token = settings.admin_token or new_secret()
    app.state.authenticator = Authenticator(store, app.state.admin_token)
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    app.add_middleware(FullComponentIds)
    app.add_middleware(BodyLimit)
    app.add_middleware(Authentication, authenticator=app.state.authenticator, refuse=problems.problem)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    await asyncio.sleep(0)
    yield
    app.state.store.signals.close()
    app.state.store.close()
