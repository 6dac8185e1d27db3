"""Task definitions of ECS, subnet and parameter groups of RDS: what hand-written services and databases refer to."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.cloudcontrol.twins.registry import Refused, Twin
from fractal_sandbox.aws.cloudcontrol.twins.service import Model, ServiceTwin, changed, pairs

__all__ = ["TWINS"]


def _camel(value: Any) -> Any:
    """Return properties as ECS's own calls name them."""
    if isinstance(value, dict):
        return {name[:1].lower() + name[1:]: _camel(inner) for name, inner in value.items()}
    return [_camel(one) for one in value] if isinstance(value, list) else value


class _TaskDefinitions(ServiceTwin):
    type_name = "AWS::ECS::TaskDefinition"
    service = "ecs"
    knows = frozenset({"TaskDefinitionArn"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        given = _camel({name: value for name, value in model.items() if name != "Tags"})
        given.setdefault("family", f"task-definition-{uuid.uuid4().hex[:12]}")
        given.setdefault("containerDefinitions", [])
        made = self.ask(region, "RegisterTaskDefinition", tags=pairs(tags, "key", "value") or None, **given)
        return {"Family": given["family"], "TaskDefinitionArn": made["taskDefinition"]["taskDefinitionArn"]}

    def describe(self, identifier: str, region: str) -> Model:
        del region
        return {"TaskDefinitionArn": identifier}

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        """All but the tags is create-only: a changed task definition is another one."""

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeregisterTaskDefinition", taskDefinition=identifier)

    def identifiers(self, region: str) -> list[str]:
        return [str(arn) for arn in self.ask(region, "ListTaskDefinitions")["taskDefinitionArns"]]

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        try:
            found = self.ask(region, "DescribeTaskDefinition", taskDefinition=identifier, include=["TAGS"])
        except Refused:
            return None
        if found["taskDefinition"].get("status") == "INACTIVE":
            return None
        return {one["key"]: one["value"] for one in found.get("tags") or []}

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        if gone:
            self.ask(region, "UntagResource", resourceArn=identifier, tagKeys=gone)
        if added:
            self.ask(region, "TagResource", resourceArn=identifier, tags=pairs(added, "key", "value"))

    def identifier_in(self, arn: str) -> str | None:
        return arn if ":task-definition/" in arn else None


class _GroupsOfRds(ServiceTwin):
    """A group of RDS: its name is its identifier, in small letters."""

    service = "rds"
    noun: ClassVar[str]
    name: ClassVar[str]
    create_call: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        name = str(model.get(self.name) or f"group-{uuid.uuid4().hex[:12]}").lower()
        if self.tags(name, region) is not None:
            raise Refused("AlreadyExists", f"{self.name} {name} already exists")
        given = {self.name: name, **self.given(model)}
        self.ask(region, self.create_call, Tags=pairs(tags) or None, **given)
        return self.describe(name, region)

    def given(self, model: Model) -> Model:
        return {name: model.get(name) for name in self.fields}

    def describe(self, identifier: str, region: str) -> Model:
        return {self.name: identifier, self.name.replace("Name", "Arn"): self._arn(identifier, region)}

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        if self.noun == "subgrp" and changed(before, after, ("SubnetIds",)):
            given = {self.name: identifier, "SubnetIds": after.get("SubnetIds")}
            self.ask(region, "ModifyDBSubnetGroup", **given)

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, self.create_call.replace("Create", "Delete"), **{self.name: identifier})

    def identifiers(self, region: str) -> list[str]:
        listed = self.ask(region, self.create_call.replace("Create", "Describe") + "s")
        groups = next(value for name, value in listed.items() if name.endswith("Groups"))
        return [str(one[self.name]) for one in groups]

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        if identifier not in self.identifiers(region):
            return None
        found = self.ask(region, "ListTagsForResource", ResourceName=self._arn(identifier, region))
        return {one["Key"]: one["Value"] for one in found.get("TagList") or []}

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        arn = self._arn(identifier, region)
        if gone:
            self.ask(region, "RemoveTagsFromResource", ResourceName=arn, TagKeys=gone)
        if added:
            self.ask(region, "AddTagsToResource", ResourceName=arn, Tags=pairs(added))

    def identifier_in(self, arn: str) -> str | None:
        kind, _, name = arn.split(":", 5)[5].partition(":")
        return name if kind == self.noun else None

    def _arn(self, name: str, region: str) -> str:
        return f"arn:aws:rds:{region}:{accounts.current()}:{self.noun}:{name}"


class _SubnetGroups(_GroupsOfRds):
    type_name = "AWS::RDS::DBSubnetGroup"
    noun, name, create_call = "subgrp", "DBSubnetGroupName", "CreateDBSubnetGroup"
    fields = ("DBSubnetGroupDescription", "SubnetIds")
    knows = frozenset({"DBSubnetGroupName", "DBSubnetGroupArn"})


class _ParameterGroups(_GroupsOfRds):
    type_name = "AWS::RDS::DBParameterGroup"
    noun, name, create_call = "pg", "DBParameterGroupName", "CreateDBParameterGroup"
    fields = ("Description",)
    knows = frozenset({"DBParameterGroupName", "DBParameterGroupArn"})

    def given(self, model: Model) -> Model:
        return {"Description": model.get("Description"), "DBParameterGroupFamily": model.get("Family")}


TWINS: Final[dict[str, Twin]] = {
    one.type_name: one for one in (_TaskDefinitions(), _SubnetGroups(), _ParameterGroups())
}
