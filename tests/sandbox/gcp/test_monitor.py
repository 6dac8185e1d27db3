"""The monitor sees what the agent does to Google's resources, also what a precondition stops and what has no labels."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.gcp import PATH, PROJECT, TOKENS
from tests.offers.gcp.person import GcpPerson

OURS = {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"}


class Agent:
    """An agent that carries out any call a test asks for."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._url = f"{sandbox.url}{PATH}"

    def call(self, method: str, path: str, body: Any = None, reason: str = "drift") -> None:
        headers = {
            "Authorization": f"Bearer {TOKENS['agent']}",
            "User-Agent": f"fractal-cloud/0 ls/ls-a component/photos reason/{reason}",
        }
        data = None if body is None else json.dumps(body).encode()
        try:
            urlopen(Request(f"{self._url}{path}", data, headers, method=method), timeout=10).close()
        except HTTPError as error:
            error.close()


@pytest.fixture
def agent(session_sandbox: Sandbox) -> Agent:
    session_sandbox.gcp.reset()
    return Agent(session_sandbox)


def broken(sandbox: Sandbox) -> list[str]:
    return [finding.rule for finding in sandbox.gcp.monitor.violations]


def bucket(sandbox: Sandbox, labels: dict[str, str]) -> GcpPerson:
    person = GcpPerson(sandbox.url)
    person.call("POST", "/storage/v1/b", {"name": "photos", "labels": labels}, project=PROJECT)
    return person


def test_a_write_to_what_is_not_managed_is_a_violation(agent: Agent, session_sandbox: Sandbox) -> None:
    bucket(session_sandbox, {"fractal-cloud-owner": "ls-a"})
    agent.call("GET", "/storage/v1/b/photos")
    agent.call("PATCH", "/storage/v1/b/photos", {"versioning": {"enabled": True}})
    assert broken(session_sandbox) == ["S7"]


def test_also_where_a_precondition_stops_it(agent: Agent, session_sandbox: Sandbox) -> None:
    bucket(session_sandbox, {"fractal-cloud-owner": "ls-a"})
    agent.call("GET", "/storage/v1/b/photos")
    agent.call("PATCH", "/storage/v1/b/photos?ifMetagenerationMatch=7", {"versioning": {"enabled": True}})
    assert broken(session_sandbox) == ["S7"]


def test_a_label_of_somebody_elses_that_goes_is_a_violation(agent: Agent, session_sandbox: Sandbox) -> None:
    bucket(session_sandbox, {**OURS, "team": "a"})
    agent.call("GET", "/storage/v1/b/photos")
    agent.call("PATCH", "/storage/v1/b/photos", {"labels": {"team": None}})
    assert broken(session_sandbox) == ["T1"]


def test_an_unlabelled_type_is_nobodys_so_every_write_to_it_is_a_violation(
    agent: Agent, session_sandbox: Sandbox
) -> None:
    here = f"/compute/v1/projects/{PROJECT}/global/networks/default"
    agent.call("GET", here)
    agent.call("PATCH", here, {"mtu": 1500})
    assert broken(session_sandbox) == ["S7"]


def test_a_managed_one_may_be_changed(agent: Agent, session_sandbox: Sandbox) -> None:
    bucket(session_sandbox, OURS)
    agent.call("GET", "/storage/v1/b/photos")
    agent.call("PATCH", "/storage/v1/b/photos", {"versioning": {"enabled": True}})
    assert broken(session_sandbox) == []
