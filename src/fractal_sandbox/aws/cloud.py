"""AWS on this machine: one WSGI application, in front of moto's, through which every call to the sandbox's AWS goes.

A call is parsed, delayed or failed as the knobs say, checked by the monitor and against its caller's rights, carried
out by moto (with fixes where moto differs from AWS), and recorded. Checking and carrying out happen under one lock.
What each step does is in its own file; the order of the steps is here.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from moto.moto_api._internal.models import moto_api_backend

from fractal_sandbox.aws import accounts, effects, principals
from fractal_sandbox.aws import answer as answers
from fractal_sandbox.aws.answer import Answer, AwsError
from fractal_sandbox.aws.authorization import denial
from fractal_sandbox.aws.cloudcontrol import api as cloudcontrol
from fractal_sandbox.aws.cloudcontrol import tagging
from fractal_sandbox.aws.cloudcontrol.store import STORE
from fractal_sandbox.aws.lifecycle import Lifecycle
from fractal_sandbox.aws.moto_fixes import FixContext
from fractal_sandbox.aws.paging import Pages
from fractal_sandbox.aws.request import AwsRequest, parse
from fractal_sandbox.aws.resources import Ref, all_tagged
from fractal_sandbox.aws.showing import Showing
from fractal_sandbox.aws.speed import Moto, hurry
from fractal_sandbox.aws.trail import Trail
from fractal_sandbox.aws.watching import Watching
from fractal_sandbox.aws.writing import Writing
from fractal_sandbox.calls import Call, CallLog, RecordedCall
from fractal_sandbox.fault_injection import Interference, Knobs
from fractal_sandbox.http_server import ConnectionCut, Environ, StartResponse
from fractal_sandbox.monitor import Monitor
from fractal_sandbox.owned_resources import Owned, owned

__all__ = ["AwsCloud", "tagging"]  # the calls of the tagging API register themselves


class AwsCloud:
    """The AWS API, with its knobs, its monitor and the record of its calls.

    moto keeps its resources per process: two of these in one process show the same resources.
    """

    name = "aws"

    def __init__(self) -> None:
        hurry()
        self.knobs = Knobs()
        self.calls = CallLog()
        self.monitor = Monitor()
        self._lock = threading.RLock()
        self._moto = Moto()
        self._accounts = accounts.Accounts()
        self._pages = Pages()
        self._lifecycle = Lifecycle(self.knobs, self._dispatch)
        self.trail = Trail()
        self._fix_context = FixContext(self._dispatch, self._lifecycle, trail=self.trail, knobs=self.knobs)
        self._watching = Watching(self.monitor, self._fix_context)
        self._writing = Writing(self._fix_context, self._lifecycle)
        self._showing = Showing(self._fix_context, self._lifecycle, self._pages)

    def reset(self) -> None:
        """Remove all resources, calls, judgements, knobs and hooks."""
        with self._lock:
            moto_api_backend.reset()
            self.knobs.reset()
            self.calls.clear()
            self.monitor.reset()
            self._pages.reset()
            self._lifecycle.reset()
            self._accounts.reset()
            self._fix_context.memory.clear()
            STORE.reset()
            self.trail.reset()
            principals.prepare_account()

    def limit_agent(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Let the agent do from now on what these IAM policies allow, and nothing else; a reset lifts it."""
        with self._lock:
            principals.limit_agent(documents)

    def lift_limits(self) -> None:
        """Let the agent do anything again: its key is then the account's own."""
        with self._lock:
            principals.lift_limits()

    def owned_resources(self) -> list[Owned]:
        """Every resource, in all accounts and regions, that carries an owner tag now, and is no dead remain."""
        with self._lock:
            self._lifecycle.settle()
            return [one for account in sorted(self._accounts.known) for one in self._owned_in(account)]

    def _owned_in(self, account: str) -> list[Owned]:
        with accounts.within(account):
            return [
                one
                for ref, tags in all_tagged()
                for one in owned(self.name, ref.kind, ref.id, tags.get("Name", ref.id.rsplit("/", 1)[-1]), tags)
            ]

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        request = parse(environ, self._accounts.actor)
        with accounts.within(self._accounts.of(request.call.access_key)):
            answer = self._answered(request)
        start_response(f"{answer.status} {_phrase(answer.status)}", list(answer.headers))
        return [answer.body]

    def _answered(self, request: AwsRequest) -> Answer:
        if request.operation is None:
            if request.call.actor == "agent":
                self.monitor.unclassified(request.call, "the vendor's models do not know the call")
            with self._lock:
                return self._refused(request, request.call) or self._dispatch(request)
        ids = tuple(ref.id for ref in effects.named(request.call))
        call = replace(request.call, resource_ids=ids, page=self._pages.number(request.call))
        return self._answer(replace(request, call=call), call)

    def _answer(self, request: AwsRequest, call: Call) -> Answer:
        self.knobs.wait(call)
        self.knobs.run_before_hooks(call)
        interference = self.knobs.before(call)
        if interference is not None:
            return self._interfere(request, call, interference, effect=False)
        answer, call, interference = self._carry_out(request, call)
        if interference is not None:
            return self._interfere(request, call, interference, effect=answer.is_success)
        self._record(request, call, answer, effect=answer.is_success)
        return replace(answer, body=self.knobs.rewritten(call, answer.body)) if answer.is_success else answer

    def _carry_out(self, request: AwsRequest, call: Call) -> tuple[Answer, Call, Interference | None]:
        """Check a call and carry it out, under one lock.

        Return also the call with the ids of what it created, and what is to happen instead of the answer: an answer
        that gets lost has shown the agent nothing.
        """
        with self._lock:
            self._lifecycle.settle()
            cloudcontrol.settle(self._fix_context)
            made: list[Ref] = []
            try:
                if call.is_write:
                    answer, made = self._write(request, call)
                else:
                    self.trail.delay = self.knobs.history_delay
                    answer = self._refused(request, call) or self._showing.answer(request, call, self.knobs.page_size)
            except AwsError as refused:
                answer = answers.error(request, refused.code, refused.message, refused.status)
            except Exception as fault:  # noqa: BLE001
                # Most often something moto does not have. The client must see it in a form it can read.
                traceback.print_exc()
                answer = answers.error(request, "InternalFailure", f"the sandbox failed: {fault!r}", 500)
            call = replace(call, resource_ids=(*call.resource_ids, *(ref.id for ref in made)))
            interference = self.knobs.after(call)
            if interference is None:
                self._watching.note(request, call, answer, made)
                if call.service == "sts" and answer.is_success:
                    self._accounts.note(call, answers.read(request, answer))
            return answer, call, interference

    def _write(self, request: AwsRequest, call: Call) -> tuple[Answer, list[Ref]]:
        lost_races = self._watching.check(call)
        refused = self._refused(request, call)
        if refused is not None:
            return refused, []
        answer, made = self._writing.carry_out(request, call)
        if answer.is_success:
            self.monitor.confirm(lost_races)
        return answer, made

    def _refused(self, request: AwsRequest, call: Call) -> Answer | None:
        """Return the answer of the access control to a call that it refuses; None where it is allowed."""
        why = denial(call, bucket_abac=self.knobs.bucket_abac)
        return None if why is None else answers.denied(request, why)

    def _dispatch(self, request: AwsRequest) -> Answer:
        """Let moto answer."""
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _: object = None) -> None:
            started.append((status, headers))

        with self._lock:
            body = b"".join(self._moto(request.replay(), start_response))
        status, headers = started[-1]
        return Answer(int(status.split()[0]), tuple(headers), body)

    def _interfere(self, request: AwsRequest, call: Call, interference: Interference, *, effect: bool) -> Answer:
        if interference.cut:
            self._finish(RecordedCall(call, 0, "", effect))
            self.knobs.hold(interference)
            raise ConnectionCut
        if interference.kind == "answer":
            answer = Answer(interference.status, (("Content-Type", interference.content_type),), interference.body)
            self._finish(RecordedCall(call, answer.status, "", effect))
            return answer
        if interference.kind == "throttle":
            answer = answers.throttled(request)
        else:
            answer = answers.error(request, interference.code, interference.message, interference.status)
        self._record(request, call, answer, effect=effect)
        return answer

    def _record(self, request: AwsRequest, call: Call, answer: Answer, *, effect: bool) -> None:
        error = "" if answer.is_success else answers.error_code(request, answer)
        self._finish(RecordedCall(call, answer.status, error, effect))

    def _finish(self, recorded: RecordedCall) -> None:
        self.calls.append(recorded)
        if recorded.is_write:
            self.trail.record(recorded)
        self.knobs.run_after_hooks(recorded)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
