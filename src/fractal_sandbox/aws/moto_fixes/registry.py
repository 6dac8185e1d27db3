"""How fixes are registered and found, by service and operation, and the context that each is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fractal_sandbox.aws.answer import Answer, read
from fractal_sandbox.aws.lifecycle import Lifecycle
from fractal_sandbox.aws.request import AwsRequest, with_parameters
from fractal_sandbox.aws.trail import Trail
from fractal_sandbox.calls import Call
from fractal_sandbox.fault_injection import Knobs

__all__ = ["Fix", "FixContext", "find_fix", "fix"]


@dataclass
class FixContext:
    """What a fix works with: moto, the phases of resources, two memories that last until the next reset (one of its
    own, and CloudTrail's), and the knobs.
    """

    dispatch: Callable[[AwsRequest], Answer]
    lifecycle: Lifecycle
    memory: dict[Any, Any] = field(default_factory=dict)
    trail: Trail = field(default_factory=Trail)
    knobs: Knobs = field(default_factory=Knobs)

    def is_repeat(self, call: Call) -> bool:
        """Return whether a call only repeats an earlier one by its client token, and so will create nothing."""
        token = call.parameters.get("ClientToken")
        return bool(token) and (call.operation, call.region, token) in self.memory

    def ask(self, request: AwsRequest, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Ask moto something else of the same service, and return its answer as a dictionary."""
        other = with_parameters(request, parameters, operation)
        return read(other, self.dispatch(other))


Fix: TypeAlias = Callable[[FixContext, AwsRequest, Call], Answer]
_FIXES: dict[tuple[str, str], Fix] = {}


def fix(service: str, *operations: str) -> Callable[[Fix], Fix]:
    """Register a function as the fix of some operations."""

    def file(function: Fix) -> Fix:
        for operation in operations:
            _FIXES[(service, operation)] = function
        return function

    return file


def find_fix(call: Call) -> Fix | None:
    return _FIXES.get((call.service, call.operation))
