"""What an agent that has just registered remembers of a control plane, for tests that speak in an agent's place."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from fractal_cloud.control.store import Store, incarnations
from fractal_cloud.model.wire import LastSeen


def last_seen(store: Store) -> LastSeen:
    """The newest event that a store has."""
    with store.read() as tx:
        return incarnations.newest(tx)


def told(client: TestClient) -> dict[str, Any]:
    """The same, as it stands on the wire, of the control plane that a client speaks to."""
    app: Any = client.app
    return last_seen(app.state.store).to_json()
