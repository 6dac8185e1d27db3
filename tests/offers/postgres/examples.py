"""A valid declaration of every type of PostgreSQL's. Nothing of them is ever changed: so there is nothing to edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.postgres.server import PostgresServer


@dataclass(frozen=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test."""

    components: list[dict[str, Any]]


EXAMPLES: dict[type[Component], Example] = {
    PostgresServer: Example(
        [
            {
                "id": "orders",
                "type": PostgresServer.type,
                "provider": "postgres",
                "parameters": {"host": "db.example.com", "port": 5432, "sslmode": "verify-full"},
            }
        ]
    )
}
