"""Log groups of CloudWatch Logs and keys of KMS: one world with `aws logs` and `aws kms`."""

from __future__ import annotations

import json
import uuid
from typing import Any, Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.cloudcontrol.twins.registry import Twin
from fractal_sandbox.aws.cloudcontrol.twins.service import Model, ServiceTwin, changed, pairs

__all__ = ["TWINS"]

_KEPT_BY_KMS: Final = ("Description", "KeySpec", "KeyUsage", "MultiRegion", "Origin")


class _LogGroups(ServiceTwin):
    type_name = "AWS::Logs::LogGroup"
    service = "logs"
    knows = frozenset({"LogGroupName", "Arn", "RetentionInDays", "KmsKeyId"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        name = model.get("LogGroupName") or f"log-group-{uuid.uuid4().hex[:12]}"
        self.ask(region, "CreateLogGroup", logGroupName=name, kmsKeyId=model.get("KmsKeyId"), tags=tags or None)
        self._keep_for(name, model.get("RetentionInDays"), region)
        return {"LogGroupName": name}

    def describe(self, identifier: str, region: str) -> Model:
        groups = self.ask(region, "DescribeLogGroups", logGroupNamePrefix=identifier)["logGroups"]
        group = next(one for one in groups if one["logGroupName"] == identifier)
        found = {"LogGroupName": identifier, "Arn": group["arn"]}
        for name, key in (("RetentionInDays", "retentionInDays"), ("KmsKeyId", "kmsKeyId")):
            if group.get(key):
                found[name] = group[key]
        return found

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        wanted = changed(before, after, ("RetentionInDays",))
        if wanted:
            self._keep_for(identifier, wanted["RetentionInDays"], region)

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeleteLogGroup", logGroupName=identifier)

    def identifiers(self, region: str) -> list[str]:
        return list(self.backend(region).groups)

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        if identifier not in self.backend(region).groups:
            return None
        return dict(self.backend(region).list_tags_log_group(identifier))

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        if gone:
            self.ask(region, "UntagLogGroup", logGroupName=identifier, tags=gone)
        if added:
            self.ask(region, "TagLogGroup", logGroupName=identifier, tags=added)

    def identifier_in(self, arn: str) -> str | None:
        before, _, name = arn.partition(":log-group:")
        return name.removesuffix(":*") if name and before.startswith("arn:") else None

    def _keep_for(self, name: str, days: int | None, region: str) -> None:
        if days is None:
            if self.backend(region).groups[name].retention_in_days:
                self.ask(region, "DeleteRetentionPolicy", logGroupName=name)
        else:
            self.ask(region, "PutRetentionPolicy", logGroupName=name, retentionInDays=days)


class _Keys(ServiceTwin):
    type_name = "AWS::KMS::Key"
    service = "kms"
    knows = frozenset({*_KEPT_BY_KMS, "KeyId", "Arn", "Enabled", "EnableKeyRotation", "KeyPolicy"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        given: Model = {name: model.get(name) for name in _KEPT_BY_KMS}
        if "KeyPolicy" in model:
            given["Policy"] = _text(model["KeyPolicy"])
        made = self.ask(region, "CreateKey", Tags=pairs(tags, "TagKey", "TagValue") or None, **given)["KeyMetadata"]
        if model.get("EnableKeyRotation"):
            self.ask(region, "EnableKeyRotation", KeyId=made["KeyId"])
        return {"KeyId": made["KeyId"], "Arn": made["Arn"]}

    def describe(self, identifier: str, region: str) -> Model:
        found = self.ask(region, "DescribeKey", KeyId=identifier)["KeyMetadata"]
        policy = self.ask(region, "GetKeyPolicy", KeyId=identifier, PolicyName="default")["Policy"]
        rotates = self.ask(region, "GetKeyRotationStatus", KeyId=identifier)["KeyRotationEnabled"]
        kept = {name: found[name] for name in _KEPT_BY_KMS if name in found}
        return {
            **kept,
            "KeyId": found["KeyId"],
            "Arn": found["Arn"],
            "Enabled": found["Enabled"],
            "EnableKeyRotation": rotates,
            "KeyPolicy": json.loads(policy),
        }

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        wanted = changed(before, after, ("Description", "Enabled", "EnableKeyRotation", "KeyPolicy"))
        if "Description" in wanted:
            self.ask(region, "UpdateKeyDescription", KeyId=identifier, Description=wanted["Description"] or "")
        if "Enabled" in wanted:
            self.ask(region, "DisableKey" if wanted["Enabled"] is False else "EnableKey", KeyId=identifier)
        if "EnableKeyRotation" in wanted:
            verb = "EnableKeyRotation" if wanted["EnableKeyRotation"] else "DisableKeyRotation"
            self.ask(region, verb, KeyId=identifier)
        if wanted.get("KeyPolicy"):
            text = _text(wanted["KeyPolicy"])
            self.ask(region, "PutKeyPolicy", KeyId=identifier, PolicyName="default", Policy=text)

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "ScheduleKeyDeletion", KeyId=identifier, PendingWindowInDays=30)

    def identifiers(self, region: str) -> list[str]:
        return [key for key, one in list(self.backend(region).keys.items()) if one.key_state != "PendingDeletion"]

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        key = self.backend(region).keys.get(identifier)
        if key is None or key.key_state == "PendingDeletion":  # which Cloud Control no longer finds
            return None
        listed = self.ask(region, "ListResourceTags", KeyId=identifier).get("Tags") or []
        return {one["TagKey"]: one["TagValue"] for one in listed}

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        if gone:
            self.ask(region, "UntagResource", KeyId=identifier, TagKeys=gone)
        if added:
            self.ask(region, "TagResource", KeyId=identifier, Tags=pairs(added, "TagKey", "TagValue"))

    def identifier_in(self, arn: str) -> str | None:
        rest = arn.split(":", 5)[5]
        return rest.removeprefix("key/") if rest.startswith("key/") and accounts.current() in arn else None


def _text(document: Any) -> str:
    return document if isinstance(document, str) else json.dumps(document)


TWINS: Final[dict[str, Twin]] = {one.type_name: one for one in (_LogGroups(), _Keys())}
