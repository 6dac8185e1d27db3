"""What an agent that has just registered remembers of a control plane, for tests that speak in an agent's place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fractal_cloud.control.store import Store, incarnations
from fractal_cloud.model.wire import LastSeen


def last_seen(store: Store) -> LastSeen:
    """The newest event that a store has."""
    with store.read() as tx:
        return incarnations.newest(tx)


def told(client: Any) -> dict[str, Any]:
    """That this is the database the agent knows, as it stands on the wire; ``client`` bears a token that may read."""
    found = client.get("/recovery").json()
    return {"incarnation": found["incarnation"], "event": 0, "at": datetime.now(UTC).isoformat()}
