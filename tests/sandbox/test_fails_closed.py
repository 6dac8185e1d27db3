"""The monitor fails closed: a write of the agent that it cannot classify, or that is of nobody's resource, is found.

With the agent's own credentials, on every cloud: what no offer is about, what people made, what no table knows, and
paths that nobody serves, also where the sandbox refuses.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.aws import AGENT_ACCESS_KEY
from fractal_sandbox.aws.classifying import is_read
from fractal_sandbox.azure import GROUP, LOCATION, SUBSCRIPTION
from fractal_sandbox.gcp import PROJECT
from fractal_sandbox.monitor import UNCLASSIFIED
from fractal_sandbox.oci import TENANCY
from fractal_sandbox.rest import ANY, READING, Reply, RestCloud, Route
from fractal_sandbox.vsphere.simulator import why_not
from tests.offers.aruba.person import ADDRESSES, VPCS, ArubaPerson
from tests.offers.azure.person import AzurePerson
from tests.offers.gcp.person import GcpPerson
from tests.offers.hetzner.person import HetznerPerson
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.oci.person import COMPARTMENT, CORE, OciPerson
from tests.offers.vsphere.examples import FOLDER
from tests.offers.vsphere.person import CATEGORY, VspherePerson
from tests.sandbox.agents import agent_at, send
from tests.sandbox.conftest import Tools, agent_tools
from tests.sandbox.making import as_list, make_bucket, make_eks, make_vpc, tags_for

REST = ("aruba", "azure", "gcp", "hetzner", "oci")
MARK = "fractal-cloud-link"
TRUST = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}]}'
POLICY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}'


def rules(cloud: Any) -> list[str]:
    return [one.rule for one in cloud.monitor.violations]


# --- AWS


def attempt(call: Any, **parameters: Any) -> None:
    """Whether moto can do it or not: what counts is that it was sent."""
    with suppress(ClientError):
        call(**parameters)


@pytest.mark.rule("S16")
def test_what_no_offer_of_aws_is_about_is_never_the_agents_to_write(
    sandbox: Sandbox, person: Tools, agent: Tools
) -> None:
    gateway = person.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    queue = person.sqs.create_queue(QueueName="jobs")["QueueUrl"]
    bucket = make_bucket(person, "some-bucket", tags_for()).rpartition(":")[2]
    for call, parameters in (
        (agent.ec2.delete_internet_gateway, {"InternetGatewayId": gateway}),
        (agent.ec2.create_tags, {"Resources": [gateway], "Tags": as_list(tags_for())}),
        (agent.sqs.delete_queue, {"QueueUrl": queue}),
        (agent.sqs.create_queue, {"QueueName": "more", "tags": tags_for()}),
        (agent.s3.put_object, {"Bucket": bucket, "Key": "k", "Body": b""}),
        (agent.s3.delete_objects, {"Bucket": bucket, "Delete": {"Objects": [{"Key": "k"}]}}),
        (agent.ec2.delete_security_group, {"GroupName": "default"}),
        (agent.iam.create_access_key, {}),
        (
            agent.iam.attach_user_policy,
            {"UserName": "boss", "PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess"},
        ),
        (agent.sts.get_session_token, None),
    ):
        before = len(rules(sandbox.aws))
        attempt(call, **(parameters or {}))
        wanted = [] if parameters is None else [UNCLASSIFIED]
        assert rules(sandbox.aws)[before:] == wanted, (call, sandbox.aws.monitor.violations)


@pytest.mark.rule("L17")
def test_users_roles_and_secrets_of_people_are_never_the_agents_to_touch(sandbox: Sandbox, person: Tools) -> None:
    agent = agent_tools(sandbox, component="photos", reason="link")
    person.iam.create_user(UserName="boss")
    # A person may know all our words: without the path of links it is still a person's.
    person.iam.create_user(UserName="mimic", Tags=as_list({MARK: "ls-a/photos=ls-b/web"}))
    person.iam.create_role(RoleName="ops", AssumeRolePolicyDocument=TRUST)
    person.secretsmanager.create_secret(Name="fractal-cloud/ls-a/photos/web", SecretString="s")
    for call, parameters in (
        (agent.iam.put_user_policy, {"UserName": "boss", "PolicyName": "p", "PolicyDocument": POLICY}),
        (agent.iam.create_access_key, {"UserName": "boss"}),
        (agent.iam.delete_user, {"UserName": "mimic"}),
        (agent.iam.delete_user, {"UserName": "boss"}),
        (agent.iam.delete_role, {"RoleName": "ops"}),
        (agent.secretsmanager.put_secret_value, {"SecretId": "fractal-cloud/ls-a/photos/web", "SecretString": "t"}),
        (agent.secretsmanager.delete_secret, {"SecretId": "fractal-cloud/ls-a/photos/web"}),
        (agent.iam.create_user, {"UserName": "bare"}),
    ):
        before = len(rules(sandbox.aws))
        attempt(call, **parameters)
        assert rules(sandbox.aws)[before:] == ["L17"], (call, sandbox.aws.monitor.violations)


@pytest.mark.rule("L17", "S7")
def test_a_secret_that_was_made_for_a_component_is_no_links_to_write(sandbox: Sandbox, person: Tools) -> None:
    """Its three tags speak for it, but only where no link writes; without them it is a person's."""
    name = "fractal-cloud/ls-a/photos/password"
    person.secretsmanager.create_secret(Name=name, SecretString="s", Tags=as_list(tags_for()))
    person.secretsmanager.create_secret(Name="of-a-person", SecretString="s")
    for reason, secret, wanted in (
        ("link", name, "L17"),
        ("link", "of-a-person", "L17"),
        ("drift", "of-a-person", "S7"),
    ):
        before = len(rules(sandbox.aws))
        agent = agent_tools(sandbox, component="photos", reason=reason)
        attempt(agent.secretsmanager.put_secret_value, SecretId=secret, SecretString="t")
        assert rules(sandbox.aws)[before:] == [wanted], (reason, secret, sandbox.aws.monitor.violations)


