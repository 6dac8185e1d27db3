"""The agent's side of the conversation with the control plane: HTTP, outbound only."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

import httpx2 as httpx

from fractal_cloud.agent.trust import trusted
from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.errors import FractalError
from fractal_cloud.model.wire import (
    Beat,
    Claim,
    Claimed,
    Heartbeat,
    PlanResult,
    Registered,
    Registration,
    Report,
    Reported,
    Wait,
    Woken,
)

W = TypeVar("W", bound=Wire)


class ControlPlaneUnreachable(FractalError):
    """Nobody answers, or not yet: come again."""


class ControlPlaneRefuses(FractalError):
    """The control plane answers, and says no."""


class LeaseLost(FractalError):
    """Another agent holds the scope by now: everything about it must be forgotten."""


class ControlPlane:
    """One control plane, as an agent sees it."""

    def __init__(self, url: str, token: str, client: httpx.Client | None = None, *, ca_file: str = "") -> None:
        # A redirect is never followed: the token is for this address alone.
        self._client = client or httpx.Client(
            base_url=url, timeout=httpx.Timeout(30.0, connect=5.0), verify=trusted(ca_file), follow_redirects=False
        )
        self._headers = {"Authorization": f"Bearer {token}"}
        self._url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def register(self, registration: Registration) -> Registered:
        """Introduce this agent."""
        return self._post("/agent/register", registration, Registered)

    def claim(self, claim: Claim) -> Claimed:
        """Ask for scopes and for what changed in those held."""
        return self._post("/agent/claim", claim, Claimed)

    def wait(self, wait: Wait) -> Woken:
        """Sleep until something concerns this agent, or the time is over."""
        return self._post("/agent/wait", wait, Woken, timeout=wait.seconds + 15.0)

    def heartbeat(self, heartbeat: Heartbeat) -> Beat:
        """Say that this agent lives."""
        return self._post("/agent/heartbeat", heartbeat, Beat)

    def report(self, report: Report) -> Reported:
        """Publish what changed; refused as a whole if a lease is lost."""
        return self._post("/agent/report", report, Reported, timeout=60.0)

    def release(self, agent_id: str, scopes: Sequence[str] | None = None) -> None:
        """Give these scopes back, or all of them, because this agent stops."""
        which = {} if scopes is None else {"scopes": list(scopes)}
        self._send("/agent/release", {"agentId": agent_id, **which}, timeout=5.0)

    def answer_plan(self, plan_id: str, result: PlanResult) -> None:
        """Answer a plan somebody waits for."""
        self._send(f"/agent/plans/{plan_id}", result.to_json())

    def _post(self, path: str, body: Wire, answer: type[W], timeout: float | None = None) -> W:
        response = self._send(path, body.to_json(), timeout)
        return answer.model_validate_json(response.content)

    def _send(self, path: str, body: object, timeout: float | None = None) -> httpx.Response:
        try:
            request = self._client.build_request(
                "POST", path, json=body, headers=self._headers, timeout=timeout or httpx.USE_CLIENT_DEFAULT
            )
            response = self._client.send(request)
        except httpx.TransportError as error:
            raise ControlPlaneUnreachable(f"no control plane answers at {self._url} ({error})") from error
        if response.status_code == 409:
            raise LeaseLost(_detail(response))
        if response.status_code >= 500 or response.status_code == 429:
            why = _detail(response)
            raise ControlPlaneUnreachable(f"the control plane at {self._url} answers {response.status_code}: {why}")
        if response.is_redirect:
            where = response.headers.get("location", "")
            raise ControlPlaneRefuses(f"the control plane at {self._url} leads to {where!r}: use its own address")
        if response.status_code >= 400:
            raise ControlPlaneRefuses(f"{path} answers {response.status_code}: {_detail(response)}")
        return response


def _detail(response: httpx.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        return response.text[:200]
    if not isinstance(body, dict):
        return str(body)
    errors = [f"{error.get('path')} {error.get('message')}" for error in body.get("errors") or []]
    return "; ".join([str(body.get("detail") or body.get("title") or body), *errors])
