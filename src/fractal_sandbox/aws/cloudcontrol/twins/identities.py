"""Roles, managed policies and instance profiles of IAM. Schemas of the last two have no tags; IAM's own calls do."""

from __future__ import annotations

import json
import uuid
from typing import Any, Final
from urllib.parse import unquote

from fractal_sandbox.aws.cloudcontrol.twins.registry import Twin
from fractal_sandbox.aws.cloudcontrol.twins.service import Model, ServiceTwin, changed, pairs
from fractal_sandbox.aws.policies_of_aws import know
from fractal_sandbox.aws.resources import backend

__all__ = ["TWINS"]

_MOST_VERSIONS: Final = 5  # of a policy: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html


class _OfIam(ServiceTwin):
    service = "iam"

    def backend(self, region: str) -> Any:
        del region
        return backend("iam", "aws")


class _Roles(_OfIam):
    type_name = "AWS::IAM::Role"
    knows = frozenset(
        {"RoleName", "RoleId", "Arn", "Path", "AssumeRolePolicyDocument", "ManagedPolicyArns", "PermissionsBoundary"}
    )

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        name = model.get("RoleName") or f"role-{uuid.uuid4().hex[:12]}"
        self.ask(
            region,
            "CreateRole",
            RoleName=name,
            Path=model.get("Path"),
            AssumeRolePolicyDocument=_text(model["AssumeRolePolicyDocument"]),
            Description=model.get("Description"),
            MaxSessionDuration=model.get("MaxSessionDuration"),
            PermissionsBoundary=model.get("PermissionsBoundary"),
            Tags=pairs(tags) or None,
        )
        self._attach(name, [], model.get("ManagedPolicyArns") or [], region)
        return self.describe(name, region)

    def describe(self, identifier: str, region: str) -> Model:
        role = self.ask(region, "GetRole", RoleName=identifier)["Role"]
        attached = self.ask(region, "ListAttachedRolePolicies", RoleName=identifier)["AttachedPolicies"]
        found = {name: role[name] for name in ("RoleName", "RoleId", "Arn", "Path")}
        document = role["AssumeRolePolicyDocument"]
        found["AssumeRolePolicyDocument"] = json.loads(unquote(document)) if isinstance(document, str) else document
        if attached:
            found["ManagedPolicyArns"] = [one["PolicyArn"] for one in attached]
        bound = (role.get("PermissionsBoundary") or {}).get("PermissionsBoundaryArn")
        return {**found, "PermissionsBoundary": bound} if bound else found

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        wanted = changed(before, after, ("AssumeRolePolicyDocument", "ManagedPolicyArns", "PermissionsBoundary"))
        if "PermissionsBoundary" in wanted:
            self._bind(identifier, wanted["PermissionsBoundary"], region)
        if wanted.get("AssumeRolePolicyDocument"):
            text = _text(wanted["AssumeRolePolicyDocument"])
            self.ask(region, "UpdateAssumeRolePolicy", RoleName=identifier, PolicyDocument=text)
        if "ManagedPolicyArns" in wanted:
            old, new = before.get("ManagedPolicyArns") or [], wanted["ManagedPolicyArns"] or []
            self._attach(identifier, old, new, region)

    def _bind(self, name: str, bound: str | None, region: str) -> None:
        if bound:
            self.ask(region, "PutRolePermissionsBoundary", RoleName=name, PermissionsBoundary=bound)
        else:
            self.ask(region, "DeleteRolePermissionsBoundary", RoleName=name)

    def remove(self, identifier: str, region: str) -> None:
        for one in self.ask(region, "ListAttachedRolePolicies", RoleName=identifier)["AttachedPolicies"]:
            self.ask(region, "DetachRolePolicy", RoleName=identifier, PolicyArn=one["PolicyArn"])
        self.ask(region, "DeleteRole", RoleName=identifier)

    def identifiers(self, region: str) -> list[str]:
        return [role.name for role in list(self.backend(region).roles.values())]

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        role = next((one for one in list(self.backend(region).roles.values()) if one.name == identifier), None)
        return None if role is None else _tags(role.tags)

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        if gone:
            self.ask(region, "UntagRole", RoleName=identifier, TagKeys=gone)
        if added:
            self.ask(region, "TagRole", RoleName=identifier, Tags=pairs(added))

    def identifier_in(self, arn: str) -> str | None:
        return arn.rpartition("/")[2] if ":role/" in arn else None

    def _attach(self, name: str, old: list[str], new: list[str], region: str) -> None:
        for arn in old:
            if arn not in new:
                self.ask(region, "DetachRolePolicy", RoleName=name, PolicyArn=arn)
        for arn in new:
            if arn not in old:
                know(arn)
                self.ask(region, "AttachRolePolicy", RoleName=name, PolicyArn=arn)


