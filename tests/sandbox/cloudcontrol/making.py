"""Making and changing resources by Cloud Control, and waiting for nothing."""

from __future__ import annotations

import json
from typing import Any

from tests.sandbox.conftest import Tools

QUEUE = "AWS::SQS::Queue"
STREAM = "AWS::Kinesis::Stream"  # one that only Cloud Control has here
GATEWAY = "AWS::EC2::TransitGateway"  # one that only the tag Name distinguishes


def event(tools: Tools, answer: dict[str, Any]) -> dict[str, Any]:
    """Return what became of a request."""
    token = answer["ProgressEvent"]["RequestToken"]
    found: dict[str, Any] = tools.cloudcontrol.get_resource_request_status(RequestToken=token)["ProgressEvent"]
    return found


def create(tools: Tools, type_name: str, properties: dict[str, Any], **more: Any) -> str:
    """Make a resource; return its identifier."""
    made = tools.cloudcontrol.create_resource(TypeName=type_name, DesiredState=json.dumps(properties), **more)
    found = event(tools, made)
    assert found["OperationStatus"] == "SUCCESS", found
    return str(found["Identifier"])


def patch(tools: Tools, type_name: str, identifier: str, *operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Change a resource; return what became of the request."""
    document = json.dumps(list(operations))
    asked = {"TypeName": type_name, "Identifier": identifier, "PatchDocument": document, **more}
    return event(tools, tools.cloudcontrol.update_resource(**asked))


def delete(tools: Tools, type_name: str, identifier: str) -> dict[str, Any]:
    return event(tools, tools.cloudcontrol.delete_resource(TypeName=type_name, Identifier=identifier))


def read(tools: Tools, type_name: str, identifier: str) -> dict[str, Any]:
    """Return the properties of a resource."""
    found = tools.cloudcontrol.get_resource(TypeName=type_name, Identifier=identifier)["ResourceDescription"]
    shown: dict[str, Any] = json.loads(found["Properties"])
    return shown


def pairs(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
