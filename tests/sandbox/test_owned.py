"""Every cloud lists all resources that carry an owner tag, also hidden ones, of other regions and of every kind."""

from __future__ import annotations

import hashlib
import json
from base64 import b32encode
from pathlib import Path
from typing import Any

import boto3
import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.aws import PERSON_ACCESS_KEY
from fractal_sandbox.azure import LOCATION
from fractal_sandbox.gcp import PROJECT
from fractal_sandbox.kubernetes.kinds import NAMESPACE
from fractal_sandbox.owned_resources import Owned
from fractal_sandbox.vsphere.simulator import why_not
from tests.offers.aruba.person import VPCS, ArubaPerson
from tests.offers.azure.person import AzurePerson
from tests.offers.gcp.person import GcpPerson
from tests.offers.hetzner.person import HetznerPerson
from tests.offers.kubernetes.person import OWNER as OWNER_LABEL
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.oci.person import BUCKETS, COMPARTMENT, CORE, OciPerson
from tests.offers.vsphere.examples import FOLDER
from tests.offers.vsphere.person import CATEGORY, VspherePerson
from tests.sandbox.conftest import Tools, http
from tests.sandbox.making import as_list, make_bucket, make_db, make_eks, make_instance, make_service

OWNER = "fractal-cloud-owner"
MINE = {OWNER: "ls-a", "team": "pay"}


def listed(found: list[Owned]) -> list[tuple[str, str, str]]:
    return sorted((one.kind, one.name, one.owner) for one in found)


def test_aws_lists_every_kind_in_every_region(sandbox: Sandbox, person: Tools) -> None:
    tags = as_list(MINE)
    vpc = person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = person.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    group = person.ec2.create_security_group(GroupName="g", Description="d", VpcId=vpc)["GroupId"]
    gateway = person.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    instance, dead = make_instance(person), make_instance(person)
    person.ec2.create_tags(Resources=[vpc, subnet, group, gateway, instance, dead], Tags=tags)
    person.ec2.terminate_instances(InstanceIds=[dead])
    far: Any = boto3.client(
        "ec2",
        endpoint_url=sandbox.url,
        region_name="ap-south-1",
        aws_access_key_id=PERSON_ACCESS_KEY,
        aws_secret_access_key="x",
    )
    distant = far.create_vpc(CidrBlock="10.9.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": tags}])
    far.close()
    make_bucket(person, "mine", MINE)
    make_bucket(person, "nobodys")
    make_db(person, "data")
    person.rds.add_tags_to_resource(ResourceName="arn:aws:rds:eu-central-1:123456789012:db:data", Tags=tags)
    make_eks(person, "kube", tags=MINE)
    service = make_service(person, "web", "c")
    for arn in (service, service.replace(":service/", ":cluster/").rsplit("/", 1)[0]):
        person.ecs.tag_resource(resourceArn=arn, tags=as_list(MINE, "key", "value"))

    found = sandbox.aws.owned_resources()
    assert sorted((one.kind, one.id) for one in found) == sorted(
        [
            ("vpc", vpc),
            ("vpc", str(distant["Vpc"]["VpcId"])),
            ("subnet", subnet),
            ("security-group", group),
            ("igw", gateway),
            ("instance", instance),
            ("bucket", "mine"),
            ("db", "data"),
            ("eks-cluster", "kube"),
            ("ecs-cluster", "c"),
            ("ecs-service", "c/web"),
        ]
    )
    assert all(one.owner == "ls-a" and one.tags == MINE for one in found)
    assert {one["id"] for one in http("GET", f"{sandbox.url}/_sandbox/aws/owned")["owned"]} == {one.id for one in found}


def test_azure_lists_them_whatever_the_case_of_the_key(sandbox: Sandbox) -> None:
    person = AzurePerson(sandbox.url)
    for name, tags in (("mine", {"Fractal-Cloud-Owner": "ls-a"}), ("nobodys", {"team": "pay"})):
        path = person.path("Microsoft.Network/networkSecurityGroups", name)
        person.call("PUT", path, {"location": LOCATION, "tags": tags, "properties": {}})
    assert listed(sandbox.azure.owned_resources()) == [("networkSecurityGroups", "mine", "ls-a")]


def test_gcp_lists_hidden_ones_too(sandbox: Sandbox) -> None:
    sandbox.gcp.knobs.late_visibility(reads=5)
    person = GcpPerson(sandbox.url)
    for name, labels in (("mine", MINE), ("nobodys", {})):
        person.call("POST", "/storage/v1/b", {"name": name, "labels": labels}, project=PROJECT)
    assert listed(sandbox.gcp.owned_resources()) == [("bucket", "mine", "ls-a")]


