"""What Prometheus scrapes: what there is, read from the store when asked, and how requests went, counted as they go."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fractal_cloud.control.store import Store, metrics
from fractal_cloud.model.status import Status

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class _StoreGauges(Collector):
    """Gauges that are read from the store at the moment of the scrape."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Components by status, LiveSystems, agents and leases."""
        with self._store.read() as tx:
            found = metrics.count(tx)
        by_status = GaugeMetricFamily("fractal_components", "Components by status.", labels=["status"])
        for status in Status:
            by_status.add_metric([status.value], found.components.get(status.value, 0))
        yield by_status
        yield GaugeMetricFamily("fractal_live_systems", "LiveSystems.", value=found.live_systems)
        yield GaugeMetricFamily("fractal_agents_alive", "Agents heard of in time.", value=found.agents)
        yield GaugeMetricFamily("fractal_leases", "Scopes held by an agent that is alive.", value=found.leases)


class Metrics:
    """The metrics of one app."""

    def __init__(self, store: Store) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_StoreGauges(store))
        self.requests = Histogram(
            "fractal_request_seconds",
            "How long requests took, by route.",
            ["method", "route", "status"],
            registry=self._registry,
            buckets=_BUCKETS,
        )
        self.reports = Counter(
            "fractal_reports", "Reports of agents, by outcome.", ["outcome"], registry=self._registry
        )

    def exposition(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry)


class Timing:
    """Measures every request; streams and long polls count until they end."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Measure one request, under the pattern of its route, not its path."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        started = time.monotonic()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", "")
            self._metrics.requests.labels(scope["method"], route, str(status)).observe(time.monotonic() - started)
            if route == "/agent/report":
                self._metrics.reports.labels("taken" if status < 400 else "refused").inc()
