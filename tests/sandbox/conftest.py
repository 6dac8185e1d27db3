"""A sandbox per module, emptied before each test, and clients for a person and for the agent."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

from fractal_sandbox import Sandbox
from fractal_sandbox.aws import AGENT_ACCESS_KEY, PERSON_ACCESS_KEY

REGION = "eu-central-1"


# Making a client takes longer than most calls, so tests of one sandbox share them.
_CLIENTS: dict[str, Any] = {}


class Tools:
    """boto3 clients of one actor; `agent` ones say for whom and why they call."""

    def __init__(self, url: str, access_key: str, user_agent: str = "") -> None:
        self._url = url
        self._access_key = access_key
        self._user_agent = user_agent

    def client(self, service: str, **config: Any) -> Any:
        key = f"{self._url} {self._access_key} {self._user_agent} {service} {config}"
        if key not in _CLIENTS:
            _CLIENTS[key] = boto3.client(
                service,  # type: ignore[call-overload]
                endpoint_url=self._url,
                region_name=REGION,
                aws_access_key_id=self._access_key,
                aws_secret_access_key="sandbox",
                config=Config(**{"user_agent_extra": self._user_agent, "retries": {"total_max_attempts": 1}, **config}),
            )
        return _CLIENTS[key]

    def close(self) -> None:
        """Close the clients of this address, for all tools that share them."""
        for key in [key for key in _CLIENTS if key.startswith(f"{self._url} ")]:
            _CLIENTS.pop(key).close()

    def __getattr__(self, service: str) -> Any:
        return self.client({"tagging": "resourcegroupstaggingapi"}.get(service, service))


@pytest.fixture(scope="module")
def running() -> Iterator[Sandbox]:
    with Sandbox(port=0) as sandbox:
        yield sandbox
        Tools(sandbox.url, "").close()


@pytest.fixture
def sandbox(running: Sandbox) -> Sandbox:
    running.reset()
    return running


@pytest.fixture
def person(sandbox: Sandbox) -> Tools:
    return Tools(sandbox.url, PERSON_ACCESS_KEY)


@pytest.fixture
def agent(sandbox: Sandbox) -> Tools:
    return agent_tools(sandbox)


def agent_tools(sandbox: Sandbox, live_system: str = "ls-a", component: str = "net", reason: str = "deploy") -> Tools:
    words = f"fractal-cloud/0.1.0 ls/{live_system} component/{component} reason/{reason}"
    return Tools(sandbox.url, AGENT_ACCESS_KEY, words)


def http(method: str, url: str, content: Any = None) -> Any:
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, data=body, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)
