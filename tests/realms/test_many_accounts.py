"""One agent in many AWS accounts, by roles of a file of realms; what it does in each is that account's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from fractal_cloud.agent.realms_file import Realms, parse_realms
from fractal_cloud.offers.aws.cloud import AwsSession
from fractal_cloud.offers.aws.policy import documents
from fractal_cloud.offers.policy import PolicyOptions
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.aws import PERSON_ACCESS_KEY, SECRET_KEY
from tests.world import REGION, World, vpc

SHOP, DATA, OWN = "111122223333", "444455556666", "123456789012"


def role(account: str) -> str:
    return f"arn:aws:iam::{account}:role/fractal-cloud-agent"


def realms(*entries: dict[str, Any]) -> Realms:
    return parse_realms({"aws": list(entries)}, {"aws": installed("aws").provider("aws")})


def person(sandbox: Sandbox, account: str) -> Any:
    """Somebody in that account, with credentials of their own."""
    own = boto3.client(
        *("sts", REGION),
        endpoint_url=sandbox.url,
        aws_access_key_id=PERSON_ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    found = own.assume_role(RoleArn=f"arn:aws:iam::{account}:role/people", RoleSessionName="anna")["Credentials"]
    return boto3.client(
        *("ec2", REGION),
        endpoint_url=sandbox.url,
        aws_access_key_id=found["AccessKeyId"],
        aws_secret_access_key=found["SecretAccessKey"],
        aws_session_token=found["SessionToken"],
    )


def vpcs(client: Any) -> dict[str, dict[str, Any]]:
    """The networks of an account by name, but for its default one."""
    found = [one for one in client.describe_vpcs()["Vpcs"] if not one["IsDefault"]]
    return {next(tag["Value"] for tag in one["Tags"] if tag["Key"] == "Name"): one for one in found}


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    session_sandbox.aws.reset()
    session_sandbox.aws.limit_agent(documents(PolicyOptions(assume_roles=(role(SHOP), role(DATA)))))
    for name, value in agent_env(session_sandbox.url).items():
        monkeypatch.setenv(name, value)
    named = realms(
        {"name": "shop", "role": role(SHOP), "callsPerSecond": 1000},
        {"role": role(DATA), "externalId": "tour"},
        {"name": "own", "account": OWN, "default": True},
    )
    made = World(session_sandbox, tmp_path, realms=named)
    try:
        yield made
        made.assert_safe()
    finally:
        made.close()


@pytest.mark.rule("S26", "A1")
def test_what_names_an_account_is_made_there_and_nowhere_else(world: World, session_sandbox: Sandbox) -> None:
    world.deploy("ls-a", vpc("one", account="shop"), vpc("two", account=DATA), vpc("three"))
    world.settle()
    assert {world.status("ls-a", name) for name in ("one", "two", "three")} == {"Active"}
    found = {account: set(vpcs(person(session_sandbox, account))) for account in (SHOP, DATA, OWN)}
    assert found == {SHOP: {"one"}, DATA: {"two"}, OWN: {"three"}}
    scopes = {one["key"] for one in world.api.get("/scopes").json()["items"]}
    assert scopes == {f"aws/{account}/{REGION}" for account in (SHOP, DATA, OWN)}
    assert world.component("ls-a", "one")["outputFields"]["vpcArn"].split(":")[4] == SHOP


@pytest.mark.rule("G1", "G8", "S16")
def test_the_glass_is_broken_in_the_account_where_it_is(world: World, session_sandbox: Sandbox) -> None:
    world.deploy("ls-a", vpc("one", account="shop", enableDnsHostnames=True))
    world.settle()
    anna = person(session_sandbox, SHOP)
    vpc_id = vpcs(anna)["one"]["VpcId"]
    anna.delete_tags(Resources=[vpc_id], Tags=[{"Key": "managed-by"}])
    anna.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.cycle(2)
    assert world.status("ls-a", "one") == "ManualOverride"
    assert world.drift("ls-a", "one") == {"enableDnsHostnames": {"declared": True, "actual": False}}
    tags = {"managed-by": "fractal-cloud", "fractal-cloud": "reconcile"}
    anna.create_tags(Resources=[vpc_id], Tags=[{"Key": key, "Value": value} for key, value in tags.items()])
    world.settle()
    assert world.status("ls-a", "one") == "Active"
    assert anna.describe_vpc_attribute(VpcId=vpc_id, Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"]
    world.delete("ls-a")
    world.cycle(4)
    assert vpcs(anna) == {}


@pytest.mark.rule("S24", "S21")
def test_an_account_that_does_not_answer_keeps_no_other_waiting(world: World, session_sandbox: Sandbox) -> None:
    session_sandbox.aws.knobs.fail(code="AccessDenied", status=403, operation="AssumeRole", nth=1)
    world.deploy("ls-a", vpc("one", account="shop"), vpc("two", account=DATA))
    world.cycle()
    first = {world.status("ls-a", name) for name in ("one", "two")}
    assert "Active" in first
    assert first != {"Active"}, "one of them was refused"
    world.agent._reachable.search_now()
    world.agent._registered = False
    world.settle()
    assert {world.status("ls-a", name) for name in ("one", "two")} == {"Active"}


@pytest.mark.rule("A7")
def test_the_printed_rights_let_it_assume_the_roles_that_were_named_and_no_other(
    world: World, session_sandbox: Sandbox
) -> None:
    del world
    other = "777788889999"
    session = AwsSession(realms({"role": role(SHOP)}, {"role": role(other)})["aws"])  # type: ignore[arg-type]
    assert session.realms() == {SHOP: SHOP}
    assert "not authorized to perform: sts:AssumeRole" in session.missing()[other]
    session_sandbox.aws.limit_agent(documents())
    assert SHOP not in AwsSession(realms({"account": OWN}, {"role": role(SHOP)})["aws"]).realms()  # type: ignore[arg-type]


@pytest.mark.rule("S26")
def test_an_account_that_is_not_the_one_meant_is_not_reached(
    session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_sandbox.aws.reset()
    for name, value in agent_env(session_sandbox.url).items():
        monkeypatch.setenv(name, value)
    session = AwsSession(realms({"account": SHOP, "name": "shop"}, {"account": OWN})["aws"])  # type: ignore[arg-type]
    assert session.realms() == {OWN: OWN}
    assert session.missing() == {
        "shop": f"its credentials reach account '{OWN}', not '{SHOP}': correct the file of realms"
    }
