"""The printed rights at work: each condition denies a call that would be allowed without it, and what links make is
held by the boundary. The calls are the agent's own, over HTTP, with its key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.aws.policy import MOST_CHARACTERS, boundary, documents, policy
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from fractal_sandbox.aws import AGENT_ACCESS_KEY
from fractal_sandbox.aws.iam_evaluation import AuthorizationRequest, Policy, decide
from fractal_sandbox.aws.principals import KNOWN_KEYS
from tests.aws_rights import ACCOUNT, PASSED_ROLES, limit
from tests.offers.aws.conftest import Person
from tests.offers.aws.example import REGION

DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
EVERYTHING = PolicyOptions(with_links=True, pass_roles=PASSED_ROLES)
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/fractal-cloud/boundary"
PATH = "/fractal-cloud/"

Documents = list[dict[str, Any]]


class Clients(Person):
    """Clients of boto3 with any key."""

    def __init__(self, url: str, key: str, secret: str = "sandbox") -> None:
        super().__init__(url)
        self._key, self._secret = key, secret

    def __call__(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service,  # type: ignore[call-overload]
                endpoint_url=self._url,
                region_name=REGION,
                aws_access_key_id=self._key,
                aws_secret_access_key=self._secret,
            )
            if service == "s3control":  # it puts the account into the host name, which no loopback address resolves
                self._clients[service].meta.events.register("before-sign.s3-control", _without_account)
        return self._clients[service]


def _without_account(request: Any, **_: object) -> None:
    request.url = request.url.replace(f"//{ACCOUNT}.", "//")


@pytest.fixture
def agent(running: Sandbox) -> Clients:
    return Clients(running.url, AGENT_ACCESS_KEY)


def is_denied(call: Callable[[], Any]) -> bool:
    """Whether the access control refuses a call; any other error says that it was let through."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"] in DENIED
    return False


def pairs(**tags: str) -> list[dict[str, str]]:
    return [{"Key": key.replace("_", "-"), "Value": value} for key, value in tags.items()]


# --- every condition denies something


