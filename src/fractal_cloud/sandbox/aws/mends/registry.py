"""How mends are found: a decorator that files each under its service and operation, and what every mend is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fractal_cloud.sandbox.aws.answer import Answer, read
from fractal_cloud.sandbox.aws.lifecycle import Lifecycle
from fractal_cloud.sandbox.aws.request import AwsRequest, with_parameters
from fractal_cloud.sandbox.calls import Call

__all__ = ["Mend", "Mending", "find_mend", "mend"]


@dataclass
class Mending:
    """What a mend works with: moto, the phases of resources, and a memory that lasts until the next reset."""

    dispatch: Callable[[AwsRequest], Answer]
    lifecycle: Lifecycle
    memory: dict[Any, Any] = field(default_factory=dict)

    def is_repeat(self, call: Call) -> bool:
        """Tell whether a call only repeats an earlier one by its client token, and so will create nothing."""
        token = call.parameters.get("ClientToken")
        return bool(token) and (call.operation, call.region, token) in self.memory

    def ask(self, request: AwsRequest, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Ask moto something else of the same service, and return its answer as a dictionary."""
        other = with_parameters(request, parameters, operation)
        return read(other, self.dispatch(other))


Mend: TypeAlias = Callable[[Mending, AwsRequest, Call], Answer]
_MENDS: dict[tuple[str, str], Mend] = {}


def mend(service: str, *operations: str) -> Callable[[Mend], Mend]:
    """File a function as the mend of some operations."""

    def file(function: Mend) -> Mend:
        for operation in operations:
            _MENDS[(service, operation)] = function
        return function

    return file


def find_mend(call: Call) -> Mend | None:
    return _MENDS.get((call.service, call.operation))
