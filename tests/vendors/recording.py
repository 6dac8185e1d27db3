"""A plugin of pytest that records what is asked of the sandboxes and what they answer: ``-p tests.vendors.recording``.

It sees requests where they arrive, so it needs nothing of the tests that send them, nor of the sandboxes. Only tests of
what every type does in its life, and of what is peculiar to each provider's, are recorded (`RECORDED`): the rest of a
suite repeats it. Answers that a test has spoiled by a knob are left out: no vendor promises them. What is the same but
for ids and times is kept once, with its number. Whether an exchange is as the vendor says does not belong here.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.endpoint import Endpoint
from botocore.model import OperationModel
from botocore.parsers import create_parser

from fractal_sandbox import fault_injection
from fractal_sandbox.http_server import Environ, StartResponse
from tests.vendors.interposing import interpose

FOLDER = Path(os.environ["FRACTAL_RECORDINGS"])
RECORDED = re.compile(r"tests/(linking|offers/(\w+/.*|test_contract\.py$))")
"""The folders and files whose tests are recorded, from the root of the repository."""
ROOT = Path(__file__).parents[2]
_PASSING = re.compile(rb"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[\d:.]+|[0-9a-f]{8,}|\d+")
_this = threading.local()


class Recordings:
    """All exchanges of this process, each kind once. ``is_open``: while a test runs that is recorded."""

    def __init__(self) -> None:
        self.is_open = False
        self._lock = threading.Lock()
        self._found: dict[bytes, dict[str, Any]] = {}

    def add(self, exchange: dict[str, Any]) -> None:
        """Keep an exchange, or count it where there is one like it."""
        key = hashlib.sha256(_PASSING.sub(b"0", json.dumps(exchange, sort_keys=True).encode())).digest()
        with self._lock:
            kept = self._found.setdefault(key, {**exchange, "times": 0})
            kept["times"] += 1

    def write(self, folder: Path) -> None:
        """Write them to files of this process, one for each cloud."""
        folder.mkdir(parents=True, exist_ok=True)
        with self._lock:
            clouds: dict[str, list[dict[str, Any]]] = {}
            for one in self._found.values():
                clouds.setdefault(one["cloud"], []).append(one)
            for cloud, several in clouds.items():
                with (folder / f"{cloud}.{os.getpid()}.jsonl").open("w") as file:
                    file.writelines(json.dumps(one) + "\n" for one in several)


class LastReads:
    """What Cloud Control's clients read last of each resource: a patch is applied to it, so it is kept with it."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], str] = {}

    def with_last(self, exchange: dict[str, Any]) -> dict[str, Any]:
        """Return an exchange with what a patch is applied to; note what a read shows."""
        operation = exchange["target"].removeprefix("/cloudcontrol.")
        if operation not in ("GetResource", "UpdateResource") or exchange["status"] >= 300:
            return exchange
        sent = json.loads(exchange["body"])
        key = (exchange["actor"], sent["TypeName"], sent["Identifier"])
        if operation == "UpdateResource":
            return {**exchange, "before": self._seen.pop(key, None)}
        if exchange["answer"] is None:  # not as AWS documents it
            self._seen.pop(key, None)
        else:
            self._seen[key] = json.loads(exchange["answer"])["ResourceDescription"]["Properties"]
        return exchange


