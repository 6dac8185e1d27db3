"""The last event that a newly registered agent has seen, for tests that call the agent's API themselves."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from fractal_cloud.control.store import Store, incarnations
from fractal_cloud.model.wire import LastSeen


def last_seen(store: Store) -> LastSeen:
    """The newest event that a store has."""
    with store.read() as tx:
        return incarnations.newest(tx)


def last_seen_json(client: TestClient) -> dict[str, Any]:
    """The same as JSON, of the control plane that a client speaks to."""
    app: Any = client.app
    return last_seen(app.state.store).to_json()
