"""Fixes for moto's IAM: permissions boundaries, of which it keeps those of roles alone and checks none; AWS's own
policies, which are there without anybody making them.
"""

from __future__ import annotations

from typing import Any

from fractal_sandbox.aws.answer import Answer, AwsError, read, written
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.policies_of_aws import know
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.aws.resources import backend
from fractal_sandbox.calls import Call

__all__: list[str] = []


@fix("iam", "CreateUser", "CreateRole", "PutRolePermissionsBoundary")
def refuse_a_boundary_that_is_not_there(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto takes any text for a boundary, and forgets a user's; AWS refuses what is no policy, and keeps the rest."""
    arn = call.parameters.get("PermissionsBoundary")
    if arn:
        _check(str(arn))
    answer = context.dispatch(request)
    if answer.is_success and arn and call.operation == "CreateUser":
        _bound(call, str(arn))
    return answer


@fix("iam", "PutUserPermissionsBoundary", "DeleteUserPermissionsBoundary")
def keep_the_boundary_of_a_user(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto has neither operation; AWS sets and removes the boundary of a user that is there."""
    del context
    if call.operation == "DeleteUserPermissionsBoundary":
        _user(call).permissions_boundary = None
    else:
        _check(str(call.parameters["PermissionsBoundary"]))
        _bound(call, str(call.parameters["PermissionsBoundary"]))
    return written(request, {})


@fix("iam", "AttachRolePolicy", "AttachUserPolicy", "AttachGroupPolicy", "GetPolicy", "GetPolicyVersion")
def know_the_policies_of_aws(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto has AWS's own policies, and knows them only where all are loaded, which every reset would pay for."""
    know(str(call.parameters.get("PolicyArn") or ""))
    return context.dispatch(request)


@fix("iam", "ListInstanceProfileTags")
def list_the_tags_of_a_profile(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto writes the tags of an instance profile, and does not list them."""
    del context
    name = str(call.parameters["InstanceProfileName"])
    profile = next((one for one in backend("iam", "aws").instance_profiles.values() if one.name == name), None)
    if profile is None:
        raise AwsError("NoSuchEntity", f"Instance Profile {name} cannot be found.", 404)
    kept = profile.tags or {}
    listed = list(kept.values()) if isinstance(kept, dict) else kept
    return written(request, {"Tags": listed, "IsTruncated": False})


def _check(arn: str) -> None:
    know(arn)
    if arn not in backend("iam", "aws").managed_policies:
        raise AwsError("NoSuchEntity", f"Scope ARN: {arn} does not exist or is not attachable.", 404)


def _user(call: Call) -> Any:
    found = backend("iam", "aws").users.get(call.parameters["UserName"])
    if found is None:
        name = call.parameters["UserName"]
        raise AwsError("NoSuchEntity", f"The user with name {name} cannot be found.", 404)
    return found


def _bound(call: Call, arn: str) -> None:
    _user(call).permissions_boundary = {
        "PermissionsBoundaryType": "PermissionsBoundaryPolicy",
        "PermissionsBoundaryArn": arn,
    }


@fix("iam", "CreatePolicy", "TagPolicy", "UntagPolicy")
def keep_the_case_of_a_policys_tags(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto compares the keys of a policy's tags in small letters, as AWS does with those of users and roles alone.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html : «For other IAM resource types, tag key values are
    case sensitive.»
    """
    policies = backend("iam", "aws").managed_policies
    known = policies.get(str(call.parameters.get("PolicyArn") or ""))
    kept = {} if known is None else {tag["Key"]: tag for tag in known.tags.values()}
    answer = context.dispatch(request)
    if answer.is_success:
        gone = call.parameters.get("TagKeys") or []
        new = {tag["Key"]: tag for tag in call.parameters.get("Tags") or []}
        changed = known or policies[str(read(request, answer)["Policy"]["Arn"])]
        changed.tags = {key: tag for key, tag in {**kept, **new}.items() if key not in gone}
    return answer
