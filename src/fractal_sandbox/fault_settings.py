"""The knobs' settings as plain data: what can be turned, and its JSON form on the control surface.

Each model is one rule that a test adds. Counting, timing and deciding happen in `fault_injection.py`; nothing here has
state.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from fractal_sandbox.calls import Actor, Call, Filter

__all__ = ["Delay", "Failure", "Hang", "Latency", "PageFailure", "RequestRefusal", "Settings", "Substitute", "Throttle"]


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", validate_assignment=True)


class _Rule(_Model):
    """A rule about the calls that fit all its filters; names may hold `*`, as in `Describe*`."""

    service: str = "*"
    operation: str = "*"
    actor: Actor | None = None
    resource: str = "*"
    writes_only: bool = False

    def fits(self, call: Call) -> bool:
        return Filter(self.service, self.operation, self.actor, self.resource, self.writes_only).fits(call)


class Latency(_Rule):
    """Answer every fitting call `seconds` later than usual."""

    seconds: float = Field(gt=0)


class Throttle(_Rule):
    """Refuse fitting calls as the service would when it throttles: the next `next_calls`, or all above `rate`.

    `rate` is in calls per second, with bursts of `burst` calls (a bucket that refills).
    """

    next_calls: int | None = Field(default=None, ge=1)
    rate: float | None = Field(default=None, gt=0)
    burst: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _one_kind(self) -> Throttle:
        if (self.next_calls is None) == (self.rate is None):
            raise ValueError("a throttle needs either next_calls or rate: give exactly one of the two")
        return self


class _Error(_Rule):
    """How a failing call ends: with an error of the service's own format, or with a cut connection and no answer."""

    code: str = "InternalError"
    status: int = Field(default=500, ge=400, le=599)
    message: str = "The sandbox fails this call, as its settings say."
    cut: bool = False


class Failure(_Error):
    """Fail fitting calls from the `nth` on, `times` of them (`None`: all).

    `when="before"`: the call never reaches the cloud. `when="after"`: its effect happens, and only its answer is
    replaced, or lost when `cut` is set.
    """

    when: Literal["before", "after"] = "before"
    nth: int = Field(default=1, ge=1)
    times: int | None = Field(default=1, ge=1)


class PageFailure(_Error):
    """Fail page `page` (1 is the first) of fitting listings, `times` times (`None`: always)."""

    page: int = Field(ge=1)
    times: int | None = Field(default=1, ge=1)


class Substitute(_Rule):
    """Answer fitting calls from the `nth` on, `times` of them (`None`: all), with a given body instead of the cloud's.

    What a proxy, a captive portal or a broken load balancer does: a page of HTML with status 200, an empty body, half
    of a JSON object. `when="before"`: the call never reaches the cloud. `when="after"`: its effect happens, and only
    its answer is replaced.
    """

    body: str = "<html><body><h1>It works!</h1></body></html>"
    content_type: str = "text/html"
    status: int = Field(default=200, ge=200, le=599)
    when: Literal["before", "after"] = "before"
    nth: int = Field(default=1, ge=1)
    times: int | None = Field(default=None, ge=1)


class Hang(_Rule):
    """Leave fitting calls from the `nth` on, `times` of them (`None`: all), unanswered until the rule is removed.

    `when="before"`: the call waits before it is carried out, and is carried out once it is released. `when="after"`:
    its effect happens at once; its connection is cut once it is released. A reset cuts both off.
    """

    when: Literal["before", "after"] = "before"
    nth: int = Field(default=1, ge=1)
    times: int | None = Field(default=None, ge=1)


class Delay(_Model):
    """How long something takes for resources of a kind: some seconds, or a number of reads of the resource.

    Kinds of AWS: those of `aws/services.json` (`vpc`, `bucket`, `ecs-service`, …); of Kubernetes: its own, in small
    letters (`deployment`, `virtualmachine`); or a pattern. With both given, whichever is over first ends it.
    """

    kind: str = "*"
    seconds: float | None = Field(default=None, gt=0)
    reads: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _some_length(self) -> Delay:
        if self.seconds is None and self.reads is None:
            raise ValueError("a delay needs a length: give seconds, reads, or both")
        return self


class RequestRefusal(_Model):
    """Let requests of AWS's Cloud Control fail in their handler, from the `nth` on, `times` of them (`None`: all).

    `operation`: CREATE, UPDATE or DELETE. With `hook` a hook of that name denies them; else it is the service's refusal
    with one of Cloud Control's error codes.
    """

    type_name: str = "*"
    operation: str = "*"
    code: str = "GeneralServiceException"
    message: str = "The sandbox fails this request, as its settings say."
    hook: str = ""
    nth: int = Field(default=1, ge=1)
    times: int | None = Field(default=1, ge=1)

    def fits_request(self, type_name: str, operation: str) -> bool:
        return fnmatchcase(type_name, self.type_name) and fnmatchcase(operation, self.operation)


class Settings(_Model):
    """All knobs. The default is a cloud that answers at once and never fails."""

    latency: list[Latency] = []
    throttle: list[Throttle] = []
    fail: list[Failure] = []
    fail_page: list[PageFailure] = []
    answer: list[Substitute] = []
    hang: list[Hang] = []
    page_size: int | None = Field(default=None, ge=1)
    late_visibility: list[Delay] = []
    slow_creation: list[Delay] = []
    slow_modification: list[Delay] = []
    slow_deletion: list[Delay] = []
    bucket_abac: bool = False
    refuse_request: list[RequestRefusal] = []
    reshape: int | None = None
    """A seed: AWS's Cloud Control returns properties in other shapes than they were written in, the same for each."""
    reshape_only: list[str] = []
    """The shapes that this is limited to, by their names in `docs/aws-shapes.md`; empty: all."""
    checks_references: bool = True
    """Whether what properties of AWS's Cloud Control refer to must exist."""
    history_delay: float = Field(default=0.0, ge=0)
    """How many seconds after a call CloudTrail shows it; some minutes on the real one."""
