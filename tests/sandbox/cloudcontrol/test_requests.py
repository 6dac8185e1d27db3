"""Requests of Cloud Control: asynchronous, repeatable, one at a time per resource, refused as AWS refuses them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fractal_sandbox import Sandbox
from fractal_sandbox.aws.cloudcontrol.schemas import catalog
from tests.sandbox.cloudcontrol.making import GATEWAY, QUEUE, STREAM, create, delete, event, pairs, patch, read
from tests.sandbox.conftest import Tools
from tests.sandbox.making import error_of

ROUTES = "AWS::EC2::RouteTable"


def ask(tools: Tools, properties: dict[str, Any], type_name: str = STREAM, **more: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"TypeName": type_name, "DesiredState": json.dumps(properties), **more}
    answer: dict[str, Any] = tools.cloudcontrol.create_resource(**asked)
    return answer


def refused(tools: Tools, properties: dict[str, Any], type_name: str = STREAM) -> tuple[str, str]:
    with pytest.raises(ClientError) as error:
        ask(tools, properties, type_name)
    return error_of(error)[0], error.value.response["Error"]["Message"]


def test_a_request_is_under_way_and_then_done(person: Tools) -> None:
    first = ask(person, {"Name": "jobs", "ShardCount": 1})["ProgressEvent"]
    assert (first["OperationStatus"], first["Operation"], first["Identifier"]) == ("IN_PROGRESS", "CREATE", "jobs")
    done = event(person, {"ProgressEvent": first})
    assert (done["OperationStatus"], done["Identifier"]) == ("SUCCESS", "jobs")
    assert read(person, STREAM, "jobs")["Arn"] == "arn:aws:kinesis:eu-central-1:123456789012:stream/jobs"


def test_slow_requests_keep_their_resource_busy(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.slow_deletion(reads=2, kind=STREAM)
    create(person, STREAM, {"Name": "jobs", "ShardCount": 1})
    token = person.cloudcontrol.delete_resource(TypeName=STREAM, Identifier="jobs")["ProgressEvent"]["RequestToken"]
    with pytest.raises(ClientError, match="ConcurrentOperationException"):
        patch(person, STREAM, "jobs", {"op": "add", "path": "/ShardCount", "value": 2})
    assert read(person, STREAM, "jobs")["ShardCount"] == 1
    states = [
        person.cloudcontrol.get_resource_request_status(RequestToken=token)["ProgressEvent"]["OperationStatus"]
        for _ in range(3)
    ]
    assert states[-1] == "SUCCESS"
    assert states[0] == "IN_PROGRESS"
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        read(person, STREAM, "jobs")


@pytest.mark.rule("S17")
def test_a_client_token_stands_for_one_request(person: Tools) -> None:
    first = ask(person, {"Tags": pairs({"a": "b"})}, GATEWAY, ClientToken="one")["ProgressEvent"]
    again = ask(person, {"Tags": pairs({"a": "b"})}, GATEWAY, ClientToken="one")["ProgressEvent"]
    assert again["RequestToken"] == first["RequestToken"]
    assert len(person.cloudcontrol.list_resources(TypeName=GATEWAY)["ResourceDescriptions"]) == 1
    with pytest.raises(ClientError, match="ClientTokenConflictException"):
        ask(person, {}, GATEWAY, ClientToken="one")


def test_requests_are_listed_by_operation_and_status(person: Tools) -> None:
    create(person, STREAM, {"Name": "jobs", "ShardCount": 1})
    event(person, ask(person, {"Name": "jobs", "ShardCount": 1}))
    delete(person, STREAM, "jobs")

    def listed(**wanted: list[str]) -> list[tuple[str, str]]:
        found = person.cloudcontrol.list_resource_requests(ResourceRequestStatusFilter=wanted)
        return [(one["Operation"], one["OperationStatus"]) for one in found["ResourceRequestStatusSummaries"]]

    assert listed() == [("DELETE", "SUCCESS"), ("CREATE", "FAILED"), ("CREATE", "SUCCESS")]
    assert listed(Operations=["CREATE"], OperationStatuses=["FAILED"]) == [("CREATE", "FAILED")]
    page = person.cloudcontrol.list_resource_requests(MaxResults=2)
    rest = person.cloudcontrol.list_resource_requests(MaxResults=2, NextToken=page["NextToken"])
    assert len(rest["ResourceRequestStatusSummaries"]) == 1
    assert "NextToken" not in rest


def test_a_request_under_way_can_be_cancelled_and_a_finished_one_not(sandbox: Sandbox, person: Tools) -> None:
    create(person, STREAM, {"Name": "jobs", "ShardCount": 1})
    sandbox.aws.knobs.slow_deletion(reads=9, kind=STREAM)
    token = person.cloudcontrol.delete_resource(TypeName=STREAM, Identifier="jobs")["ProgressEvent"]["RequestToken"]
    stopped = person.cloudcontrol.cancel_resource_request(RequestToken=token)["ProgressEvent"]
    assert stopped["OperationStatus"] == "CANCEL_IN_PROGRESS"
    assert event(person, {"ProgressEvent": stopped})["OperationStatus"] == "CANCEL_COMPLETE"
    assert read(person, STREAM, "jobs")["ShardCount"] == 1
    with pytest.raises(ClientError, match="ConcurrentModificationException"):
        person.cloudcontrol.cancel_resource_request(RequestToken=token)
    with pytest.raises(ClientError, match="RequestTokenNotFoundException"):
        person.cloudcontrol.get_resource_request_status(RequestToken="nobody-knows-it")


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"Name": 3}, "#/Name: expected type: String, found: Integer"),
        ({"Nope": 1}, "#: extraneous key [Nope] is not permitted"),
        ({"Arn": "arn:aws:x"}, "readOnlyProperties [/properties/Arn] cannot be specified"),
        ({"ShardCount": 0}, "#/ShardCount: 0 is not greater or equal to 1"),
        ({"Name": "a b"}, "#/Name: string [a b] does not match pattern"),
        ({"StreamEncryption": {"KeyId": "k"}}, "#/StreamEncryption: required key [EncryptionType] not found"),
        ({"StreamModeDetails": {"StreamMode": "?"}}, "#/StreamModeDetails/StreamMode: ? is not a valid enum value"),
        ({"Tags": [{"Key": "a", "Value": "b", "C": 1}]}, "#/Tags/0: extraneous key [C] is not permitted"),
    ],
)
def test_what_the_schema_forbids_is_refused_at_once(person: Tools, properties: dict[str, Any], words: str) -> None:
    code, message = refused(person, properties)
    assert code == "ValidationException"
    assert words in message


def test_types_nobody_knows_and_verbs_they_lack_are_refused(person: Tools) -> None:
    assert refused(person, {}, "AWS::Nobody::Knows")[0] == "TypeNotFoundException"
    assert refused(person, {}, "AWS::SQS::QueuePolicy")[0] == "UnsupportedActionException"
    with pytest.raises(ClientError, match="UnsupportedActionException"):
        person.cloudcontrol.list_resources(TypeName="AWS::SQS::QueueInlinePolicy")


def test_create_only_properties_are_not_updatable(person: Tools) -> None:
    create(person, STREAM, {"Name": "jobs", "ShardCount": 1})
    with pytest.raises(ClientError, match=r"NotUpdatableException.*createOnlyProperties \[/properties/Name\]"):
        patch(person, STREAM, "jobs", {"op": "replace", "path": "/Name", "value": "other"})


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/Tags/-", "value": {"Key": "c", "Value": "3"}}], "abc"),
        ([{"op": "add", "path": "/Tags/0", "value": {"Key": "c", "Value": "3"}}], "cab"),
        ([{"op": "remove", "path": "/Tags/0"}], "b"),
        ([{"op": "replace", "path": "/Tags/1/Key", "value": "z"}], "az"),
        ([{"op": "move", "from": "/Tags/0", "path": "/Tags/1"}], "ba"),
        ([{"op": "test", "path": "/Tags/0/Key", "value": "a"}, {"op": "remove", "path": "/Tags"}], ""),
        (
            [
                {"op": "copy", "from": "/Tags/0", "path": "/Tags/-"},
                {"op": "replace", "path": "/Tags/2/Key", "value": "c"},
            ],
            "abc",
        ),
    ],
)
def test_patches_have_all_six_operations(person: Tools, operations: list[dict[str, Any]], expected: str) -> None:
    create(person, STREAM, {"Name": "jobs", "ShardCount": 1, "Tags": pairs({"a": "1", "b": "2"})})
    assert patch(person, STREAM, "jobs", *operations)["OperationStatus"] == "SUCCESS"
    assert "".join(one["Key"] for one in read(person, STREAM, "jobs").get("Tags", [])) == expected


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"op": "test", "path": "/ShardCount", "value": 2}, r"\[TEST Operation\] value differs"),
        ({"op": "replace", "path": "/Nope", "value": 2}, r"\[REPLACE Operation\] noSuchPath in source"),
        ({"op": "change", "path": "/ShardCount", "value": 2}, "unknown or missing operation"),
        ({"op": "add", "path": "/Tags/7", "value": {"Key": "a", "Value": "b"}}, "index Out of bound"),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(person: Tools, operation: dict[str, Any], words: str) -> None:
    create(person, STREAM, {"Name": "jobs", "ShardCount": 1, "Tags": pairs({"a": "1"})})
    before = read(person, STREAM, "jobs")
    with pytest.raises(ClientError, match=f"ValidationException.*{words}"):
        patch(person, STREAM, "jobs", {"op": "add", "path": "/RetentionPeriodHours", "value": 48}, operation)
    assert read(person, STREAM, "jobs") == before


@pytest.mark.rule("A8")
def test_write_only_properties_are_never_returned_and_must_be_brought(person: Tools) -> None:
    role = "arn:aws:iam::123456789012:role/jobs"
    code = {"ZipFile": "pass"}
    wanted = {"FunctionName": "jobs", "Role": role, "Code": code, "Handler": "a.b", "Runtime": "python3.12"}
    create(person, "AWS::Lambda::Function", wanted)
    assert "Code" not in read(person, "AWS::Lambda::Function", "jobs")
    change = {"op": "replace", "path": "/Handler", "value": "c.d"}
    with pytest.raises(ClientError, match=r"required key \[Code\] not found"):
        patch(person, "AWS::Lambda::Function", "jobs", change)
    brought = patch(person, "AWS::Lambda::Function", "jobs", change, {"op": "add", "path": "/Code", "value": code})
    assert brought["OperationStatus"] == "SUCCESS"
    assert read(person, "AWS::Lambda::Function", "jobs")["Handler"] == "c.d"


def test_hooks_and_services_refuse_in_their_own_words(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.refuse_request(
        type_name=STREAM, operation="CREATE", hook="Org::Guard::Hook", code="InvalidRequest"
    )
    made = ask(person, {"Name": "jobs", "ShardCount": 1})
    done = person.cloudcontrol.get_resource_request_status(RequestToken=made["ProgressEvent"]["RequestToken"])
    assert done["ProgressEvent"]["OperationStatus"] == "FAILED"
    assert done["ProgressEvent"]["StatusMessage"] == "The following hook(s) failed: [Org::Guard::Hook]"
    assert done["HooksProgressEvent"][0]["HookStatus"] == "HOOK_COMPLETE_FAILED"
    sandbox.aws.knobs.refuse_request(code="ServiceLimitExceeded", message="no more")
    found = event(person, ask(person, {"Name": "jobs", "ShardCount": 1}))
    assert (found["ErrorCode"], found["StatusMessage"]) == ("ServiceLimitExceeded", "no more")
    assert event(person, ask(person, {"Name": "jobs", "ShardCount": 1}))["OperationStatus"] == "SUCCESS"


def test_what_a_network_refers_to_must_exist(person: Tools) -> None:
    found = event(person, ask(person, {"VpcId": "vpc-0123456789abcdef0"}, ROUTES))
    assert (found["ErrorCode"], found["StatusMessage"]) == (
        "NotFound",
        "The vpc ID 'vpc-0123456789abcdef0' does not exist",
    )
    vpc = person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    table = create(person, ROUTES, {"VpcId": vpc})
    subnet = person.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    route = create(person, "AWS::EC2::Route", {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0"})
    joined = {"RouteTableId": table, "SubnetId": subnet}
    association = create(person, "AWS::EC2::SubnetRouteTableAssociation", joined)
    assert delete(person, ROUTES, table)["ErrorCode"] == "ResourceConflict"
    with pytest.raises(ClientError, match="DependencyViolation"):
        person.ec2.delete_vpc(VpcId=vpc)
    assert delete(person, "AWS::EC2::SubnetRouteTableAssociation", association)["OperationStatus"] == "SUCCESS"
    assert delete(person, ROUTES, table)["OperationStatus"] == "SUCCESS"
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        read(person, "AWS::EC2::Route", route)


def test_a_listing_wants_the_parent_and_comes_in_pages(sandbox: Sandbox, person: Tools) -> None:
    with pytest.raises(ClientError, match=r"Required property: \(#: required key \[ApiId\] not found\)"):
        person.cloudcontrol.list_resources(TypeName="AWS::ApiGatewayV2::Route")
    for number in range(3):
        create(person, STREAM, {"Name": f"jobs-{number}", "ShardCount": 1})
    sandbox.aws.knobs.page_size = 2
    page = person.cloudcontrol.list_resources(TypeName=STREAM)
    rest = person.cloudcontrol.list_resources(TypeName=STREAM, NextToken=page["NextToken"])
    found = [one["Identifier"] for one in (*page["ResourceDescriptions"], *rest["ResourceDescriptions"])]
    assert found == ["jobs-0", "jobs-1", "jobs-2"]
    assert json.loads(page["ResourceDescriptions"][0]["Properties"]) == {"Name": "jobs-0"}


def test_what_was_just_made_may_show_late(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.late_visibility(reads=1, kind=STREAM)
    create(person, STREAM, {"Name": "jobs", "ShardCount": 1, "Tags": pairs({"a": "b"})})
    assert person.cloudcontrol.list_resources(TypeName=STREAM)["ResourceDescriptions"] == []
    assert person.tagging.get_resources()["ResourceTagMappingList"] != []


def test_a_private_type_is_handled_by_the_schema_that_was_registered(sandbox: Sandbox, person: Tools) -> None:
    document = {
        "typeName": "Acme::Farm::Barn",
        "properties": {"Name": {"type": "string"}, "Cows": {"type": "integer"}, "Tags": {"type": "object"}},
        "primaryIdentifier": ["/properties/Name"],
        "handlers": {verb: {"permissions": []} for verb in ("create", "read", "update", "delete", "list")},
    }
    catalog().register(document)
    described = person.cloudformation.describe_type(Type="RESOURCE", TypeName="Acme::Farm::Barn")
    assert described["Visibility"] == "PRIVATE"
    assert json.loads(described["Schema"])["properties"]["Cows"] == {"type": "integer"}
    assert create(person, "Acme::Farm::Barn", {"Name": "red", "Cows": 3}) == "red"


def test_knobs_name_operations_and_resources(sandbox: Sandbox, person: Tools) -> None:
    create(person, QUEUE, {"QueueName": "jobs"})
    url = person.cloudcontrol.list_resources(TypeName=QUEUE)["ResourceDescriptions"][0]["Identifier"]
    sandbox.aws.knobs.fail(operation="UpdateResource", resource=url, code="ServiceInternalErrorException")
    with pytest.raises(ClientError, match="ServiceInternalErrorException"):
        patch(person, QUEUE, url, {"op": "add", "path": "/DelaySeconds", "value": 3})
    assert patch(person, QUEUE, url, {"op": "add", "path": "/DelaySeconds", "value": 3})["OperationStatus"] == "SUCCESS"
    sandbox.aws.knobs.throttle(next_calls=1, service="cloudcontrol")
    with pytest.raises(ClientError, match="ThrottlingException"):
        read(person, QUEUE, url)
