"""The example of ECS clusters: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from typing import Any

from fractal_cloud.offers.aws.ecs_cluster import AwsEcsCluster
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import REGION, Clients, EcsActions, Example, component, tag_map

ECS_CLUSTER = component(
    AwsEcsCluster, "jobs", region=REGION, containerInsights="enabled", capacityProviders=["FARGATE"]
)


def _edit_ecs_cluster(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    ecs = clients("ecs")
    if name == "containerInsights":
        ecs.update_cluster(cluster=resource_id, settings=[{"name": name, "value": value}])
    else:
        ecs.put_cluster_capacity_providers(
            cluster=resource_id, capacityProviders=value, defaultCapacityProviderStrategy=[]
        )


class EcsClusterActions(EcsActions):
    def find(self, name: str) -> list[Found]:
        items = self._clients("ecs").describe_clusters(clusters=[name], include=["TAGS"])["clusters"]
        living = [one for one in items if one["status"] != "INACTIVE"]
        return [Found(one["clusterArn"], tag_map(one["tags"], "key", "value"), one["clusterArn"]) for one in living]

    def delete(self, found: Found) -> None:
        self._clients("ecs").delete_cluster(cluster=found.resource_id)


def _service_in_cluster(clients: Clients, found: Found) -> Obstacle:
    ecs = clients("ecs")
    ecs.register_task_definition(family="theirs", containerDefinitions=[{"name": "a", "image": "b", "memory": 64}])
    ecs.create_service(cluster=found.resource_id, serviceName="theirs", taskDefinition="theirs", desiredCount=0)
    return Obstacle(
        ("service 'theirs'",), lambda: ecs.delete_service(cluster=found.resource_id, service="theirs", force=True)
    )


EXAMPLE = Example(
    kind=AwsEcsCluster,
    components=[ECS_CLUSTER],
    changes={"containerInsights": "disabled", "capacityProviders": ["FARGATE", "FARGATE_SPOT"]},
    immutable_changes={},
    foreign_edit=_edit_ecs_cluster,
    operator=EcsClusterActions,
    hazards={"a service": ("Deleting", _service_in_cluster)},
    effects=25,
)
