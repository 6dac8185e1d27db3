"""Who changed a resource of AWS: what follows from CloudTrail's events, for every parameter of every type."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fractal_cloud.model.component import Component
from fractal_cloud.model.tags import MANAGED_BY
from fractal_cloud.offers.aws.history import Event, authors, named, principal
from fractal_cloud.offers.aws.policy import documents, policy
from fractal_cloud.offers.aws.vpc import VPC
from fractal_cloud.offers.history import Asked
from fractal_cloud.offers.policy import PolicyOptions
from fractal_cloud.rules.setbacks import digest
from fractal_sandbox import Sandbox
from tests.aws_rights import NAMED_BUCKETS, PASSED_ROLES
from tests.offers.aws.conftest import World, under_test
from tests.offers.aws.examples import EXAMPLES

pytestmark = pytest.mark.rule("C4")
PROFILES = (*("AssociateIamInstanceProfile", "DisassociateIamInstanceProfile", "ReplaceIamInstanceProfileAssociation"),)
NOW = datetime(2026, 11, 18, 2, 16, tzinfo=UTC)
AGENT = "arn:aws:iam::123456789012:user/fractal-cloud-agent"
ROLE = "arn:aws:sts::123456789012:assumed-role/Admins/anna"


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_every_change_by_hand_is_traced_to_its_parameter(sandbox: Sandbox, world: World, kind: type[Component]) -> None:
    offer, example, declaration = under_test(kind)
    options = PolicyOptions(with_history=True, pass_roles=PASSED_ROLES, buckets=NAMED_BUCKETS)
    sandbox.aws.limit_agent(documents(options))
    found = world.bring(example)
    cloud = world.cloud_of(offer)
    operator = example.operator(world.person, example.foreign_edit)
    for name, value in sorted(example.changes.items(), key=lambda change: change[0] in example.only_up):
        [resolved] = world.resolved(offer, {name: value}).values()
        operator.edit(found.resource_id, name, resolved)
        seen, drift = world.drift(declaration)
        assert name in drift, f"{name} was not changed"
        now = datetime.now(UTC)
        asked = [Asked(name, now, digest(drift[name].actual), now - timedelta(seconds=1))]
        author = offer.changed_by(cloud, seen, world.wanted(declaration), asked).get(name)
        assert author is not None, f"nobody is named for {name}"
        assert (author.by, author.is_certain) == ("person", True), f"{name}: {author}"
        if name == "iamInstanceProfile":
            assert author.how in PROFILES, "the call itself is named, not one that was made beside it"
        if name not in example.only_up:
            world.correct(declaration)
    [one] = operator.find(declaration["parameters"].get("name", declaration["id"]))
    operator.untag(one, MANAGED_BY)
    now = datetime.now(UTC)
    asked = [Asked(MANAGED_BY, now, "", now - timedelta(seconds=1))]
    author = offer.changed_by(cloud, found, world.wanted(declaration), asked).get(MANAGED_BY)
    assert author is not None, "nobody is named for the tag"
    assert (author.by, author.is_certain) == ("person", True)


def event(name: str = "ModifyVpcAttribute", ago: float = 60, by: str = ROLE, **more: Any) -> Event:
    """An event on a VPC, so many seconds before the change was seen."""
    at = NOW - timedelta(seconds=ago)
    whole = {
        "eventName": name,
        "eventTime": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "userIdentity": {"type": "AssumedRole", "arn": by},
        "userAgent": "aws-cli/2",
        "requestParameters": {"vpcId": "vpc-1", "enableDnsHostnames": {"value": True}},
        **more,
    }
    found = Event.read({"CloudTrailEvent": json.dumps(whole)})
    assert found is not None
    return found


def who(*events: Event, value: object = True, after: float | None = 100) -> Any:
    """Who changed the attribute of the VPC, by these events, the newest first."""
    last_read = None if after is None else NOW - timedelta(seconds=after)
    asked = Asked("enableDnsHostnames", NOW, digest(value), last_read)
    return authors(VPC, {"vpc-1"}, events, AGENT, [asked]).get("enableDnsHostnames")


def test_the_newest_event_that_set_the_value_counts() -> None:
    bea = "arn:aws:iam::123456789012:user/bea"
    assert who(event(ago=10), event(ago=50, by=bea)).by == "anna (role Admins)"
    assert who(event(ago=10, by=bea), event(ago=50)).identity == bea


def test_an_event_with_another_value_names_nobody() -> None:
    """What was seen is not in CloudTrail yet: an older event is somebody else's."""
    other = {"vpcId": "vpc-1", "enableDnsHostnames": {"value": False}}
    assert who(event(requestParameters=other), event(ago=70)) is None


