"""The session at AWS: who is reached, how calls are signed, tried again and paged, and what a failure becomes."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import boto3
import pytest

from fractal_cloud import __version__
from fractal_cloud.model.errors import CloudError, Denied, Invalid, NotFound, Throttled, Transient, Unreadable
from fractal_cloud.offers.aws.cloud import Aws, AwsSession, _drop_account_from_address, is_read
from fractal_cloud.offers.aws.vpc import VPC as VPC_RESOURCE
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox, agent_env
from tests.offers.aws.conftest import World
from tests.offers.aws.example import REGION
from tests.offers.aws.examples.vpc import VPC

VPCS = "NetworkAndCompute.IaaS.AwsVpc"


def test_knowing_the_types_does_not_load_the_sdk() -> None:
    code = (
        "import sys; from fractal_cloud.offers.registry import installed;"
        "assert 'aws' in installed().providers();"
        "print([name for name in sys.modules if name.startswith(('boto', 's3transfer'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_realm_is_the_account_really_reached(session: AwsSession) -> None:
    assert session.realms() == {"": "123456789012"}


def test_a_global_scope_uses_the_environments_region(world: World) -> None:
    assert world.cloud("global").region == "eu-central-1"
    assert world.cloud().region == REGION


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_an_arn_bears_its_partition(world: World, region: str, partition: str) -> None:
    assert world.cloud(region).arn(VPC_RESOURCE, "v") == f"arn:{partition}:ec2:{region}:123456789012:vpc/v"


def test_threads_share_one_client_per_service_and_region(session: AwsSession) -> None:
    def client(_: int) -> int:
        return id(session._client("ec2", "ap-south-1", reads=True))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(client, range(32)))) == 1


def test_reads_are_tried_three_times_and_writes_once(session: AwsSession) -> None:
    reading = session._client("ec2", REGION, reads=True).meta.config
    writing = session._client("ec2", REGION, reads=False).meta.config
    assert reading.retries == {"mode": "standard", "total_max_attempts": 3}
    assert writing.retries == {"mode": "standard", "total_max_attempts": 1}
    assert reading.max_pool_connections >= 32
    assert reading.connect_timeout + reading.read_timeout <= 30


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("describe_vpcs", True),
        ("get_caller_identity", True),
        ("list_buckets", True),
        ("head_bucket", True),
        ("create_vpc", False),
        ("tag_resource", False),
        ("modify_vpc_attribute", False),
        ("put_public_access_block", False),
    ],
)
def test_reads_are_distinguished_from_writes(operation: str, *, expected: bool) -> None:
    assert is_read(operation) is expected


class TestSigning:
    def test_a_call_says_for_whom_and_why(self, cloud: Aws, sandbox: Sandbox) -> None:
        with cloud.calling_as(CallContext("ls-a", "net", "force push")):
            cloud.call("ec2", "describe_vpcs")
        [call] = sandbox.aws.calls.find(operation="DescribeVpcs")
        assert call.call.user_agent.endswith(f" fractal-cloud/{__version__} ls/ls-a component/net reason/force-push")
        assert call.origin.live_system == "ls-a"

    def test_a_call_for_nobody_is_a_read(self, cloud: Aws, sandbox: Sandbox) -> None:
        cloud.call("ec2", "describe_vpcs")
        [call] = sandbox.aws.calls.find(operation="DescribeVpcs")
        assert call.call.user_agent.endswith(f" fractal-cloud/{__version__} reason/read")
        assert "ls/" not in call.call.user_agent

    def test_the_sdk_names_itself_first(self, sandbox: Sandbox, cloud: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_SDK_UA_APP_ID", "tenant-7")
        AwsSession().at(cloud.scope).call("ec2", "describe_vpcs")
        (call,) = sandbox.aws.calls.find(operation="DescribeVpcs")
        said = call.call.user_agent
        assert said.startswith(f"Boto3/{boto3.__version__} ")
        assert said.count("Botocore/") == 1
        assert " app/tenant-7 " in said

    def test_nothing_can_be_smuggled_into_the_user_agent(self, cloud: Aws, sandbox: Sandbox) -> None:
        with cloud.calling_as(CallContext("a b\r\nX: y", "ü/z", "")):
            cloud.call("ec2", "describe_vpcs")
        [call] = sandbox.aws.calls.find(operation="DescribeVpcs")
        assert call.call.user_agent.endswith("ls/a-b-X-y component/-z reason/-")

    def test_acting_ends_with_its_block_and_holds_for_its_thread_alone(self, cloud: Aws, sandbox: Sandbox) -> None:
        with cloud.calling_as(CallContext("ls-a", "net", "deploy")), ThreadPoolExecutor(1) as pool:
            pool.submit(cloud.call, "ec2", "describe_vpcs").result()
        cloud.call("ec2", "describe_subnets")
        assert [call.origin.reason for call in sandbox.aws.calls.find("ec2")] == ["read", "read"]

    @pytest.mark.rule("C7")
    def test_request_ids_of_writes_are_collected_also_of_refused_ones(self, cloud: Aws, sandbox: Sandbox) -> None:
        sandbox.aws.lift_limits()
        with cloud.calling_as(CallContext("ls-a", "net", "deploy")) as act:
            cloud.call("ec2", "describe_vpcs")
            assert act.request_ids == []
            cloud.call("ec2", "create_vpc", CidrBlock="10.0.0.0/16")
            assert len(act.request_ids) == 1
            with pytest.raises(NotFound):
                cloud.call("ec2", "delete_vpc", VpcId="vpc-0")
            assert len(act.request_ids) == 2


class TestFailing:
    @pytest.mark.rule("S17")
    def test_a_creation_whose_answer_is_lost_is_not_sent_again(self, world: World, sandbox: Sandbox) -> None:
        sandbox.aws.knobs.fail(when="after", cut=True, operation="CreateVpc")
        with pytest.raises(Transient, match="unknown until it is read again"):
            world.create(VPC)
        assert sandbox.aws.calls.count(operation="CreateVpc") == 1
        assert len([one for one in installed()[VPCS].sightings(world.cloud(), Query()) if one.name == "net"]) == 1

    def test_a_server_fault_of_a_write_leaves_its_effect_unknown(self, cloud: Aws, sandbox: Sandbox) -> None:
        sandbox.aws.knobs.fail(operation="CreateVpc", times=None)
        with pytest.raises(Transient) as raised:
            cloud.call("ec2", "create_vpc", CidrBlock="10.0.0.0/16")
        assert raised.value.code == "InternalError"
        assert sandbox.aws.calls.count(operation="CreateVpc") == 1

    @pytest.mark.rule("S0")
    def test_a_read_that_fails_is_unreadable_after_three_tries(self, cloud: Aws, sandbox: Sandbox) -> None:
        sandbox.aws.knobs.fail(operation="DescribeVpcs", times=None)
        with pytest.raises(Unreadable, match="nothing is decided from it"):
            cloud.find("ec2", "describe_vpcs")
        assert sandbox.aws.calls.count(operation="DescribeVpcs") == 3

    def test_a_read_that_is_throttled_once_comes_through(self, cloud: Aws, sandbox: Sandbox) -> None:
        sandbox.aws.knobs.throttle(next_calls=1, operation="DescribeVpcs")
        cloud.call("ec2", "describe_vpcs")
        assert sandbox.aws.calls.count(operation="DescribeVpcs") == 2

    @pytest.mark.parametrize(("operation", "tries"), [("DescribeVpcs", 3), ("CreateVpc", 1)])
    def test_throttling_is_reported_and_not_waited_out(
        self, cloud: Aws, sandbox: Sandbox, operation: str, tries: int
    ) -> None:
        sandbox.aws.knobs.throttle(next_calls=10, operation=operation)
        verb, parameters = ("describe_vpcs", {}) if tries == 3 else ("create_vpc", {"CidrBlock": "10.0.0.0/16"})
        with pytest.raises(Throttled):
            cloud.call("ec2", verb, **parameters)
        assert sandbox.aws.calls.count(operation=operation) == tries

    @pytest.mark.rule("S0")
    def test_a_list_with_a_page_missing_does_not_end_early(self, world: World, sandbox: Sandbox) -> None:
        for number in range(3):
            world.person("ec2").create_vpc(CidrBlock=f"10.{number}.0.0/16")
        sandbox.aws.knobs.page_size = 2
        sandbox.aws.knobs.fail_page(2, operation="DescribeVpcs", times=None)
        with pytest.raises(Unreadable):
            list(installed()[VPCS].sightings(world.cloud(), Query()))

    @pytest.mark.parametrize(
        ("operation", "parameters", "expected"),
        [("describe_vpcs", {}, Unreadable), ("create_vpc", {"CidrBlock": "10.0.0.0/16"}, Transient)],
    )
    def test_a_cloud_that_is_not_there(
        self,
        monkeypatch: pytest.MonkeyPatch,
        world: World,
        operation: str,
        parameters: dict[str, str],
        expected: type[CloudError],
    ) -> None:
        for name, value in agent_env("http://127.0.0.1:9").items():
            monkeypatch.setenv(name, value)
        with pytest.raises(expected, match="Could not connect"):
            AwsSession().at(world.cloud().scope).call("ec2", operation, **parameters)

    def test_a_request_that_makes_no_sense_is_never_sent(self, cloud: Aws) -> None:
        with pytest.raises(Invalid, match="CidrBlock"):
            cloud.call("ec2", "create_vpc", CidrBlock=5)
        with pytest.raises(Unreadable):
            cloud.call("ec2", "describe_vpcs", MaxResults="many")

    def test_without_credentials_everything_is_denied(
        self, monkeypatch: pytest.MonkeyPatch, world: World, running: Sandbox
    ) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            monkeypatch.setenv(name, "none")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        with pytest.raises(Denied, match="give the agent credentials"):
            AwsSession().at(world.cloud().scope).call("ec2", "describe_vpcs")

    @pytest.mark.rule("S21")
    def test_a_condition_on_tags_denies_what_nobody_manages(self, world: World, sandbox: Sandbox) -> None:
        seen = world.create(VPC)
        world.person("ec2").delete_tags(Resources=[seen.resource_id], Tags=[{"Key": "managed-by"}])
        with pytest.raises(Denied, match="fractal agent policy --provider aws"):
            installed()[VPCS].delete(world.cloud(), seen)


class TestPaging:
    @pytest.mark.parametrize("count", [1, 4, 5])
    def test_a_list_makes_no_call_more_than_it_has_pages(self, world: World, sandbox: Sandbox, count: int) -> None:
        present = len(world.person("ec2").describe_vpcs()["Vpcs"])
        for number in range(count - present):
            world.person("ec2").create_vpc(CidrBlock=f"10.{number}.0.0/16")
        sandbox.aws.knobs.page_size = 2
        sandbox.aws.calls.clear()
        assert len(list(installed()[VPCS].sightings(world.cloud(), Query()))) == count
        assert sandbox.aws.calls.count(operation="DescribeVpcs") == -(-count // 2)

    def test_a_list_that_turns_in_a_circle_is_unreadable(self, cloud: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cloud, "call", lambda *_, **__: {"Vpcs": [], "NextToken": "again"})
        with pytest.raises(Unreadable, match="same page again"):
            list(cloud.pages("ec2", "describe_vpcs", "Vpcs"))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://123456789012.127.0.0.1:8700/v20180820/tags/x?y=1", "http://127.0.0.1:8700/v20180820/tags/x?y=1"),
        ("http://123456789012.localhost:8700/", "http://localhost:8700/"),
        (
            "https://123456789012.s3-control.eu-west-1.amazonaws.com/a",
            "https://123456789012.s3-control.eu-west-1.amazonaws.com/a",
        ),
        ("http://127.0.0.1:8700/", "http://127.0.0.1:8700/"),
    ],
)
def test_the_account_is_dropped_from_local_addresses_only(url: str, expected: str) -> None:
    request = SimpleNamespace(url=url)
    _drop_account_from_address(request)
    assert request.url == expected
