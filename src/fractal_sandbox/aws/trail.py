"""CloudTrail of the sandbox's AWS: every writing call as an event, in the form in which the real one records it.

Events are made when somebody looks them up. How they are asked for is in ``moto_fixes.cloudtrail``; reads are not
recorded.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.effects import named
from fractal_sandbox.aws.principals import Identity, identity_of
from fractal_sandbox.calls import Call, RecordedCall

__all__ = ["Trail", "TrailEvent"]

_MOST: Final = 10_000
_EVENT_NAMES: Final = {
    ("s3", "PutBucketLifecycleConfiguration"): "PutBucketLifecycle",
    ("s3", "PutPublicAccessBlock"): "PutBucketPublicAccessBlock",
    ("s3", "DeletePublicAccessBlock"): "DeleteBucketPublicAccessBlock",
}
_SOURCES: Final = {"s3control": "s3", "resourcegroupstaggingapi": "tagging"}
_TYPES: Final = {
    "bucket": "AWS::S3::Bucket",
    "db": "AWS::RDS::DBInstance",
    "ecs-cluster": "AWS::ECS::Cluster",
    "ecs-service": "AWS::ECS::Service",
    "eks-cluster": "AWS::EKS::Cluster",
    "instance": "AWS::EC2::Instance",
    "security-group": "AWS::EC2::SecurityGroup",
    "subnet": "AWS::EC2::Subnet",
    "vpc": "AWS::EC2::VPC",
}
# Lists of EC2, which are sets with items in an event: what the set is called, and what each item is.
_SETS: Final = {
    "Groups": ("groupSet", "groupId"),
    "InstanceIds": ("instancesSet", "instanceId"),
    "Resources": ("resourcesSet", "resourceId"),
    "Tags": ("tagSet", ""),
}
_REMOVED: Final = "<sensitiveDataRemoved>"
_HIDDEN: Final = {"MasterUserPassword": "****", "UserData": _REMOVED}


@dataclass(frozen=True)
class TrailEvent:
    """One call, when it was made, and by whom."""

    recorded: RecordedCall
    at: float
    identity: Identity
    id: str
    names: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        call = self.recorded.call
        return _EVENT_NAMES.get((call.service, call.operation), call.operation)

    @property
    def source(self) -> str:
        service = self.recorded.call.service
        return f"{_SOURCES.get(service, service)}.amazonaws.com"

    def fits(self, key: str, value: str) -> bool:
        """Return whether an attribute of the event has that value."""
        match key:
            case "ResourceName":
                return any(name == value for _, name in self.names)
            case "ResourceType":
                return any(kind == value for kind, _ in self.names)
            case "ReadOnly":
                return value == "false"
        known = {
            "EventId": self.id,
            "EventName": self.name,
            "Username": self.identity.name,
            "EventSource": self.source,
            "AccessKeyId": self.recorded.call.access_key,
        }
        return known.get(key) == value

    def shown(self) -> dict[str, Any]:
        """Return the event as an answer of `LookupEvents` shows it."""
        call = self.recorded.call
        at = datetime.fromtimestamp(int(self.at), UTC)
        whole = {
            "eventVersion": "1.11",
            "userIdentity": self.identity.as_json(call.access_key),
            "eventTime": f"{at:%Y-%m-%dT%H:%M:%SZ}",
            "eventSource": self.source,
            "eventName": self.name,
            "awsRegion": call.region,
            "sourceIPAddress": "127.0.0.1",
            "userAgent": call.user_agent,
            "requestParameters": _request(call.service, call.parameters),
            "responseElements": _response(call),
            "eventID": self.id,
            "readOnly": False,
            "eventType": "AwsApiCall",
            "managementEvent": True,
            "recipientAccountId": self.identity.account,
            "eventCategory": "Management",
            **({"errorCode": self.recorded.error} if self.recorded.error else {}),
        }
        return {
            "EventId": self.id,
            "EventName": self.name,
            "ReadOnly": "false",
            "AccessKeyId": call.access_key,
            "EventTime": at,
            "EventSource": self.source,
            "Username": self.identity.name,
            "Resources": [{"ResourceType": kind, "ResourceName": name} for kind, name in self.names],
            "CloudTrailEvent": json.dumps(whole, default=str),
        }


class Trail:
    """The newest writing calls. `delay`: after how many seconds one shows. `now`: the clock, which tests may set."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.now: Callable[[], float] = time.time
        self._events: deque[TrailEvent] = deque(maxlen=_MOST)

    def reset(self) -> None:
        """Forget all events, and go by the machine's clock again."""
        self._events.clear()
        self.delay, self.now = 0.0, time.time

    def record(self, recorded: RecordedCall) -> None:
        """Keep a writing call; what never reached the cloud is no event."""
        call = recorded.call
        if not recorded.effect and not recorded.error:
            return
        named_here = [(_TYPES[ref.kind], ref.id.rpartition("/")[2]) for ref in named(call) if ref.kind in _TYPES]
        made = [one for one in call.resource_ids if one not in {ref.id for ref in named(call)}]
        by_arn = [("", one) for one in _arns(call.parameters)]
        names = dict.fromkeys([*named_here, *(("", one) for one in made), *by_arn])
        event = TrailEvent(recorded, self.now(), identity_of(call.access_key), str(uuid.uuid4()), tuple(names))
        self._events.append(event)

    def events(self, region: str, start: float | None, end: float | None) -> list[TrailEvent]:
        """Return what shows by now of a region of this account, the newest first; times are seconds since the epoch."""
        latest = self.now() - self.delay
        return [
            event
            for event in reversed(list(self._events))
            if event.recorded.call.region == region
            and event.identity.account == accounts.current()
            and event.at <= latest
            and (start is None or int(event.at) >= int(start))
            and (end is None or int(event.at) <= end)
        ]


def _response(call: Call) -> dict[str, Any] | None:
    """Return what was answered, where that alone says which machine it was about: calls that name an association.

    In the members of EC2's own answer (`IamInstanceProfileAssociation`).
    """
    if call.service != "ec2" or "IamInstanceProfile" not in call.operation or not call.resource_ids:
        return None
    return {f"{call.operation}Response": {"iamInstanceProfileAssociation": {"instanceId": call.resource_ids[0]}}}


def _arns(parameters: Mapping[str, Any]) -> list[str]:
    """Return the ARNs that a request names at its first level."""
    found = [one for value in parameters.values() for one in (value if isinstance(value, list) else [value])]
    return [one for one in found if isinstance(one, str) and one.startswith("arn:")]


def _request(service: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a call as events spell them."""
    if service == "s3":
        kept = {name: value for name, value in parameters.items() if name != "Bucket"}
        bucket = {"bucketName": parameters["Bucket"]} if "Bucket" in parameters else {}
        return {**bucket, **kept}
    hidden = {"Value": _REMOVED} if "Attribute" in parameters else {}  # what an attribute is set to by its name
    return dict(_member(service, name, value) for name, value in {**parameters, **hidden}.items())


def _member(service: str, name: str, value: Any) -> tuple[str, Any]:
    spelled = name[:1].lower() + name[1:]
    if name in _HIDDEN:
        return spelled, _HIDDEN[name]
    if isinstance(value, Mapping):
        return spelled, dict(_member(service, inner, one) for inner, one in value.items())
    if not isinstance(value, list):
        return spelled, value
    items = [_member(service, "", one)[1] for one in value]
    if service != "ec2":
        return spelled, items
    called, key = _SETS.get(name, (spelled, ""))
    return called, {"items": [{key: one} if key and isinstance(one, str) else one for one in items]}
