"""ECS clusters: found by their name, unique in account and region. An INACTIVE one is a dead remain."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Conflict, Unreadable
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.blockers import in_cluster
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.kinds import AwsComponent, Region, ecs_name
from fractal_cloud.offers.aws.services.ecs import ECS
from fractal_cloud.offers.aws.tags import from_list, interned, to_list
from fractal_cloud.offers.offer import Query, Wanted

INSIGHTS: Final = "containerInsights"
_INCLUDE: Final = ["TAGS", "SETTINGS"]
_CONDITIONS: Final[Mapping[str, Condition]] = {
    "ACTIVE": Condition.SETTLED,
    "PROVISIONING": Condition.CREATING,
    "DEPROVISIONING": Condition.DYING,
    "FAILED": Condition.BROKEN,
}
DEAD: Final = "INACTIVE"
"""The status of what was deleted, which ECS goes on to describe; any other that is unknown is work in progress."""


class AwsEcsCluster(AwsComponent):
    """A cluster that services and tasks of ECS run in."""

    type = "CustomWorkloads.PaaS.AwsEcsCluster"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in account and region; the component's id if not given.",
    )
    region: Region = parameter(immutable=True, description="AWS region it lies in.")
    container_insights: Literal["enabled", "enhanced", "disabled"] | None = parameter(
        default=None,
        description="Whether CloudWatch Container Insights watches it; the account's setting if not given.",
    )
    capacity_providers: list[str] | None = parameter(
        default=None,
        compare="unordered",
        description="The capacity providers its tasks may use, such as FARGATE and FARGATE_SPOT.",
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return ecs_name(name)


def whole(answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """What a describe call returns. ECS answers in part where it could not read something: that hides nothing here."""
    unread = [failure for failure in answer.get("failures") or () if failure.get("reason") != "MISSING"]
    if unread:
        reasons = ", ".join(f"{failure.get('arn')}: {failure.get('reason')}" for failure in unread)
        raise Unreadable(f"ECS left out {reasons}: nothing is decided from it, and it is read again")
    found: list[Mapping[str, Any]] = answer[key]
    return found


CLUSTER = Resource(
    service=ECS,
    kind="ecs-cluster",
    named_by=("cluster", "clusters"),
    arn="cluster/{id}",
    creates={"CreateCluster": "cluster.clusterArn"},
    modifies=("PutClusterCapacityProviders", "UpdateCluster"),
    deletes=("DeleteCluster",),
    set_by={"containerInsights": ("UpdateClusterSettings", "settings")},
    also_modifies=("UpdateClusterSettings",),
    shown_by={"DeleteCluster": "cluster.clusterArn"},
    listings=(
        Listing(operation="ListClusters", path="clusterArns", tags="never"),
        Listing(operation="DescribeClusters", path="clusters", id="clusterArn", tags="asked", is_by_name=True),
    ),
    not_found=("ClusterNotFoundException", 400, "Cluster '{id}' not found."),
    name_key="clusterName",
    phases={"creating": {"status": "PROVISIONING"}, "deleting": {"status": "DEPROVISIONING"}},
)


class AwsEcsClusterOffer(AwsOffer[AwsEcsCluster]):
    """How ECS clusters are read and changed."""

    component = AwsEcsCluster
    title = "ECS cluster"
    vendor_type = "AWS::ECS::Cluster"
    resource = CLUSTER
    arn_output = "clusterArn"
    place = ("region",)
    outputs: ClassVar[Mapping[str, str]] = {
        "clusterName": "name of the cluster",
        "clusterArn": "its ARN",
        "region": "region it lies in",
        "status": "PROVISIONING, ACTIVE, DEPROVISIONING or FAILED",
    }
    ids_return = True  # the ARN is made of the name, and ECS reports neither an id nor a time of creation

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All clusters of the region: two calls for a hundred."""

        def read(answer: Mapping[str, Any]) -> Iterator[Sighting]:
            return _sightings(cloud, whole(answer, "clusters"))

        for arns in cloud.pages("ecs", "list_clusters", "clusterArns", maxResults=100):
            if arns:
                asked = {"clusters": arns, "include": _INCLUDE}
                yield from cloud.sightings(query, CLUSTER, read, **asked)

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One cluster by its ARN."""
        del sweep
        return next(_sightings(cloud, _described(cloud, [resource_id])), None)

    def create(self, cloud: Aws, wanted: Wanted[AwsEcsCluster], tags: ProtocolTags) -> Sighting:
        """Create it with all its settings. Where there is one of that name, AWS answers with it, unchanged."""
        cluster = wanted.component
        asked: dict[str, Any] = {}
        if cluster.container_insights:
            asked["settings"] = [{"name": INSIGHTS, "value": cluster.container_insights}]
        if cluster.capacity_providers:
            asked["capacityProviders"] = cluster.capacity_providers
        pairs = to_list(tags, key="key", value="value")
        answer = cloud.call("ecs", "create_cluster", clusterName=cluster.name, tags=pairs, **asked)
        return _sighting(cloud, answer["cluster"])

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsEcsCluster], drift: Collection[str]) -> None:
        """Change the next of the two, settings or capacity providers."""
        cluster = wanted.component
        if INSIGHTS in drift:
            setting = {"name": INSIGHTS, "value": cluster.container_insights}
            cloud.call("ecs", "update_cluster", cluster=sighting.resource_id, settings=[setting])
        elif "capacityProviders" in drift:
            providers = cluster.capacity_providers or []
            cloud.call(
                "ecs",
                "put_cluster_capacity_providers",
                cluster=sighting.resource_id,
                capacityProviders=providers,
                defaultCapacityProviderStrategy=_strategy(cloud, sighting.resource_id, providers),
            )

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Delete it; what still runs in it is named."""
        try:
            cloud.find("ecs", "delete_cluster", cluster=sighting.resource_id)
        except Conflict as refusal:
            raise in_cluster(cloud, sighting.resource_id, refusal) from refusal


