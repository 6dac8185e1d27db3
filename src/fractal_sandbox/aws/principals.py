"""Who calls the sandbox's AWS, and with which rights: IAM users with their policies and their permissions boundary.

A key that belongs to no IAM user is the account's own and may do anything, as does the agent's until somebody limits
it: by the policies of the IAM user `fractal-cloud-agent`, whose key it then is. Reads moto's IAM at an instant; what a
call asks for is found in `authorization.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from moto.core.models import DEFAULT_ACCOUNT_ID

from fractal_sandbox.aws import AGENT_ACCESS_KEY, PERSON_ACCESS_KEY
from fractal_sandbox.aws.iam_evaluation import Policy
from fractal_sandbox.aws.resources import backend

__all__ = [
    "AGENT",
    "KNOWN_KEYS",
    "Identity",
    "Principal",
    "find_principal",
    "identity_of",
    "lift_limits",
    "limit_agent",
    "prepare_account",
]

AGENT: Final = "fractal-cloud-agent"
PATH: Final = "/fractal-cloud/"
_OWN_KEYS: Final = {AGENT_ACCESS_KEY: AGENT, PERSON_ACCESS_KEY: "person"}
_BOUNDARY: Final = Path(__file__).with_name("boundary.json").read_text("utf-8")
# All that a request can have here. A policy that asks for another key is an error, not a condition that never holds.
KNOWN_KEYS: Final = (
    "aws:PrincipalAccount",
    "aws:PrincipalArn",
    "aws:RequestTag/*",
    "aws:ResourceAccount",
    "aws:ResourceTag/*",
    "aws:TagKeys",
    "aws:ViaAWSService",
    "aws:username",
    "ec2:Attribute",
    "ec2:Attribute/*",
    "ec2:CreateAction",
    "ec2:InstanceProfile",
    "iam:PassedToService",
    "iam:PermissionsBoundary",
    "iam:PolicyARN",
    "iam:ResourceTag/*",
    "kms:GrantIsForAWSResource",
)
_NOTHING: Final = '{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}'


@dataclass(frozen=True)
class Principal:
    """An IAM user that makes a call. A boundary that is set and no longer there allows nothing."""

    name: str
    arn: str
    policies: tuple[Policy, ...]
    boundary: Policy | None


def find_principal(access_key: str) -> Principal | None:
    """Return the IAM user that a key belongs to; None where it is the account's own."""
    iam = backend("iam", "aws")
    if access_key == AGENT_ACCESS_KEY:
        user = iam.users.get(AGENT)
    else:
        key = iam.access_keys.get(access_key)
        user = iam.users.get(key.user_name) if key is not None else None
    if user is None:
        return None
    policies = tuple(_policy(one) for one in _documents(iam, user))
    bound = (getattr(user, "permissions_boundary", None) or {}).get("PermissionsBoundaryArn")
    return Principal(user.name, user.arn, policies, _policy(_document_of(iam, bound)) if bound else None)


def _documents(iam: Any, user: Any) -> Iterator[str]:
    groups = [group for group in iam.groups.values() if user in group.users]
    for holder in (user, *groups):
        yield from holder.policies.values()
        for managed in holder.managed_policies:
            yield _document_of(iam, managed)


def _document_of(iam: Any, arn: str) -> str:
    policy = iam.managed_policies.get(arn)
    if policy is None:
        return _NOTHING
    return next(str(one.document) for one in policy.versions if one.version_id == policy.default_version_id)


@lru_cache(maxsize=256)
def _policy(document: str) -> Policy:
    return Policy(json.loads(document if document.lstrip().startswith("{") else unquote(document)), KNOWN_KEYS)


@dataclass(frozen=True)
class Identity:
    """Who signs calls with a key, as STS and CloudTrail call them."""

    name: str
    arn: str
    user_id: str
    kind: str = "IAMUser"
    account: str = DEFAULT_ACCOUNT_ID

    def as_json(self, access_key: str) -> dict[str, Any]:
        """Return it as the `userIdentity` of an event."""
        found = {"type": self.kind, "principalId": self.user_id, "arn": self.arn, "accountId": self.account}
        return {**found, "accessKeyId": access_key, **({"userName": self.name} if self.kind == "IAMUser" else {})}


def identity_of(access_key: str) -> Identity:
    """Return who signs with a key: a role, an IAM user, one of the sandbox's own two, or the account itself."""
    assumed = backend("sts", "aws").get_assumed_role_from_access_key(access_key)
    if assumed is not None:
        return Identity(assumed.session_name, assumed.arn, assumed.user_id, "AssumedRole", assumed.account_id)
    principal = find_principal(access_key)
    name = principal.name if principal is not None else _OWN_KEYS.get(access_key)
    if name is None:
        return Identity("root", f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:root", DEFAULT_ACCOUNT_ID, "Root")
    arn = principal.arn if principal is not None else f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:user/{name}"
    return Identity(name, arn, "AIDA" + hashlib.sha256(name.encode()).hexdigest()[:17].upper())


# --- an account that somebody set up


def prepare_account() -> None:
    """Make what the guide asks for before links are used: the boundary of the identities that they make."""
    backend("iam", "aws").create_policy("", PATH, _BOUNDARY, "boundary", [])


def limit_agent(documents: Iterable[Mapping[str, Any]]) -> None:
    """Give the agent an IAM user with these documents as its managed policies, and no rights but those."""
    lift_limits()
    iam = backend("iam", "aws")
    iam.create_user("us-east-1", AGENT, "/")
    for number, document in enumerate(documents, 1):
        text = json.dumps(document)
        _policy(text)  # what cannot be evaluated is refused here, and not at the first call
        made = iam.create_policy("", "/", text, f"{AGENT}-{number}", [])
        iam.attach_user_policy(made.arn, AGENT)


def lift_limits() -> None:
    """Take the agent's IAM user away: its key is the account's own again."""
    iam = backend("iam", "aws")
    if iam.users.pop(AGENT, None) is not None:
        beginning = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:policy/{AGENT}-"
        for arn in [one for one in iam.managed_policies if one.startswith(beginning)]:
            del iam.managed_policies[arn]
