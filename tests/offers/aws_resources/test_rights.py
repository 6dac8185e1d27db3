"""The rights printed for types of AWS: for their handlers, within IAM's limit, and no way to more rights (A7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.aws.policy import MOST_CHARACTERS, policy
from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.rights import statements
from fractal_cloud.offers.aws.resources.tables.rights import BOUNDED, BY_SERVICES_ONLY, NEVER, NEVER_SERVICES
from fractal_cloud.offers.policy import PolicyOptions

ROLE = "arn:aws:iam::123456789012:role/fn"


def allowed(*names: str, roles: tuple[str, ...] = ()) -> dict[str, list[dict[str, Any]]]:
    """By action, the statements that allow it."""
    found: dict[str, list[dict[str, Any]]] = {}
    for statement in statements(names, roles):
        if statement["Effect"] == "Allow":
            for action in statement["Action"]:
                found.setdefault(action, []).append(statement)
    return found


def printable() -> list[str]:
    found = []
    for name in types.names():
        kind = types.find(name)
        assert kind is not None
        create = kind.handlers.get("create", ())
        if not create or create[0].partition(":")[0] not in NEVER_SERVICES:
            found.append(name)
    return found


@pytest.mark.rule("A7")
def test_no_type_leads_to_more_rights() -> None:
    found = allowed(*printable())
    assert not NEVER & set(found)
    assert "iam:PassRole" not in found
    for action, several in found.items():
        for statement in several:
            assert "*" not in action or action.partition(":")[2].startswith(("Get", "List", "Describe")), action
            if action in BY_SERVICES_ONLY:
                assert statement["Condition"] == {"Bool": {"aws:ViaAWSService": "true"}}
            is_write = action.startswith("iam:") and not action.startswith(("iam:Get", "iam:List", "iam:Describe"))
            if is_write:
                assert statement["Resource"] != ["*"], f"{action} is limited to the product's own path"
            if action in BOUNDED:
                assert "iam:PermissionsBoundary" in statement["Condition"]["StringLike"], action
    denied = [one for one in statements(["AWS::IAM::ManagedPolicy"]) if one["Effect"] == "Deny"]
    assert denied[0]["Resource"] == ["arn:*:iam::*:policy/fractal-cloud/boundary"]
    assert "iam:CreatePolicyVersion" in denied[0]["Action"]


@pytest.mark.rule("A7")
def test_roles_are_passed_only_where_they_were_named_and_to_the_services_of_the_types() -> None:
    assert "iam:PassRole" not in allowed("AWS::Lambda::Function")
    [statement] = allowed("AWS::Lambda::Function", roles=(ROLE,))["iam:PassRole"]
    assert statement["Resource"] == [ROLE]
    assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": ["lambda.amazonaws.com"]}}
    assert "iam:PassRole" not in allowed("AWS::SQS::Queue", roles=(ROLE,))


@pytest.mark.rule("S16", "T7")
def test_where_tags_decide_only_managed_resources_are_changed() -> None:
    found = allowed("AWS::SQS::Queue")
    assert found["sqs:DeleteQueue"][0]["Condition"] == {"StringEquals": {"aws:ResourceTag/managed-by": "fractal-cloud"}}
    assert "Condition" not in found["sqs:CreateQueue"][0]
    assert set(found["sqs:TagQueue"][0]["Condition"]) == {"StringEqualsIfExists"}


def test_every_document_is_within_the_limit_of_a_policy() -> None:
    made = policy(PolicyOptions(types=tuple(printable()[::3])))
    assert isinstance(made, list)
    assert max(len("".join(json.dumps(one).split())) for one in made) <= MOST_CHARACTERS


def test_what_is_no_type_is_refused() -> None:
    with pytest.raises(PolicyOptionError, match="did you mean 'AWS::SQS::Queue'"):
        policy(PolicyOptions(types=("AWS::SQS::Queu",)))
    with pytest.raises(PolicyOptionError, match="over the whole organization"):
        policy(PolicyOptions(types=("AWS::Organizations::Account",)))
