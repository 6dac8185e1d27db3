"""EKS clusters: found by their name, unique in account and region, and described by AWS one by one only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, field_validator

from fractal_cloud.model.catalog import Entry
from fractal_cloud.model.component import Component, References, parameter, reference_id
from fractal_cloud.model.errors import Denied, Protected, Unreadable
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.kinds import AwsComponent, Network, Region, RoleArn, eks_name
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.offers.aws.services.eks import EKS
from fractal_cloud.offers.aws.subnet import AwsSubnet
from fractal_cloud.offers.aws.tags import from_map, interned, moment
from fractal_cloud.offers.aws_login import EksTokens
from fractal_cloud.offers.cluster_access import Access, Addresses
from fractal_cloud.offers.cluster_versions import next_version, version_warnings
from fractal_cloud.offers.offer import Query, Wanted

LogType = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]
LOG_TYPES: Final = ("api", "audit", "authenticator", "controllerManager", "scheduler")
_CONDITIONS: Final[Mapping[str, Condition]] = {
    "ACTIVE": Condition.SETTLED,
    "CREATING": Condition.CREATING,
    "PENDING": Condition.CREATING,
    "UPDATING": Condition.CHANGING,
    "DELETING": Condition.DYING,
    "FAILED": Condition.BROKEN,
}
# What one update may carry together: AWS takes one kind a call, and one call at a time.
_ENDPOINT: Final = ("endpointPublicAccess", "endpointPrivateAccess", "publicAccessCidrs")
_KINDS: Final = (("deletionProtection",), _ENDPOINT, ("securityGroups",), ("logging",), ("version",))


def _two_or_more(subnets: list[Any]) -> list[Any]:
    if len(set(map(str, subnets))) < 2:
        raise ValueError("EKS needs subnets in at least two availability zones: name two or more")
    return subnets


class AwsEks(AwsComponent):
    """A Kubernetes control plane kept by AWS."""

    type = "NetworkAndCompute.PaaS.AwsEks"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in account and region; the component's id if not given.",
    )
    region: Region | None = parameter(
        default=None, immutable=True, description="AWS region; that of its subnets where none is given."
    )
    version: str | None = parameter(
        default=None,
        pattern=r"^1\.\d+$",
        description="Kubernetes version, such as 1.33; raised one minor version at a time, never lowered.",
    )
    role_arn: RoleArn = parameter(
        immutable=True, description="ARN of the IAM role the control plane acts as, or the output of a component."
    )
    subnets: Annotated[References[AwsSubnet], AfterValidator(_two_or_more)] = parameter(
        immutable=True,
        compare="unordered",
        reference=(AwsSubnet.type, "subnetId"),
        description="The subnets it reaches its nodes through, in at least two zones.",
    )
    security_groups: References[AwsSecurityGroup] | None = parameter(
        default=None,
        compare="unordered",
        reference=(AwsSecurityGroup.type, "groupId"),
        description="Further security groups of the control plane.",
    )
    endpoint_public_access: bool | None = parameter(
        default=None, description="Whether its API is reached from outside; AWS starts with true."
    )
    endpoint_private_access: bool | None = parameter(
        default=None, description="Whether its API is reached from inside the VPC; AWS starts with false."
    )
    public_access_cidrs: list[Network] | None = parameter(
        default=None,
        compare="cidrs",
        description="Networks from which its API is reached from outside; AWS starts with all.",
    )
    logging: list[LogType] | None = parameter(
        default=None,
        compare="unordered",
        description="The logs of the control plane that are kept; AWS starts with none.",
    )
    deletion_protection: bool | None = parameter(
        default=None, description="Whether AWS refuses to delete it, also to us; AWS starts with false."
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return eks_name(name)


CLUSTER = Resource(
    service=EKS,
    kind="eks-cluster",
    named_by=("name", "clusterName"),
    arn="cluster/{id}",
    creates={"CreateCluster": "cluster.name"},
    modifies=("UpdateClusterConfig", "UpdateClusterVersion"),
    deletes=("DeleteCluster",),
    set_by={"subnets": ("subnetIds",), "securityGroups": ("securityGroupIds",)},
    listings=(
        Listing(operation="ListClusters", path="clusters", tags="never"),
        Listing(operation="DescribeCluster", path="cluster", id="name", is_by_name=True),
    ),
    reads=("DescribeUpdate",),
    not_found=("ResourceNotFoundException", 404, "No cluster found for name: {id}."),
    name_key="name",
    phases={
        "creating": {"status": "CREATING", "endpoint": None, "certificateAuthority": {}},
        "modifying": {"status": "UPDATING"},
        "deleting": {"status": "DELETING"},
    },
)


class AwsEksOffer(AwsOffer[AwsEks]):
    """How EKS clusters are read and changed."""

    component = AwsEks
    title = "EKS cluster"
    vendor_type = "AWS::EKS::Cluster"
    resource = CLUSTER
    arn_output = "clusterArn"
    place = ("region",)
    holds_data = True
    # docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html. Names below api.aws are not EKS's alone: only
    # those of a cluster's form count.
    cluster_addresses = Addresses(
        (
            r"([a-z0-9-]+\.)+eks\.amazonaws\.com(\.cn)?",
            r"[0-9a-f]{32}(\.[a-z0-9]{2,4})?\.[a-z0-9-]+\.api\.aws",
            r"[0-9a-f]{32}(\.[a-z0-9]{2,4})?\.[a-z0-9-]+\.(api\.)?amazonwebservices\.com\.cn",
        )
    )
    outputs: ClassVar[Mapping[str, str]] = {
        "clusterName": "name of the cluster",
        "clusterArn": "its ARN",
        "region": "region it lies in",
        "status": "CREATING, ACTIVE, UPDATING, DELETING or FAILED",
        "endpoint": "address of its API, once it has one",
        "certificateAuthorityData": "certificate of its API's authority, in base64",
        "oidcIssuer": "issuer of its service accounts' identities",
        "clusterSecurityGroupId": "security group AWS made for it",
        "vpcId": "id of its VPC",
    }
    entry = Entry(commands=["aws eks update-kubeconfig --region={region} --name={clusterName}"], context="{clusterArn}")

    def enter(self, cloud: Aws, name: str) -> Access | None:
        """By a token that is signed for this cluster alone."""
        found = cloud.find("eks", "describe_cluster", name=name)
        if found is None:
            return None
        cluster = found["cluster"]
        arn, authority = str(cluster["arn"]), cluster.get("certificateAuthority") or {}
        account = arn.split(":")[4]
        if account != cloud.scope.realm:
            raise Denied(f"the credentials for AWS reach account {account!r}, where another cluster is called {name!r}")
        tokens = EksTokens(cloud.region, name)
        return Access(arn, str(cluster.get("endpoint") or ""), str(authority.get("data") or ""), tokens.token)

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """The clusters named, a call each after a list of all names; all of them where none is named."""
        for page in cloud.pages("eks", "list_clusters", "clusters", maxResults=100):
            for name in page:
                if not isinstance(name, str):
                    raise Unreadable(f"the list of clusters holds {name!r}: nothing is decided from it")
                if not query.names or name in query.names:
                    found = self.read(cloud, name)
                    if found is not None:
                        yield found

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One cluster by its name."""
        del sweep
        answer = cloud.find("eks", "describe_cluster", name=resource_id)
        return _sighting(cloud, answer["cluster"]) if answer else None

    def create(self, cloud: Aws, wanted: Wanted[AwsEks], tags: ProtocolTags) -> Sighting:
        """Create it with everything."""
        cluster = wanted.component
        network = {"subnetIds": _ids(cluster.subnets), **_endpoint(cluster, _ENDPOINT)}
        if cluster.security_groups:
            network["securityGroupIds"] = _ids(cluster.security_groups)
        optional = {
            "version": cluster.version,
            "logging": _logging(cluster.logging) if cluster.logging else None,
            "deletionProtection": cluster.deletion_protection,
            "clientRequestToken": wanted.token or None,
        }
        answer = cloud.call(
            "eks",
            "create_cluster",
            name=cluster.name,
            roleArn=cluster.role_arn,
            resourcesVpcConfig=network,
            tags=tags.to_mapping(),
            **{key: value for key, value in optional.items() if value is not None},
        )
        return _sighting(cloud, answer["cluster"])

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsEks], drift: Collection[str]) -> None:
        """Start the next kind of update; AWS works on it for minutes, and takes the next one after that."""
        cluster = wanted.component
        kind = next((kind for kind in _KINDS if any(name in drift for name in kind)), ())
        if "version" in kind:
            following = next_version(str(sighting.actual["version"]), cluster.version or "")
            cloud.call("eks", "update_cluster_version", name=sighting.resource_id, version=following)
        elif kind:
            change = _config_change(cluster, [name for name in kind if name in drift])
            cloud.call("eks", "update_cluster_config", name=sighting.resource_id, **change)

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Delete it; deletion protection is respected, and AWS names what still belongs to it."""
        if sighting.actual["deletionProtection"]:
            raise Protected(
                f"cluster {sighting.resource_id!r} has deletionProtection: switch it off, and it is tried again",
                code="DeletionProtection",
            )
        cloud.find("eks", "delete_cluster", name=sighting.resource_id)

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What a change of the version means."""
        return version_warnings(drift)


