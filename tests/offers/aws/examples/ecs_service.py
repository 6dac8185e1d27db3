"""The example of ECS services: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from typing import Any

from fractal_cloud.offers.aws.ecs_service import AwsEcsService
from fractal_cloud.testing import Found
from tests.offers.aws.example import Clients, EcsActions, Example, component, tag_map
from tests.offers.aws.examples.ecs_cluster import ECS_CLUSTER
from tests.offers.aws.examples.security_group import GROUP, OTHER_GROUP
from tests.offers.aws.examples.subnet import SUBNET_A, SUBNET_B
from tests.offers.aws.examples.vpc import VPC

TARGET_GROUP = "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/{}/0123456789abcdef"
REGISTRY = "arn:aws:servicediscovery:eu-west-1:123456789012:service/srv-{}"


def _behind(name: str, port: int) -> dict[str, Any]:
    return {"targetGroupArn": TARGET_GROUP.format(name), "containerName": "web", "containerPort": port}


def _edit_service(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    ecs = clients("ecs")
    cluster = resource_id.rpartition(":service/")[2].partition("/")[0]
    service = ecs.describe_services(cluster=cluster, services=[resource_id])["services"][0]
    change = {name: value}
    if name in ("subnets", "securityGroups", "assignPublicIp"):
        network = service["networkConfiguration"]["awsvpcConfiguration"]
        change = {"networkConfiguration": {"awsvpcConfiguration": {**network, name: value}}}
    if name in ("maximumPercent", "minimumHealthyPercent"):
        change = {"deploymentConfiguration": {**service["deploymentConfiguration"], name: value}}
    ecs.update_service(cluster=cluster, service=resource_id, **change)


def _register_tasks(clients: Clients) -> None:
    for _ in range(2):
        clients("ecs").register_task_definition(
            family="web",
            networkMode="awsvpc",
            requiresCompatibilities=["FARGATE"],
            cpu="256",
            memory="512",
            containerDefinitions=[{"name": "web", "image": "nginx", "essential": True}],
        )


class EcsServiceActions(EcsActions):
    def find(self, name: str) -> list[Found]:
        ecs = self._clients("ecs")
        pages = ecs.get_paginator("list_clusters").paginate()
        items = [
            one
            for cluster in [arn for page in pages for arn in page["clusterArns"]]
            for one in ecs.describe_services(cluster=cluster, services=[name], include=["TAGS"])["services"]
            if one["status"] == "ACTIVE"
        ]
        return [Found(one["serviceArn"], tag_map(one["tags"], "key", "value"), one["serviceArn"]) for one in items]

    def delete(self, found: Found) -> None:
        cluster = found.resource_id.rpartition(":service/")[2].partition("/")[0]
        self._clients("ecs").delete_service(cluster=cluster, service=found.resource_id, force=True)


EXAMPLE = Example(
    kind=AwsEcsService,
    components=[
        VPC,
        SUBNET_A,
        SUBNET_B,
        GROUP,
        OTHER_GROUP,
        ECS_CLUSTER,
        component(
            AwsEcsService,
            "shop",
            cluster="jobs",
            taskDefinition="web:1",
            desiredCount=2,
            launchType="FARGATE",
            subnets=["part-a"],
            securityGroups=["web"],
            assignPublicIp="DISABLED",
            platformVersion="1.4.0",
            enableExecuteCommand=False,
            loadBalancers=[_behind("web", 80)],
            healthCheckGracePeriodSeconds=60,
            serviceRegistries=[{"registryArn": REGISTRY.format("a")}],
            placementConstraints=[{"type": "distinctInstance"}],
            placementStrategy=[{"type": "spread", "field": "host"}, {"type": "binpack", "field": "cpu"}],
            maximumPercent=200,
            minimumHealthyPercent=50,
            enableECSManagedTags=False,
        ),
    ],
    changes={
        "taskDefinition": "web:2",
        "desiredCount": 3,
        "subnets": ["part-a", "part-b"],
        "securityGroups": ["other"],
        "assignPublicIp": "ENABLED",
        "platformVersion": "LATEST",
        "enableExecuteCommand": True,
        "loadBalancers": [_behind("web", 80), _behind("api", 8080)],
        "healthCheckGracePeriodSeconds": 120,
        "serviceRegistries": [{"registryArn": REGISTRY.format("b"), "port": 53}],
        "placementConstraints": [{"type": "memberOf", "expression": "attribute:ecs.instance-type == t3.large"}],
        "placementStrategy": [{"type": "binpack", "field": "cpu"}, {"type": "spread", "field": "host"}],
        "maximumPercent": 150,
        "minimumHealthyPercent": 100,
        "enableECSManagedTags": True,
    },
    immutable_changes={"launchType": "EC2"},
    foreign_edit=_edit_service,
    prepare=_register_tasks,
    operator=EcsServiceActions,
    is_slow=False,
    effects=23,
)
