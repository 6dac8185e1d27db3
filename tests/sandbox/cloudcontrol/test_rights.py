"""IAM: the API's own actions are CloudFormation's, and handlers need the schema's permissions as the caller."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fractal_sandbox import Sandbox
from tests.sandbox.cloudcontrol.making import QUEUE, create, delete, event, pairs, patch, read
from tests.sandbox.conftest import Tools
from tests.sandbox.making import tags_for

API = {"Effect": "Allow", "Action": "cloudformation:*", "Resource": "*"}
QUEUES = "arn:aws:sqs:*:*:*"
MINE = {"StringEquals": {"aws:ResourceTag/managed-by": "fractal-cloud"}}


def limit(sandbox: Sandbox, *statements: dict[str, Any]) -> None:
    sandbox.aws.limit_agent([{"Version": "2012-10-17", "Statement": list(statements)}])


def ask(agent: Tools, tags: dict[str, str]) -> dict[str, Any]:
    state = json.dumps({"QueueName": "jobs", "Tags": pairs(tags)})
    return event(agent, agent.cloudcontrol.create_resource(TypeName=QUEUE, DesiredState=state))


def test_without_the_apis_own_action_the_call_is_refused(sandbox: Sandbox, agent: Tools) -> None:
    limit(sandbox, {"Effect": "Allow", "Action": "sqs:*", "Resource": "*"})
    with pytest.raises(ClientError, match=r"AccessDeniedException.*cloudformation:CreateResource"):
        ask(agent, tags_for())


def test_without_the_handlers_permission_the_request_fails(sandbox: Sandbox, agent: Tools) -> None:
    limit(sandbox, API)
    found = ask(agent, tags_for())
    assert found["ErrorCode"] == "AccessDenied"
    assert "sqs:CreateQueue" in found["StatusMessage"]


def test_conditions_on_the_tags_of_request_and_resource_hold(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    requested = {"StringEquals": {"aws:RequestTag/managed-by": "fractal-cloud"}}
    reads = ["sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ListQueueTags"]
    limit(
        sandbox,
        API,
        {"Effect": "Allow", "Action": reads, "Resource": "*"},
        {"Effect": "Allow", "Action": ["sqs:CreateQueue", "sqs:TagQueue"], "Resource": QUEUES, "Condition": requested},
        {
            "Effect": "Allow",
            "Action": ["sqs:SetQueueAttributes", "sqs:DeleteQueue"],
            "Resource": QUEUES,
            "Condition": MINE,
        },
    )
    assert ask(agent, {"team": "a"})["ErrorCode"] == "AccessDenied"
    assert ask(agent, tags_for())["OperationStatus"] == "SUCCESS"
    url = create(person, QUEUE, {"QueueName": "theirs"})
    assert read(agent, QUEUE, url)["QueueName"] == "theirs"
    assert patch(agent, QUEUE, url, {"op": "add", "path": "/DelaySeconds", "value": 3})["ErrorCode"] == "AccessDenied"
    assert delete(agent, QUEUE, url)["ErrorCode"] == "AccessDenied"
    ours = url.replace("theirs", "jobs")
    assert patch(agent, QUEUE, ours, {"op": "add", "path": "/DelaySeconds", "value": 3})["OperationStatus"] == "SUCCESS"
    person.sqs.untag_queue(QueueUrl=ours, TagKeys=["managed-by"])
    assert delete(agent, QUEUE, ours)["ErrorCode"] == "AccessDenied"


def test_reads_need_their_permissions_too(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    url = create(person, QUEUE, {"QueueName": "jobs"})
    limit(sandbox, API)
    with pytest.raises(ClientError, match=r"AccessDeniedException.*sqs:GetQueueAttributes"):
        read(agent, QUEUE, url)
    with pytest.raises(ClientError, match=r"AccessDeniedException.*sqs:ListQueues"):
        agent.cloudcontrol.list_resources(TypeName=QUEUE)