def _ids(references: Collection[str | Component]) -> list[str]:
    return [reference_id(one) for one in references]


def _endpoint(cluster: AwsEks, names: Collection[str]) -> dict[str, Any]:
    values = cluster.model_dump(mode="json", by_alias=True)
    return {name: values[name] for name in names if values[name] is not None}


def _logging(enabled: Collection[str]) -> dict[str, Any]:
    off = [name for name in LOG_TYPES if name not in enabled]
    wished = [{"types": sorted(enabled), "enabled": True}, {"types": off, "enabled": False}]
    return {"clusterLogging": [one for one in wished if one["types"]]}


def _config_change(cluster: AwsEks, names: Collection[str]) -> dict[str, Any]:
    match next(iter(names)):
        case "deletionProtection":
            return {"deletionProtection": bool(cluster.deletion_protection)}
        case "logging":
            return {"logging": _logging(cluster.logging or [])}
        case "securityGroups":
            groups = {"securityGroupIds": _ids(cluster.security_groups or [])}
            return {"resourcesVpcConfig": groups}
        case _:
            return {"resourcesVpcConfig": _endpoint(cluster, names)}


def _actual(cluster: Mapping[str, Any], region: str) -> dict[str, Any]:
    network = cluster.get("resourcesVpcConfig") or {}
    logging = (cluster.get("logging") or {}).get("clusterLogging") or ()
    return {
        "region": region,
        "version": cluster.get("version"),
        "roleArn": cluster.get("roleArn"),
        "subnets": sorted(network.get("subnetIds") or ()),
        "securityGroups": sorted(network.get("securityGroupIds") or ()),
        "endpointPublicAccess": bool(network.get("endpointPublicAccess", True)),
        "endpointPrivateAccess": bool(network.get("endpointPrivateAccess")),
        "publicAccessCidrs": sorted(network.get("publicAccessCidrs") or ()),
        "logging": sorted(name for one in logging if one.get("enabled") for name in one.get("types") or ()),
        "deletionProtection": bool(cluster.get("deletionProtection")),
    }


