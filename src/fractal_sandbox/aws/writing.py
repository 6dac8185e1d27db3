"""Carries out a writing call: refuses it while its resource is busy, applies fixes, and starts the phases it causes.

Runs under the cloud's lock. Whether the call is allowed to its caller was decided before.
"""

from __future__ import annotations

from typing import Any

from fractal_sandbox.aws.answer import Answer, AwsError, read, written
from fractal_sandbox.aws.effects import WRITTEN, changes, created, creation
from fractal_sandbox.aws.lifecycle import Lifecycle
from fractal_sandbox.aws.moto_fixes import FixContext, find_fix
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.aws.resources import Ref, find
from fractal_sandbox.calls import Call

__all__ = ["Writing"]


class Writing:
    """Carries out the calls that change something."""

    def __init__(self, context: FixContext, lifecycle: Lifecycle) -> None:
        self._fix_context = context
        self._lifecycle = lifecycle

    def carry_out(self, request: AwsRequest, call: Call) -> tuple[Answer, list[Ref]]:
        """Return the answer and the resources that were created; raises AwsError where AWS would refuse."""
        if call.service == "ec2" and call.parameters.get("DryRun"):
            # moto honours it for some operations only.
            raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        touched = changes(call)
        for ref, change in touched:
            self._lifecycle.refuse_if_busy(ref, change)
        running_before = _desired_count(touched[0][0]) if call.operation == "UpdateService" and touched else 0
        answer = self._delete_later(request, call) or self._fixed(request, call)
        if not answer.is_success or answer.is_replay:
            return answer, []
        made = created(call, read(request, answer)) if creation(call) is not None else []
        for ref in made:
            self._lifecycle.created(ref)
        for ref, change in touched:
            if change.kind == "modify":
                self._lifecycle.modified(ref, call, running_before)
            elif change.kind == "delete":
                self._lifecycle.deleted(ref)
        return self._shaped(request, call, answer), made

    def _fixed(self, request: AwsRequest, call: Call) -> Answer:
        fix = find_fix(call)
        return self._fix_context.dispatch(request) if fix is None else fix(self._fix_context, request, call)

    def _shaped(self, request: AwsRequest, call: Call, answer: Answer) -> Answer:
        """Let the answer show the phase that the call itself has started."""
        listing = WRITTEN.get((call.service, call.operation))
        if listing is None or self._lifecycle.is_idle:
            return answer
        data = read(request, answer)
        shaped = [
            self._lifecycle.shape(ref, item, is_read=False)
            for item in listing.items(data)
            if (ref := listing.ref(call, item)) is not None
        ]
        return written(request, data, answer) if any(shaped) else answer

    def _delete_later(self, request: AwsRequest, call: Call) -> Answer | None:
        """Put a slow deletion off, after the checks that a deletion makes; None where it is not slow."""
        operation = (call.service, call.operation)
        if operation not in (("rds", "DeleteDBInstance"), ("eks", "DeleteCluster")):
            return None
        ref, _ = changes(call)[0]
        if find(ref) is None:
            return None
        checks = FixContext(lambda _: Answer(200, (), b""), self._lifecycle, self._fix_context.memory)
        fix = find_fix(call)
        assert fix is not None
        fix(checks, request, call)
        if not self._lifecycle.put_off(ref, request):
            return None
        return written(request, self._last_sight(request, ref))

    def _last_sight(self, request: AwsRequest, ref: Ref) -> dict[str, Any]:
        if ref.kind == "db":
            found = self._fix_context.ask(request, "DescribeDBInstances", {"DBInstanceIdentifier": ref.id})
            data = {"DBInstance": found["DBInstances"][0]}
        else:
            data = {"cluster": self._fix_context.ask(request, "DescribeCluster", {"name": ref.id})["cluster"]}
        for item in data.values():
            self._lifecycle.shape(ref, item, is_read=False)
        return data


def _desired_count(ref: Ref) -> int:
    service = find(ref)
    return 0 if service is None else int(service.desired_count)