@pytest.mark.rule("L17")
def test_a_link_makes_changes_and_deletes_what_bears_its_own_mark_and_no_other(sandbox: Sandbox) -> None:
    path, tags = "/fractal-cloud/", as_list({MARK: "ls-a/photos=ls-b/web"})
    own = agent_tools(sandbox, component="photos", reason="link")
    own.iam.create_user(UserName="u", Path=path, Tags=tags)
    own.iam.put_user_policy(UserName="u", PolicyName="bucket", PolicyDocument=POLICY)
    key = own.iam.create_access_key(UserName="u")["AccessKey"]["AccessKeyId"]
    own.iam.create_role(RoleName="r", Path=path, AssumeRolePolicyDocument=TRUST, Tags=tags)
    own.secretsmanager.create_secret(Name="s", SecretString="x", Tags=tags)
    own.secretsmanager.put_secret_value(SecretId="s", SecretString="y")
    assert rules(sandbox.aws) == []
    other = agent_tools(sandbox, component="photo", reason="link")
    other.secretsmanager.put_secret_value(SecretId="s", SecretString="z")
    agent_tools(sandbox, component="photos", reason="drift").iam.delete_access_key(UserName="u", AccessKeyId=key)
    assert rules(sandbox.aws) == ["L17", "L17"]
    own.secretsmanager.delete_secret(SecretId="s", ForceDeleteWithoutRecovery=True)
    own.iam.delete_role(RoleName="r")
    assert rules(sandbox.aws) == ["L17", "L17"]


def test_a_call_that_the_vendors_models_do_not_know_is_found(sandbox: Sandbox) -> None:
    body, headers = "Action=EatVpc&Version=2016-11-15", {"Content-Type": "application/x-www-form-urlencoded"}
    _signed_by_agent(sandbox, "ec2", body, headers)
    assert rules(sandbox.aws) == [UNCLASSIFIED]


def _signed_by_agent(sandbox: Sandbox, service: str, body: str, headers: dict[str, str]) -> None:
    request = AWSRequest("POST", f"{sandbox.url}/", data=body, headers=headers)
    SigV4Auth(Credentials(AGENT_ACCESS_KEY, "sandbox"), service, "eu-central-1").add_auth(request)
    send("POST", f"{sandbox.url}/", body.encode(), **dict(request.headers))


def test_reads_of_aws_are_known_by_name_and_all_else_writes() -> None:
    for service, operation in (("ec2", "DescribeVpcs"), ("sts", "GetCallerIdentity"), ("sts", "AssumeRole")):
        assert is_read(service, operation)
    for service, operation in (("sts", "AssumeRoot"), ("cognito-identity", "GetId"), ("sqs", "ReceiveMessage")):
        assert not is_read(service, operation)


