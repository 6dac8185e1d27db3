"""The safety monitor over writes of whole resources: what the agent had read, it did not add."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.azure import LOCATION
from tests.offers.azure.person import TAGS, AzurePerson

AGENT = {"User-Agent": "fractal-cloud/1 ls/ls-a component/fence reason/drift"}
OURS = {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"}


@pytest.fixture
def sandbox(session_sandbox: Sandbox) -> Iterator[Sandbox]:
    session_sandbox.azure.reset()
    yield session_sandbox
    session_sandbox.azure.reset()


def findings(sandbox: Sandbox) -> tuple[list[str], list[str]]:
    """The rules that violations and lost races name."""
    monitor = sandbox.azure.monitor
    return [one.rule for one in monitor.violations], [one.rule for one in monitor.lost_races]


@pytest.mark.rule("S16", "T3")
def test_a_tag_that_is_written_back_is_a_lost_race_and_none_at_all_with_the_etag(sandbox: Sandbox) -> None:
    person, agent = AzurePerson(sandbox.url), AzurePerson(sandbox.url, "agent")
    path = person.path("Microsoft.Network/networkSecurityGroups", "fence")
    person.call("PUT", path, {"location": LOCATION, "tags": OURS, "properties": {}})
    read = agent.call("GET", path, **AGENT)
    person.untag(path, "managed-by")
    read["properties"]["flushConnection"] = True
    with pytest.raises(HTTPError, match="412"):
        agent.call("PUT", path, read, **AGENT, **{"If-Match": read["etag"]})
    assert findings(sandbox) == ([], [])
    agent.call("PUT", path, read, **AGENT)
    violations, lost = findings(sandbox)
    assert violations == []
    assert "T3" in lost


@pytest.mark.rule("T3", "S6", "S7")
def test_what_was_forbidden_at_the_read_is_a_violation_also_where_an_etag_stops_it(sandbox: Sandbox) -> None:
    person, agent = AzurePerson(sandbox.url), AzurePerson(sandbox.url, "agent")
    path = person.path("Microsoft.Network/networkSecurityGroups", "fence")
    made = person.call("PUT", path, {"location": LOCATION, "properties": {}})
    agent.call("GET", path, **AGENT)
    merge = {"operation": "Merge", "properties": {"tags": OURS}}
    agent.call("PATCH", f"{path}/{TAGS}", merge, **AGENT)
    assert findings(sandbox) == (["T3"], [])
    with pytest.raises(HTTPError, match="412"):
        agent.call(
            "PUT", path, {**made, "properties": {"flushConnection": True}}, **AGENT, **{"If-Match": made["etag"]}
        )
    assert len(findings(sandbox)[0]) > 1, "it was wrong to send it, whoever stopped it"
