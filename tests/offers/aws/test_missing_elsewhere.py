"""What AWS says of something else that a write refers to, distinguished from what is wrong with the request."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import CloudError, DependencyMissing, Invalid, NotFound, Unreadable
from fractal_cloud.offers.aws.errors import Answer, kind_of

SAID = [
    (
        "InvalidParameterValue",
        "Value (app) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
    ),
    ("InvalidParameterValueException", "The role defined for the function cannot be assumed by Lambda."),
    (
        "InvalidParameterException",
        "The target group with targetGroupArn arn:x does not have an associated load balancer.",
    ),
    ("ValidationError", "Role arn:aws:iam::1:role/app is invalid or does not exist"),
    ("ClientException", "TaskDefinition not found."),
    ("MalformedPolicyDocument", 'Invalid principal in policy: "AWS":"arn:aws:iam::1:role/app"'),
]
INVALID = [
    ("InvalidParameterValue", "Value (m9.huge) for parameter InstanceType is invalid."),
    ("InvalidParameterValue", "Value (eu-west-9z) for parameter availabilityZone is invalid."),
    ("ValidationException", "1 validation error detected: Value at 'memorySize' failed to satisfy constraint"),
]


def _kind(code: str, message: str, *, is_read: bool = False) -> type[CloudError]:
    return kind_of(Answer(message, code, "r", "Create", 400, is_read))


@pytest.mark.rule("S21")
@pytest.mark.parametrize(("code", "message"), SAID)
def test_something_else_that_is_missing_is_waited_for(code: str, message: str) -> None:
    assert _kind(code, message) is DependencyMissing
    assert _kind(code, message, is_read=True) is Unreadable, "a read concludes nothing from it (S0)"


@pytest.mark.parametrize(("code", "message"), INVALID)
def test_what_is_wrong_with_the_request_stays_invalid(code: str, message: str) -> None:
    assert _kind(code, message) is Invalid


def test_a_thing_that_is_not_there_says_only_that() -> None:
    assert _kind("InvalidGroup.NotFound", "The security group 'sg-1' does not exist") is NotFound
