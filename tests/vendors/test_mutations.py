"""Proof that the suite sees: faults planted in what was recorded, on every cloud, are all found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.vendors.clouds import CLOUDS, contract, exchanges, why_not
from tests.vendors.contract import Exchange
from tests.vendors.deviations import DEVIATIONS

Change = Callable[[Any], None]


@dataclass(frozen=True)
class Mutation:
    """A fault in the first exchange of an operation. ``found``: what must be said of it.

    ``sent`` and ``answered`` change the two bodies; ``exchange`` changes the rest.
    """

    cloud: str
    operation: str
    found: str
    sent: Change | None = None
    answered: Change | None = None
    exchange: Callable[[Exchange], Exchange] | None = None

    def planted(self, one: Exchange) -> Exchange:
        """Return the exchange with the fault in it."""
        if self.sent:
            body = json.loads(one.body)
            self.sent(body)
            return replace(one, body=json.dumps(body))
        if self.answered:
            answer = json.loads(one.answer or "")
            self.answered(answer)
            return replace(one, answer=json.dumps(answer))
        assert self.exchange
        return self.exchange(one)


def put(*path: Any, value: Any) -> Change:
    """Set a field."""

    def change(body: Any) -> None:
        for part in path[:-1]:
            body = body[part]
        body[path[-1]] = value

    return change


def drop(*path: Any) -> Change:
    """Take a field away."""

    def change(body: Any) -> None:
        for part in path[:-1]:
            body = body[part]
        del body[path[-1]]

    return change


def within(name: str, change: Change, *, of_type: str = "") -> Change:
    """Change a JSON document that a field holds as a text, as Cloud Control's do; of one resource type alone."""

    def changed(body: Any) -> None:
        if of_type and body["TypeName"] != of_type:
            raise LookupError(of_type)
        *path, last = name.split(".")
        for part in path:
            body = body[part]
        document = json.loads(body[last])
        change(document)
        body[last] = json.dumps(document)

    return changed


def then(operation: Mapping[str, Any]) -> Change:
    """Add an operation to a patch."""
    return lambda patch: patch.append(operation)


def with_query(more: str) -> Callable[[Exchange], Exchange]:
    """Ask for something else, too."""
    return lambda one: replace(one, target=f"{one.target}{'&' if '?' in one.target else '?'}{more}")


