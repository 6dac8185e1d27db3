"""What there is in the cloud of the benchmarks, and how it is declared: plain data, the same on both sides of the wire.

Things are numbered. A LiveSystem holds a hundred of a kind (a thousand services, with one cluster); kinds that live in
another thing share one parent per LiveSystem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from fractal_cloud.model.catalog import GLOBAL_PLACE
from fractal_cloud.model.declaration import ComponentDeclaration
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.observed import Observed
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import ScopeWork, WorkComponent

REGION: Final = "eu-west-1"
ACCOUNT: Final = "123456789012"
DEPLOYED_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)

VPC: Final = "NetworkAndCompute.IaaS.AwsVpc"
SUBNET: Final = "NetworkAndCompute.IaaS.AwsSubnet"
GROUP: Final = "NetworkAndCompute.IaaS.AwsSecurityGroup"
INSTANCE: Final = "NetworkAndCompute.IaaS.AwsEc2Instance"
DATABASE: Final = "Storage.PaaS.AwsRdsPostgres"
BUCKET: Final = "Storage.PaaS.AwsS3"
CLUSTER: Final = "CustomWorkloads.PaaS.AwsEcsCluster"
SERVICE: Final = "CustomWorkloads.PaaS.AwsEcsService"

WORDS: Final[Mapping[str, str]] = {
    VPC: "net",
    SUBNET: "subnet",
    GROUP: "group",
    INSTANCE: "machine",
    DATABASE: "database",
    BUCKET: "bench-bucket",
    CLUSTER: "cluster",
    SERVICE: "service",
}
PARENTS: Final[Mapping[str, tuple[str, str]]] = {
    SUBNET: (VPC, "vpc"),
    GROUP: (VPC, "vpc"),
    SERVICE: (CLUSTER, "cluster"),
}
"""Kinds that live in another: the kind of the parent, and the parameter that names it."""


@dataclass(frozen=True, slots=True)
class Lot:
    """So many things of one kind, so many of them in each LiveSystem."""

    kind: str
    count: int
    per_live_system: int

    def owner(self, number: int) -> str:
        """The LiveSystem that declares and owns one of them."""
        return f"bench-{number // self.per_live_system:03}"

    def name(self, number: int) -> str:
        """The name of one of them, which is also its component's id."""
        return f"{WORDS[self.kind]}-{number:05}"

    def parent(self, number: int) -> int:
        """The number of the parent one of them lives in, where its kind has one: there is one per LiveSystem."""
        return number // self.per_live_system


def cidr_of(number: int) -> str:
    """A network of its own for every number."""
    return f"10.{number >> 8}.{number & 255}.0/24"


def parameters_of(lot: Lot, number: int, parent: Lot | None) -> dict[str, Any]:
    """How one thing is declared."""
    kinds: dict[str, dict[str, Any]] = {
        VPC: {"cidrBlock": cidr_of(number)},
        SUBNET: {"cidrBlock": cidr_of(number), "mapPublicIpOnLaunch": False},
        GROUP: {"ingress": [{"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "10.0.0.0/8"}]},
        INSTANCE: {"imageId": "ami-0abcdef1234567890", "instanceType": "t3.medium"},
        DATABASE: {"dbInstanceClass": "db.t4g.medium", "allocatedStorage": 20},
        SERVICE: {"taskDefinition": "web:3", "desiredCount": 2},
    }
    own = kinds.get(lot.kind, {})
    if parent is not None:
        return {PARENTS[lot.kind][1]: parent.name(lot.parent(number)), **own}
    return {"region": REGION, **own}


@dataclass(frozen=True, slots=True)
class Declared:
    """So many things of one kind, with the parents they need; ``more`` are parameters each of them declares besides."""

    kind: str
    count: int
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        """The scope all of them are in."""
        return Scope("aws", ACCOUNT, GLOBAL_PLACE if self.kind == BUCKET else REGION)

    @property
    def lot(self) -> Lot:
        """The things themselves."""
        return Lot(self.kind, self.count, 1000 if self.kind == SERVICE else 100)

    @property
    def parents(self) -> Lot | None:
        """What they live in."""
        if self.kind not in PARENTS:
            return None
        return Lot(PARENTS[self.kind][0], -(-self.count // self.lot.per_live_system), 1)

    @property
    def lots(self) -> list[Lot]:
        """Everything that must be in the cloud, parents first."""
        return [self.lot] if self.parents is None else [self.parents, self.lot]

    def work(self, *, settled: bool) -> ScopeWork:
        """The scope's work: never reconciled yet, or remembered as deployed and at rest."""
        return ScopeWork(scope=self.scope.key, version=1, components=list(self._components(settled=settled)))

    def declarations(self) -> dict[str, list[ComponentDeclaration]]:
        """The components as people declare them, by LiveSystem."""
        found: dict[str, list[ComponentDeclaration]] = {}
        for component in self._components(settled=False):
            found.setdefault(component.live_system_id, []).append(component.declaration)
        return found

    def _components(self, *, settled: bool) -> Iterator[WorkComponent]:
        for lot in self.lots:
            for number in range(lot.count):
                yield self._component(lot, number, settled=settled)

    def _component(self, lot: Lot, number: int, *, settled: bool) -> WorkComponent:
        name, owner = lot.name(number), lot.owner(number)
        above = self.parents if lot.kind == self.kind else None
        parent = above.name(lot.parent(number)) if above is not None else ""
        more = self.more if lot.kind == self.kind else {}
        memory = Observed()
        if settled:
            memory = Observed(stance=Stance.MANAGED, status=Status.ACTIVE, owner=owner, established=True)
        return WorkComponent(
            uid=sha256(f"{owner}/{name}".encode()).hexdigest()[:32],
            live_system_id=owner,
            environment="default",
            deployed_at=DEPLOYED_AT,
            generation=1,
            declaration=ComponentDeclaration(
                id=name,
                type=lot.kind,
                provider="aws",
                parameters={**parameters_of(lot, number, above), **more},
                dependencies=[parent] if parent else [],
            ),
            name=name,
            place=self.scope.place,
            parent=parent,
            declared_name=name,
            declared_place=self.scope.place,
            declared_parent=parent,
            memory=memory,
        )
