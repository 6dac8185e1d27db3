"""Security groups: found by their name in their VPC. Their rules are read beside them, and written one by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import field_serializer

from fractal_cloud.model.component import Reference, parameter
from fractal_cloud.model.errors import NotFound, Overtaken
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.aruba import security_rules
from fractal_cloud.offers.aruba.calls import Aruba, Item, address
from fractal_cloud.offers.aruba.resources import ArubaComponent, ArubaOffer
from fractal_cloud.offers.aruba.security_rules import DYING, ArubaSecurityRule
from fractal_cloud.offers.aruba.tags import glass, mapping
from fractal_cloud.offers.aruba.vpc import ArubaVpc
from fractal_cloud.offers.offer import Wanted

RULES = "securityRules"


class ArubaSecurityGroup(ArubaComponent):
    """What machines in a VPC let in and out."""

    type = "NetworkAndCompute.IaaS.ArubaSecurityGroup"

    vpc: Reference[ArubaVpc] = parameter(
        immutable=True,
        reference=(ArubaVpc.type, "vpcUri"),
        description="The VPC it is a part of; it lies in its location and project.",
    )
    rules: list[ArubaSecurityRule] | None = parameter(
        default=None,
        compare="unordered",
        swept=True,
        description="All its rules. They are made and deleted one by one, the missing ones first.",
    )

    @field_serializer("rules")
    def _in_one_spelling(self, rules: list[ArubaSecurityRule] | None) -> Any:
        return None if rules is None else [rule.flat() for rule in rules]


class ArubaSecurityGroupOffer(ArubaOffer[ArubaSecurityGroup]):
    """How security groups are read and changed."""

    component = ArubaSecurityGroup
    title = "Security group"
    service = "network"
    parent = "vpc"
    reads_by_parent = True
    read_needs_parent = True
    collection = "securityGroups"
    rights = ("Aruba.Network/securityGroups", "Aruba.Network/securityRules")
    echoed = ("default",)
    outputs: ClassVar[Mapping[str, str]] = {
        "securityGroupUri": "address of the group, by which others refer to it",
        "id": "id of the group",
        "vpcUri": "address of its VPC",
        "location": "region it lies in",
        "projectId": "id of its project",
        "state": "its state in Aruba's words",
    }
    glass = glass(echoed)

    def actual(self, item: Item) -> dict[str, Any]:
        """What it is a part of."""
        return {"vpc": address(item).rsplit("/", 2)[0]}

    def shown(self, item: Item) -> dict[str, Any]:
        """Its address."""
        uri = address(item)
        return {"securityGroupUri": uri, "vpcUri": uri.rsplit("/", 2)[0]}

    def properties(self, wanted: Wanted[ArubaSecurityGroup]) -> Item:
        """Empty: rules are parts of their own, and come afterwards."""
        del wanted
        return {"default": False}

    def sweep(self, cloud: Aruba, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """Its rules: one list."""
        del names
        return {"rules": sorted((security_rules.flat(one) for one in _rules(cloud, sighting)), key=str)}

    def swept(self, cloud: Aruba, sighting: Sighting, names: Collection[str]) -> Sighting:
        """The group with its rules."""
        return replace(sighting, actual={**sighting.actual, **self.sweep(cloud, sighting, names)})

    def update(
        self, cloud: Aruba, sighting: Sighting, wanted: Wanted[ArubaSecurityGroup], drift: Collection[str]
    ) -> None:
        """Make the next missing rule, then delete the next surplus one."""
        if "rules" not in drift:
            return
        declared = [rule.flat() for rule in wanted.component.rules or ()]
        here = _rules(cloud, sighting)
        known = [security_rules.flat(one) for one in here]
        missing = [rule for rule in declared if rule not in known]
        surplus = [one for one, rule in zip(here, known, strict=True) if rule not in declared]
        surplus += [one for number, one in enumerate(here) if known[number] in known[:number]]  # the same rule twice
        self._raise_if_tags_changed(cloud, sighting)
        if missing:
            location = str(sighting.outputs["location"])
            cloud.write("POST", f"{sighting.resource_id}/{RULES}", security_rules.body(missing[0], location))
        elif surplus:
            try:
                cloud.write("DELETE", address(surplus[0]))
            except NotFound:
                return

    def _raise_if_tags_changed(self, cloud: Aruba, sighting: Sighting) -> None:
        """Check, right before a write of a rule, that nobody took the group out of management since it was read."""
        item = cloud.find(sighting.resource_id)
        if item is None or mapping(item["metadata"].get("tags") or []) != sighting.tags:
            raise Overtaken("somebody changed its tags a moment ago: nothing was written, and it is read again")


def _rules(cloud: Aruba, sighting: Sighting) -> list[Item]:
    listed = cloud.list(f"{sighting.resource_id}/{RULES}")
    return [one for one in listed if one["status"]["state"] not in DYING]