VM = "compute.v2024_11_01.VirtualMachinesOperations"
SERVER = "compute-provider_v1.1.post /{projectId}/providers/Aruba.Compute/cloudServers"
CREATE, COLLECT = "Folder.CreateVM_Task", "PropertyCollector.RetrievePropertiesEx"
QUEUE = "AWS::SQS::Queue"
MADE, CHANGED, SHOWN_BY = "DesiredState", "PatchDocument", "ResourceDescription.Properties"
CUSTOM = "CustomObjectsApi.{}_namespaced_custom_object"
WIDGETS = "shop.example.v1.widgets"
DEVICE = ("config", "deviceChange", 0, "device")
ASKED, SHOWN = ("specSet", 0, "propSet", 0, "pathSet"), ("returnval", "objects", 0, "propSet")
MUTATIONS = (
    Mutation("aruba", SERVER, "unknown field", sent=put("properties", "flavour", value="x")),
    Mutation("aruba", SERVER, "is a int", sent=put("metadata", "name", value=7)),
    Mutation(
        "aruba",
        "network-provider.get /{projectId}/providers/Aruba.Network/vpcs",
        "unknown field",
        answered=put("values", 0, "propertys", value={}),
    ),
    Mutation("aws", "ec2.CreateVpc", "unknown field", sent=put("CidrBlok", value="10.0.0.0/16")),
    Mutation("aws", "ec2.CreateVpc", "is no value of it", sent=put("InstanceTenancy", value="mine")),
    Mutation(
        "aws", "rds.DescribeDBInstances", "is a str", answered=put("DBInstances", 0, "AllocatedStorage", value="20")
    ),
    Mutation("aws", "sqs.SetQueueAttributes", "is a int", sent=put("Attributes", "VisibilityTimeout", value=9)),
    Mutation("aws", "cloudcontrol.CreateResource", "no such type", sent=put("TypeName", value="AWS::SQS::Kueue")),
    Mutation("aws", "cloudcontrol.CreateResource", "unknown field", sent=within(MADE, put("Colour", value="red"))),
    Mutation(
        "aws",
        "cloudcontrol.CreateResource",
        "is read-only",
        sent=within(MADE, put("Arn", value="arn:aws:sqs:::q"), of_type=QUEUE),
    ),
    Mutation(
        "aws",
        "cloudcontrol.CreateResource",
        "is a str",
        sent=within(MADE, put("VisibilityTimeout", value="9"), of_type=QUEUE),
    ),
    Mutation("aws", "cloudcontrol.CreateResource", "is no JSON object", sent=put("DesiredState", value="[]")),
    Mutation("aws", "cloudcontrol.UpdateResource", "is no patch", sent=put("PatchDocument", value='[{"op": "set"}]')),
    Mutation(
        "aws",
        "cloudcontrol.UpdateResource",
        "unknown field",
        sent=within(CHANGED, then({"op": "add", "path": "/Colour", "value": "red"})),
    ),
    Mutation(
        "aws",
        "cloudcontrol.UpdateResource",
        "cannot be applied",
        sent=within(CHANGED, then({"op": "remove", "path": "/NotThere"})),
    ),
    Mutation(
        "aws",
        "cloudcontrol.UpdateResource",
        "cannot be changed",
        sent=within(CHANGED, then({"op": "add", "path": "/QueueName", "value": "other"}), of_type=QUEUE),
    ),
    Mutation(
        "aws",
        "cloudcontrol.UpdateResource",
        "is read-only",
        sent=within(CHANGED, then({"op": "add", "path": "/Arn", "value": "other"}), of_type=QUEUE),
    ),
    Mutation(
        "aws",
        "cloudcontrol.UpdateResource",
        "VisibilityTimeout: is a str",
        sent=within(CHANGED, then({"op": "add", "path": "/VisibilityTimeout", "value": "9"}), of_type=QUEUE),
    ),
    Mutation(
        "aws",
        "cloudcontrol.GetResource",
        "unknown field",
        answered=within(SHOWN_BY, put("Colour", value="red")),
    ),
    Mutation(
        "aws",
        "cloudcontrol.GetResource",
        "is write-only",
        answered=within(SHOWN_BY, put("Code", value={"ZipFile": "x"}), of_type="AWS::Lambda::Function"),
    ),
    Mutation(
        "aws",
        "cloudcontrol.GetResource",
        "identifying properties",
        answered=put("ResourceDescription", "Identifier", value="another"),
    ),
    Mutation("azure", f"{VM}.create_or_update", "unknown field", sent=put("properties", "vmSize", value="B1")),
    Mutation("azure", f"{VM}.create_or_update", "missing", sent=drop("location")),
    Mutation("azure", f"{VM}.list", "?expand: unknown", exchange=with_query("expand=instanceView")),
    Mutation("azure", f"{VM}.list", "without $filter", exchange=with_query("$expand=instanceView")),
    Mutation("azure", f"{VM}.create_or_update", "status", exchange=lambda one: replace(one, status=202)),
    Mutation(
        "azure",
        f"{VM}.deallocate",
        "nobody could follow",
        exchange=lambda one: replace(one, status=202, answerHeaders={"content-type": "application/json"}),
    ),
    Mutation(
        "azure",
        "storage.v2024_01_01.StorageAccountsOperations.create",
        "is not empty",
        exchange=lambda one: replace(one, answer="{}"),
    ),
    Mutation("gcp", "compute.instances.insert", "unknown field", sent=put("machineTyp", value="x")),
    Mutation("gcp", "compute.instances.insert", "missing", sent=drop("name")),
    Mutation("gcp", "storage.buckets.list", "is a int", answered=put("items", 0, "metageneration", value=1)),
    Mutation("gcp", "compute.networks.insert", "no such operation", exchange=lambda one: replace(one, method="PUT")),
    Mutation("hetzner", "ServersClient.create", "unknown field", sent=put("server_typ", value="cx22")),
    Mutation("hetzner", "ServersClient.get_list", "missing", answered=drop("meta", "pagination", "last_page")),
    Mutation("hetzner", "ServersClient.get_list", "unknown", answered=put("servers", 0, "state", value="running")),
    Mutation("kubernetes", "AppsV1Api.create_namespaced_deployment", "missing", sent=drop("spec", "selector")),
    Mutation(
        "kubernetes",
        "AppsV1Api.create_namespaced_deployment",
        "header content-type",
        exchange=lambda one: replace(one, headers={**one.headers, "content-type": "text/plain"}),
    ),
    Mutation(
        "kubernetes",
        "AppsV1Api.read_namespaced_deployment",
        "spec.replicas",
        answered=put("spec", "replicas", value="2"),
    ),
    Mutation("kubernetes", "BatchV1Api.read_namespaced_cron_job", "spec.schedule", answered=drop("spec", "schedule")),
    Mutation(
        "kubernetes",
        "BatchV1Api.create_namespaced_cron_job",
        "unknown field",
        sent=put("spec", "timezone", value="Etc/UTC"),
    ),
    Mutation(
        "kubernetes",
        "CoreV1Api.list_namespaced_config_map",
        "items.[].data: unknown field",
        answered=put("items", 0, "data", value={}),
    ),
    Mutation(
        "kubernetes",
        f"{CUSTOM.format('create')} {WIDGETS}",
        "no such operation",
        exchange=lambda one: replace(one, target=one.target.replace("shop.example", "shop.elsewhere")),
    ),
    Mutation(
        "kubernetes",
        f"{CUSTOM.format('create')} {WIDGETS}",
        "no such operation",
        exchange=lambda one: replace(one, target=one.target.replace("/namespaces/default", "")),
    ),
    Mutation(
        "kubernetes",
        f"{CUSTOM.format('create')} {WIDGETS}",
        "spec.colour: unknown field",
        sent=put("spec", "colour", value="red"),
    ),
    Mutation("kubernetes", f"{CUSTOM.format('get')} {WIDGETS}", "spec.size", answered=put("spec", "size", value="3")),
    Mutation("oci", "VirtualNetworkClient.create_vcn", "missing", sent=drop("compartmentId")),
    Mutation("oci", "ComputeClient.get_instance", "is no value of it", answered=put("lifecycleState", value="UP")),
    Mutation(
        "oci",
        "VirtualNetworkClient.list_vcns",
        "?compartmentId: missing",
        exchange=lambda one: replace(one, target=one.path),
    ),
    Mutation("vsphere", CREATE, "unknown field", sent=put("config", "numCpu", value=2)),
    Mutation("vsphere", CREATE, "pool: missing", sent=drop("pool")),
    Mutation("vsphere", CREATE, "is a str", sent=put("config", "memoryMB", value="1 GB")),
    Mutation("vsphere", CREATE, "out of order", sent=lambda body: body.update(config=body.pop("config"))),
    Mutation("vsphere", CREATE, "is no VirtualDevice", sent=put(*DEVICE, "@type", value="VirtualMachineConfigSpec")),
    Mutation("vsphere", CREATE, "is no value of it", sent=put("config", "deviceChange", 0, "operation", value="make")),
    Mutation(
        "vsphere",
        CREATE,
        "no such operation",
        exchange=lambda one: replace(one, target=one.target.replace("Folder.", "Datastore.")),
    ),
    Mutation("vsphere", COLLECT, "is no value of it", sent=put(*ASKED, 0, value="config.hardware.numCpu")),
    Mutation("vsphere", COLLECT, "unknown field", answered=put(*SHOWN, "config.uid", value="x")),
    Mutation("vsphere", COLLECT, "is a str", answered=put(*SHOWN, "config.hardware.numCPU", value="two")),
    Mutation("vsphere", COLLECT, "is no value of it", answered=put(*SHOWN, "runtime.powerState", value="on")),
    Mutation("vsphere", "tag.create", "unknown field", sent=put("create_spec", "category", value="x")),
)


