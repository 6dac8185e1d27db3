"""The file of realms: what it may say, what is refused in it, and that nothing beside it is reached."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.agent.realms_file import parse_realms
from fractal_cloud.cli.app import run
from fractal_cloud.model.errors import DeclarationError, Throttled
from fractal_cloud.offers.aws.accounts import LONGEST_WAIT, Pace
from fractal_cloud.offers.offer import Session
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox, agent_env

PROVIDERS = {name: installed().provider(name) for name in installed().providers()}
ROLE = "arn:aws:iam::111122223333:role/fractal-cloud-agent"

REFUSED: dict[str, tuple[Any, str]] = {
    "no mapping": (["aws"], "is no file of realms"),
    "an unknown cloud": ({"awz": [{"account": "111122223333"}]}, "awz: is no cloud with realms of its own: these are"),
    "no list": ({"aws": {"role": ROLE}}, "aws: is no list of realms"),
    "an unknown word": ({"aws": [{"role": ROLE, "rolle": 1}]}, "aws[0].rolle: Extra inputs are not permitted"),
    "no role": ({"aws": [{"role": "admin"}]}, "aws[0].role: String should match pattern"),
    "two ways": ({"aws": [{"role": ROLE, "profile": "x"}]}, "aws[0]: role and profile are two ways"),
    "another account": ({"aws": [{"role": ROLE, "account": "444455556666"}]}, "but the role is in '111122223333'"),
    "no account": ({"aws": [{"profile": "x"}]}, "aws[0]: account is missing"),
    "no pace": (
        {"aws": [{"role": ROLE, "callsPerSecond": 0}]},
        "aws[0].callsPerSecond: Input should be greater than 0",
    ),
    "a name twice": (
        {"gcp": [{"name": "a", "project": "p1"}, {"name": "a", "project": "p2"}]},
        "gcp: names 'a' twice",
    ),
    "a realm twice": ({"gcp": [{"project": "p1"}, {"name": "b", "project": "p1"}]}, "gcp: has the same realm twice"),
    "two defaults": (
        {"gcp": [{"project": "p1", "default": True}, {"project": "p2", "default": True}]},
        "gcp: has several defaults",
    ),
    "a pattern as a name": ({"gcp": [{"name": "p*", "project": "p1"}]}, "gcp[0].name: String should match pattern"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_place(case: str) -> None:
    document, words = REFUSED[case]
    with pytest.raises(DeclarationError) as refused:
        parse_realms(document, PROVIDERS)
    assert any(words in str(one) for one in refused.value.errors), [str(one) for one in refused.value.errors]


def test_everything_wrong_is_said_at_once_by_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "realms.json"
    file.write_text(json.dumps({"awz": [], "aws": [{"role": "admin"}, {"profile": "x"}]}))
    monkeypatch.setattr(sys, "argv", ["fractal", "agent", "--realms", str(file), "--token", "t"])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    for words in ("awz: is no cloud", "aws[0].role", "aws[1]: account is missing"):
        assert words in said


def test_an_account_may_be_written_as_the_number_that_yaml_reads() -> None:
    found = parse_realms({"aws": [{"account": 111122223333}]}, PROVIDERS)
    assert [entry.model_dump()["account"] for entry in found["aws"]] == ["111122223333"]


# --- what is reached by it


def _connected(provider: str, entries: list[dict[str, Any]]) -> Session:
    return PROVIDERS[provider].connect_to(parse_realms({provider: entries}, PROVIDERS)[provider])


@pytest.fixture
def sandbox(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    for name, value in agent_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    return session_sandbox


@pytest.mark.rule("S26")
@pytest.mark.parametrize(
    ("provider", "word"),
    [
        ("azure", "subscription"),
        ("gcp", "project"),
        ("oci", "compartment"),
        ("aruba", "project"),
        ("kubernetes", "context"),
    ],
)
def test_what_is_listed_is_reached_by_its_name_and_its_id_and_nothing_else(
    sandbox: Sandbox, provider: str, word: str
) -> None:
    del sandbox
    everything = PROVIDERS[provider].connect().realms()
    called, realm = next((name, realm) for name, realm in sorted(everything.items()) if name)
    session = _connected(provider, [{"name": "ours", word: called, "default": True}, {word: "nowhere-at-all"}])
    assert session.realms() == {"ours": realm, realm: realm, "": realm}
    assert list(session.missing()) == ["nowhere-at-all"]


@pytest.mark.rule("S26", "S24")
def test_projects_with_tokens_of_their_own_are_reached_side_by_side(sandbox: Sandbox, tmp_path: Path) -> None:
    del sandbox
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(os.environ["HCLOUD_TOKEN"] + "\n")
    endpoint = os.environ["HCLOUD_ENDPOINT"]
    session = _connected(
        "hetzner",
        [
            {"name": "shop", "project": "p-1", "tokenFile": str(good), "endpoint": endpoint},
            {"project": "p-2", "tokenFile": str(bad), "endpoint": endpoint},
        ],
    )
    assert session.realms() == {"shop": "p-1", "p-1": "p-1"}
    [why] = session.missing().values()
    assert why.startswith("the token of project 'p-2' cannot be read")
    bad.write_text(os.environ["HCLOUD_TOKEN"])
    assert session.realms() == {"shop": "p-1", "p-1": "p-1", "p-2": "p-2"}


# --- each at its own pace


def test_calls_of_an_account_are_spread_evenly_and_too_many_are_throttled() -> None:
    now, slept = [100.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)

    pace = Pace(2.0, clock=lambda: now[0], sleep=sleep)
    for _ in range(3):
        pace.wait("1")
    assert slept == [0.5, 1.0]
    now[0] += 10
    pace.wait("1")
    assert slept == [0.5, 1.0], "nothing is waited for after a pause"
    for _ in range(int(LONGEST_WAIT * 2)):
        pace.wait("1")
    with pytest.raises(Throttled, match="callsPerSecond"):
        pace.wait("1")
