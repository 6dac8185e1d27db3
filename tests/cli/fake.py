"""A control plane for the command line's tests: canned answers over HTTP, and a record of what was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from fractal_cloud.cli.client import ControlPlane

Answer = Any


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    token: str


@dataclass
class FakeControlPlane:
    """Answers by method and path. A list of answers is given one by one, the last again and again."""

    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    down: type[Exception] | None = None

    def on(self, method: str, path: str, *answers: Answer, status: int = 200) -> None:
        self.answers[method, path] = [(status, answer) for answer in answers]

    def refuse(self, method: str, path: str, status: int, detail: str, *errors: tuple[str, str]) -> None:
        faults = [{"path": where, "message": message} for where, message in errors]
        problem = {"type": "about:blank", "title": "Refused", "status": status, "detail": detail, "errors": faults}
        self.on(method, path, problem, status=status)

    def connect(self, url: str, token: str) -> ControlPlane:
        return ControlPlane(url, token, httpx2.MockTransport(self._handle))

    def _handle(self, request: httpx2.Request) -> httpx2.Response:
        if self.down is not None:
            raise self.down("nobody is there")
        body = json.loads(request.content) if request.content else None
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        path = request.url.path
        self.asked.append(Asked(request.method, path, dict(request.url.params), body, token))
        known = self.answers.get((request.method, path))
        if known is None:
            return httpx2.Response(404, json={"title": "Not Found", "detail": f"there is no {path}", "status": 404})
        status, answer = known.pop(0) if len(known) > 1 else known[0]
        if callable(answer):
            made: Callable[[httpx2.Request], httpx2.Response] = answer
            return made(request)
        if isinstance(answer, str):
            return httpx2.Response(status, text=answer, headers={"content-type": "text/event-stream"})
        return httpx2.Response(status, json=answer)

    def last(self) -> Asked:
        return self.asked[-1]
