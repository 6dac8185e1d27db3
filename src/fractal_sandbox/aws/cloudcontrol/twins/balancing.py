"""Load balancers, target groups and listeners of ELBv2: that they exist, and their tags.

All else of them Cloud Control keeps.
"""

from __future__ import annotations

import importlib
import uuid
from abc import abstractmethod
from typing import Any, ClassVar, Final

from fractal_sandbox.aws.cloudcontrol.twins.registry import Refused, Twin
from fractal_sandbox.aws.cloudcontrol.twins.service import Model, ServiceTwin, pairs
from fractal_sandbox.aws.resources import backend

__all__ = ["TWINS"]


def _models() -> Any:
    """What moto's resources of ELBv2 are; its calls would ask for more than Cloud Control's schemas do."""
    return importlib.import_module("moto.elbv2.models")


class _Balancing(ServiceTwin):
    """A type of ELBv2: its ARN is its identifier, and says of which type it is."""

    service = "elbv2"
    mark: ClassVar[str]

    @abstractmethod
    def held(self, region: str) -> dict[str, Any]:
        """What moto holds of the type, by ARN."""

    def identifiers(self, region: str) -> list[str]:
        return list(self.held(region))

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        if identifier not in self.held(region):
            return None
        return dict(self.backend(region).tagging_service.get_tag_dict_for_resource(identifier))

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        tagging = self.backend(region).tagging_service
        tagging.untag_resource_using_names(identifier, gone)
        tagging.tag_resource(identifier, pairs(added))

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        """Moto gets no change but that of tags."""

    def identifier_in(self, arn: str) -> str | None:
        return arn if arn.split(":", 5)[5].startswith(self.mark) else None

    def refuse_second(self, name: str, region: str) -> None:
        if any(one.name == name for one in self.held(region).values()):
            raise Refused("AlreadyExists", f"{self.type_name} {name} already exists")


class _LoadBalancers(_Balancing):
    type_name = "AWS::ElasticLoadBalancingV2::LoadBalancer"
    mark = "loadbalancer/"
    knows = frozenset({"LoadBalancerArn"})

    def held(self, region: str) -> dict[str, Any]:
        found: dict[str, Any] = self.backend(region).load_balancers
        return found

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        name = str(model.get("Name") or f"lb-{uuid.uuid4().hex[:12]}")
        self.refuse_second(name, region)
        kind = str(model.get("Type") or "application")
        elb, known = self.backend(region), backend("ec2", region)
        arn = str(_models().make_arn_for_load_balancer(elb.account_id, uuid.uuid4().hex[:16], name, region))
        arn = arn.replace("/app/", {"network": "/net/", "gateway": "/gwy/"}.get(kind, "/app/"))
        subnets = [zones[one] for one in model.get("Subnets") or () for zones in known.subnets.values() if one in zones]
        address = f"{name}-{uuid.uuid4().int % 10**9}.{region}.elb.amazonaws.com"
        self.held(region)[arn] = _models().FakeLoadBalancer(
            name=name,
            security_groups=list(model.get("SecurityGroups") or ()),
            subnets=subnets,
            vpc_id=subnets[0].vpc_id if subnets else "",
            arn=arn,
            dns_name=address,
            state="active",
            scheme=str(model.get("Scheme") or "internet-facing"),
            loadbalancer_type=kind,
            ip_address_type=str(model.get("IpAddressType") or "ipv4"),
        )
        elb.tagging_service.tag_resource(arn, pairs(tags))
        return {
            "Name": name,
            "LoadBalancerArn": arn,
            "LoadBalancerName": name,
            "LoadBalancerFullName": arn.partition("loadbalancer/")[2],
            "CanonicalHostedZoneID": self.held(region)[arn].canonical_hosted_zone_id,
            "DNSName": address,
        }

    def describe(self, identifier: str, region: str) -> Model:
        del region
        return {"LoadBalancerArn": identifier}

    def remove(self, identifier: str, region: str) -> None:
        self.held(region).pop(identifier)  # its listeners go with it


class _TargetGroups(_Balancing):
    type_name = "AWS::ElasticLoadBalancingV2::TargetGroup"
    mark = "targetgroup/"
    knows = frozenset({"TargetGroupArn"})

    def held(self, region: str) -> dict[str, Any]:
        found: dict[str, Any] = self.backend(region).target_groups
        return found

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        name = str(model.get("Name") or f"tg-{uuid.uuid4().hex[:12]}")
        self.refuse_second(name, region)
        elb = self.backend(region)
        made = _models().FakeTargetGroup(
            name=name,
            account_id=elb.account_id,
            region_name=region,
            vpc_id=str(model.get("VpcId") or ""),
            protocol=str(model.get("Protocol") or "HTTP"),
            port=str(model.get("Port") or 80),
            healthcheck_path=model.get("HealthCheckPath"),
            target_type=model.get("TargetType"),
        )
        self.held(region)[made.arn] = made
        elb.tagging_service.tag_resource(made.arn, pairs(tags))
        return {
            "Name": name,
            "TargetGroupArn": made.arn,
            "TargetGroupName": name,
            "TargetGroupFullName": made.arn.rpartition(":")[2],
            "LoadBalancerArns": [],
        }

    def describe(self, identifier: str, region: str) -> Model:
        del region
        return {"TargetGroupArn": identifier}

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeleteTargetGroup", TargetGroupArn=identifier)


class _Listeners(_Balancing):
    type_name = "AWS::ElasticLoadBalancingV2::Listener"
    mark = "listener/"
    is_listed = False
    knows = frozenset({"ListenerArn"})

    def held(self, region: str) -> dict[str, Any]:
        balancers = self.backend(region).load_balancers.values()
        return {arn: listener for balancer in balancers for arn, listener in balancer.listeners.items()}

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        elb, above = self.backend(region), str(model.get("LoadBalancerArn"))
        balancer = elb.load_balancers.get(above)
        if balancer is None:
            raise Refused("NotFound", f"One or more load balancers not found: {above}")
        port = str(model.get("Port") or "")
        if port and any(one.port == port for one in balancer.listeners.values()):
            raise Refused("AlreadyExists", f"A listener already exists on port {port} of this load balancer")
        arn = f"{above.replace(':loadbalancer/', ':listener/')}/{uuid.uuid4().hex[:16]}"
        actions = [_models().FakeAction(dict(one)) for one in model.get("DefaultActions") or ()]
        protocol, policy = str(model.get("Protocol") or ""), str(model.get("SslPolicy") or "")
        balancer.listeners[arn] = _models().FakeListener(above, arn, protocol, port, policy, None, actions, None)
        elb.tagging_service.tag_resource(arn, pairs(tags))
        return {"ListenerArn": arn}

    def describe(self, identifier: str, region: str) -> Model:
        del region
        return {"ListenerArn": identifier}

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeleteListener", ListenerArn=identifier)


TWINS: Final[dict[str, Twin]] = {one.type_name: one for one in (_LoadBalancers(), _TargetGroups(), _Listeners())}
