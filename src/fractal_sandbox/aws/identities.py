"""What calls ask for that have to do with identities: those of IAM itself, and those that pass a role to a service.

Whoever is not there has no path that anybody could know: AWS then asks about the bare name. Reads moto at an instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from moto.core.models import DEFAULT_ACCOUNT_ID

from fractal_sandbox.aws import AGENT_ACCESS_KEY
from fractal_sandbox.aws.principals import AGENT
from fractal_sandbox.aws.resources import backend
from fractal_sandbox.calls import Call

__all__ = ["asked_of_iam", "passed_roles"]

Context = dict[str, str | tuple[str, ...]]
_IAM: Final = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:"
_NOUNS: Final = {
    "UserName": "user",
    "RoleName": "role",
    "GroupName": "group",
    "InstanceProfileName": "instance-profile",
    "PolicyName": "policy",
}
_SETS_BOUNDARY: Final = frozenset(
    {"CreateUser", "CreateRole", "PutUserPermissionsBoundary", "PutRolePermissionsBoundary"}
)
_CREATES: Final = {
    "CreateUser": "UserName",
    "CreateRole": "RoleName",
    "CreateGroup": "GroupName",
    "CreateInstanceProfile": "InstanceProfileName",
    "CreatePolicy": "PolicyName",
}
# IAM takes the caller itself where nobody is named.
_OWN: Final = frozenset(
    {"CreateAccessKey", "DeleteAccessKey", "GetUser", "ListAccessKeys", "UpdateAccessKey", "ChangePassword"}
)


def asked_of_iam(call: Call) -> Iterator[tuple[str, str, Context]]:
    """Return action, resource and context of all that a call of IAM asks for."""
    parameters = call.parameters
    arn, holder = _target(call)
    context = _held(holder)
    if call.operation in _SETS_BOUNDARY:
        boundary = parameters.get("PermissionsBoundary")
        context.pop("iam:PermissionsBoundary", None)
        if boundary:
            context["iam:PermissionsBoundary"] = str(boundary)
    if call.operation.startswith(("Attach", "Detach")):
        context["iam:PolicyARN"] = str(parameters.get("PolicyArn") or "")
    tags = {tag["Key"]: tag.get("Value") or "" for tag in parameters.get("Tags") or []}
    keys = tuple(parameters.get("TagKeys") or tags)
    if keys:
        context |= {f"aws:RequestTag/{key}": value for key, value in tags.items()}
        context["aws:TagKeys"] = keys
    yield f"iam:{call.operation}", arn, context
    if tags and call.operation in _CREATES:
        yield f"iam:Tag{call.operation.removeprefix('Create')}", arn, context


def _target(call: Call) -> tuple[str, Any]:
    """Return the ARN of what a call of IAM is about, and what moto keeps of it; None where there is none."""
    iam, parameters = backend("iam", "aws"), call.parameters
    if call.operation in _CREATES:
        name = _CREATES[call.operation]
        return f"{_IAM}{_NOUNS[name]}{parameters.get('Path') or '/'}{parameters.get(name)}", None
    if "UserName" in parameters or call.operation in _OWN:
        wanted = str(parameters.get("UserName") or _caller(call))
        user = iam.users.get(wanted)
        if call.operation != "AddUserToGroup":
            return (str(user.arn) if user is not None else f"{_IAM}user/{wanted}"), user
    if "RoleName" in parameters and "InstanceProfileName" not in parameters:
        wanted = str(parameters["RoleName"])
        role = next((one for one in list(iam.roles.values()) if one.name == wanted), None)
        return (str(role.arn) if role is not None else f"{_IAM}role/{wanted}"), role
    if parameters.get("GroupName"):
        return f"{_IAM}group/{parameters['GroupName']}", None
    if parameters.get("PolicyArn"):
        return str(parameters["PolicyArn"]), None
    if parameters.get("InstanceProfileName"):
        wanted = str(parameters["InstanceProfileName"])
        profile = next((one for one in list(iam.instance_profiles.values()) if one.name == wanted), None)
        return (str(profile.arn) if profile is not None else f"{_IAM}instance-profile/{wanted}"), None
    return "*", None


def _target_role(name: str) -> str:
    role = next((one for one in list(backend("iam", "aws").roles.values()) if one.name == name), None)
    return str(role.arn) if role is not None else f"{_IAM}role/{name}"


def _caller(call: Call) -> str:
    key = backend("iam", "aws").access_keys.get(call.access_key)
    return AGENT if call.access_key == AGENT_ACCESS_KEY else str(key.user_name if key is not None else "")


def _held(holder: Any) -> Context:
    """The context that a user or a role brings: its boundary and its tags."""
    if holder is None:
        return {}
    bound = (getattr(holder, "permissions_boundary", None) or {}).get("PermissionsBoundaryArn")
    kept = holder.tags or []
    tags = kept.values() if isinstance(kept, Mapping) else kept
    context: Context = {"iam:PermissionsBoundary": str(bound)} if bound else {}
    for tag in tags:
        context |= {f"{prefix}:ResourceTag/{tag['Key']}": str(tag["Value"]) for prefix in ("aws", "iam")}
    return context


def passed_roles(call: Call) -> Iterator[tuple[str, str]]:
    """Return the roles that a call passes, each with the service it is passed to."""
    parameters = call.parameters
    if call.service == "eks" and parameters.get("roleArn"):
        yield "eks.amazonaws.com", str(parameters["roleArn"])
    elif call.service == "rds" and parameters.get("MonitoringRoleArn"):
        yield "monitoring.rds.amazonaws.com", str(parameters["MonitoringRoleArn"])
    elif call.service == "ecs":
        if call.operation == "CreateService" and parameters.get("role"):
            yield "ecs.amazonaws.com", str(parameters["role"])
        yield from (("ecs-tasks.amazonaws.com", role) for role in _task_roles(call))
    elif call.service == "iam" and call.operation == "AddRoleToInstanceProfile":
        yield "ec2.amazonaws.com", _target_role(str(parameters.get("RoleName") or "*"))
    elif call.service == "ec2" and parameters.get("IamInstanceProfile"):
        yield from (("ec2.amazonaws.com", role) for role in _roles_of_profile(parameters["IamInstanceProfile"]))


def _task_roles(call: Call) -> Iterator[str]:
    """The roles of the task definition that a call registers or runs."""
    names = ("taskRoleArn", "executionRoleArn")
    yield from (str(call.parameters[name]) for name in names if call.parameters.get(name))
    wanted = call.parameters.get("taskDefinition")
    if wanted:
        for definition in _definitions(call.region, str(wanted)):
            for name in ("task_role_arn", "execution_role_arn"):
                if getattr(definition, name, None):
                    yield str(getattr(definition, name))


def _definitions(region: str, wanted: str) -> Iterator[Any]:
    family, _, revision = wanted.rpartition("/")[2].partition(":")
    found = backend("ecs", region).task_definitions.get(family) or {}
    numbers = [int(revision)] if revision else sorted(found)[-1:]
    yield from (found[number] for number in numbers if number in found)


def _roles_of_profile(profile: Mapping[str, Any]) -> list[str]:
    """Return the roles in an instance profile; one that is not there may hold any."""
    name = str(profile.get("Name") or profile.get("Arn") or "").rpartition("/")[2]
    kept = [one for one in backend("iam", "aws").instance_profiles.values() if one.name == name]
    return [str(role.arn) for one in kept for role in one.roles] or [f"{_IAM}role/*"]