def _described(cloud: Aws, arns: list[str]) -> list[Mapping[str, Any]]:
    return whole(cloud.call("ecs", "describe_clusters", clusters=arns, include=_INCLUDE), "clusters")


def _strategy(cloud: Aws, arn: str, providers: Collection[str]) -> list[dict[str, Any]]:
    """The default strategy as it is, which the call asks for too, without the providers that go."""
    found = _described(cloud, [arn])
    strategy = found[0].get("defaultCapacityProviderStrategy", []) if found else []
    return [step for step in strategy if step["capacityProvider"] in providers]


def _sightings(cloud: Aws, found: Iterable[Mapping[str, Any]]) -> Iterator[Sighting]:
    for cluster in found:
        if cluster["status"] != DEAD:
            yield _sighting(cloud, cluster)


def _sighting(cloud: Aws, cluster: Mapping[str, Any]) -> Sighting:
    region = interned(cloud.region)
    tags = from_list(cluster.get("tags"), "key", "value")
    status = interned(cluster["status"])
    settings = {setting["name"]: setting["value"] for setting in cluster.get("settings") or ()}
    condition = _CONDITIONS.get(status, Condition.CHANGING)
    return Sighting(
        type=AwsEcsCluster.type,
        name=cluster["clusterName"],
        resource_id=cluster["clusterArn"],
        protocol=ProtocolTags.from_mapping(tags),
        tags=tags,
        actual={
            "region": region,
            INSIGHTS: settings.get(INSIGHTS, "disabled"),
            "capacityProviders": sorted(cluster.get("capacityProviders") or ()),
        },
        outputs={
            "clusterName": cluster["clusterName"],
            "clusterArn": cluster["clusterArn"],
            "region": region,
            "status": status,
        },
        condition=condition,
        detail="" if condition is Condition.SETTLED else status,
    )
