"""A control plane that cannot just now: reads are tried again, and of a write it is said what to do."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from fractal_cloud.cli.client import ControlPlane
from fractal_cloud.cli.errors import Unreachable


def _plane(*answers: httpx2.Response | Exception) -> tuple[ControlPlane, list[str]]:
    asked: list[str] = []
    left = list(answers)

    def handle(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.method)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ControlPlane("http://plane", "t", httpx2.MockTransport(handle)), asked


def _busy(kind: str = "unavailable", detail: str = "nothing was changed") -> httpx2.Response:
    body: dict[str, Any] = {"type": f"urn:fractal-cloud:problem:{kind}", "status": 503, "detail": detail}
    return httpx2.Response(503, json=body, headers={"Retry-After": "1"})


def test_reads_are_tried_again_until_they_are_answered() -> None:
    plane, asked = _plane(_busy(), httpx2.ReadError("cut"), httpx2.Response(200, json={"ok": True}))
    assert plane.get("/x") == {"ok": True}
    assert len(asked) == 3


def test_a_read_that_is_never_answered_says_so_in_the_end() -> None:
    plane, asked = _plane(*(_busy() for _ in range(9)))
    with pytest.raises(Unreachable, match="nothing was changed"):
        plane.get("/x")
    assert len(asked) == 4


def test_a_write_is_asked_once_and_its_advice_says_whether_it_may_be_done() -> None:
    plane, asked = _plane(_busy(), _busy("unsure", "it may be done, or not"))
    with pytest.raises(Unreachable) as busy:
        plane.put("/x", {})
    assert "try again" in busy.value.advice
    with pytest.raises(Unreachable) as unsure:
        plane.put("/x", {})
    assert "fractal status" in unsure.value.advice
    assert asked == ["PUT", "PUT"]
