"""ECS services: found by their name in their cluster. An INACTIVE one is a dead remain, a DRAINING one is dying."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain, islice
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_serializer, field_validator, model_validator
from pydantic.alias_generators import to_camel

from fractal_cloud.model.component import Reference, References, parameter, reference_id
from fractal_cloud.model.errors import NotFound
from fractal_cloud.model.reference import output_reference
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.ecs_cluster import DEAD, AwsEcsCluster, whole
from fractal_cloud.offers.aws.kinds import Arn, AwsComponent, TargetGroupArn, ecs_name
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
_PLAIN: Final = (
    *("taskDefinition", "desiredCount", "platformVersion", "enableExecuteCommand", "healthCheckGracePeriodSeconds"),
    *("loadBalancers", "serviceRegistries", "placementConstraints", "placementStrategy", "capacityProviderStrategy"),
    *("enableECSManagedTags", "deploymentConfiguration"),
)
_LISTS: Final = ("loadBalancers", "serviceRegistries", "placementConstraints", "capacityProviderStrategy")
"""Lists of AWS's in an order of its own; that of `placementStrategy` counts."""
_ROLLOUT: Final = ("maximumPercent", "minimumHealthyPercent")
_PARTS: Final = (
    *("capacity_provider_strategy", "load_balancers", "service_registries", "placement_constraints"),
    "placement_strategy",
)
_STATUS: Final[Mapping[str, Condition]] = {"ACTIVE": Condition.SETTLED, "DRAINING": Condition.DYING}


def _with_revision(text: str) -> str:
    """The revision as it is compared; an ARN of one, as a component's output says it, is brought into that form."""
    if found := _ARN.match(text):
        return found.group(1)
    if output_reference(text) is not None:
        return text
    if not _TASK.match(text):
        raise ValueError(f"{text!r} names no revision of a task definition: write family:revision, such as 'web:3'")
    return text