class _Policies(_OfIam):
    type_name = "AWS::IAM::ManagedPolicy"
    knows = frozenset({"PolicyArn", "PolicyId", "ManagedPolicyName", "Path", "DefaultVersionId", "PolicyDocument"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        del tags  # which the create call of this type cannot carry
        name = model.get("ManagedPolicyName") or f"policy-{uuid.uuid4().hex[:12]}"
        made = self.ask(
            region,
            "CreatePolicy",
            PolicyName=name,
            Path=model.get("Path"),
            Description=model.get("Description"),
            PolicyDocument=_text(model["PolicyDocument"]),
        )["Policy"]
        for role in model.get("Roles") or []:
            self.ask(region, "AttachRolePolicy", RoleName=role, PolicyArn=made["Arn"])
        return self.describe(made["Arn"], region)

    def describe(self, identifier: str, region: str) -> Model:
        policy = self.ask(region, "GetPolicy", PolicyArn=identifier)["Policy"]
        version = policy["DefaultVersionId"]
        shown = self.ask(region, "GetPolicyVersion", PolicyArn=identifier, VersionId=version)["PolicyVersion"]
        document = shown["Document"]
        return {
            "PolicyArn": identifier,
            "PolicyId": policy["PolicyId"],
            "ManagedPolicyName": policy["PolicyName"],
            "Path": policy["Path"],
            "DefaultVersionId": version,
            "PolicyDocument": json.loads(unquote(document)) if isinstance(document, str) else document,
        }

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        wanted = changed(before, after, ("PolicyDocument", "Roles"))
        if wanted.get("PolicyDocument"):
            text = _text(wanted["PolicyDocument"])
            self._drop_oldest_version(identifier, region)
            self.ask(region, "CreatePolicyVersion", PolicyArn=identifier, PolicyDocument=text, SetAsDefault=True)
        if "Roles" in wanted:
            old, new = set(before.get("Roles") or []), set(wanted["Roles"] or [])
            for role in sorted(old - new):
                self.ask(region, "DetachRolePolicy", RoleName=role, PolicyArn=identifier)
            for role in sorted(new - old):
                self.ask(region, "AttachRolePolicy", RoleName=role, PolicyArn=identifier)

    def _drop_oldest_version(self, identifier: str, region: str) -> None:
        """Drop the oldest version where no more fit: what the type's handler asks `iam:DeletePolicyVersion` for."""
        versions = self.ask(region, "ListPolicyVersions", PolicyArn=identifier)["Versions"]
        old = [one["VersionId"] for one in versions if not one["IsDefaultVersion"]]
        if len(versions) >= _MOST_VERSIONS:
            oldest = min(old, key=lambda version: int(version.removeprefix("v")))
            self.ask(region, "DeletePolicyVersion", PolicyArn=identifier, VersionId=oldest)

    def remove(self, identifier: str, region: str) -> None:
        for one in self.ask(region, "ListEntitiesForPolicy", PolicyArn=identifier).get("PolicyRoles") or []:
            self.ask(region, "DetachRolePolicy", RoleName=one["RoleName"], PolicyArn=identifier)
        for one in self.ask(region, "ListPolicyVersions", PolicyArn=identifier)["Versions"]:
            if not one["IsDefaultVersion"]:
                self.ask(region, "DeletePolicyVersion", PolicyArn=identifier, VersionId=one["VersionId"])
        self.ask(region, "DeletePolicy", PolicyArn=identifier)

    def identifiers(self, region: str) -> list[str]:
        return [arn for arn in list(self.backend(region).managed_policies) if not arn.startswith("arn:aws:iam::aws:")]

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        policy = self.backend(region).managed_policies.get(identifier)
        return None if policy is None else _tags(policy.tags)

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        raise NotImplementedError("the schema has no tags, so that nothing but IAM's own calls writes them")

    def identifier_in(self, arn: str) -> str | None:
        return arn if ":policy/" in arn else None


class _Profiles(_OfIam):
    type_name = "AWS::IAM::InstanceProfile"
    knows = frozenset({"InstanceProfileName", "Arn", "Path", "Roles"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        del tags  # which the create call of this type cannot carry
        name = model.get("InstanceProfileName") or f"instance-profile-{uuid.uuid4().hex[:12]}"
        self.ask(region, "CreateInstanceProfile", InstanceProfileName=name, Path=model.get("Path"))
        self._hold(name, [], model.get("Roles") or [], region)
        return self.describe(name, region)

    def describe(self, identifier: str, region: str) -> Model:
        found = self.ask(region, "GetInstanceProfile", InstanceProfileName=identifier)["InstanceProfile"]
        roles = [one["RoleName"] for one in found.get("Roles") or []]
        return {"InstanceProfileName": identifier, "Arn": found["Arn"], "Path": found["Path"], "Roles": roles}

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        if changed(before, after, ("Roles",)):
            self._hold(identifier, before.get("Roles") or [], after.get("Roles") or [], region)

    def remove(self, identifier: str, region: str) -> None:
        self._hold(identifier, self.describe(identifier, region)["Roles"], [], region)
        self.ask(region, "DeleteInstanceProfile", InstanceProfileName=identifier)

    def identifiers(self, region: str) -> list[str]:
        return [one.name for one in list(self.backend(region).instance_profiles.values())]

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        held = list(self.backend(region).instance_profiles.values())
        profile = next((one for one in held if one.name == identifier), None)
        return None if profile is None else _tags(profile.tags)

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        raise NotImplementedError("the schema has no tags, so that nothing but IAM's own calls writes them")

    def identifier_in(self, arn: str) -> str | None:
        return arn.rpartition("/")[2] if ":instance-profile/" in arn else None

    def _hold(self, name: str, old: list[str], new: list[str], region: str) -> None:
        for role in old:
            if role not in new:
                self.ask(region, "RemoveRoleFromInstanceProfile", InstanceProfileName=name, RoleName=role)
        for role in new:
            if role not in old:
                self.ask(region, "AddRoleToInstanceProfile", InstanceProfileName=name, RoleName=role)


def _tags(kept: Any) -> dict[str, str]:
    """moto keeps the tags of IAM in lists, or in maps, whose keys it spells in small letters where they hold pairs."""
    if not isinstance(kept, dict):
        return {one["Key"]: one["Value"] for one in kept or []}
    pairs = (one if isinstance(one, dict) else {"Key": key, "Value": str(one)} for key, one in kept.items())
    return {pair["Key"]: pair["Value"] for pair in pairs}


def _text(document: Any) -> str:
    return document if isinstance(document, str) else json.dumps(document)


TWINS: Final[dict[str, Twin]] = {one.type_name: one for one in (_Roles(), _Policies(), _Profiles())}
