"""The last event that a newly registered agent has seen, for tests that call the agent's API themselves."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from fractal_cloud.control.store import Store, incarnations
from fractal_cloud.control.store.records import iso
from fractal_cloud.model.wire import LastSeen


def last_seen(store: Store) -> LastSeen:
    """The newest event that a store has."""
    with store.read() as tx:
        return incarnations.newest(tx)


def proven(store: Store, seen: LastSeen) -> LastSeen:
    """The same as if the store had said it itself, in a life that was lost by a restore."""
    with store.read() as tx:
        key = incarnations.current(tx).proof_key
    made = incarnations.proof(key, seen.incarnation, seen.event, seen.event_id, iso(seen.at))
    return seen.model_copy(update={"proof": made})


def last_seen_json(client: TestClient) -> dict[str, Any]:
    """The same as JSON, of the control plane that a client speaks to."""
    app: Any = client.app
    return last_seen(app.state.store).to_json()