# --- the clouds that speak REST


@pytest.mark.parametrize("name", REST)
def test_every_writing_route_says_what_it_writes_or_why_it_writes_nothing(sandbox: Sandbox, name: str) -> None:
    cloud: RestCloud = getattr(sandbox, name)
    kinds = {kind.name: kind for kind in cloud.kinds}
    routes = cloud.routes()
    writing = [route for route in routes if route.writes]
    assert writing
    for route in routes:
        about = f"{route.method} {route.pattern}"
        if route.method in READING:
            continue
        if route.read:
            assert len(route.read.split()) > 1, f"{about} says no reason"
        elif route.kind != ANY:
            assert route.kind in kinds, f"{about} writes {route.kind!r}, which is no kind of {name}"
            assert not kinds[route.kind].unmonitored, f"{about} writes {route.kind!r}, which nobody monitors"
    for kind in kinds.values():
        if kind.unmonitored:
            assert len(kind.unmonitored.split()) > 3, f"{kind.name} is not monitored, and no reason is given"


def test_a_route_without_an_effect_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="neither what it writes"):
        Route("POST", "/v1/things", "things", "create", lambda _, __: Reply(200))


_IN_GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers"
UNKNOWN = {
    "aruba": "/projects/66f0aaaaaaaaaaaaaaaaaa01/providers/Aruba.Network/loadBalancers/lb",
    "azure": f"{_IN_GROUP}/Microsoft.Network/publicIPAddresses/front",
    "gcp": f"/compute/v1/projects/{PROJECT}/regions/europe-west1/addresses/front",
    "hetzner": "/floating_ips/4711",
    "oci": f"{CORE}/publicIps/ocid1.publicip.oc1..x",
}


@pytest.mark.parametrize("name", REST)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_write_at_a_path_that_nobody_serves_is_found_and_a_read_is_not(
    sandbox: Sandbox, name: str, method: str
) -> None:
    call = agent_at(sandbox, name)
    call("GET", UNKNOWN[name])
    assert rules(getattr(sandbox, name)) == []
    call(method, UNKNOWN[name], {} if method != "DELETE" else None)
    assert rules(getattr(sandbox, name)) == [UNCLASSIFIED]


def test_topics_and_what_else_google_has_is_found(sandbox: Sandbox) -> None:
    agent_at(sandbox, "gcp")("DELETE", f"/v1/projects/{PROJECT}/topics/news")
    agent_at(sandbox, "gcp")("PUT", f"/v1/projects/{PROJECT}/topics/news", {})
    assert rules(sandbox.gcp) == [UNCLASSIFIED, UNCLASSIFIED]


def test_ssh_keys_of_hetzner_are_peoples_even_with_our_labels(sandbox: Sandbox) -> None:
    key = HetznerPerson(sandbox.url).create("ssh_keys", "k", public_key="ssh-ed25519 AAAA a", labels=tags_for())
    call = agent_at(sandbox, "hetzner")
    call("POST", "/ssh_keys", {"name": "own", "public_key": "ssh-ed25519 BBBB b", "labels": tags_for()})
    call("PUT", f"/ssh_keys/{key['id']}", {"name": "other"})
    call("DELETE", f"/ssh_keys/{key['id']}")
    assert rules(sandbox.hetzner) == ["T2", "S7", "S7"]


def test_groups_locks_interfaces_and_databases_of_azure_are_peoples(sandbox: Sandbox) -> None:
    person, call = AzurePerson(sandbox.url), agent_at(sandbox, "azure")
    fence = person.path("Microsoft.Network/networkSecurityGroups", "fence")
    person.call("PUT", fence, {"location": LOCATION, "tags": tags_for(), "properties": {}})
    lock = f"{fence}/providers/Microsoft.Authorization/locks/stay"
    person.call("PUT", lock, {"properties": {"level": "ReadOnly"}})
    disk = person.path("Microsoft.Compute/disks", "data")
    person.call("PUT", disk, {"location": LOCATION, "tags": tags_for(), "properties": {"diskSizeGB": 4}})
    for method, path, rule in (
        ("DELETE", lock, "S7"),
        ("PUT", f"/subscriptions/{SUBSCRIPTION}/resourceGroups/new", "T2"),
        ("DELETE", disk, "S7"),
        ("PUT", person.path("Microsoft.Network/networkInterfaces", "nic"), "T2"),
    ):
        before = len(rules(sandbox.azure))
        call(method, path, {"location": LOCATION, "properties": {}} if method == "PUT" else None)
        assert rules(sandbox.azure)[before:] == [rule], (path, sandbox.azure.monitor.violations)