def test_oci_lists_networks_and_buckets(sandbox: Sandbox, tmp_path: Path) -> None:
    person = OciPerson(sandbox.url, tmp_path)
    body = {"compartmentId": COMPARTMENT, "cidrBlocks": ["10.0.0.0/16"]}
    person.send("POST", f"{CORE}/vcns", {**body, "displayName": "net", "freeformTags": MINE})
    person.send("POST", f"{CORE}/vcns", {**body, "displayName": "other"})
    person.send("POST", BUCKETS, {"compartmentId": COMPARTMENT, "name": "photos", "freeformTags": MINE})
    assert listed(sandbox.oci.owned_resources()) == [("bucket", "photos", "ls-a"), ("vcn", "net", "ls-a")]


def test_hetzner_lists_every_kind_that_has_labels(sandbox: Sandbox) -> None:
    person = HetznerPerson(sandbox.url)
    person.server("web", labels=MINE)
    person.network("net", labels=MINE)
    person.create("firewalls", "wall", labels=MINE)
    person.create("ssh_keys", "key", public_key="ssh-ed25519 AAAA a", labels=MINE)
    person.create("firewalls", "nobodys")
    kinds = [("firewall", "wall"), ("network", "net"), ("server", "web"), ("ssh_key", "key")]
    assert listed(sandbox.hetzner.owned_resources()) == [(kind, name, "ls-a") for kind, name in kinds]


def test_aruba_knows_both_spellings(sandbox: Sandbox) -> None:
    digest = b32encode(hashlib.sha256(b"ls-b").digest()).decode().lower()[:20]
    ArubaPerson(sandbox.url).create(VPCS, "main-net", (f"{OWNER}:ls-a", "team"))
    ArubaPerson(sandbox.url).create(VPCS, "nobodys-net", ("team",))
    ArubaPerson(sandbox.url, "strict").create(VPCS, "plain-net", (f"fc-owner-{digest}",))
    found = listed(sandbox.aruba.owned_resources())
    assert found == [("vpc", "main-net", "ls-a"), ("vpc", "plain-net", f"fc-owner-{digest}")]


def test_kubernetes_lists_objects_of_every_kind_and_namespace(sandbox: Sandbox, tmp_path: Path) -> None:
    person = KubernetesPerson(sandbox.url, tmp_path)
    person.create("namespaces", {"metadata": {"name": "team", "labels": {OWNER_LABEL: "ls-a"}}})
    for name, labels in (("mine", {OWNER_LABEL: "ls-a"}), ("nobodys", {})):
        body: dict[str, Any] = {"metadata": {"name": name, "labels": labels}, "stringData": {}}
        person.create("secrets", body, "team")
    assert listed(sandbox.kubernetes.owned_resources()) == [("namespaces", "team", "ls-a"), ("secrets", "mine", "ls-a")]
    assert [one.id for one in sandbox.kubernetes.owned_resources() if one.kind == "secrets"] == ["team/mine"]
    assert sandbox.kubernetes_2.owned_resources() == []


def test_the_clusters_that_vendors_keep_say_which_they_are(sandbox: Sandbox, person: Tools) -> None:
    make_eks(person, "kube")
    ((key, cluster),) = sandbox.clusters.all().items()
    with cluster._lock:
        cluster._store.add(NAMESPACE, {"metadata": {"name": "team", "labels": {OWNER_LABEL: "ls-a"}}})
    (found,) = sandbox.clusters.owned_resources()
    assert (found.cloud, found.name, found.owner) == (f"clusters/{key}", "team", "ls-a")


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")
def test_vsphere_lists_machines_and_folders_and_forgets_what_is_gone(sandbox: Sandbox) -> None:
    assert sandbox.vsphere.owned_resources() == []
    person = VspherePerson(sandbox.url)
    instances = {}
    for name in ("box", "gone", "nobodys"):
        machine = person.create(name)
        instances[name] = machine.config.instanceUuid
        if name != "nobodys":
            person.attach(machine, CATEGORY, f"{OWNER}:ls-a")
        if name == "gone":
            person.delete(machine)
    folder = person.at(FOLDER)
    tag = person.tag_id(CATEGORY, f"{OWNER}:ls-a")
    person.rest(
        "POST", f"/tag-association/id:{tag}?~action=attach", {"object_id": {"id": folder._moId, "type": "Folder"}}
    )
    found = sandbox.vsphere.owned_resources()
    assert listed(found) == [("Folder", folder._moId, "ls-a"), ("VirtualMachine", "box", "ls-a")]
    assert {one.id for one in found} == {folder._moId, instances["box"]}, "as the product names them in what it says"


def test_the_sandbox_lists_all_clouds_at_once(sandbox: Sandbox, person: Tools) -> None:
    make_bucket(person, "mine", MINE)
    HetznerPerson(sandbox.url).create("firewalls", "wall", labels=MINE)
    assert {(one.cloud, one.kind) for one in sandbox.owned_resources()} == {("aws", "bucket"), ("hetzner", "firewall")}
    assert json.dumps([one.as_json() for one in sandbox.owned_resources()])