class ThroughBoto:
    """What clients of botocore in this process ask for: AWS is recorded in their words, not in those of the wire.

    A number goes along with each request, by which the answer is brought together with it.
    """

    HEADER = "x-recording"

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._asked: dict[str, tuple[OperationModel, str]] = {}
        self._parameters = threading.local()
        self._reads = LastReads()

    def listen(self) -> None:
        """Note operations and parameters where every client of this process sends them."""
        sends = Endpoint.make_request
        calls = vars(BaseClient)["_make_api_call"]

        @wraps(calls)
        def calling(client: Any, operation: str, parameters: Any) -> Any:
            if recordings.is_open:
                self._parameters.text = json.dumps(parameters, default=str)
            return calls(client, operation, parameters)

        @wraps(sends)
        def sending(endpoint: Endpoint, operation: OperationModel, request: Any) -> Any:
            if not recordings.is_open:
                return sends(endpoint, operation, request)
            number = str(next(self._numbers))
            self._asked[number] = (operation, getattr(self._parameters, "text", "{}"))
            request["headers"][self.HEADER] = number
            try:
                return sends(endpoint, operation, request)
            finally:
                self._asked.pop(number, None)

        patched: Any = BaseClient
        patched._make_api_call = calling
        patched = Endpoint
        patched.make_request = sending

    def exchange(self, raw: dict[str, Any]) -> dict[str, Any] | None:
        """Return an exchange in the words of a client; None where no client of this process has sent it."""
        operation, parameters = self._asked.get(raw["headers"].get(self.HEADER, ""), (None, ""))
        if operation is None or raw["answer"] is None or operation.has_streaming_output:
            return None
        parser = create_parser(operation.service_model.metadata["protocol"])
        answer = {"status_code": raw["status"], "headers": raw["answerHeaders"], "body": raw["answer"].encode()}
        parsed = parser.parse(answer, operation.output_shape)  # type: ignore[arg-type]
        parsed.pop("ResponseMetadata", None)
        service = operation.service_model.service_name
        exchange = {
            **raw,
            "method": "POST",
            "target": f"/{service}.{operation.name}",
            "headers": {"content-type": "application/json"},
            "body": parameters,
            "status": 200 if raw["status"] < 300 else raw["status"],
            "answerHeaders": {},
            "answer": None if _this.is_reshaped else json.dumps(parsed, default=str),
        }
        return self._reads.with_last(exchange) if service == "cloudcontrol" else exchange


recordings = Recordings()
through_boto = ThroughBoto()


def pytest_configure() -> None:
    """Put the recorder in front of every cloud of every sandbox that is started from now on."""
    _note_knobs()
    through_boto.listen()
    interpose(_recorded)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record while a test runs that is recorded, with its fixtures."""
    recordings.is_open = bool(RECORDED.match(item.path.relative_to(ROOT).as_posix()))
    found = yield
    recordings.is_open = False
    return found


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was recorded; a process that only distributes tests has nothing to write."""
    if not session.config.getoption("numprocesses", default=None) or hasattr(session.config, "workerinput"):
        recordings.write(FOLDER)


def _note_knobs() -> None:
    """Note who calls, and whether a knob has spoiled the answer, or brings it in a shape that no schema knows."""

    def note(name: str) -> None:
        original: Callable[..., Any] = getattr(fault_injection.Knobs, name)

        @wraps(original)
        def noting(self: fault_injection.Knobs, call: Any, *more: Any) -> Any:
            answer = original(self, call, *more)
            _this.actor = call.actor
            _this.is_reshaped = self.reshape is not None and call.service == "cloudcontrol"
            if answer is not None and answer != (more[0] if more else None):
                _this.spoiled = True
            return answer

        setattr(fault_injection.Knobs, name, noting)

    for name in ("before", "after", "rewritten"):
        note(name)


def _recorded(cloud: str, app: Any) -> Any:
    def record(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if not recordings.is_open:
            found: Iterable[bytes] = app(environ, start_response)
            return found
        _this.actor, _this.spoiled, _this.is_reshaped = "", False, False
        seen: list[Any] = []

        def noting(status: str, headers: list[tuple[str, str]]) -> object:
            seen[:] = [int(status.split(maxsplit=1)[0]), headers]
            return start_response(status, headers)

        sent = environ["wsgi.input"].read()
        environ["wsgi.input"].seek(0)
        answer: Iterable[bytes] = app(environ, noting)
        if seen and not _this.spoiled:
            exchange = {
                "cloud": cloud,
                "actor": _this.actor,
                "method": environ["REQUEST_METHOD"],
                "target": environ.get("RAW_URI") or environ["PATH_INFO"],
                "headers": _headers(environ),
                "body": sent.decode("utf-8", "replace"),
                "status": seen[0],
                "answerHeaders": {name.lower(): value for name, value in seen[1]},
                "answer": b"".join(answer).decode("utf-8", "replace") if isinstance(answer, list) else None,
            }
            if cloud != "aws":
                recordings.add(exchange)
            elif (in_words := through_boto.exchange(exchange)) is not None:
                recordings.add(in_words)
        return answer

    return record


def _headers(environ: Environ) -> dict[str, str]:
    found = {key[5:].replace("_", "-").lower(): str(one) for key, one in environ.items() if key.startswith("HTTP_")}
    kept = {name: value for name, value in found.items() if name not in ("authorization", "user-agent", "host", "date")}
    return {**kept, "content-type": environ.get("CONTENT_TYPE", "")}