def test_a_whole_resource_group_is_nobodys_to_delete_with_all_that_is_in_it(sandbox: Sandbox) -> None:
    person = AzurePerson(sandbox.url)
    fence = person.path("Microsoft.Network/networkSecurityGroups", "fence")
    person.call("PUT", fence, {"location": LOCATION, "properties": {}})
    agent_at(sandbox, "azure")("DELETE", f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}")
    assert rules(sandbox.azure) == ["S7", "S7"]


@pytest.mark.rule("L17")
def test_service_accounts_keys_and_roles_of_google_are_judged_by_the_mark_of_their_link(sandbox: Sandbox) -> None:
    person = GcpPerson(sandbox.url)
    accounts, keys = f"/v1/projects/{PROJECT}/serviceAccounts", f"/storage/v1/projects/{PROJECT}/hmacKeys"
    host = f"{PROJECT}.iam.gserviceaccount.com"
    person.call("POST", "/storage/v1/b", {"name": "photos", "labels": tags_for()}, project=PROJECT)
    for name, mark in (("robot1", "of ops"), ("linked", "ls-a/photos<ls-b/web")):
        person.call("POST", accounts, {"accountId": name, "serviceAccount": {"description": mark}})
    own = agent_at(sandbox, "gcp", "photos", "link")
    own("GET", "/storage/v1/b/photos")
    made = {name: own("POST", f"{keys}?serviceAccountEmail={name}@{host}") for name in ("linked", "robot1")}
    assert rules(sandbox.gcp) == ["L17"]
    own("PUT", f"{keys}/{made['linked']['metadata']['accessId']}", {"state": "INACTIVE"})
    role = {"role": "roles/storage.objectViewer", "members": [f"serviceAccount:linked@{host}"]}
    own("PUT", "/storage/v1/b/photos/iam", {"bindings": [role]})
    assert rules(sandbox.gcp) == ["L17"]
    stranger = {"role": "roles/storage.objectAdmin", "members": ["user:boss@example.com"]}
    own("PUT", "/storage/v1/b/photos/iam", {"bindings": [role, stranger]})
    own("DELETE", f"{accounts}/robot1@{host}")
    assert rules(sandbox.gcp) == ["L17"] * 4, "the account, and the key that goes with it"
    person.call("PATCH", "/storage/v1/b/photos", {"labels": {"managed-by": None}})
    own("GET", "/storage/v1/b/photos")
    own("PUT", "/storage/v1/b/photos/iam", {"bindings": [stranger]})
    assert rules(sandbox.gcp) == [*["L17"] * 4, "S7"], "its bucket is in manual override, and the policy with it"
    own("DELETE", f"{accounts}/linked@{host}")
    assert rules(sandbox.gcp) == [*["L17"] * 4, "S7"]


