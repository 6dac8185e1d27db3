"""ECS services: found by their name in their cluster. An INACTIVE one is a dead remain, a DRAINING one is dying."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain, islice
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, field_validator, model_validator

from fractal_cloud.model.component import Reference, References, parameter, reference_id
from fractal_cloud.model.errors import NotFound
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.ecs_cluster import DEAD, AwsEcsCluster, whole
from fractal_cloud.offers.aws.kinds import AwsComponent, ecs_name
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.offers.aws.services.ecs import ECS
from fractal_cloud.offers.aws.subnet import AwsSubnet
from fractal_cloud.offers.aws.tags import from_list, interned, moment, to_list
from fractal_cloud.offers.link_types import WorkloadSource
from fractal_cloud.offers.offer import Query, Recognition, Wanted

DESCRIBED_AT_ONCE: Final = 10
_TASK: Final = re.compile(r"[\w-]+:\d+\Z")
_ARN: Final = re.compile(r"arn:[^:]+:ecs:[^:]*:[^:]*:task-definition/([\w-]+:\d+)\Z")
_NETWORK: Final = ("subnets", "securityGroups", "assignPublicIp")
_PLAIN: Final = ("taskDefinition", "desiredCount", "platformVersion", "enableExecuteCommand")
_STATUS: Final[Mapping[str, Condition]] = {"ACTIVE": Condition.SETTLED, "DRAINING": Condition.DYING}


def _with_revision(text: str) -> str:
    if found := _ARN.match(text):
        raise ValueError(f"{text!r} is an ARN: write {found.group(1)!r}, as it is compared")
    if not _TASK.match(text):
        raise ValueError(f"{text!r} names no revision of a task definition: write family:revision, such as 'web:3'")
    return text


class AwsEcsService(AwsComponent, WorkloadSource):
    """Tasks that ECS keeps running in a cluster."""

    type = "CustomWorkloads.PaaS.AwsEcsService"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in its cluster; the component's id if not given.",
    )
    cluster: Reference[AwsEcsCluster] = parameter(
        immutable=True, reference=(AwsEcsCluster.type, "clusterArn"), description="The cluster it runs in."
    )
    task_definition: Annotated[str, AfterValidator(_with_revision)] = parameter(
        description="The revision of a task definition it runs, as family:revision."
    )
    desired_count: int = parameter(
        default=1,
        ge=0,
        description="How many tasks are kept running. Put it into ignoreDrift where autoscaling sets it.",
    )
    launch_type: Literal["FARGATE", "EC2", "EXTERNAL"] = parameter(
        default="FARGATE", immutable=True, description="What its tasks run on."
    )
    subnets: References[AwsSubnet] | None = parameter(
        default=None,
        compare="unordered",
        reference=(AwsSubnet.type, "subnetId"),
        description="The subnets its tasks are in; FARGATE needs at least one.",
    )
    security_groups: References[AwsSecurityGroup] | None = parameter(
        default=None,
        compare="unordered",
        reference=(AwsSecurityGroup.type, "groupId"),
        description="The security groups its tasks are in; without any, the VPC's default group.",
    )
    assign_public_ip: Literal["ENABLED", "DISABLED"] | None = parameter(
        default=None, description="Whether its tasks get public addresses; AWS starts with DISABLED."
    )
    platform_version: str | None = parameter(
        default=None,
        pattern=r"^(LATEST|\d+\.\d+\.\d+)$",
        description="Fargate platform version; AWS starts with LATEST.",
    )
    enable_execute_command: bool | None = parameter(
        default=None, description="Whether commands can be run in its containers; AWS starts with false."
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return ecs_name(name)

    @model_validator(mode="after")
    def _has_a_network(self) -> Self:
        if self.launch_type == "FARGATE" and not self.subnets:
            raise ValueError("launchType FARGATE needs subnets: name at least one")
        return self


SERVICE = Resource(
    service=ECS,
    kind="ecs-service",
    named_by=("service", "services"),
    arn="service/{id}",
    creates={"CreateService": "service.serviceArn"},
    modifies=("UpdateService",),
    deletes=("DeleteService",),
    shown_by={"UpdateService": "service.serviceArn", "DeleteService": "service.serviceArn"},
    listings=(
        Listing(operation="ListServices", path="serviceArns", tags="never", page_size=10),
        Listing(operation="DescribeServices", path="services", id="serviceArn", tags="asked", is_by_name=True),
    ),
    not_found=("ServiceNotFoundException", 400, "Service '{id}' not found."),
    name_key="serviceName",
    phases={"creating": {}, "modifying": {}, "deleting": {"status": "DRAINING"}},
)


class AwsEcsServiceOffer(AwsOffer[AwsEcsService]):
    """How ECS services are read and changed."""

    component = AwsEcsService
    title = "ECS service"
    vendor_type = "AWS::ECS::Service"
    resource = SERVICE
    arn_output = "serviceArn"
    place = ("region",)
    parent = "cluster"
    recognition = Recognition.TOKEN
    reads_by_parent = True
    outputs: ClassVar[Mapping[str, str]] = {
        "serviceName": "name of the service",
        "serviceArn": "its ARN",
        "clusterArn": "ARN of its cluster",
        "region": "region it lies in",
        "status": "ACTIVE or DRAINING",
        "rolloutState": "how far the newest deployment is: IN_PROGRESS, COMPLETED or FAILED",
    }
    read_needs_parent = True

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All services of the clusters named: a call for a hundred, and one for every ten of them."""
        for cluster in sorted(query.parent_ids):
            try:
                yield from _in_cluster(cloud, query, cluster)
            except NotFound as absent:
                if absent.code != "ClusterNotFoundException":
                    raise  # a cluster that is gone took its services with it; anything else is no such proof

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One service by its ARN."""
        del sweep
        try:
            found = _described(cloud, _cluster_of(resource_id), [resource_id])
        except NotFound:
            return None
        return next(_sightings(cloud, found), None)

    def create(self, cloud: Aws, wanted: Wanted[AwsEcsService], tags: ProtocolTags) -> Sighting:
        """Create it with everything; the same token never makes a second one."""
        service = wanted.component
        values = _declared(service)
        asked = {name: values[name] for name in _PLAIN if values.get(name) is not None}
        network = {name: values[name] for name in _NETWORK if values.get(name) is not None}
        if network:
            asked["networkConfiguration"] = {"awsvpcConfiguration": network}
        if wanted.token:
            asked["clientToken"] = sha256(wanted.token.encode()).hexdigest()[:32]
        answer = cloud.call(
            "ecs",
            "create_service",
            cluster=wanted.parent_id or reference_id(service.cluster),
            serviceName=service.name,
            launchType=service.launch_type,
            tags=to_list(tags, key="key", value="value"),
            **asked,
        )
        return _sighting(cloud, answer["service"])

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsEcsService], drift: Collection[str]) -> None:
        """Change everything that drifted in one call; the network goes as a whole, so what is not declared is kept."""
        values = _declared(wanted.component)
        asked: dict[str, Any] = {name: values[name] for name in _PLAIN if name in drift}
        if any(name in drift for name in _NETWORK):
            seen = {name: value for name in _NETWORK if (value := sighting.actual.get(name)) is not None}
            network = seen | {name: values[name] for name in _NETWORK if name in drift}
            asked["networkConfiguration"] = {"awsvpcConfiguration": network}
        if asked:
            cluster = sighting.outputs["clusterArn"]
            cloud.call("ecs", "update_service", cluster=cluster, service=sighting.resource_id, **asked)

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Delete it and stop its tasks."""
        cluster = sighting.outputs["clusterArn"]
        cloud.find("ecs", "delete_service", cluster=cluster, service=sighting.resource_id, force=True)


