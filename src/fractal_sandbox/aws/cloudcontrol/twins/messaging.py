"""Queues of SQS and topics of SNS: one world with `aws sqs` and `aws sns`, properties and tags alike."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.cloudcontrol.twins.registry import Twin
from fractal_sandbox.aws.cloudcontrol.twins.service import Model, ServiceTwin, changed, pairs

__all__ = ["TWINS"]

_QUEUE_NUMBERS: Final = (
    "DelaySeconds",
    "KmsDataKeyReusePeriodSeconds",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "VisibilityTimeout",
)
_QUEUE_FLAGS: Final = ("ContentBasedDeduplication", "FifoQueue", "SqsManagedSseEnabled")
_QUEUE_TEXTS: Final = ("DeduplicationScope", "FifoThroughputLimit", "KmsMasterKeyId")
_QUEUE_DOCUMENTS: Final = ("RedriveAllowPolicy", "RedrivePolicy")
_QUEUE: Final = (*_QUEUE_NUMBERS, *_QUEUE_FLAGS, *_QUEUE_TEXTS, *_QUEUE_DOCUMENTS)
_TOPIC_FLAGS: Final = ("ContentBasedDeduplication", "FifoTopic")
_TOPIC_TEXTS: Final = ("DisplayName", "KmsMasterKeyId", "SignatureVersion", "TracingConfig")


def _attribute(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _properties(attributes: Mapping[str, str]) -> Model:
    """Return what a service keeps as texts, as the schemas type it."""
    found: Model = {}
    for name, value in attributes.items():
        if name in _QUEUE_NUMBERS:
            found[name] = int(value)
        elif name in (*_QUEUE_FLAGS, *_TOPIC_FLAGS):
            found[name] = value == "true"
        elif name in _QUEUE_DOCUMENTS:
            found[name] = json.loads(value)
        elif name in (*_QUEUE_TEXTS, *_TOPIC_TEXTS) and value:
            found[name] = value
    return found


class _Queues(ServiceTwin):
    type_name = "AWS::SQS::Queue"
    service = "sqs"
    knows = frozenset({*_QUEUE, "QueueName", "QueueUrl", "Arn"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        name = model.get("QueueName") or f"queue-{uuid.uuid4().hex[:12]}{'.fifo' if model.get('FifoQueue') else ''}"
        if name in self.backend(region).queues:
            from fractal_sandbox.aws.cloudcontrol.handling import already_exists

            raise already_exists(self.schema, self._url(name, region))
        given = {key: _attribute(model[key]) for key in _QUEUE if key in model}
        self.ask(region, "CreateQueue", QueueName=name, Attributes=given, tags=tags)
        arn = f"arn:aws:sqs:{region}:{accounts.current()}:{name}"
        return {"QueueName": name, "QueueUrl": self._url(name, region), "Arn": arn}

    def describe(self, identifier: str, region: str) -> Model:
        found = self.ask(region, "GetQueueAttributes", QueueUrl=identifier, AttributeNames=["All"])["Attributes"]
        name = _name(identifier)
        return {
            **_properties(found),
            "QueueName": name,
            "QueueUrl": self._url(name, region),
            "Arn": found["QueueArn"],
        }

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        wanted = changed(before, after, [name for name in _QUEUE if name != "FifoQueue"])
        given = {name: "" if value is None else _attribute(value) for name, value in wanted.items()}
        if given:
            self.ask(region, "SetQueueAttributes", QueueUrl=identifier, Attributes=given)

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeleteQueue", QueueUrl=identifier)

    def identifiers(self, region: str) -> list[str]:
        return [self._url(name, region) for name in list(self.backend(region).queues)]

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        queue = self.backend(region).queues.get(_name(identifier))
        return None if queue is None else dict(queue.tags or {})

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        if gone:
            self.ask(region, "UntagQueue", QueueUrl=identifier, TagKeys=gone)
        if added:
            self.ask(region, "TagQueue", QueueUrl=identifier, Tags=added)

    def identifier_in(self, arn: str) -> str | None:
        _, _, _, region, _, name = arn.split(":", 5)
        return self._url(name, region)

    def _url(self, name: str, region: str) -> str:
        return f"https://sqs.{region}.amazonaws.com/{accounts.current()}/{name}"


class _Topics(ServiceTwin):
    type_name = "AWS::SNS::Topic"
    service = "sns"
    knows = frozenset(
        {"DisplayName", "KmsMasterKeyId", "TopicName", "TopicArn", "FifoTopic", "ContentBasedDeduplication"}
    )

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        name = model.get("TopicName") or f"topic-{uuid.uuid4().hex[:12]}{'.fifo' if model.get('FifoTopic') else ''}"
        arn = f"arn:aws:sns:{region}:{accounts.current()}:{name}"
        if arn in self.backend(region).topics:
            from fractal_sandbox.aws.cloudcontrol.handling import already_exists

            raise already_exists(self.schema, arn)
        given = {key: _attribute(model[key]) for key in (*_TOPIC_FLAGS, *_TOPIC_TEXTS) if key in model}
        self.ask(region, "CreateTopic", Name=name, Attributes=given, Tags=pairs(tags))
        return {"TopicName": name, "TopicArn": arn}

    def describe(self, identifier: str, region: str) -> Model:
        found = self.ask(region, "GetTopicAttributes", TopicArn=identifier)["Attributes"]
        return {**_properties(found), "TopicName": identifier.rpartition(":")[2], "TopicArn": identifier}

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        for name, value in changed(before, after, (*_TOPIC_TEXTS, "ContentBasedDeduplication")).items():
            text = "" if value is None else _attribute(value)
            self.ask(region, "SetTopicAttributes", TopicArn=identifier, AttributeName=name, AttributeValue=text)

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeleteTopic", TopicArn=identifier)

    def identifiers(self, region: str) -> list[str]:
        return list(self.backend(region).topics)

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        topic = self.backend(region).topics.get(identifier)
        return None if topic is None else dict(topic._tags)  # noqa: SLF001

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        if gone:
            self.ask(region, "UntagResource", ResourceArn=identifier, TagKeys=gone)
        if added:
            self.ask(region, "TagResource", ResourceArn=identifier, Tags=pairs(added))

    def identifier_in(self, arn: str) -> str | None:
        return arn if arn.count(":") == 5 else None


def _name(identifier: str) -> str:
    """The name of a queue in its address, by whichever host somebody asked for it."""
    return identifier.rpartition("/")[2]


TWINS: Final[dict[str, Twin]] = {one.type_name: one for one in (_Queues(), _Topics())}
