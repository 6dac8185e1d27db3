"""Components of AWS's own types as people declare them."""

from __future__ import annotations

from typing import Any

from tests.world import REGION

LIVE_SYSTEM = "shop"


def one(component_type: str, component_id: str, *dependencies: str, **parameters: Any) -> dict[str, Any]:
    """A component as people declare it."""
    return {
        "id": component_id,
        "type": component_type,
        "provider": "aws",
        "parameters": parameters,
        **({"dependencies": list(dependencies)} if dependencies else {}),
    }


def queue(component_id: str = "jobs", **parameters: Any) -> dict[str, Any]:
    return one(
        "AWS::SQS::Queue", component_id, **{"region": REGION, "QueueName": "jobs", "DelaySeconds": 5, **parameters}
    )


__all__ = ["LIVE_SYSTEM", "REGION", "one", "queue"]
