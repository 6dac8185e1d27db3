"""What Prometheus scrapes: what there is, read from the store when asked, and how requests went, counted as they go."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fractal_cloud.control.store import Store, metrics
from fractal_cloud.model.status import Status

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_NOTIFICATIONS = {
    "sent": "Notifications that this process sent and their receiver accepted.",
    "failed": "Tries of this process to send a notification that its receiver did not accept.",
}


class _StoreGauges(Collector):
    """Gauges that are read from the store at the moment of the scrape."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Components by status, LiveSystems, agents and leases."""
        with self._store.read() as tx:
            found = metrics.count(tx)
            per_scope = metrics.count_scopes(tx)
        by_status = GaugeMetricFamily("fractal_components", "Components by status.", labels=["status"])
        for status in Status:
            by_status.add_metric([status.value], found.components.get(status.value, 0))
        yield by_status
        yield GaugeMetricFamily("fractal_live_systems", "LiveSystems.", value=found.live_systems)
        yield GaugeMetricFamily("fractal_agents_alive", "Agents heard of in time.", value=found.agents)
        yield GaugeMetricFamily(
            "fractal_notifications_pending", "Notifications that are still to be sent.", value=found.notifications
        )
        yield GaugeMetricFamily("fractal_leases", "Scopes held by an agent that is alive.", value=found.leases)
        stale = "Components that were not read for two cycles."
        yield GaugeMetricFamily("fractal_components_stale", stale, value=found.stale)
        yield from _scope_gauges(per_scope)


_SCOPE_CYCLE = (
    ("fractal_scope_cycle_seconds", "seconds", "How long the last cycle of a scope took."),
    ("fractal_scope_calls", "calls", "Calls to the cloud in the last cycle of a scope."),
    ("fractal_scope_throttles", "throttles", "Of these, those that the cloud throttled."),
    ("fractal_scope_errors", "errors", "Of these, those that failed otherwise."),
)


def _scope_gauges(found: Sequence[metrics.ScopeCounts]) -> Iterator[Metric]:
    """Of every scope with components: when it was last read (0 for never), and how its last cycle went."""
    read = "When a scope was last read; 0 for never."
    last_read = GaugeMetricFamily("fractal_scope_last_read_timestamp_seconds", read, labels=["scope"])
    for scope in found:
        last_read.add_metric([scope.key], 0 if scope.last_read is None else scope.last_read.timestamp())
    yield last_read
    for name, field, text in _SCOPE_CYCLE:
        gauge = GaugeMetricFamily(name, text, labels=["scope"])
        for scope in found:
            if field in scope.last_cycle:
                gauge.add_metric([scope.key], scope.last_cycle[field])
        yield gauge


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

        self._notifications = {
            outcome: Counter(f"fractal_notifications_{outcome}", text, ["subscription"], registry=self._registry)
            for outcome, text in _NOTIFICATIONS.items()
        }

    def count_notification(self, outcome: str, subscription: str) -> None:
        """Count a try to send a notification."""
        self._notifications[outcome].labels(subscription).inc()

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
