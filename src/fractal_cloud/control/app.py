"""Puts the control plane together: store, access, routes. How it is served is not said here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping

from fastapi import FastAPI, Request, Response
from starlette.types import Scope

import fractal_cloud
from fractal_cloud.control.api import (
    agents,
    approvals,
    components,
    events,
    health,
    livesystems,
    mutations,
    notifications,
    offers,
    plans,
    problems,
    realms,
    recovery,
    requests,
    resources,
    scopes,
    sealing_keys,
    tokens,
)
from fractal_cloud.control.api.event_feed import EventFeed
from fractal_cloud.control.api.metrics import Metrics, Timing
from fractal_cloud.control.api.middleware import Bodies, FullComponentIds
from fractal_cloud.control.api.openapi import install as install_openapi
from fractal_cloud.control.api.turns import FairTurns, OpenStreams
from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.held_requests import HeldRequests
from fractal_cloud.control.auth.middleware import Authentication
from fractal_cloud.control.auth.slowing import SlowedFailures
from fractal_cloud.control.dashboard import pages
from fractal_cloud.control.dashboard import routes as dashboard
from fractal_cloud.control.dashboard.sessions import current_visitor
from fractal_cloud.control.housekeeping import keep_house_forever
from fractal_cloud.control.notifying.sender import Sender
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store, open_store
from fractal_cloud.control.store.signals import TOKENS
from fractal_cloud.control.store.tokens import new_secret
from fractal_cloud.offers.registry import Registry

REVOCATIONS_SECONDS = 60.0
"""How long, at most, is waited in one go for a revocation."""

# A path is held against all routes before its own: who asks most often comes first.
ROUTED = (
    *(agents, livesystems, plans, mutations, components, requests, events, resources),
    *(offers, realms, scopes, approvals, sealing_keys, notifications, tokens, recovery, health, dashboard),
)


def create_app(settings: ControlSettings, store: Store | None = None, registry: Registry | None = None) -> FastAPI:
    """The control plane as an ASGI app; the store may be given, else the settings' database is opened.

    ``registry``: the types it knows, instead of those that are installed.

    ``app.state`` holds ``store``, ``admin_token``, ``settings``, ``authenticator``, ``reports``, ``metrics``,
    ``event_feed``, ``streams`` and ``sender``.
    """
    store = store or open_store(settings.resolved_database_url(), limits=settings.limits, registry=registry)
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
    app.state.event_feed = EventFeed(store)
    app.state.streams = OpenStreams(settings.clients)
    app.state.sender = Sender(store, settings.resolved_notifications, app.state.metrics.count_notification)
    problems.install(app)
    install_openapi(app)
    for module in ROUTED:
        app.include_router(module.router)
    app.add_middleware(FullComponentIds)
    app.add_middleware(FairTurns, limits=settings.clients, refuse=_refusal)
    app.add_middleware(
        HeldRequests, has_access=has_access(app), is_known=is_known(app), signals=store.signals, refuse=problems.problem
    )
    app.add_middleware(Bodies, limits=settings.clients, refuse=_refusal)
    app.add_middleware(Authentication, authenticator=app.state.authenticator, refuse=problems.problem)
    app.add_middleware(SlowedFailures, per_minute=settings.clients.failures_per_minute, refuse=_refusal)
    app.add_middleware(Timing, metrics=app.state.metrics)
    return app


def has_access(app: FastAPI) -> Callable[[Scope], bool]:
    """Say of a request that is open whether whoever sent it still has access: by its token, or by its session."""

    def still_has(scope: Scope) -> bool:
        token_hash = scope.get("state", {}).get("token_hash")
        if token_hash is None:
            return current_visitor(Request(scope)) is not None
        who = app.state.authenticator.of_hash(token_hash)
        return who is not None and who.is_accepted

    return still_has


def is_known(app: FastAPI) -> Callable[[Scope], bool]:
    """Say of a request that is open whether its token is believed right now, without asking the database."""

    def believed(scope: Scope) -> bool:
        token_hash = scope.get("state", {}).get("token_hash")
        who = None if token_hash is None else app.state.authenticator.remembered_hash(token_hash)
        return who is not None and who.is_accepted

    return believed


async def _follow_revocations(store: Store, authenticator: Authenticator) -> None:
    """Believe no token any longer as soon as any process on the database has revoked one."""
    with store.signals.subscribe([TOKENS]) as subscription:
        while not store.signals.is_closed:
            if await subscription.wait(REVOCATIONS_SECONDS):
                authenticator.forget()


def _refusal(scope: Scope, status: int, detail: str, headers: Mapping[str, str]) -> Response:
    """Say no before any route is asked: on a page where people look, as a problem document elsewhere."""
    if scope["path"] == "/ui" or scope["path"].startswith("/ui/"):
        page = pages.refused(status, detail)
        page.headers.update(headers)
        return page
    return problems.problem(status, detail, "too-many" if status == 429 else "", headers=headers)


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    store: Store = app.state.store
    beside = [
        asyncio.create_task(keep_house_forever(store, app.state.settings)),
        asyncio.create_task(_follow_revocations(store, app.state.authenticator)),
        asyncio.create_task(app.state.sender.run_forever()),
    ]
    yield
    store.signals.close()
    for task in beside:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    store.close()
