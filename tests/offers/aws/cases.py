"""The examples of all AWS offers as the contract suite takes them: with a person's actions, and what blocks a deletion.

A third party writes one such module for its own offers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.aws.ec2 import AwsEc2Instance
from fractal_cloud.offers.aws.ecs_cluster import AwsEcsCluster
from fractal_cloud.offers.aws.ecs_service import AwsEcsService
from fractal_cloud.offers.aws.eks import AwsEks
from fractal_cloud.offers.aws.rds import AwsRdsPostgres
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.offers.aws.subnet import AwsSubnet
from fractal_cloud.offers.aws.vpc import AwsVpc
from fractal_cloud.testing import Declaration, Found, Hazard, Obstacle, OfferExample, OperatorActions
from tests.offers.aws import operator_actions
from tests.offers.aws.examples import EXAMPLES, REGION, Clients, ForeignEdit
from tests.world import subnet

Arrange = Callable[[Clients, Found], Obstacle]


@dataclass(frozen=True)
class Case:
    """What the suite must know of one AWS type beside its example."""

    operator: Callable[[Clients, ForeignEdit], OperatorActions]
    name_tag: str | None = None
    is_slow: bool = True
    only_up: frozenset[str] = frozenset()
    more_parents: tuple[Declaration, ...] = ()
    hazards: dict[str, tuple[str, Arrange]] = field(default_factory=dict)


# --- what blocks a deletion


def _subnet_of_somebody_else(clients: Clients, found: Found) -> Obstacle:
    ec2 = clients("ec2")
    made = ec2.create_subnet(VpcId=found.resource_id, CidrBlock="10.0.77.0/24")["Subnet"]["SubnetId"]
    return Obstacle((made,), lambda: ec2.delete_subnet(SubnetId=made))


def _interface_in_subnet(clients: Clients, found: Found) -> Obstacle:
    ec2 = clients("ec2")
    made = ec2.create_network_interface(SubnetId=found.resource_id)["NetworkInterface"]["NetworkInterfaceId"]
    return Obstacle((made,), lambda: ec2.delete_network_interface(NetworkInterfaceId=made))


def _interface_in_group(clients: Clients, found: Found) -> Obstacle:
    ec2 = clients("ec2")
    [group] = ec2.describe_security_groups(GroupIds=[found.resource_id])["SecurityGroups"]
    place = ec2.create_subnet(VpcId=group["VpcId"], CidrBlock="10.0.78.0/24")["Subnet"]["SubnetId"]
    made = ec2.create_network_interface(SubnetId=place, Groups=[found.resource_id])["NetworkInterface"]

    def clear() -> None:
        ec2.delete_network_interface(NetworkInterfaceId=made["NetworkInterfaceId"])
        ec2.delete_subnet(SubnetId=place)

    return Obstacle((made["NetworkInterfaceId"],), clear)


def _protected_instance(clients: Clients, found: Found) -> Obstacle:
    def protect(value: bool) -> None:
        clients("ec2").modify_instance_attribute(InstanceId=found.resource_id, DisableApiTermination={"Value": value})

    protect(True)
    return Obstacle((found.resource_id, "protected from termination"), lambda: protect(False))


def _object_in_bucket(clients: Clients, found: Found) -> Obstacle:
    s3 = clients("s3")
    version = s3.put_object(Bucket=found.resource_id, Key="letter", Body=b"dear")["VersionId"]
    return Obstacle(
        (found.resource_id, "never emptied"),
        lambda: s3.delete_object(Bucket=found.resource_id, Key="letter", VersionId=version),
    )


def _protected_database(clients: Clients, found: Found) -> Obstacle:
    def protect(value: bool) -> None:
        clients("rds").modify_db_instance(
            DBInstanceIdentifier=found.resource_id, DeletionProtection=value, ApplyImmediately=True
        )

    protect(True)
    return Obstacle((found.resource_id, "deletionProtection"), lambda: protect(False))


def _service_in_cluster(clients: Clients, found: Found) -> Obstacle:
    ecs = clients("ecs")
    ecs.register_task_definition(family="theirs", containerDefinitions=[{"name": "a", "image": "b", "memory": 64}])
    ecs.create_service(cluster=found.resource_id, serviceName="theirs", taskDefinition="theirs", desiredCount=0)
    return Obstacle(
        ("service 'theirs'",), lambda: ecs.delete_service(cluster=found.resource_id, service="theirs", force=True)
    )


def _protected_cluster(clients: Clients, found: Found) -> Obstacle:
    def protect(value: bool) -> None:
        clients("eks").update_cluster_config(name=found.resource_id, deletionProtection=value)

    protect(True)
    return Obstacle((found.resource_id, "deletionProtection"), lambda: protect(False))


CASES: dict[type[Component], Case] = {
    AwsVpc: Case(
        operator_actions.VpcActions,
        name_tag="Name",
        hazards={"somebody else's subnet": ("Deleting", _subnet_of_somebody_else)},
    ),
    AwsSubnet: Case(
        operator_actions.SubnetActions,
        name_tag="Name",
        hazards={"a network interface": ("Deleting", _interface_in_subnet)},
    ),
    AwsSecurityGroup: Case(
        operator_actions.GroupActions,
        is_slow=False,
        hazards={"a network interface": ("Deleting", _interface_in_group)},
    ),
    AwsEc2Instance: Case(
        operator_actions.InstanceActions,
        name_tag="Name",
        hazards={"termination protection": ("Failed", _protected_instance)},
    ),
    AwsS3: Case(operator_actions.BucketActions, is_slow=False, hazards={"an object": ("Failed", _object_in_bucket)}),
    AwsRdsPostgres: Case(
        operator_actions.DatabaseActions,
        only_up=frozenset({"allocatedStorage", "engineVersion"}),
        hazards={"deletion protection": ("Failed", _protected_database)},
    ),
    AwsEcsCluster: Case(operator_actions.EcsClusterActions, hazards={"a service": ("Deleting", _service_in_cluster)}),
    AwsEcsService: Case(operator_actions.EcsServiceActions, is_slow=False),
    AwsEks: Case(
        operator_actions.EksActions,
        only_up=frozenset({"version"}),
        more_parents=(subnet("part-c", cidrBlock="10.0.4.0/24", availabilityZone=f"{REGION}c"),),
        hazards={"deletion protection": ("Failed", _protected_cluster)},
    ),
}


def example_of(kind: type[Component], clients: Clients) -> OfferExample:
    """The example of one type; whoever has no case or no example learns what to write."""
    example, case = EXAMPLES[kind], CASES[kind]

    def hazard(title: str, status: str, arrange: Arrange) -> Hazard:
        return Hazard(title, status, lambda found: arrange(clients, found))

    return OfferExample(
        components=[*example.components[:-1], *case.more_parents, example.components[-1]],
        changes=example.changes,
        immutable_changes=example.immutable_changes,
        operator=case.operator(clients, example.foreign_edit),
        only_up=case.only_up,
        name_tag=case.name_tag,
        is_slow=case.is_slow,
        hazards=[hazard(title, status, arrange) for title, (status, arrange) in case.hazards.items()],
    )


def prepare(kind: type[Component], clients: Clients) -> Any:
    """Make what an example takes for granted."""
    return EXAMPLES[kind].prepare(clients)