@pytest.mark.rule("L17")
def test_users_groups_and_policies_of_oci_are_judged_by_the_mark_of_their_link(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    person, own = OciPerson(sandbox.url, tmp_path), agent_at(sandbox, "oci", "photos", "link")
    body = {"compartmentId": TENANCY, "name": "boss", "description": "d"}
    boss = person.call("POST", f"{CORE}/users", body)["id"]
    admins = person.call("POST", f"{CORE}/groups", {**body, "name": "admins"})["id"]
    linked = {"freeformTags": {MARK: "ls-a/photos<ls-b/web"}, "description": "d", "compartmentId": TENANCY}
    user, group = (own("POST", f"{CORE}/{path}", {**linked, "name": "link"})["id"] for path in ("users", "groups"))
    own("POST", f"{CORE}/userGroupMemberships", {"userId": user, "groupId": group})
    own("POST", f"{CORE}/users/{user}/customerSecretKeys", {"displayName": "k"})
    assert rules(sandbox.oci) == []
    for method, path, content in (
        ("POST", f"{CORE}/userGroupMemberships", {"userId": user, "groupId": admins}),
        ("POST", f"{CORE}/users/{boss}/customerSecretKeys", {"displayName": "k"}),
        ("PUT", f"{CORE}/users/{boss}", {"description": "x"}),
        ("DELETE", f"{CORE}/users/{boss}", None),
        ("POST", f"{CORE}/users", {**body, "name": "unmarked"}),
    ):
        before = len(rules(sandbox.oci))
        own(method, path, content)
        assert set(rules(sandbox.oci)[before:]) == {"L17"}, (path, sandbox.oci.monitor.violations)


def test_gateways_and_objects_of_oci_are_peoples(sandbox: Sandbox, tmp_path: Path) -> None:
    person, call = OciPerson(sandbox.url, tmp_path), agent_at(sandbox, "oci")
    vcn = person.call("POST", f"{CORE}/vcns", {"compartmentId": COMPARTMENT, "cidrBlocks": ["10.0.0.0/16"]})
    given = {"compartmentId": COMPARTMENT, "vcnId": vcn["id"], "isEnabled": True}
    gateway = person.call("POST", f"{CORE}/internetGateways", given)
    table = vcn["defaultRouteTableId"]
    call("DELETE", f"{CORE}/internetGateways/{gateway['id']}")
    call("PUT", f"{CORE}/routeTables/{table}", {"displayName": "x"})
    assert rules(sandbox.oci) == ["S7", "S7"]


def test_addresses_of_aruba_are_peoples_and_rules_are_their_groups(sandbox: Sandbox) -> None:
    person, call = ArubaPerson(sandbox.url), agent_at(sandbox, "aruba")
    ours = ("managed-by:fractal-cloud", "fractal-cloud-owner:ls-a")
    call("DELETE", f"{person.collection(ADDRESSES)}/elastic-ip-of-01")
    assert rules(sandbox.aruba) == ["S7"]
    vpc = person.create(VPCS, "main-net", ours)
    groups = {
        name: person.create(f"{vpc}/securityGroups", name, tags) for name, tags in (("mine", ours), ("theirs", ()))
    }
    rule = {"direction": "Ingress", "protocol": "TCP", "port": "22", "target": {"kind": "Ip", "value": "10.0.0.0/8"}}
    body = {"metadata": {"name": "ssh-in", "location": {"value": "ITBG-Bergamo"}}, "properties": rule}
    for name, wanted in (("mine", []), ("theirs", ["S7"])):
        before = len(rules(sandbox.aruba))
        call("GET", groups[name])
        call("POST", f"{groups[name]}/securityRules", body)
        assert rules(sandbox.aruba)[before:] == wanted, sandbox.aruba.monitor.violations


# --- Kubernetes


def test_objects_of_people_are_theirs_whatever_their_kind(sandbox: Sandbox, tmp_path: Path) -> None:
    person, call = KubernetesPerson(sandbox.url, tmp_path), agent_at(sandbox, "kubernetes")
    maps = "/api/v1/namespaces/default/configmaps"
    person.call("POST", maps, {"metadata": {"name": "theirs"}})
    person.create("secrets", {"metadata": {"name": "theirs"}})
    kind = {"apiVersion": "getambassador.io/v3alpha1", "kind": "Mapping"}
    spec = {"prefix": "/", "service": "s", "hostname": "*"}
    person.create("mappings", {**kind, "metadata": {"name": "m"}, "spec": spec})
    for path in (f"{maps}/theirs", person.path("secrets", "theirs"), person.path("mappings", "m")):
        before = len(rules(sandbox.kubernetes))
        call("DELETE", f"{path}?dryRun=All")
        assert rules(sandbox.kubernetes)[before:] == []
        call("DELETE", path)
        assert rules(sandbox.kubernetes)[before:] == ["S7"], path


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/api/v1/nodes/worker"),
        ("DELETE", "/api/v1/namespaces/default/secrets"),
        ("POST", "/api/v1/namespaces/default/pods/web/eviction"),
        ("POST", "/api/v1/namespaces/default/pods/web/binding"),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token"),
        ("PATCH", "/apis/rbac.authorization.k8s.io/v1beta1/clusterroles/admin"),
        ("PUT", "/apis/example.com/v1/namespaces/default/things/one"),
        ("POST", "/apis/apps/v1"),
    ],
)
def test_kinds_verbs_and_parts_that_are_not_served_are_found(sandbox: Sandbox, method: str, path: str) -> None:
    agent_at(sandbox, "kubernetes")(method, path, {})
    assert rules(sandbox.kubernetes) == [UNCLASSIFIED]


