"""AWS on this machine: one WSGI application, in front of moto's, through which every call to the sandbox's AWS goes.

A call is parsed, delayed or failed as the knobs say, judged by the monitor, mended where moto differs from the real
service, carried out, and recorded. Judging and carrying out happen under one lock. What each step does is in its own
file; the order of the steps is here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from http import HTTPStatus

from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from fractal_cloud.sandbox.aws import answer as answers
from fractal_cloud.sandbox.aws.answer import Answer
from fractal_cloud.sandbox.aws.request import AwsRequest, parse
from fractal_cloud.sandbox.calls import Call, CallLog, RecordedCall
from fractal_cloud.sandbox.knobs import Interference, Knobs
from fractal_cloud.sandbox.monitor import Monitor
from fractal_cloud.sandbox.wire import ConnectionCut, Environ, StartResponse

__all__ = ["AwsCloud"]


class AwsCloud:
    """The AWS API, with its knobs, its monitor and the record of its calls.

    moto keeps its resources per process: two of these in one process show the same resources.
    """

    name = "aws"

    def __init__(self) -> None:
        self.knobs = Knobs()
        self.calls = CallLog()
        self.monitor = Monitor()
        self._lock = threading.RLock()
        self._moto = DomainDispatcherApplication(create_backend_app)

    def reset(self) -> None:
        """Remove all resources, calls, judgements, knobs and hooks."""
        with self._lock:
            moto_api_backend.reset()
            self.knobs.reset()
            self.calls.clear()
            self.monitor.reset()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        request = parse(environ)
        answer = self._dispatch(request) if request.call is None else self._answer(request, request.call)
        start_response(f"{answer.status} {_phrase(answer.status)}", list(answer.headers))
        return [answer.body]

    def _answer(self, request: AwsRequest, call: Call) -> Answer:
        self.knobs.run_before_hooks(call)
        self.knobs.wait(call)
        interference = self.knobs.before(call)
        if interference is not None:
            return self._interfere(request, call, interference, effect=False)
        answer = self._carry_out(request)
        interference = self.knobs.after(call)
        if interference is not None:
            return self._interfere(request, call, interference, effect=answer.is_success)
        self._record(request, call, answer, effect=answer.is_success)
        return answer

    def _carry_out(self, request: AwsRequest) -> Answer:
        with self._lock:
            return self._dispatch(request)

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
            raise ConnectionCut
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
        self.knobs.run_after_hooks(recorded)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
