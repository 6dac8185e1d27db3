"""The knobs of a sandbox cloud: everything a test can make it do that a healthy cloud does rarely.

Thread-safe, and neutral: a cloud asks `before(call)` and `after(call)` what to do with a call and does it in its own
wire format. Knobs never read resources; how slow or hidden a resource is, the cloud keeps itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, TypeVar

from fractal_sandbox.calls import Call, Filter, RecordedCall
from fractal_sandbox.fault_settings import (
    Delay,
    Failure,
    Hang,
    Latency,
    PageFailure,
    RequestRefusal,
    Settings,
    Substitute,
    Throttle,
)
from fractal_sandbox.http_server import ConnectionCut

__all__ = ["Countdown", "Hook", "Interference", "Knobs", "Rule"]

Hook: TypeAlias = Callable[[Call], None]
AfterHook: TypeAlias = Callable[[RecordedCall], None]
Rewrite: TypeAlias = Callable[[bytes], bytes]
_R = TypeVar("_R")
Delaying = Literal["late_visibility", "slow_creation", "slow_modification", "slow_deletion"]


@dataclass(frozen=True)
class Interference:
    """What is to happen to one call instead of its answer."""

    kind: Literal["throttle", "fail", "answer"]
    code: str = ""
    status: int = 0
    message: str = ""
    cut: bool = False
    body: bytes = b""
    content_type: str = ""
    hang: Hang | None = None


class Countdown:
    """Runs out after some seconds or after some reads, whichever comes first."""

    def __init__(self, delay: Delay) -> None:
        self._deadline = None if delay.seconds is None else time.monotonic() + delay.seconds
        self._reads_left = delay.reads

    @property
    def is_over(self) -> bool:
        timed_out = self._deadline is not None and time.monotonic() >= self._deadline
        return timed_out or (self._reads_left is not None and self._reads_left <= 0)

    def count_read(self) -> None:
        if self._reads_left is not None:
            self._reads_left -= 1


@dataclass
class HookRule:
    """What is run beside fitting calls, how often at most."""

    where: Filter
    run: Callable[[Any], None]
    times: int | None


@dataclass
class RewriteRule:
    """How the answers to fitting calls are changed on their way, how often at most."""

    where: Filter
    rewrite: Rewrite
    times: int | None


Rule: TypeAlias = (
    Latency | Throttle | Failure | PageFailure | Substitute | Hang | Delay | HookRule | RewriteRule | RequestRefusal
)


class Knobs:
    """Turned by a test, asked by a cloud. Every method that adds a rule returns it, for `remove`.

    All filters are keyword arguments: `service`, `operation`, `actor`, `resource`, `writes_only`.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._released = threading.Condition(self._lock)
        self._hanging: list[Hang] = []
        self._resets = 0
        self.reset()

    def reset(self) -> None:
        """Take every rule and hook away."""
        with self._lock:
            self._settings = Settings()
            self._counts: dict[int, int] = {}
            self._buckets: dict[int, tuple[float, float]] = {}
            self._before_hooks: list[HookRule] = []
            self._after_hooks: list[HookRule] = []
            self._rewrites: list[RewriteRule] = []
            self._resets += 1
            self._released.notify_all()

    # What a test turns

    def latency(self, seconds: float, **where: Any) -> Latency:
        """Slow fitting calls down: `knobs.latency(0.2, operation="Describe*")`."""
        return self._add("latency", Latency(seconds=seconds, **where))

    def throttle(
        self, *, next_calls: int | None = None, rate: float | None = None, burst: int = 1, **where: Any
    ) -> Throttle:
        """Throttle: `knobs.throttle(next_calls=3, service="ec2")` or `knobs.throttle(rate=20, burst=5)`."""
        return self._add("throttle", Throttle(next_calls=next_calls, rate=rate, burst=burst, **where))

    def fail(self, **rule: Any) -> Failure:
        """Fail calls: `knobs.fail(when="after", nth=2, cut=True, operation="RunInstances")`; see `Failure`."""
        return self._add("fail", Failure(**rule))

    def fail_page(self, page: int, **rule: Any) -> PageFailure:
        """Fail one page of a listing: `knobs.fail_page(2, operation="DescribeVpcs", code="InternalError")`."""
        return self._add("fail_page", PageFailure(page=page, **rule))

    def answer(self, body: str, *, content_type: str = "application/json", **rule: Any) -> Substitute:
        """Answer with a body of the test's own: `knobs.answer("<html>", content_type="text/html", operation="List*")`.

        Status 200 unless it says otherwise, for every fitting call; see `Substitute`.
        """
        return self._add("answer", Substitute(body=body, content_type=content_type, **rule))

    def rewrite(self, rewrite: Rewrite, *, times: int | None = None, **where: Any) -> RewriteRule:
        """Change good answers on their way: `knobs.rewrite(lambda body: body[:40], operation="DescribeVpcs")`.

        The body is the cloud's own, as bytes. Only in the sandbox's own process.
        """
        rule = RewriteRule(Filter(**where), rewrite, times)
        with self._lock:
            self._rewrites.append(rule)
        return rule

    def hang(self, **rule: Any) -> Hang:
        """Never answer fitting calls, until the rule is removed: `knobs.hang(operation="CreateVpc")`; see `Hang`."""
        return self._add("hang", Hang(**rule))

    def wait_until_hanging(self, count: int = 1, *, seconds: float = 60.0) -> None:
        """Wait until so many calls hang; raises `TimeoutError` where that does not happen."""
        with self._released:
            if not self._released.wait_for(lambda: len(self._hanging) >= count, seconds):
                raise TimeoutError(f"{len(self._hanging)} calls hang after {seconds:g} s, and {count} were waited for")

    @property
    def hanging(self) -> tuple[Hang, ...]:
        """The rules of the calls that hang at this instant, one for each call."""
        with self._lock:
            return tuple(self._hanging)

    def late_visibility(self, *, seconds: float | None = None, reads: int | None = None, kind: str = "*") -> Delay:
        """Hide what is created from now on: from lists and from reads by id, for a while."""
        return self._add("late_visibility", Delay(seconds=seconds, reads=reads, kind=kind))

    def slow_creation(self, *, seconds: float | None = None, reads: int | None = None, kind: str = "*") -> Delay:
        """Show what is created from now on in its pending or creating state for a while."""
        return self._add("slow_creation", Delay(seconds=seconds, reads=reads, kind=kind))

    def slow_modification(self, *, seconds: float | None = None, reads: int | None = None, kind: str = "*") -> Delay:
        """Show what is changed from now on in its modifying, stopping or starting state for a while."""
        return self._add("slow_modification", Delay(seconds=seconds, reads=reads, kind=kind))

    def slow_deletion(self, *, seconds: float | None = None, reads: int | None = None, kind: str = "*") -> Delay:
        """Show what is deleted from now on in its deleting state for a while; only then does it go."""
        return self._add("slow_deletion", Delay(seconds=seconds, reads=reads, kind=kind))

    def refuse_request(self, **rule: Any) -> RequestRefusal:
        """Let requests of AWS's Cloud Control fail in their handler: `knobs.refuse_request(hook="Org::Guard::Hook")`.

        See `RequestRefusal`.
        """
        return self._add("refuse_request", RequestRefusal(**rule))

    def before_call(self, run: Hook, *, times: int | None = None, **where: Any) -> HookRule:
        """Run a function right before fitting calls are carried out, outside every lock.

        It may call the cloud over HTTP or touch its state. With `times=1` it runs once: that is how a person acts
        exactly between the agent's read and its write. Only in the sandbox's own process.
        """
        hook = HookRule(Filter(**where), run, times)
        with self._lock:
            self._before_hooks.append(hook)
        return hook

    def after_call(self, run: AfterHook, *, times: int | None = None, **where: Any) -> HookRule:
        """Run a function right after fitting calls were carried out, before the client gets its answer."""
        hook = HookRule(Filter(**where), run, times)
        with self._lock:
            self._after_hooks.append(hook)
        return hook

    def remove(self, rule: Rule) -> None:
        """Take one rule away again; what it already delayed runs its course, and what hangs by it is released."""
        with self._lock:
            for hooks in (self._before_hooks, self._after_hooks):
                hooks[:] = [other for other in hooks if other is not rule]
            self._rewrites[:] = [other for other in self._rewrites if other is not rule]
            for name in Settings.model_fields:
                value = getattr(self._settings, name)
                if isinstance(value, list):
                    value[:] = [other for other in value if other is not rule]
            self._released.notify_all()

    @property
    def page_size(self) -> int | None:
        """The most items a page of any listing holds, so that few resources already need several pages."""
        return self._settings.page_size

    @page_size.setter
    def page_size(self, size: int | None) -> None:
        self._settings.page_size = size

    @property
    def bucket_abac(self) -> bool:
        """Whether all buckets of AWS have attribute-based access control on, so that conditions on their tags hold."""
        return self._settings.bucket_abac

    @bucket_abac.setter
    def bucket_abac(self, is_on: bool) -> None:
        self._settings.bucket_abac = is_on

    @property
    def history_delay(self) -> float:
        """How many seconds after a call CloudTrail shows it."""
        return self._settings.history_delay

    @history_delay.setter
    def history_delay(self, seconds: float) -> None:
        self._settings.history_delay = seconds

    @property
    def reshape(self) -> int | None:
        """The seed by which AWS's Cloud Control returns properties in other shapes; None: as they were written."""
        return self._settings.reshape

    @reshape.setter
    def reshape(self, seed: int | None) -> None:
        self._settings.reshape = seed

    @property
    def reshape_only(self) -> list[str]:
        """The shapes that `reshape` is limited to, by name; empty: all."""
        return self._settings.reshape_only

    @reshape_only.setter
    def reshape_only(self, names: list[str]) -> None:
        self._settings.reshape_only = names

    @property
    def checks_references(self) -> bool:
        """Whether what properties of AWS's Cloud Control refer to must exist."""
        return self._settings.checks_references

    @checks_references.setter
    def checks_references(self, is_on: bool) -> None:
        self._settings.checks_references = is_on

    @property
    def settings(self) -> Settings:
        """A copy of all settings; hooks are not among them."""
        with self._lock:
            return self._settings.model_copy(deep=True)

    @settings.setter
    def settings(self, settings: Settings) -> None:
        """Replace all settings, starting every count anew."""
        with self._lock:
            self._settings = settings.model_copy(deep=True)
            self._counts.clear()
            self._buckets.clear()
            self._released.notify_all()

    # What a cloud asks

    def wait(self, call: Call) -> None:
        """Sleep for as long as the latency rules say, and for as long as a rule lets the call hang."""
        with self._lock:
            seconds = sum(rule.seconds for rule in self._settings.latency if rule.fits(call))
            hangs = [rule for rule in self._settings.hang if rule.when == "before" and self._hits(rule, call)]
        if seconds:
            time.sleep(seconds)
        for rule in hangs:
            self._hold(rule)

    def hold(self, interference: Interference) -> None:
        """Keep an answer back and cut the connection in the end, where a rule says so. Outside every lock."""
        if interference.hang is not None:
            self._hold(interference.hang)
            raise ConnectionCut

    def _hold(self, rule: Hang) -> None:
        with self._released:
            resets = self._resets
            self._hanging.append(rule)
            self._released.notify_all()
            try:
                self._released.wait_for(lambda: not any(other is rule for other in self._settings.hang))
            finally:
                self._hanging[:] = _without_one(self._hanging, rule)
            if resets != self._resets:
                raise ConnectionCut

    def rewritten(self, call: Call, body: bytes) -> bytes:
        """The body of a good answer, as the rules change it on its way."""
        with self._lock:
            due = [rule for rule in self._rewrites if rule.times != 0 and rule.where.fits(call)]
            for rule in due:
                if rule.times is not None:
                    rule.times -= 1
        for rule in due:
            body = rule.rewrite(body)
        return body

    def before(self, call: Call) -> Interference | None:
        """Say what happens instead of carrying the call out, counting the call."""
        with self._lock:
            throttling = [rule for rule in self._settings.throttle if self._is_throttled(rule, call)]
            if throttling:
                return Interference("throttle")
            failures: list[Failure | PageFailure] = [
                *(rule for rule in self._settings.fail_page if self._hits_page(rule, call)),
                *(rule for rule in self._settings.fail if rule.when == "before" and self._hits(rule, call)),
            ]
            return _interference(failures) or self._substitute("before", call)

    def after(self, call: Call) -> Interference | None:
        """Say what happens instead of answering a call that was carried out, counting the call."""
        with self._lock:
            hangs = [rule for rule in self._settings.hang if rule.when == "after" and self._hits(rule, call)]
            if hangs:
                return Interference("fail", cut=True, hang=hangs[0])
            failures = [rule for rule in self._settings.fail if rule.when == "after" and self._hits(rule, call)]
            return _interference(failures) or self._substitute("after", call)

    def _substitute(self, when: Literal["before", "after"], call: Call) -> Interference | None:
        for rule in self._settings.answer:
            if rule.when == when and self._hits(rule, call):
                return Interference(
                    "answer", status=rule.status, body=rule.body.encode(), content_type=rule.content_type
                )
        return None

    def refused_request(self, type_name: str, operation: str) -> RequestRefusal | None:
        """Say whether the handler of a request refuses it, counting the request."""
        with self._lock:
            for rule in self._settings.refuse_request:
                if rule.fits_request(type_name, operation):
                    count = self._count(rule)
                    if count >= rule.nth and (rule.times is None or count < rule.nth + rule.times):
                        return rule
        return None

    def countdown(self, delaying: Delaying, kind: str) -> Countdown | None:
        """Start the countdown for a resource of a kind that is created, changed or deleted now, if a rule says so."""
        with self._lock:
            rules: list[Delay] = getattr(self._settings, delaying)
            fitting = [rule for rule in rules if fnmatchcase(kind, rule.kind)]
            return Countdown(fitting[-1]) if fitting else None

    def run_before_hooks(self, call: Call) -> None:
        for hook in self._due_hooks(self._before_hooks, call):
            hook.run(call)

    def run_after_hooks(self, recorded: RecordedCall) -> None:
        for hook in self._due_hooks(self._after_hooks, recorded.call):
            hook.run(recorded)

    # Counting

    def _add(self, name: str, rule: _R) -> _R:
        with self._lock:
            getattr(self._settings, name).append(rule)
        return rule

    def _due_hooks(self, hooks: list[HookRule], call: Call) -> list[HookRule]:
        # Counted down before it runs, so that a hook which calls the cloud itself does not run again.
        with self._lock:
            due = [hook for hook in hooks if hook.times != 0 and hook.where.fits(call)]
            for hook in due:
                if hook.times is not None:
                    hook.times -= 1
            return due

    def _count(self, rule: object) -> int:
        self._counts[id(rule)] = self._counts.get(id(rule), 0) + 1
        return self._counts[id(rule)]

    def _hits(self, rule: Failure | Substitute | Hang, call: Call) -> bool:
        if not rule.fits(call):
            return False
        count = self._count(rule)
        return count >= rule.nth and (rule.times is None or count < rule.nth + rule.times)

    def _hits_page(self, rule: PageFailure, call: Call) -> bool:
        if call.is_write or call.page != rule.page or not rule.fits(call):
            return False
        return rule.times is None or self._count(rule) <= rule.times

    def _is_throttled(self, rule: Throttle, call: Call) -> bool:
        if not rule.fits(call):
            return False
        if rule.next_calls is not None:
            return self._count(rule) <= rule.next_calls
        assert rule.rate is not None  # the rule's own validator saw to it
        now = time.monotonic()
        tokens, since = self._buckets.get(id(rule), (float(rule.burst), now))
        tokens = min(float(rule.burst), tokens + (now - since) * rule.rate)
        is_throttled = tokens < 1
        self._buckets[id(rule)] = (tokens if is_throttled else tokens - 1, now)
        return is_throttled


def _without_one(rules: list[Hang], gone: Hang) -> list[Hang]:
    """The rules but for one occurrence of a certain one: equal rules are not the same."""
    at = next(number for number, rule in enumerate(rules) if rule is gone)
    return rules[:at] + rules[at + 1 :]


def _interference(failures: list[Failure] | list[Failure | PageFailure]) -> Interference | None:
    if not failures:
        return None
    first = failures[0]
    return Interference("fail", first.code, first.status, first.message, first.cut)