class _Part(BaseModel):
    """One entry of a list: what is not given is not sent, and AWS's own value of it is not compared."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )


class AwsServiceLoadBalancer(_Part):
    """A target group in which the tasks are registered."""

    target_group_arn: TargetGroupArn = Field(description="ARN of the target group, or the output of a component.")
    container_name: str = Field(description="The container that serves it.")
    container_port: int = Field(ge=0, le=65_535, description="The port of that container.")


class AwsServiceRegistry(_Part):
    """A service of AWS Cloud Map in which the tasks are registered."""

    registry_arn: Arn = Field(description="ARN of the service in AWS Cloud Map, or the output of a component.")
    container_name: str | None = Field(default=None, description="The container that serves it.")
    container_port: int | None = Field(default=None, ge=0, le=65_535, description="The port of that container.")
    port: int | None = Field(default=None, ge=0, le=65_535, description="The port of SRV records.")


class AwsPlacementConstraint(_Part):
    """Where a task may run."""

    type: Literal["distinctInstance", "memberOf"] = Field(description="What kind of constraint it is.")
    expression: str | None = Field(default=None, max_length=2_000, description="The query that memberOf takes.")


class AwsPlacementStrategy(_Part):
    """How tasks are spread."""

    type: Literal["random", "spread", "binpack"] = Field(description="How tasks are placed.")
    field: str | None = Field(default=None, max_length=255, description="By what: instanceId, host, cpu, memory, ….")


class AwsCapacityProviderItem(_Part):
    """What tasks run on, and which share of them."""

    capacity_provider: str = Field(description="FARGATE, FARGATE_SPOT, or the name of a capacity provider.")
    weight: int = Field(default=0, ge=0, le=1_000, description="Its share of the tasks beyond the base.")
    base: int = Field(default=0, ge=0, le=100_000, description="How many tasks run on it at least.")


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
        compare="arn",
        description="The revision of a task definition it runs, as family:revision, or the output taskDefinitionArn of "
        "one that is declared beside it.",
    )
    desired_count: int = parameter(
        default=1,
        ge=0,
        description="How many tasks are kept running. Put it into ignoreDrift where autoscaling sets it.",
    )
    launch_type: Literal["FARGATE", "EC2", "EXTERNAL"] = parameter(
        default="FARGATE",
        immutable=True,
        description="What its tasks run on; not declared where capacityProviderStrategy says it.",
    )
    capacity_provider_strategy: list[AwsCapacityProviderItem] | None = parameter(
        default=None, compare="unordered", description="What its tasks run on, in the place of launchType."
    )
    load_balancers: list[AwsServiceLoadBalancer] | None = parameter(
        default=None, compare="unordered", description="The target groups in which its tasks are registered."
    )
    health_check_grace_period_seconds: int | None = parameter(
        default=None,
        ge=0,
        le=2_147_483_647,
        description="How long unhealthy new tasks are kept, behind load balancers.",
    )
    service_registries: list[AwsServiceRegistry] | None = parameter(
        default=None, compare="unordered", description="The services of AWS Cloud Map its tasks are registered in."
    )
    placement_constraints: list[AwsPlacementConstraint] | None = parameter(
        default=None, compare="unordered", description="Where its tasks may run, on EC2."
    )
    placement_strategy: list[AwsPlacementStrategy] | None = parameter(
        default=None, description="How its tasks are spread, on EC2; the order counts."
    )
    maximum_percent: int | None = parameter(
        default=None, ge=100, description="Of desiredCount, how many tasks may run during a deployment."
    )
    minimum_healthy_percent: int | None = parameter(
        default=None, ge=0, le=100, description="Of desiredCount, how many tasks must run during a deployment."
    )
    enable_ecs_managed_tags: bool | None = parameter(
        default=None,
        declared_as="enableECSManagedTags",
        description="Whether ECS tags its tasks; AWS starts with false.",
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
        by_strategy = self.capacity_provider_strategy is not None
        if by_strategy and "launch_type" in self.model_fields_set:
            raise ValueError("launchType and capacityProviderStrategy say the same: declare one of them")
        if self.launch_type == "FARGATE" and not by_strategy and not self.subnets:
            raise ValueError("launchType FARGATE needs subnets: name at least one")
        return self

    @field_serializer(*_PARTS)
    def _without_what_is_not_given(self, parts: list[Any] | None) -> list[dict[str, Any]] | None:
        if parts is None:
            return None
        # What holds a reference to an output is kept as it was written until the agent fills it in.
        return [
            part.model_dump(by_alias=True, exclude_none=True) if isinstance(part, _Part) else part for part in parts
        ]


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
        if service.capacity_provider_strategy is None:
            asked["launchType"] = service.launch_type
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
            tags=to_list(tags, key="key", value="value"),
            **asked,
        )
        return _sighting(cloud, answer["service"])

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsEcsService], drift: Collection[str]) -> None:
        """Change everything that drifted in one call; the network goes as a whole, so what is not declared is kept."""
        values = _declared(wanted.component)
        asked: dict[str, Any] = {name: values[name] for name in _PLAIN if name in drift}
        if any(name in drift for name in _ROLLOUT):
            seen = {name: value for name in _ROLLOUT if (value := sighting.actual.get(name)) is not None}
            asked["deploymentConfiguration"] = seen | {name: values[name] for name in _ROLLOUT if name in drift}
        if "capacityProviderStrategy" in asked:
            asked["forceNewDeployment"] = True  # AWS takes another strategy only with it
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
    values = service.model_dump(mode="json", by_alias=True)
    rollout = {name: values[name] for name in _ROLLOUT if values[name] is not None}
    return {**values, "deploymentConfiguration": rollout or None}


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
    rollout = service.get("deploymentConfiguration") or {}
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
        "enableECSManagedTags": bool(service.get("enableECSManagedTags")),
        "healthCheckGracePeriodSeconds": service.get("healthCheckGracePeriodSeconds", 0),
        "placementStrategy": [_plain(one) for one in service.get("placementStrategy") or ()],
        **{name: sorted((_plain(one) for one in service.get(name) or ()), key=repr) for name in _LISTS},
        **{name: rollout[name] for name in _ROLLOUT if rollout.get(name) is not None},
    }


def _plain(part: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as it is declared: without what AWS leaves empty."""
    return {interned(name): value for name, value in sorted(part.items()) if value is not None and value != ""}


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
