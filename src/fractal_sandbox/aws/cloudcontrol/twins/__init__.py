"""Resources that another service of the sandbox has too: one world, whichever API somebody uses."""

from __future__ import annotations

from fractal_sandbox.aws.cloudcontrol.twins.registry import (
    Refused,
    Twin,
    all_twins,
    find_twin,
    identifier_in_arn,
    twins_of,
)

__all__ = ["Refused", "Twin", "all_twins", "find_twin", "identifier_in_arn", "twins_of"]