def test_events_from_before_the_last_read_name_nobody() -> None:
    assert who(event(ago=200)) is None
    assert who(event(ago=200), after=None) is not None, "the value proves it where the last read is not known"


@pytest.mark.parametrize(
    "own",
    [{"by": AGENT}, {"userAgent": "Boto3/1.40 fractal-cloud/1.0 ls/ls-a component/net reason/drift"}],
    ids=["by its user", "by its user agent"],
)
def test_the_agents_own_events_name_nobody(own: dict[str, Any]) -> None:
    assert who(event(**own)) is None
    assert who(event(ago=30, **own), event(ago=60)) is None, "it has written the value since"
    assert who(event(ago=0, **own), event(ago=60)).by == "anna (role Admins)", "its correction follows the change"


def test_sessions_of_the_agents_role_are_the_agent() -> None:
    assert principal(ROLE) == principal("arn:aws:sts::123456789012:assumed-role/Admins/bea")
    assert principal(ROLE) != principal("arn:aws:sts::123456789012:assumed-role/Guests/anna")


def test_calls_that_failed_or_only_read_are_no_changes() -> None:
    for more in ({"errorCode": "UnauthorizedOperation"}, {"readOnly": True}):
        whole = {"eventName": "ModifyVpcAttribute", "eventTime": "2026-11-18T02:15:00Z", **more}
        assert Event.read({"CloudTrailEvent": json.dumps(whole)}) is None
    assert Event.read({"CloudTrailEvent": "no JSON"}) is None
    assert Event.read({}) is None


def test_a_call_that_does_not_say_what_it_set_is_named_without_a_claim() -> None:
    found = who(event("AssociateDhcpOptions", requestParameters={"vpcId": "vpc-1", "dhcpOptionsId": "dopt-1"}))
    assert (found.how, found.is_certain) == ("AssociateDhcpOptions", False)
    assert who(event("CreateSubnet", requestParameters={"vpcId": "vpc-1"})) is None, "that changes no VPC"
    assert who(event(requestParameters={"vpcId": "vpc-2", "enableDnsHostnames": {"value": True}})) is None


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        ({"type": "IAMUser", "userName": "anna", "arn": "arn:aws:iam::1:user/anna"}, "anna"),
        ({"type": "AssumedRole", "arn": ROLE}, "anna (role Admins)"),
        ({"type": "Root", "accountId": "123456789012"}, "the root user of account 123456789012"),
        ({"type": "AWSService", "invokedBy": "autoscaling.amazonaws.com"}, "autoscaling.amazonaws.com"),
        ({"type": "AWSAccount", "principalId": "AIDA:x", "accountId": "2"}, "AIDA:x of account 2"),
        ({}, "somebody"),
    ],
)
def test_everybody_is_called_by_a_name_that_people_know(identity: dict[str, Any], name: str) -> None:
    assert named(identity) == name


@pytest.mark.rule("A7")
def test_the_right_to_read_the_history_is_printed_on_request_only() -> None:
    assert "cloudtrail" not in json.dumps(policy())
    printed = json.dumps(policy(PolicyOptions(with_history=True)))
    assert printed.count("cloudtrail:") == 1
    assert "cloudtrail:LookupEvents" in printed