def _declared(service: AwsEcsService) -> dict[str, Any]:
    return service.model_dump(mode="json", by_alias=True)


def _cluster_of(service_arn: str) -> str:
    """The name of the cluster, which stands in a service's ARN: ``…:service/<cluster>/<service>``."""
    return service_arn.rpartition(":service/")[2].partition("/")[0]


def _in_cluster(cloud: Aws, query: Query, cluster: str) -> Iterator[Sighting | UnreadItem]:
    def read(answer: Mapping[str, Any]) -> Iterator[Sighting]:
        return _sightings(cloud, whole(answer, "services"))

    pages = cloud.pages("ecs", "list_services", "serviceArns", cluster=cluster, maxResults=100)
    arns = chain.from_iterable(pages)
    while few := list(islice(arns, DESCRIBED_AT_ONCE)):
        asked = {"cluster": cluster, "services": few, "include": ["TAGS"]}
        yield from cloud.sightings(query, SERVICE, read, **asked)


def _described(cloud: Aws, cluster: str, arns: list[str]) -> list[Mapping[str, Any]]:
    answer = cloud.call("ecs", "describe_services", cluster=cluster, services=arns, include=["TAGS"])
    return whole(answer, "services")


def _sightings(cloud: Aws, found: Iterable[Mapping[str, Any]]) -> Iterator[Sighting]:
    for service in found:
        if service["status"] != DEAD:
            yield _sighting(cloud, service)


def _actual(service: Mapping[str, Any]) -> dict[str, Any]:
    network = (service.get("networkConfiguration") or {}).get("awsvpcConfiguration") or {}
    return {
        "cluster": interned(service["clusterArn"]),
        "taskDefinition": interned(service["taskDefinition"].rpartition("/")[2]),
        "desiredCount": service["desiredCount"],
        "launchType": service.get("launchType"),
        "subnets": sorted(network.get("subnets") or ()),
        "securityGroups": sorted(network.get("securityGroups") or ()),
        "assignPublicIp": network.get("assignPublicIp", "DISABLED"),
        "platformVersion": service.get("platformVersion"),
        "enableExecuteCommand": bool(service.get("enableExecuteCommand")),
    }


def _sighting(cloud: Aws, service: Mapping[str, Any]) -> Sighting:
    region = interned(cloud.region)
    tags = from_list(service.get("tags"), "key", "value")
    status = interned(service["status"])
    primary: Mapping[str, Any] = next(
        (one for one in service.get("deployments") or () if one.get("status") == "PRIMARY"), {}
    )
    failed = primary.get("rolloutState") == "FAILED"
    return Sighting(
        type=AwsEcsService.type,
        name=service["serviceName"],
        resource_id=service["serviceArn"],
        incarnation=moment(service.get("createdAt")),
        parent_id=interned(service["clusterArn"]),
        protocol=ProtocolTags.from_mapping(tags),
        tags=tags,
        actual=_actual(service),
        outputs={
            "serviceName": service["serviceName"],
            "serviceArn": service["serviceArn"],
            "clusterArn": interned(service["clusterArn"]),
            "region": region,
            "status": status,
            "rolloutState": interned(primary.get("rolloutState") or "COMPLETED"),
        },
        # A rollout in progress takes further changes, and one that never ends needs them: it counts as settled.
        condition=_STATUS.get(status, Condition.CHANGING),
        detail=str(primary.get("rolloutStateReason") or "") if failed else "",
    )
