"""The sandbox as a server: it starts, answers the vendor's tools, is controlled over HTTP, and ends."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox, agent_env, sandbox_env, without_real_clouds
from fractal_sandbox.aws import AGENT_ACCESS_KEY, PERSON_ACCESS_KEY
from fractal_sandbox.registry import mounts
from tests.sandbox.conftest import Tools, agent_tools, http

SERVE = "from fractal_sandbox.server import main; main('127.0.0.1', 0)"


def test_a_person_and_the_agent_reach_one_account_with_different_keys(
    sandbox: Sandbox, person: Tools, agent: Tools
) -> None:
    assert person.sts.get_caller_identity()["Account"] == "123456789012"
    assert agent.sts.get_caller_identity()["Account"] == "123456789012"
    assert [call.actor for call in sandbox.aws.calls] == ["person", "agent"]


def test_what_one_creates_the_other_sees(person: Tools, agent: Tools) -> None:
    vpc = person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    assert vpc in [found["VpcId"] for found in agent.ec2.describe_vpcs()["Vpcs"]]


def test_an_agents_call_is_recorded_with_its_live_system_component_and_reason(sandbox: Sandbox, agent: Tools) -> None:
    agent.ec2.describe_vpcs()
    (call,) = sandbox.aws.calls
    assert (call.service, call.operation, call.status, call.is_write) == ("ec2", "DescribeVpcs", 200, False)
    assert (call.origin.live_system, call.origin.component, call.origin.reason) == ("ls-a", "net", "deploy")


def test_calls_can_be_counted_by_service_operation_and_writing(sandbox: Sandbox, person: Tools) -> None:
    person.ec2.create_vpc(CidrBlock="10.0.0.0/16")
    person.ec2.describe_vpcs()
    person.s3.list_buckets()
    calls = sandbox.aws.calls
    assert calls.count(service="ec2") == 2
    assert calls.count(operation="Describe*") == 1
    assert calls.count(writes_only=True) == 1
    calls.clear()
    assert calls.count() == 0


def test_a_reset_removes_resources_calls_and_knobs(sandbox: Sandbox, person: Tools) -> None:
    person.s3.create_bucket(Bucket="some-bucket", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    sandbox.aws.knobs.page_size = 3
    sandbox.aws.reset()
    assert sandbox.aws.knobs.settings.page_size is None
    assert len(sandbox.aws.calls) == 0
    assert person.s3.list_buckets()["Buckets"] == []


def test_objects_travel_in_path_style_with_any_characters_in_their_key(person: Tools) -> None:
    person.s3.create_bucket(Bucket="some-bucket", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    person.s3.put_object(Bucket="some-bucket", Key="a/b c+ä", Body=b"content")
    assert person.s3.get_object(Bucket="some-bucket", Key="a/b c+ä")["Body"].read() == b"content"
    assert person.s3.head_object(Bucket="some-bucket", Key="a/b c+ä")["ContentLength"] == 7


def test_many_threads_are_served_at_once(sandbox: Sandbox, person: Tools) -> None:
    ec2 = person.client("ec2", max_pool_connections=16)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: ec2.describe_vpcs()["Vpcs"], range(64)))
    assert len(answers) == 64
    assert sandbox.aws.calls.count(operation="DescribeVpcs") == 64


def test_a_stopped_sandbox_leaves_no_client_waiting() -> None:
    sandbox = Sandbox(port=0).start()
    tools = Tools(sandbox.url, PERSON_ACCESS_KEY)
    tools.ec2.describe_vpcs()
    sandbox.stop()
    sandbox.stop()
    with pytest.raises(Exception, match=r"connect|closed"):
        tools.ec2.describe_vpcs()
    tools.close()


def test_a_sandbox_that_does_not_run_has_no_port_and_says_so() -> None:
    with pytest.raises(RuntimeError, match="not running"):
        _ = Sandbox().port


def test_knobs_calls_and_reset_are_reached_over_http(sandbox: Sandbox, person: Tools) -> None:
    surface = f"{sandbox.url}/_sandbox"
    assert http("GET", surface) == {"clouds": sorted(mount.name for mount in mounts())}
    shown = http("PUT", f"{surface}/aws/knobs", {"pageSize": 5, "fail": [{"operation": "CreateVpc", "status": 500}]})
    assert shown["pageSize"] == 5
    assert http("GET", f"{surface}/aws/knobs") == shown
    with pytest.raises(person.ec2.exceptions.ClientError, match="InternalError"):
        person.ec2.create_vpc(CidrBlock="10.0.0.0/16")
    (call,) = http("GET", f"{surface}/aws/calls?writesOnly=1")["calls"]
    assert (call["operation"], call["status"], call["error"], call["effect"]) == (
        "CreateVpc",
        500,
        "InternalError",
        False,
    )
    assert http("GET", f"{surface}/aws/monitor") == {"violations": [], "lostRaces": []}
    http("POST", f"{surface}/aws/reset")
    assert http("GET", f"{surface}/aws/calls") == {"calls": []}
    assert http("GET", f"{surface}/aws/knobs")["pageSize"] is None


def test_the_one_port_answers_tls_too_to_whoever_trusts_its_certificate(sandbox: Sandbox, tmp_path: Path) -> None:
    with urllib.request.urlopen(f"{sandbox.url}/_sandbox/certificate", timeout=20) as answer:
        certificate = answer.read().decode()
    trusting = ssl.create_default_context(cadata=certificate)
    for host in ("localhost", "127.0.0.1"):
        with urllib.request.urlopen(f"https://{host}:{sandbox.port}/_sandbox", timeout=20, context=trusting) as answer:
            assert json.loads(answer.read())["clouds"]
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(f"https://localhost:{sandbox.port}/_sandbox", timeout=20)
    settings = sandbox_env(sandbox.url, tmp_path)
    assert Path(settings["REQUESTS_CA_BUNDLE"]).read_text() == certificate
    assert "REQUESTS_CA_BUNDLE" not in agent_env(sandbox.url, tmp_path)


def test_a_misspelt_knob_is_refused_and_named(sandbox: Sandbox) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        http("PUT", f"{sandbox.url}/_sandbox/aws/knobs", {"pageSizes": 5})
    with refused.value as answer:
        assert answer.code == 400
        assert "pageSizes" in answer.read().decode()


def test_the_environments_of_a_person_and_the_agent_differ_in_the_key_and_lead_to_the_same_place(
    sandbox: Sandbox,
) -> None:
    person, agent = sandbox_env(sandbox.url), agent_env(sandbox.url)
    assert person["AWS_ENDPOINT_URL"] == agent["AWS_ENDPOINT_URL"] == sandbox.url
    assert person["AWS_ACCESS_KEY_ID"] == PERSON_ACCESS_KEY
    assert agent["AWS_ACCESS_KEY_ID"] == AGENT_ACCESS_KEY
    assert person.keys() <= agent.keys()


def test_nothing_that_leads_to_a_real_cloud_is_left_to_an_agent_of_the_sandbox(sandbox: Sandbox) -> None:
    mine = {"AWS_PROFILE": "production", "AWS_SESSION_TOKEN": "real", "HOME": "/home/somebody"}
    assert without_real_clouds(mine) == {"HOME": "/home/somebody"}
    assert agent_env(sandbox.url)["AWS_CONFIG_FILE"] == os.devnull


def test_a_mounted_cloud_answers_below_its_path_and_aws_stays_at_the_root(person: Tools) -> None:
    class Echo(type(Sandbox().aws)):  # type: ignore[misc]
        def __call__(self, environ: Any, start_response: Any) -> Any:
            start_response("200 OK", [])
            return [f'"{environ["PATH_INFO"]}"'.encode()]

    sandbox = Sandbox(port=0)
    sandbox.mount("echo", "/echo", Echo())
    with sandbox:
        assert http("GET", f"{sandbox.url}/echo/v1/servers") == "/v1/servers"
        mounted = http("GET", f"{sandbox.url}/_sandbox")["clouds"]
        assert mounted == sorted([*(mount.name for mount in mounts()), "echo"])
        tools = agent_tools(sandbox)
        assert tools.ec2.describe_vpcs()["Vpcs"]
        tools.close()


def test_as_a_process_of_its_own_it_serves_until_a_signal_ends_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None
        killer = threading.Timer(30, process.kill)
        killer.start()
        url = process.stdout.readline().removeprefix("sandbox: ").strip()
        tools = Tools(url, PERSON_ACCESS_KEY)
        assert tools.ec2.describe_vpcs()["Vpcs"]
        tools.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0, "it had to be killed"
        killer.cancel()