def a_vpc(person: Person, **tags: str) -> str:
    made = person("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    if tags:
        person("ec2").create_tags(Resources=[made], Tags=pairs(**tags))
    return str(made)


def a_machine(person: Person, *, has_rights: bool, **tags: str) -> str:
    wanted: dict[str, Any] = {"ImageId": "ami-12c6146b", "MinCount": 1, "MaxCount": 1}
    if has_rights:
        wanted["IamInstanceProfile"] = {"Name": a_profile(person, "of-a-person")}
    made = str(person("ec2").run_instances(**wanted)["Instances"][0]["InstanceId"])
    person("ec2").stop_instances(InstanceIds=[made])
    if tags:
        person("ec2").create_tags(Resources=[made], Tags=pairs(**tags))
    return made


def a_profile(person: Person, role: str, path: str = "/") -> str:
    iam = person("iam")
    iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    iam.create_instance_profile(InstanceProfileName=f"{role}-profile", Path=path)
    iam.add_role_to_instance_profile(InstanceProfileName=f"{role}-profile", RoleName=role)
    return f"{role}-profile"


def a_database(person: Person) -> str:
    person("rds").create_db_instance(
        DBInstanceIdentifier="db", DBInstanceClass="db.t3.micro", Engine="postgres", AllocatedStorage=20
    )
    return "db"


def pass_to_another_service(agent: Clients, person: Person) -> Callable[[], Any]:
    """A service takes a role for its load balancers, which no declaration gives it."""
    person("ecs").create_cluster(clusterName="c")
    return partial(
        agent("ecs").create_service,
        cluster="c",
        serviceName="web",
        taskDefinition="web:1",
        role=PASSED_ROLES[0],
        tags=[{"key": "managed-by", "value": "fractal-cloud"}],
    )


def set_user_data(agent: Clients, machine: str) -> Callable[[], Any]:
    return partial(agent("ec2").modify_instance_attribute, InstanceId=machine, Attribute="userData", Value="eA==")


def set_type(agent: Clients, machine: str) -> Callable[[], Any]:
    return partial(agent("ec2").modify_instance_attribute, InstanceId=machine, InstanceType={"Value": "t3.large"})


def tag_team(agent: Clients, vpc: str, **more: str) -> Callable[[], Any]:
    return partial(agent("ec2").create_tags, Resources=[vpc], Tags=pairs(team="a", **more))


Attempt = Callable[[Clients, Person], Callable[[], Any]]
TAG, KEYS = "aws:ResourceTag/managed-by", "aws:TagKeys"
STAMP = "aws:RequestTag/managed-by"
ATTEMPTS: dict[tuple[str, str, str], Attempt] = {
    ("CreateStamped", "StringEquals", STAMP): lambda agent, _: partial(
        agent("ec2").create_vpc, CidrBlock="10.0.0.0/16"
    ),
    ("CreateOthersStamped", "StringEquals", STAMP): lambda agent, _: partial(
        agent("ecs").create_cluster, clusterName="c"
    ),
    ("CreateDatabaseStamped", "StringEquals", STAMP): lambda agent, _: partial(
        agent("rds").create_db_instance,
        DBInstanceIdentifier="db",
        DBInstanceClass="db.t3.micro",
        Engine="postgres",
        AllocatedStorage=20,
    ),
    ("TagAtCreation", "StringEquals", "ec2:CreateAction"): lambda agent, person: partial(
        agent("ec2").create_tags, Resources=[a_vpc(person)], Tags=pairs(Name="other")
    ),
    ("TagProtocolOnly", "ForAllValues:StringEquals", KEYS): lambda agent, person: tag_team(agent, a_vpc(person)),
    ("TagWithStamp", "StringEquals", STAMP): lambda agent, person: tag_team(agent, a_vpc(person)),
    ("TagWithStamp", "StringEqualsIfExists", TAG): lambda agent, person: tag_team(
        agent, a_vpc(person, managed_by="terraform"), managed_by="fractal-cloud"
    ),
    ("TagManaged", "StringEquals", TAG): lambda agent, person: tag_team(agent, a_vpc(person)),
    ("TagBuckets", "ForAllValues:StringNotEquals", KEYS): lambda agent, person: partial(
        agent("s3control").tag_resource,
        AccountId=ACCOUNT,
        ResourceArn=f"arn:aws:s3:::{a_bucket(person)}",
        Tags=pairs(fractal_cloud_owner="ls-a", team="a"),
    ),
    ("TagProtocolOnly", "Null", KEYS): lambda agent, person: partial(
        agent("ec2").delete_tags, Resources=[a_vpc(person, managed_by="fractal-cloud")]
    ),
    ("TagProtocolOnly", "StringEqualsIfExists", TAG): lambda agent, person: partial(
        agent("ec2").create_tags,
        Resources=[a_vpc(person, managed_by="terraform")],
        Tags=pairs(managed_by="fractal-cloud"),
    ),
    ("ChangeManaged", "StringEquals", TAG): lambda agent, person: partial(agent("ec2").delete_vpc, VpcId=a_vpc(person)),
    ("ChangeMachinesWithoutRights", "StringEquals", TAG): lambda agent, person: set_user_data(
        agent, a_machine(person, has_rights=False)
    ),
    ("ChangeMachinesWithoutRights", "ArnLikeIfExists", "ec2:InstanceProfile"): lambda agent, person: set_user_data(
        agent, a_machine(person, has_rights=True, managed_by="fractal-cloud")
    ),
    ("ChangeOtherMachines", "StringEquals", TAG): lambda agent, person: set_type(
        agent, a_machine(person, has_rights=True)
    ),
    ("ChangeOtherMachines", "StringEqualsIgnoreCase", "ec2:Attribute"): lambda agent, person: set_user_data(
        agent, a_machine(person, has_rights=True, managed_by="fractal-cloud")
    ),
    ("ChangeManagedDatabases", "StringEquals", TAG): lambda agent, person: partial(
        agent("rds").delete_db_instance, DBInstanceIdentifier=a_database(person), SkipFinalSnapshot=True
    ),
    ("ChangeBuckets", "StringEquals", TAG): lambda agent, person: partial(
        agent("s3").delete_bucket, Bucket=a_bucket(person)
    ),
    ("ChangeManagedBuckets", "StringEquals", TAG): lambda agent, person: partial(
        agent("s3").put_bucket_logging, Bucket=a_bucket(person), BucketLoggingStatus={}
    ),
    ("MasterPasswords", "Bool", "aws:ViaAWSService"): lambda agent, _: partial(
        agent("secretsmanager").create_secret, Name="rds!db-1", SecretString="x"
    ),
    ("KeysOfMasterPasswords", "Bool", "kms:GrantIsForAWSResource"): lambda agent, person: partial(
        agent("kms").create_grant,
        KeyId=person("kms").create_key()["KeyMetadata"]["KeyId"],
        GranteePrincipal=f"arn:aws:iam::{ACCOUNT}:user/fractal-cloud-agent",
        Operations=["Decrypt"],
    ),
    ("PassRoles", "StringEquals", "iam:PassedToService"): pass_to_another_service,
    ("BoundedIdentities", "StringLike", "iam:PermissionsBoundary"): lambda agent, _: partial(
        agent("iam").create_user, UserName="u", Path=PATH
    ),
    ("IdentitiesOfLinks", "ForAllValues:StringEquals", KEYS): lambda agent, _: partial(
        agent("iam").create_user, UserName="u", Path=PATH, PermissionsBoundary=BOUNDARY, Tags=pairs(team="admins")
    ),
    ("SecretsOfLinks", "ForAllValues:StringEquals", KEYS): lambda agent, _: partial(
        agent("secretsmanager").create_secret, Name="fractal-cloud/a", SecretString="x", Tags=pairs(team="admins")
    ),
}


def a_bucket(person: Person) -> str:
    person("s3").create_bucket(Bucket="files", CreateBucketConfiguration={"LocationConstraint": REGION})
    return "files"


def conditions(found: Documents) -> Iterator[tuple[str, str, str]]:
    for document in found:
        for statement in document["Statement"]:
            for operator, keys in statement.get("Condition", {}).items():
                yield from ((statement["Sid"], operator, key) for key in keys)


def without(condition: tuple[str, str, str], found: Documents) -> Documents:
    """The documents with one condition less."""
    sid, operator, key = condition
    changed: Documents = json.loads(json.dumps(found))
    for document in changed:
        for statement in document["Statement"]:
            if statement["Sid"] == sid:
                del statement["Condition"][operator][key]
                if not statement["Condition"][operator]:
                    del statement["Condition"][operator]
    return changed


def whole(condition: tuple[str, str, str]) -> Documents:
    """The printed documents that have a condition: that of buckets is for those whose tags count."""
    return documents(EVERYTHING, bucket_abac=condition[0] == "ChangeBuckets")


def test_every_condition_is_tried() -> None:
    found = {*conditions(documents(EVERYTHING)), *conditions(documents(EVERYTHING, bucket_abac=True))}
    assert set(ATTEMPTS) == found


@pytest.mark.rule("A7", "S16")
@pytest.mark.parametrize("condition", ATTEMPTS, ids="-".join)
def test_every_condition_denies_a_call_that_would_be_allowed_without_it(
    condition: tuple[str, str, str], sandbox: Sandbox, agent: Clients, person: Person
) -> None:
    sandbox.aws.knobs.bucket_abac = condition[0] == "ChangeBuckets"
    sandbox.aws.limit_agent(whole(condition))
    attempt = ATTEMPTS[condition](agent, person)
    assert is_denied(attempt)
    sandbox.aws.limit_agent(without(condition, whole(condition)))
    assert not is_denied(attempt), "it is that condition which denies it, and no other"


EXPIRES = {"ID": "all", "Status": "Enabled", "Filter": {}, "Expiration": {"Days": 1}}


def expire_all(agent: Clients, bucket: str) -> Callable[[], Any]:
    rules = {"Rules": [EXPIRES]}
    return partial(agent("s3").put_bucket_lifecycle_configuration, Bucket=bucket, LifecycleConfiguration=rules)


@pytest.mark.rule("A7", "O15")
def test_the_agent_sets_no_bucket_to_delete_its_objects_but_those_that_count_as_managed_or_were_named(
    sandbox: Sandbox, agent: Clients, person: Person
) -> None:
    attempt = expire_all(agent, a_bucket(person))
    person("resourcegroupstaggingapi").tag_resources(
        ResourceARNList=["arn:aws:s3:::files"], Tags={"managed-by": "fractal-cloud"}
    )
    sandbox.aws.limit_agent(documents())
    assert is_denied(attempt), "without ABAC a tag of a bucket says nothing"
    sandbox.aws.knobs.bucket_abac = True
    assert not is_denied(attempt)
    sandbox.aws.knobs.bucket_abac = False
    sandbox.aws.limit_agent(documents(PolicyOptions(buckets=("file*",))))
    assert not is_denied(attempt)
    sandbox.aws.limit_agent(documents(PolicyOptions(buckets=("other", "fil"))))
    assert is_denied(attempt)
    assert is_denied(lambda: agent("s3").delete_bucket_lifecycle(Bucket="files"))


# --- what links make


@pytest.fixture
def made_by_links(running: Sandbox, agent: Clients, with_links: None) -> Clients:
    """The clients of a user that the agent made as links do, with all the rights that a policy can give."""
    del with_links
    anything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    agent("iam").create_user(UserName="u", Path=PATH, PermissionsBoundary=BOUNDARY)
    agent("iam").put_user_policy(UserName="u", PolicyName="all", PolicyDocument=json.dumps(anything))
    key = agent("iam").create_access_key(UserName="u")["AccessKey"]
    return Clients(running.url, key["AccessKeyId"], key["SecretAccessKey"])


@pytest.mark.rule("A7")
def test_a_user_with_every_right_uses_objects_of_buckets_and_nothing_else(
    made_by_links: Clients, person: Person
) -> None:
    a_bucket(person)
    s3 = made_by_links("s3")
    s3.put_object(Bucket="files", Key="a", Body=b"x")
    assert s3.get_object(Bucket="files", Key="a")["Body"].read() == b"x"
    assert s3.list_objects_v2(Bucket="files")["KeyCount"] == 1
    role = person("iam").create_role(RoleName="admin", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    assert is_denied(s3.list_buckets)
    assert is_denied(lambda: s3.put_bucket_policy(Bucket="files", Policy="{}"))
    assert is_denied(lambda: made_by_links("iam").create_user(UserName="v"))
    assert is_denied(lambda: made_by_links("iam").delete_user_permissions_boundary(UserName="u"))
    assert is_denied(lambda: made_by_links("sts").assume_role(RoleArn=role, RoleSessionName="session"))
    assert is_denied(lambda: made_by_links("ec2").describe_vpcs())
    assert is_denied(lambda: made_by_links("secretsmanager").list_secrets())


@pytest.mark.rule("A7")
def test_the_boundary_keeps_to_the_account_and_to_the_buckets_that_were_named() -> None:
    allowed = [
        Policy({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}, ())
    ]

    def reads(bucket: str, account: str = ACCOUNT, *names: str) -> bool:
        context = {"aws:principalaccount": (ACCOUNT,), "aws:resourceaccount": (account,)}
        request = AuthorizationRequest("s3:GetObject", f"arn:aws:s3:::{bucket}/key", context)
        return decide(request, allowed, Policy(boundary(names), KNOWN_KEYS)).is_allowed

    assert reads("files")
    assert not reads("files", "999999999999"), "a bucket of another account that trusts this one"
    assert reads("orders-1", ACCOUNT, "orders-*")
    assert not reads("files", ACCOUNT, "orders-*")
    assert not reads("orders", ACCOUNT, "orders-*")


@pytest.mark.rule("A7")
def test_a_machine_whose_profile_holds_a_links_role_is_still_changed(
    sandbox: Sandbox, agent: Clients, person: Person
) -> None:
    profile = a_profile(person, "of-a-link", PATH)
    wanted = {"ImageId": "ami-12c6146b", "MinCount": 1, "MaxCount": 1, "IamInstanceProfile": {"Name": profile}}
    machine = person("ec2").run_instances(**wanted)["Instances"][0]["InstanceId"]
    person("ec2").stop_instances(InstanceIds=[machine])
    person("ec2").create_tags(Resources=[machine], Tags=pairs(managed_by="fractal-cloud"))
    assert not is_denied(set_user_data(agent, machine))
    other = a_machine(person, has_rights=True, managed_by="fractal-cloud")
    assert not is_denied(set_type(agent, other)), "what it runs stays as it is"


# --- what is printed


@pytest.mark.rule("A7")
def test_plain_rights_write_nothing_in_iam_and_pass_no_role() -> None:
    actions = {action for one in documents() for statement in one["Statement"] for action in statement["Action"]}
    assert {one for one in actions if one.startswith(("iam:", "sts:"))} == {"sts:GetCallerIdentity"}
    assert not {one for one in actions if one.endswith(":*") or one == "*"}


@pytest.mark.rule("A7")
def test_only_named_roles_are_passed_and_a_pattern_is_none() -> None:
    made = documents(PolicyOptions(pass_roles=PASSED_ROLES))
    [passing] = [one for document in made for one in document["Statement"] if "iam:PassRole" in one["Action"]]
    assert passing["Resource"] == sorted(PASSED_ROLES)
    for unclear in ("*", "arn:aws:iam::123456789012:role/*", "arn:aws:iam::*:role/eks", "eks", "arn:aws:iam::1:user/a"):
        with pytest.raises(PolicyOptionError, match="is no ARN of one role"):
            documents(PolicyOptions(pass_roles=(unclear,)))


def test_documents_are_cut_at_the_limit_of_iam() -> None:
    roles = tuple(f"arn:aws:iam::{ACCOUNT}:role/{'r' * 40}-{number}" for number in range(60))
    made = documents(PolicyOptions(pass_roles=roles, with_links=True))
    assert len(made) > 2
    assert all(len("".join(json.dumps(one).split())) <= MOST_CHARACTERS for one in made)
    statements = [statement["Sid"] for one in made for statement in one["Statement"]]
    assert len(statements) == len(set(statements))
    with pytest.raises(PolicyOptionError, match="PassedRoles is too long"):
        documents(PolicyOptions(pass_roles=tuple(f"{one}-{number}" for one in roles for number in range(3))))


def test_the_boundary_is_printed_alone_and_may_be_narrowed() -> None:
    assert policy(PolicyOptions(boundary=True)) == boundary()
    narrowed = policy(PolicyOptions(boundary=True, buckets=("orders-*",)))
    assert isinstance(narrowed, dict)
    assert narrowed["Statement"][0]["Resource"] == ["arn:*:s3:::orders-*", "arn:*:s3:::orders-*/*"]
    with pytest.raises(PolicyOptionError, match="is no name of a bucket"):
        policy(PolicyOptions(boundary=True, buckets=("arn:aws:s3:::*",)))
    with pytest.raises(PolicyOptionError, match="is no name of a bucket"):
        policy(PolicyOptions(buckets=("*",)))


@pytest.mark.rule("A7")
@pytest.mark.parametrize("links", [False, True], ids=["plain", "with links"])
def test_an_agent_cannot_make_itself_an_administrator(
    links: bool, sandbox: Sandbox, agent: Clients, person: Person
) -> None:
    limit(sandbox, with_links=links)
    anything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    made = person("iam").create_policy(PolicyName="AdministratorAccess", PolicyDocument=json.dumps(anything))
    administrator = made["Policy"]["Arn"]
    iam = agent("iam")
    bounded = partial(iam.create_user, UserName="me", Path=PATH, PermissionsBoundary=BOUNDARY)
    assert is_denied(lambda: iam.create_user(UserName="me"))
    assert is_denied(lambda: iam.create_user(UserName="me", Path=PATH))
    assert is_denied(bounded) is not links
    if not links:
        person("iam").create_user(UserName="me", Path=PATH)
    for name in ("me", "fractal-cloud-agent"):
        assert is_denied(partial(iam.attach_user_policy, UserName=name, PolicyArn=administrator))
    assert is_denied(lambda: iam.put_user_policy(UserName="fractal-cloud-agent", PolicyName="p", PolicyDocument="{}"))
    assert is_denied(lambda: iam.delete_user_permissions_boundary(UserName="me"))
    assert is_denied(lambda: iam.create_policy_version(PolicyArn=BOUNDARY, PolicyDocument=json.dumps(anything)))


@pytest.mark.rule("A7")
def test_with_links_the_master_passwords_of_rds_are_within_reach_and_no_other_secret(
    sandbox: Sandbox, agent: Clients, person: Person
) -> None:
    for name in ("rds!db-1", "fractal-cloud/a", "prod/admin"):
        person("secretsmanager").create_secret(Name=name, SecretString="x")

    def readable() -> list[str]:
        names = ("rds!db-1", "fractal-cloud/a", "prod/admin")
        read = agent("secretsmanager").get_secret_value
        return [name for name in names if not is_denied(partial(read, SecretId=name))]

    assert readable() == []
    limit(sandbox, with_links=True)
    assert readable() == ["rds!db-1"]