def _sighting(cloud: Aws, cluster: Mapping[str, Any]) -> Sighting:
    region = interned(cloud.region)
    tags = from_map(cluster.get("tags"))
    status = interned(cluster["status"])
    network = cluster.get("resourcesVpcConfig") or {}
    optional = {
        "endpoint": cluster.get("endpoint"),
        "certificateAuthorityData": (cluster.get("certificateAuthority") or {}).get("data"),
        "oidcIssuer": ((cluster.get("identity") or {}).get("oidc") or {}).get("issuer"),
        "clusterSecurityGroupId": network.get("clusterSecurityGroupId"),
        "vpcId": network.get("vpcId"),
    }
    condition = _CONDITIONS.get(status, Condition.CHANGING)
    issues = (cluster.get("health") or {}).get("issues") or ()
    return Sighting(
        type=AwsEks.type,
        name=cluster["name"],
        resource_id=cluster["name"],
        incarnation=moment(cluster.get("createdAt")),
        protocol=ProtocolTags.from_mapping(tags),
        tags=tags,
        actual=_actual(cluster, region),
        outputs={
            "clusterName": cluster["name"],
            "clusterArn": cluster["arn"],
            "region": region,
            "status": status,
            **{name: value for name, value in optional.items() if value},
        },
        condition=condition,
        detail="; ".join(issue.get("message", "") for issue in issues) or ("" if status == "ACTIVE" else status),
    )
