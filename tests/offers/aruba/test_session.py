"""Credentials, projects, tokens and lists: what the agent does before it knows anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.errors import Denied, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers import aruba_login as credentials
from fractal_cloud.offers.aruba.cloud import ArubaSession
from fractal_cloud.offers.aruba.policy import policy
from fractal_cloud.offers.aruba.vpc import ArubaVpcOffer
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import Query
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.aruba.cloud import PROJECTS
from fractal_sandbox.environment import without_real_clouds
from tests.offers.aruba.person import LOCATION, VPCS, ArubaPerson


@pytest.fixture
def sandbox(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """Empty projects, the agent's key in the environment, and a home without files."""
    session_sandbox.aruba.reset()
    for name in set(os.environ) - set(without_real_clouds(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in agent_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    yield session_sandbox
    session_sandbox.aruba.reset()


def names(session: ArubaSession) -> list[str]:
    cloud = session.at(Scope("aruba", PROJECTS["team"], LOCATION))
    return [one.name for one in all_sightings(ArubaVpcOffer().sightings(cloud, Query()))]


@pytest.mark.usefixtures("sandbox")
def test_the_file_of_the_command_line_is_read_and_the_environment_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACLOUD_CLIENT_ID", "ACLOUD_CLIENT_SECRET"):
        monkeypatch.delenv(name)
    with pytest.raises(Denied, match="ACLOUD_CLIENT_ID and ACLOUD_CLIENT_SECRET, or run `acloud config set`"):
        credentials.find()
    (tmp_path / ".acloud.yaml").write_text("clientId: filed\nclientSecret: kept\nbaseUrl: https://private.example\n")
    found = credentials.find()
    assert (found.client_id, found.client_secret) == ("filed", "kept")
    assert found.base == os.environ["ACLOUD_BASE_URL"]
    monkeypatch.delenv("ACLOUD_BASE_URL")
    assert credentials.find().base == "https://private.example"


@pytest.mark.usefixtures("sandbox")
def test_a_wrong_secret_is_reported_as_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLOUD_CLIENT_SECRET", "wrong")
    with pytest.raises(Denied, match="Invalid client"):
        ArubaSession().realms()


@pytest.mark.usefixtures("sandbox")
def test_projects_are_reached_by_id_and_by_name_and_can_be_narrowed(monkeypatch: pytest.MonkeyPatch) -> None:
    realms = ArubaSession().realms()
    assert realms["team"] == realms[PROJECTS["team"]] == realms[""] == PROJECTS["team"]
    monkeypatch.setenv("FRACTAL_ARUBA_PROJECTS", "strict")
    assert set(ArubaSession().realms().values()) == {PROJECTS["strict"]}
    monkeypatch.setenv("FRACTAL_ARUBA_PROJECTS", "nowhere")
    with pytest.raises(Denied, match="nowhere"):
        ArubaSession().realms()


@pytest.mark.usefixtures("sandbox")
def test_a_misspelled_tag_style_is_refused_before_anything_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRACTAL_ARUBA_TAG_STYLE", "dots")
    with pytest.raises(Denied, match="colon or plain"):
        ArubaSession().realms()


def test_a_token_that_is_no_longer_taken_is_replaced(sandbox: Sandbox) -> None:
    session = ArubaSession()
    session.realms()
    sandbox.aruba.knobs.fail(operation="listProjects", status=401, code="Unauthorized", times=1)
    with pytest.raises(Denied):
        session.realms()
    before = len([call for call in sandbox.aruba.calls if call.call.operation == "issueToken"])
    session.realms()
    assert len([call for call in sandbox.aruba.calls if call.call.operation == "issueToken"]) == before + 1


@pytest.mark.rule("S0", "S23")
def test_every_page_of_a_list_is_read(sandbox: Sandbox) -> None:
    person = ArubaPerson(sandbox.url)
    made = [f"net-{number}" for number in range(7)]
    for name in made:
        person.create(VPCS, name)
    session = ArubaSession()
    for size in (1, 2, 3, None):
        sandbox.aruba.knobs.page_size = size
        assert names(session) == made


@pytest.mark.rule("S0")
def test_a_list_that_moves_while_it_is_read_stands_for_nothing(sandbox: Sandbox) -> None:
    person = ArubaPerson(sandbox.url)
    uris = [person.create(VPCS, f"net-{number}") for number in range(6)]
    sandbox.aruba.knobs.page_size = 3
    moved = False

    def delete_one(call: object) -> None:
        nonlocal moved
        if getattr(call, "page", 1) > 1 and not moved:
            moved = True
            person.delete(uris[0])

    sandbox.aruba.knobs.before_call(delete_one, operation="listVpcs", actor="agent")
    with pytest.raises(Unreadable, match="changed while it was read"):
        names(ArubaSession())
    assert moved


@pytest.mark.rule("A7")
def test_the_policy_names_every_collection_that_is_written_and_no_users_or_keys() -> None:
    granted = policy()["permissions"]
    assert isinstance(granted, list)
    services = {one["resource"].partition("/")[0] for one in granted}
    assert services == {"Aruba.Project", "Aruba.Network", "Aruba.Compute", "Aruba.Storage", "Aruba.Container"}
    assert {"resource": "Aruba.Project", "actions": ["read"]} in granted
    assert {"resource": "Aruba.Container/kaas", "actions": ["read", "write", "delete"]} in granted