def test_reviews_and_dry_runs_are_reads(sandbox: Sandbox) -> None:
    call = agent_at(sandbox, "kubernetes")
    call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}})
    call("POST", "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews", {"spec": {}})
    call("DELETE", "/api/v1/nodes/worker?dryRun=All")
    assert rules(sandbox.kubernetes) == []


@pytest.mark.rule("L17")
def test_an_object_of_a_link_is_that_links_alone(sandbox: Sandbox) -> None:
    secrets = "/api/v1/namespaces/default/secrets"
    marks = {"labels": {"fractal.cloud/link": "abc"}, "annotations": {"fractal.cloud/link": "ls-a/web>db"}}
    own = agent_at(sandbox, "kubernetes", "web", "link")
    own("POST", secrets, {"metadata": {"name": "s", **marks}})
    assert rules(sandbox.kubernetes) == []
    merge = "application/merge-patch+json"
    agent_at(sandbox, "kubernetes", "other", "link")("PATCH", f"{secrets}/s", {"data": {"a": "YQ=="}}, merge)
    agent_at(sandbox, "kubernetes", "web", "drift")("PATCH", f"{secrets}/s", {"data": {"a": "Yg=="}}, merge)
    assert rules(sandbox.kubernetes) == ["L17", "L17"]
    own("DELETE", f"{secrets}/s")
    assert rules(sandbox.kubernetes) == ["L17", "L17"]


def test_what_was_done_in_a_cluster_that_is_gone_is_still_known(sandbox: Sandbox, person: Tools) -> None:
    make_eks(person, "kube")
    ((key, cluster),) = sandbox.clusters.all().items()
    cluster._watching.report_unknown({"REQUEST_METHOD": "DELETE", "QUERY_STRING": ""}, "/api/v1/nodes/x", "agent")
    sandbox.clusters.close(key)
    assert [one.rule for one in sandbox.clusters.monitor.violations] == [UNCLASSIFIED]
    assert len(sandbox.clusters.monitor.as_json()["violations"]) == 1


# --- vSphere


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")
def test_folders_words_and_machines_of_people_are_theirs(sandbox: Sandbox) -> None:
    person = VspherePerson(sandbox.url)
    machine = person.create("theirs")
    person.attach(machine, CATEGORY, "managed-by:terraform")
    agent = VspherePerson(sandbox.url)
    agent.env = {**agent.env, **{name: value for name, value in agent_env(sandbox.url).items() if "GOVC" in name}}
    agent.forget()
    folder = agent.at(FOLDER)
    tag = agent.tag_id(CATEGORY, "managed-by:terraform")
    machine_of_agent = agent.named("theirs")[0]
    assert rules(sandbox.vsphere) == [], "reading is no write"
    name = {"create_spec": {"name": "team", "description": "", "cardinality": "SINGLE", "associable_types": []}}
    inner = {"object_id": {"id": folder._moId, "type": "Folder"}}
    for act in (
        machine_of_agent.MarkAsTemplate,
        lambda: folder.CreateFolder("new"),
        lambda: agent.rest("POST", "/category", name),
        lambda: agent.rest("POST", f"/tag-association/id:{tag}?~action=attach", inner),
        lambda: agent.rest("POST", f"/tag-association/id:{tag}?~action=attach-tag-to-multiple-objects", {}),
        lambda: agent._send("POST", "/rest/vcenter/vm", {"vmware-api-session-id": agent._session}, {}),
        lambda: agent.rest("DELETE", f"/tag/id:{tag}"),
        lambda: folder.Rename_Task("other"),
        folder.Destroy_Task,
    ):
        before = len(sandbox.vsphere.monitor.violations)
        with suppress(Exception):  # the simulator knows little of this, and breaks at some
            act()
        assert UNCLASSIFIED in rules(sandbox.vsphere)[before:], sandbox.vsphere.monitor.violations


def test_what_the_tables_know_is_still_judged_by_its_tags(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    vpc = make_vpc(person)
    agent.ec2.delete_vpc(VpcId=vpc)
    assert rules(sandbox.aws) == ["S7"]
