"""The safety monitor: it finds every forbidden write of the agent, and distinguishes violations from lost races."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fractal_cloud.offers.aws.policy import documents
from fractal_sandbox import Sandbox
from fractal_sandbox.calls import Call
from tests.sandbox.conftest import Tools, agent_tools, http
from tests.sandbox.making import as_list, ec2_tags, error_of, make_bucket, make_service, tags_for
from tests.sandbox.test_s3_and_rds import s3control

ACCOUNT = "123456789012"


@pytest.fixture
def agents(sandbox: Sandbox) -> Callable[..., Tools]:
    """Make agents that call on behalf of some LiveSystem for some reason."""
    return lambda **words: agent_tools(sandbox, **words)


def make_vpc(tools: Tools, tags: dict[str, str], cidr: str = "10.0.0.0/16") -> str:
    wanted = [{"ResourceType": "vpc", "Tags": as_list(tags)}] if tags else []
    return str(tools.ec2.create_vpc(CidrBlock=cidr, TagSpecifications=wanted)["Vpc"]["VpcId"])


def read_vpc(tools: Tools, vpc: str) -> None:
    tools.ec2.describe_vpcs(VpcIds=[vpc])


def modify(tools: Tools, vpc: str) -> None:
    tools.ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})


def rules(sandbox: Sandbox) -> tuple[list[str], list[str]]:
    """Return the rules that violations and lost races name."""
    monitor = sandbox.aws.monitor
    return [found.rule for found in monitor.violations], [found.rule for found in monitor.lost_races]


def test_a_whole_life_within_the_protocol_is_clean(sandbox: Sandbox, agents: Callable[..., Tools]) -> None:
    agent = agents()
    agent.ec2.describe_vpcs()
    vpc = make_vpc(agent, tags_for(Name="net"))
    read_vpc(agent, vpc)
    modify(agent, vpc)
    read_vpc(agent, vpc)
    agent.ec2.delete_vpc(VpcId=vpc)
    assert rules(sandbox) == ([], [])


def test_people_may_do_anything(sandbox: Sandbox, person: Tools) -> None:
    vpc = make_vpc(person, {})
    modify(person, vpc)
    person.ec2.create_tags(Resources=[vpc], Tags=as_list(tags_for("ls-other")))
    person.ec2.delete_tags(Resources=[vpc])
    person.ec2.delete_vpc(VpcId=vpc)
    assert rules(sandbox) == ([], [])


@pytest.mark.rule("S16")
def test_a_write_after_a_read_that_showed_no_managed_by_is_a_violation(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(person, {"fractal-cloud-owner": "ls-a"})
    agent = agents()
    read_vpc(agent, vpc)
    modify(agent, vpc)
    assert rules(sandbox) == (["S7"], [])
    (finding,) = sandbox.aws.monitor.violations
    assert finding.resource == f"vpc {vpc}"
    assert finding.tags_at_last_read == finding.tags_then == {"fractal-cloud-owner": "ls-a"}
    assert finding.as_json()["parameters"] == {"VpcId": vpc, "EnableDnsHostnames": {"Value": True}}


@pytest.mark.rule("S16")
def test_a_tag_removed_between_the_read_and_the_write_makes_a_lost_race(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(person, tags_for())
    agent = agents()

    def untag(_: Call) -> None:
        person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "managed-by"}])

    read_vpc(agent, vpc)
    sandbox.aws.knobs.before_call(untag, times=1, operation="ModifyVpcAttribute")
    modify(agent, vpc)
    assert rules(sandbox) == ([], ["S7"])
    modify(agent, vpc)
    assert rules(sandbox) == ([], ["S7", "S7"])
    read_vpc(agent, vpc)
    modify(agent, vpc)
    assert rules(sandbox) == (["S7"], ["S7", "S7"])


@pytest.mark.rule("S16", "S21")
def test_the_clouds_own_condition_turns_a_lost_race_into_a_denial(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(person, tags_for())
    bucket = make_bucket(person, tags=tags_for())
    person.ecs.create_cluster(clusterName="c", tags=as_list(tags_for(), "key", "value"))
    role = "arn:aws:iam::123456789012:role/eks"
    person.eks.create_cluster(name="kube", roleArn=role, resourcesVpcConfig={}, tags=tags_for())
    sandbox.aws.knobs.bucket_abac = True
    sandbox.aws.limit_agent(documents(bucket_abac=True))
    agent = agents()
    read_vpc(agent, vpc)
    agent.s3.get_bucket_tagging(Bucket="some-bucket")
    agent.ecs.describe_clusters(clusters=["c"], include=["TAGS"])
    agent.eks.describe_cluster(name="kube")
    person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "managed-by"}])
    person.tagging.untag_resources(ResourceARNList=[bucket], TagKeys=["managed-by"])
    person.ecs.untag_resource(resourceArn=f"arn:aws:ecs:eu-central-1:{ACCOUNT}:cluster/c", tagKeys=["managed-by"])
    person.eks.untag_resource(resourceArn=f"arn:aws:eks:eu-central-1:{ACCOUNT}:cluster/kube", tagKeys=["managed-by"])
    attempts: list[tuple[Callable[[], Any], tuple[str, int]]] = [
        (lambda: modify(agent, vpc), ("UnauthorizedOperation", 403)),
        (lambda: agent.s3.delete_bucket(Bucket="some-bucket"), ("AccessDenied", 403)),
        (lambda: agent.ecs.delete_cluster(cluster="c"), ("AccessDeniedException", 400)),
        (lambda: agent.eks.delete_cluster(name="kube"), ("AccessDeniedException", 403)),
    ]
    for attempt, expected in attempts:
        with pytest.raises(ClientError) as refused:
            attempt()
        assert error_of(refused) == expected
    assert rules(sandbox) == ([], [])


def test_the_condition_leaves_managed_resources_and_people_alone(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    sandbox.aws.limit_agent(documents())
    agent = agents()
    vpc = make_vpc(agent, tags_for())
    modify(agent, vpc)
    modify(person, make_vpc(person, {}))
    agents(reason="force-push").ec2.create_tags(Resources=[vpc], Tags=as_list({"fractal-cloud": "reconcile"}))
    agent.ec2.create_tags(Resources=[vpc], Tags=as_list({"team": "shop"}))  # declared ones are written there (T1)
    theirs = make_vpc(person, {})
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        agent.ec2.create_tags(Resources=[theirs], Tags=as_list({"team": "shop"}))


@pytest.mark.rule("S6")
def test_writing_to_what_another_live_system_owns_is_a_violation(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(person, tags_for("ls-b"))
    agent = agents(live_system="ls-a")
    read_vpc(agent, vpc)
    modify(agent, vpc)
    agents(live_system="ls-b").ec2.delete_vpc(VpcId=vpc)
    assert rules(sandbox) == (["S6"], [])


@pytest.mark.rule("T7")
def test_another_managers_resource_is_not_ours(sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]) -> None:
    vpc = make_vpc(person, {"managed-by": "terraform"})
    agent = agents(reason="force-push")
    read_vpc(agent, vpc)
    modify(agent, vpc)
    agent.ec2.create_tags(Resources=[vpc], Tags=as_list(tags_for()))
    agent.ec2.create_tags(Resources=[vpc], Tags=as_list({"fractal-cloud": "reconcile"}))
    assert rules(sandbox)[0] == ["T7", "T7", "T7"]


def test_a_write_to_what_was_never_read_is_a_violation_whatever_its_tags(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    modify(agents(), make_vpc(person, {}))
    modify(agents(), make_vpc(person, tags_for()))
    assert rules(sandbox) == (["S7", "S16"], [])


@pytest.mark.rule("T2")
@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"managed-by": "fractal-cloud"},
        {"fractal-cloud-owner": "ls-a"},
        tags_for("ls-b"),
        {"managed-by": "Fractal-Cloud", "fractal-cloud-owner": "ls-a"},
    ],
)
def test_a_create_without_both_tags_in_the_call_is_a_violation(
    sandbox: Sandbox, agents: Callable[..., Tools], tags: dict[str, str]
) -> None:
    make_vpc(agents(), tags)
    assert rules(sandbox) == (["T2"], [])


@pytest.mark.rule("T2")
def test_every_kind_is_created_with_its_tags(sandbox: Sandbox, agents: Callable[..., Tools]) -> None:
    agent = agents()
    vpc = make_vpc(agent, tags_for())
    wanted = as_list(tags_for())
    lower = as_list(tags_for(), "key", "value")
    agent.ec2.create_subnet(
        VpcId=vpc, CidrBlock="10.0.0.0/24", TagSpecifications=[{"ResourceType": "subnet", "Tags": wanted}]
    )
    agent.ec2.create_security_group(
        VpcId=vpc,
        GroupName="g",
        Description="d",
        TagSpecifications=[{"ResourceType": "security-group", "Tags": wanted}],
    )
    agent.ec2.run_instances(
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": kind, "Tags": wanted} for kind in ("instance", "volume")],
    )
    make_bucket(agent, tags=tags_for())
    agent.rds.create_db_instance(
        DBInstanceIdentifier="data", Engine="postgres", DBInstanceClass="db.t3.micro", Tags=wanted
    )
    agent.ecs.create_cluster(clusterName="c", tags=lower)
    make_service(agent, tags=lower)
    role = "arn:aws:iam::123456789012:role/eks"
    agent.eks.create_cluster(name="kube", roleArn=role, resourcesVpcConfig={}, tags=tags_for())
    # The helper for the service asks for the cluster again without tags, and makes a task definition, of which no offer
    # is: these alone are to be found.
    assert [(found.rule, found.call.operation) for found in sandbox.aws.monitor.violations] == [
        ("T2", "CreateCluster"),
        ("unclassified", "RegisterTaskDefinition"),
    ]


@pytest.mark.rule("S15")
def test_a_second_resource_of_a_name_that_could_be_seen_is_a_violation(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    make_vpc(person, {"Name": "net"})
    agent = agents()
    agent.ec2.describe_vpcs()
    make_vpc(agent, tags_for(Name="net"))
    make_vpc(agent, tags_for(Name="other"))
    assert rules(sandbox) == (["S15"], [])
    assert "duplicate" in sandbox.aws.monitor.violations[0].text


@pytest.mark.rule("S15")
def test_a_second_resource_of_a_name_that_appeared_since_is_a_lost_race(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    agent = agents()
    agent.ec2.describe_vpcs()
    make_vpc(person, {"Name": "net"})
    make_vpc(agent, tags_for(Name="net"))
    assert rules(sandbox) == ([], ["S15"])


@pytest.mark.rule("S15")
def test_what_was_hidden_could_not_be_seen(sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]) -> None:
    sandbox.aws.knobs.late_visibility(seconds=60)
    make_vpc(person, {"Name": "net"})
    agent = agents()
    agent.ec2.describe_vpcs()
    make_vpc(agent, tags_for(Name="net"))
    assert rules(sandbox) == ([], ["S15"])


@pytest.mark.rule("S15")
def test_the_scope_of_a_subnets_name_is_its_vpc(sandbox: Sandbox, agents: Callable[..., Tools]) -> None:
    agent = agents()
    vpcs = [make_vpc(agent, tags_for(Name=name)) for name in ("one", "two")]
    agent.ec2.describe_subnets()
    spec = [{"ResourceType": "subnet", "Tags": as_list(tags_for(Name="front"))}]
    for vpc in vpcs:
        agent.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24", TagSpecifications=spec)
    assert rules(sandbox) == ([], [])
    agent.ec2.describe_subnets()
    agent.ec2.create_subnet(VpcId=vpcs[0], CidrBlock="10.0.1.0/24", TagSpecifications=spec)
    assert rules(sandbox) == (["S15"], [])


@pytest.mark.rule("S17")
def test_a_create_repeated_with_its_token_is_no_duplicate(sandbox: Sandbox, agents: Callable[..., Tools]) -> None:
    agent = agents()
    agent.ec2.describe_instances()
    spec = [{"ResourceType": "instance", "Tags": as_list(tags_for(Name="box"))}]
    for _ in range(2):
        agent.ec2.run_instances(
            ImageId="ami-12c6146b", MinCount=1, MaxCount=1, TagSpecifications=spec, ClientToken="once"
        )
        agent.ec2.describe_instances()
    assert rules(sandbox) == ([], [])


@pytest.mark.parametrize(
    ("reason", "before", "add", "remove", "rule"),
    [
        ("force-push", {}, {"managed-by": "fractal-cloud", "fractal-cloud": "reconcile"}, [], None),
        ("force-push", {}, tags_for(), [], None),
        ("deploy", {}, {"managed-by": "fractal-cloud"}, [], "T3"),
        ("handshake", {"managed-by": "fractal-cloud"}, {"fractal-cloud-owner": "ls-a"}, [], None),
        ("handshake", {"managed-by": "fractal-cloud"}, {"fractal-cloud-owner": "ls-b"}, [], "T4"),
        ("handshake", {}, {"fractal-cloud-owner": "ls-a"}, [], "S7"),
        ("handshake", tags_for("ls-b"), {"fractal-cloud-owner": "ls-a"}, [], "S6"),
        ("handshake", {**tags_for(), "fractal-cloud": "reconcile"}, {}, ["fractal-cloud"], None),
        ("handshake", {"fractal-cloud": "reconcile"}, {}, ["fractal-cloud"], "S7"),
        ("handshake", tags_for(), {"fractal-cloud": "reconcile"}, [], "G10"),
        ("glass", tags_for(), {}, ["managed-by"], None),
        ("glass", {}, {}, ["managed-by"], "S7"),
        ("drift", tags_for(), {}, ["managed-by"], "O11"),
        ("glass", tags_for(), {}, ["fractal-cloud-owner"], "O11"),
        ("drift", tags_for(), {"cost": "42"}, [], "T1"),
        ("drift", tags_for(), {"Name": "new"}, [], "T1"),
        ("drift", tags_for(cost="42"), {}, ["cost"], "T1"),
        ("force-push", {"managed-by": "Helm"}, {"managed-by": "fractal-cloud"}, [], "T7"),
        ("force-push", tags_for("ls-b"), {"managed-by": "fractal-cloud"}, [], "S6"),
    ],
)
@pytest.mark.rule("T1", "T3", "T4", "T7", "O11", "G10", "G13")
def test_tags_are_written_only_for_the_reasons_that_allow_it(
    sandbox: Sandbox,
    person: Tools,
    agents: Callable[..., Tools],
    reason: str,
    before: dict[str, str],
    add: dict[str, str],
    remove: list[str],
    rule: str | None,
) -> None:
    vpc = make_vpc(person, before)
    agent = agents(reason=reason)
    read_vpc(agent, vpc)
    if add:
        agent.ec2.create_tags(Resources=[vpc], Tags=as_list(add))
    if remove:
        agent.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": key} for key in remove])
    assert rules(sandbox) == ([rule] if rule else [], [])


@pytest.mark.rule("T4")
def test_an_owner_stamped_by_somebody_in_between_is_a_lost_race(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(person, {"managed-by": "fractal-cloud"})
    agent = agents(reason="handshake")
    read_vpc(agent, vpc)
    person.ec2.create_tags(Resources=[vpc], Tags=as_list({"fractal-cloud-owner": "ls-b"}))
    agent.ec2.create_tags(Resources=[vpc], Tags=as_list({"fractal-cloud-owner": "ls-a"}))
    assert rules(sandbox) == ([], ["S6"])


@pytest.mark.rule("T1")
def test_removing_all_tags_is_a_violation(sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]) -> None:
    agents(reason="glass").ec2.delete_tags(Resources=[make_vpc(person, tags_for())])
    assert rules(sandbox)[0] == ["T1"]


@pytest.mark.rule("T10")
def test_a_bucket_is_judged_by_its_tags_and_its_whole_set_is_never_written(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    arn = make_bucket(person, tags=tags_for())
    agent = agents(reason="glass")
    control: Any = s3control(agent)
    control.list_tags_for_resource(AccountId=ACCOUNT, ResourceArn=arn)
    versioning = {"Status": "Enabled"}
    agent.s3.put_bucket_versioning(Bucket="some-bucket", VersioningConfiguration=versioning)
    control.untag_resource(AccountId=ACCOUNT, ResourceArn=arn, TagKeys=["managed-by"])
    assert rules(sandbox) == ([], [])
    agent.s3.put_bucket_versioning(Bucket="some-bucket", VersioningConfiguration=versioning)
    assert rules(sandbox) == ([], ["S7"])
    agent.s3.put_bucket_tagging(Bucket="some-bucket", Tagging={"TagSet": as_list(tags_for())})
    assert rules(sandbox) == (["T10"], ["S7"])


def test_a_bucket_seen_without_any_tag_may_not_be_changed(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    arn = make_bucket(person)
    agent = agents()
    with pytest.raises(ClientError, match="NoSuchTagSet"):
        agent.s3.get_bucket_tagging(Bucket="some-bucket")
    person.tagging.tag_resources(ResourceARNList=[arn], Tags=tags_for())
    agent.s3.delete_bucket(Bucket="some-bucket")
    assert rules(sandbox) == (["S7"], [])


def test_the_other_services_are_judged_too(sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]) -> None:
    service = make_service(person)
    person.rds.create_db_instance(DBInstanceIdentifier="Data", Engine="postgres", DBInstanceClass="db.t3.micro")
    person.eks.create_cluster(name="kube", roleArn="arn:aws:iam::123456789012:role/eks", resourcesVpcConfig={})
    agent = agents()
    agent.ecs.describe_services(cluster="c", services=["web"], include=["TAGS"])
    agent.rds.describe_db_instances()
    agent.ecs.update_service(cluster="c", service="web", desiredCount=1)
    agent.ecs.untag_resource(resourceArn=service, tagKeys=["fractal-cloud"])
    agent.rds.stop_db_instance(DBInstanceIdentifier="data")
    agent.eks.update_cluster_config(name="kube", deletionProtection=True)
    agent.tagging.untag_resources(ResourceARNList=[service], TagKeys=["fractal-cloud"])
    found = [(one.rule, one.resource) for one in sandbox.aws.monitor.violations]
    assert found == [
        ("S7", "ecs-service c/web"),
        ("S7", "ecs-service c/web"),
        ("S7", "db data"),
        ("S7", "eks-cluster kube"),
        ("S7", "ecs-service c/web"),
    ]


def test_an_answer_that_got_lost_has_shown_nothing(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(person, tags_for())
    agent = agents()
    read_vpc(agent, vpc)
    person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "managed-by"}])
    sandbox.aws.knobs.fail(when="after", cut=True, operation="DescribeVpcs")
    with pytest.raises(ConnectionClosedError):
        read_vpc(agent, vpc)
    modify(agent, vpc)
    assert rules(sandbox) == ([], ["S7"])


def test_an_answer_that_shows_no_tags_is_no_read_of_them(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(person, tags_for())
    agent = agents()
    read_vpc(agent, vpc)
    person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "managed-by"}])
    agent.ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")
    modify(agent, vpc)
    assert rules(sandbox) == ([], ["S7"])


@pytest.mark.rule("C7")
@pytest.mark.parametrize("words", [{"live_system": ""}, {"component": ""}])
def test_a_write_that_does_not_say_for_whom_is_a_violation(
    sandbox: Sandbox, agents: Callable[..., Tools], words: dict[str, str]
) -> None:
    make_vpc(agents(**words), tags_for())
    assert rules(sandbox) == (["C7"], [])


def test_a_write_that_was_refused_lost_no_race(sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]) -> None:
    vpc = make_vpc(person, tags_for())
    person.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")
    agent = agents()
    read_vpc(agent, vpc)
    person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "managed-by"}])
    with pytest.raises(ClientError, match="DependencyViolation"):
        agent.ec2.delete_vpc(VpcId=vpc)
    assert rules(sandbox) == ([], [])


def test_agents_that_name_themselves_are_distinguished(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(person, tags_for())
    first, second = (agents(reason=f"drift agent/{name}") for name in ("one", "two"))
    read_vpc(first, vpc)
    person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "managed-by"}])
    read_vpc(second, vpc)
    modify(first, vpc)
    assert rules(sandbox) == ([], ["S7"])
    modify(second, vpc)
    assert rules(sandbox) == (["S7"], ["S7"])


def test_findings_are_shown_over_http_without_secrets(sandbox: Sandbox, agents: Callable[..., Tools]) -> None:
    agents().rds.create_db_instance(
        DBInstanceIdentifier="data",
        Engine="postgres",
        DBInstanceClass="db.t3.micro",
        MasterUserPassword="hunter2hunter2",
    )
    shown = http("GET", f"{sandbox.url}/_sandbox/aws/monitor")
    (found,) = shown["violations"]
    assert (found["rule"], found["operation"], found["liveSystem"]) == ("T2", "CreateDBInstance", "ls-a")
    assert "hunter2" not in str(shown)


def test_the_tags_a_person_sees_are_the_ones_judged(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(agents(), tags_for(Name="net", cost="42"))
    assert ec2_tags(person, vpc) == tags_for(Name="net", cost="42")
    assert rules(sandbox) == ([], [])


TRANSFERS: dict[str, tuple[dict[str, str], dict[str, str], str, list[str]]] = {
    "the owner's own": ({}, {"fractal-cloud-owner": "ls-b"}, "transfer", []),
    "for another reason": ({}, {"fractal-cloud-owner": "ls-b"}, "force-push", ["T4"]),
    "for no request at all": ({}, {"fractal-cloud-owner": "ls-b"}, "drift", ["T4"]),
    "somebody else's": ({"fractal-cloud-owner": "ls-c"}, {"fractal-cloud-owner": "ls-b"}, "transfer", ["S6"]),
    "with another tag": ({}, {"fractal-cloud-owner": "ls-b", "fractal-cloud": "reconcile"}, "transfer", ["T4"]),
    "in a handshake": ({"fractal-cloud": "reconcile"}, {"fractal-cloud-owner": "ls-b"}, "transfer", ["S12a"]),
    "in override": ({"managed-by": ""}, {"fractal-cloud-owner": "ls-b"}, "transfer", ["T7"]),
    "to nobody": ({}, {"fractal-cloud-owner": ""}, "transfer", ["T4"]),
}


@pytest.mark.rule("O8", "T4")
@pytest.mark.parametrize("what", TRANSFERS)
def test_an_owner_tag_is_moved_for_an_operators_transfer_alone(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools], what: str
) -> None:
    more, written, reason, broken = TRANSFERS[what]
    vpc = make_vpc(person, tags_for() | more)
    agent = agents(reason=reason)
    read_vpc(agent, vpc)
    agent.ec2.create_tags(Resources=[vpc], Tags=as_list(written))
    assert rules(sandbox) == (broken, [])


@pytest.mark.rule("O8", "T4", "S16")
def test_a_transfer_may_neither_change_nor_overtake_anything(
    sandbox: Sandbox, person: Tools, agents: Callable[..., Tools]
) -> None:
    vpc = make_vpc(person, tags_for())
    agent = agents(reason="transfer")
    read_vpc(agent, vpc)
    modify(agent, vpc)
    assert rules(sandbox) == (["T4"], [])
    person.ec2.create_tags(Resources=[vpc], Tags=as_list({"fractal-cloud-owner": "ls-c"}))
    agent.ec2.create_tags(Resources=[vpc], Tags=as_list({"fractal-cloud-owner": "ls-b"}))
    assert rules(sandbox) == (["T4"], ["S6"])
