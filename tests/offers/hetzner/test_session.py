"""The session: which project is really reached, how calls are signed and sent, and what refusals mean."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    LimitReached,
    NotFound,
    Protected,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.tags import stamp
from fractal_cloud.offers import rest
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.hetzner import cloud as cloud_module
from fractal_cloud.offers.hetzner.allowance import LIMIT, REMAINING, Allowance
from fractal_cloud.offers.hetzner.cloud import Hetzner, HetznerSession
from fractal_cloud.offers.hetzner.credentials import CONFIG, CONTEXT, ENDPOINT, PROJECT, TOKEN, credentials
from fractal_cloud.offers.hetzner.policy import policy
from fractal_sandbox import Sandbox
from fractal_sandbox.hetzner import READ_ONLY_TOKEN
from tests.offers.hetzner.person import HetznerPerson

DEPLOY = CallContext("ls-a", "web", "deploy")
CONTEXTS = """
active_context = "live"
[preferences]
endpoint = "https://api.example.com/v1"
[[contexts]]
name = "live"
token = "token-of-live"
[[contexts]]
name = "test"
token = "token-of-test"
[contexts.preferences]
endpoint = "http://127.0.0.1:9/v1/"
"""


def firewall(name: str) -> dict[str, object]:
    return {"name": name, "labels": stamp("ls-a").to_mapping()}


# --- which project


def test_a_project_is_called_as_people_say(project: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROJECT, "4711")
    assert HetznerSession().realms() == {"": "4711"}


def test_without_a_name_a_digest_of_the_token_stands_for_the_project(
    project: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PROJECT)
    first = credentials()
    monkeypatch.setenv(TOKEN, READ_ONLY_TOKEN)
    second = credentials()
    assert first.realm != second.realm, "two tokens may be two projects"
    assert first.realm.startswith("token-")
    assert first.token not in first.realm + repr(first)


def test_a_token_that_opens_nothing_reaches_no_project(project: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "revoked")
    with pytest.raises(Denied, match="unable to authenticate"):
        HetznerSession().realms()


def test_another_project_is_unreadable_and_not_empty(project: Sandbox) -> None:
    with pytest.raises(Unreadable, match="'elsewhere' is not reached"):
        HetznerSession().at(Scope("hetzner", "elsewhere", "global"))


def test_tokens_are_found_where_the_vendors_command_line_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cli.toml"
    path.write_text(CONTEXTS)
    for name in (TOKEN, CONTEXT, ENDPOINT, PROJECT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(CONFIG, str(path))
    assert (credentials().token, credentials().endpoint) == ("token-of-live", "https://api.example.com/v1")
    monkeypatch.setenv(CONTEXT, "test")
    assert (credentials().token, credentials().endpoint) == ("token-of-test", "http://127.0.0.1:9/v1")
    monkeypatch.setenv(CONTEXT, "nowhere")
    with pytest.raises(Denied, match="no context 'nowhere'"):
        credentials()
    monkeypatch.setenv(TOKEN, "given")
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:8/v1")
    assert (credentials().token, credentials().endpoint) == ("given", "http://127.0.0.1:8/v1")


def test_without_a_token_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (TOKEN, CONTEXT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(CONFIG, str(tmp_path / "absent.toml"))
    with pytest.raises(Denied, match=r"set HCLOUD_TOKEN, or make a context"):
        credentials()
    (tmp_path / "broken.toml").write_text("= nothing")
    monkeypatch.setenv(CONFIG, str(tmp_path / "broken.toml"))
    with pytest.raises(Denied, match="cannot be read"):
        credentials()


# --- how calls are sent


@pytest.mark.rule("C7")
def test_a_write_is_signed_and_its_request_id_is_kept(cloud: Hetzner, project: Sandbox) -> None:
    with cloud.calling_as(CallContext("ls-a", "web", "deploy")) as act:
        cloud.create("firewalls", firewall("wall"))
        list(cloud.items("firewalls"))
    assert len(act.request_ids) == 1
    assert len(act.request_ids[0]) == 16
    [write] = project.hetzner.calls.find(writes_only=True)
    assert (write.origin.live_system, write.origin.component, write.origin.reason) == ("ls-a", "web", "deploy")


@pytest.mark.rule("S16")
def test_a_write_whose_answer_does_not_come_is_sent_once(
    cloud: Hetzner, project: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_module, "WRITE_SECONDS", 0.2)
    project.hetzner.knobs.latency(0.5, operation="create", actor="agent")
    with cloud.calling_as(DEPLOY), pytest.raises(Transient, match="unknown until it is read again"):
        cloud.create("firewalls", firewall("wall"))
    until = time.monotonic() + 30
    while not project.hetzner.calls.count(operation="create") and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)
    assert project.hetzner.calls.count(operation="create") == 1


@pytest.mark.rule("S16")
@pytest.mark.parametrize("code", ["conflict", "rate_limit_exceeded", "bad_gateway", "timeout"])
def test_a_write_that_the_vendors_client_would_repeat_is_sent_once(cloud: Hetzner, project: Sandbox, code: str) -> None:
    project.hetzner.knobs.fail(operation="create", code=code, status=409, times=None)
    with cloud.calling_as(DEPLOY), pytest.raises(CloudError):
        cloud.create("firewalls", firewall("wall"))
    assert project.hetzner.calls.count(operation="create") == 1


def test_a_read_is_tried_again(cloud: Hetzner, project: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "READ_BACKOFF", (0.0, 0.0))
    project.hetzner.knobs.fail(operation="list", status=502, code="bad_gateway", times=2)
    assert list(cloud.items("firewalls")) == []
    project.hetzner.knobs.fail(operation="list", cut=True, times=None)
    with pytest.raises(Unreadable):
        list(cloud.items("firewalls"))


def test_lists_come_fifty_a_call(cloud: Hetzner, project: Sandbox, person: HetznerPerson) -> None:
    for number in range(101):
        person.create("firewalls", f"wall-{number}")
    project.hetzner.calls.clear()
    assert len({item["id"] for item in cloud.items("firewalls")}) == 101
    assert project.hetzner.calls.count(operation="list", actor="agent") == 3


@pytest.mark.rule("S0")
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "unauthorized", Denied),
        (403, "forbidden", Denied),
        (403, "token_readonly", Denied),
        (404, "not_found", NotFound),
        (429, "rate_limit_exceeded", Throttled),
        (409, "conflict", Conflict),
        (423, "locked", Conflict),
        (409, "uniqueness_error", Conflict),
        (422, "resource_in_use", Conflict),
        (412, "resource_unavailable", Conflict),
        (403, "resource_limit_exceeded", LimitReached),
        (423, "protected", Protected),
        (422, "invalid_input", Invalid),
        (422, "some_new_code", Invalid),
        (503, "service_error", Transient),
        (500, "some_new_code", Transient),
    ],
)
def test_every_refusal_is_one_of_the_closed_set(
    cloud: Hetzner,
    project: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: str,
    kind: type[CloudError],
) -> None:
    monkeypatch.setattr(rest, "READ_BACKOFF", (0.0, 0.0))
    project.hetzner.knobs.fail(status=status, code=code, times=None, actor="agent")
    with cloud.calling_as(DEPLOY), pytest.raises(CloudError) as written:
        cloud.create("firewalls", firewall("wall"))
    assert type(written.value) is kind
    assert written.value.code == code
    assert written.value.request_id
    with pytest.raises(CloudError) as read:
        list(cloud.items("firewalls"))
    assert type(read.value) in (Denied, NotFound, Throttled, Unreadable)


def test_a_token_that_only_reads_is_refused_with_what_it_lacks(
    project: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, READ_ONLY_TOKEN)
    session = HetznerSession()
    reader = session.at(Scope("hetzner", session.realms()[""], "global"))
    assert list(reader.items("servers")) == []
    with reader.calling_as(DEPLOY), pytest.raises(Denied, match="fractal agent policy --provider hetzner"):
        reader.create("firewalls", firewall("wall"))


# --- the limit of a project


def test_once_the_limit_is_reached_nothing_is_asked_until_there_is_a_call_again(
    cloud: Hetzner, project: Sandbox
) -> None:
    project.hetzner.knobs.throttle(next_calls=1, actor="agent")
    for _ in range(3):
        with pytest.raises(Throttled):
            list(cloud.items("firewalls"))
    assert project.hetzner.calls.count("firewalls") == 1
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            assert list(cloud.items("firewalls")) == []
            break
        except Throttled:
            time.sleep(0.1)
    assert project.hetzner.calls.count("firewalls") == 2


def test_what_is_left_is_what_the_last_answer_said_and_what_came_in_since() -> None:
    now = [0.0]
    allowance = Allowance(lambda: now[0])
    allowance.check()
    allowance.note({LIMIT: "7200", REMAINING: "0"})
    with pytest.raises(Throttled):
        allowance.check()
    allowance.note({"content-type": "text/html"})
    now[0] = 0.4
    with pytest.raises(Throttled):
        allowance.check()
    now[0] = 0.5
    allowance.check()


# --- what it needs, and what is loaded for it


@pytest.mark.rule("A7")
def test_what_stands_in_for_a_policy_is_a_file_for_a_shell_that_says_what_a_token_may() -> None:
    lines = policy().splitlines()
    assert all(line.startswith(("#", "export ")) for line in lines)
    assert "Read & Write" in policy()
    assert "a token is all or nothing" in policy()
    assert "the project is the only bound" in policy()


def test_declaring_needs_no_vendors_client_and_an_agent_only_its_own(project: Sandbox) -> None:
    script = (
        "import sys; from fractal_cloud import network_and_compute as nc, storage;"
        "nc.hetzner.server(id='web', server_type='cx23', image='debian-13');"
        "storage.hetzner.volume(id='disk', size=10, location='fsn1');"
        "from fractal_cloud.offers.registry import installed; installed();"
        "assert not {'hcloud', 'requests', 'boto3', 'kubernetes'} & set(sys.modules), 'declaring';"
        "from fractal_cloud.offers.hetzner import PROVIDER; PROVIDER.connect();"
        "assert 'hcloud' in sys.modules;"
        "assert not {'boto3', 'botocore', 'kubernetes'} & set(sys.modules), 'serving'"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