def test_there_are_enough_of_them_on_every_cloud() -> None:
    assert len(MUTATIONS) >= 20
    assert {one.cloud for one in MUTATIONS} >= set(CLOUDS)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: f"{one.cloud} {one.operation} {one.found}")
def test_a_planted_fault_is_found(mutation: Mutation) -> None:
    if reason := why_not(mutation.cloud):
        pytest.skip(reason)
    whole = contract(mutation.cloud)
    fitting = (
        one
        for one in exchanges(mutation.cloud)
        if (found := whole.operation_of(one.method, one.path)) and found["name"] == mutation.operation
    )
    for one in fitting:
        if one.status >= 300 or (mutation.operation == "cloudcontrol.UpdateResource" and one.before is None):
            continue  # refused, or of a resource that nobody had read
        try:
            planted = mutation.planted(one)
        except (LookupError, TypeError, ValueError):
            continue  # an answer without such an item, or in a shape that is nobody's contract
        problems = [*whole.request_problems(planted), *whole.answer_problems(planted)]
        new = [problem for problem in problems if not any(known.covers(problem) for known in DEVIATIONS)]
        assert any(mutation.found in str(problem) for problem in new), f"not found; found: {new}"
        return
    pytest.fail(f"nothing of {mutation.operation} was recorded")
