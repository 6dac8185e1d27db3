"""The agent of the tests under the policy that `fractal agent policy --provider aws` prints, and under nothing else.

Every world of tests sets the agent's rights so: what the offers call, AWS would allow. A test about what happens
without the policy lifts it (`sandbox.aws.lift_limits()`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import boto3

from fractal_cloud.offers.aws.policy import policy
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from fractal_sandbox.aws import PERSON_ACCESS_KEY
from fractal_sandbox.aws.principals import AGENT

ACCOUNT: Final = "123456789012"
PASSED_ROLES: Final = tuple(f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("eks", "ecs-task", "monitoring", "web"))
NAMED_BUCKETS: Final = ("objects-*",)
"""Those whose lifecycle and logging the agent may set: those of the example."""


@cache
def printed(*, with_links: bool = False, with_generated_secrets: bool = False) -> tuple[dict[str, Any], ...]:
    """The documents, one by one."""
    asked = PolicyOptions(
        with_links=with_links,
        with_generated_secrets=with_generated_secrets,
        pass_roles=PASSED_ROLES,
        buckets=NAMED_BUCKETS,
    )
    made = policy(asked)
    return tuple(made) if isinstance(made, list) else (made,)


def limit(sandbox: Sandbox, *, with_links: bool = False, with_generated_secrets: bool = False) -> None:
    """Attach them to the agent, as an operator would."""
    sandbox.aws.limit_agent(printed(with_links=with_links, with_generated_secrets=with_generated_secrets))


@cache
def printed_for(types: tuple[str, ...], roles: tuple[str, ...] = ()) -> tuple[dict[str, Any], ...]:
    """What `fractal agent policy --provider aws --type …` prints for types of AWS, and for roles that are passed."""
    made = policy(PolicyOptions(types=types, pass_roles=tuple(sorted({*roles, *PASSED_ROLES}))))
    return tuple(made) if isinstance(made, list) else (made,)


def limit_to(sandbox: Sandbox, components: Iterable[Mapping[str, Any]]) -> None:
    """Give the agent what is printed for the types of these components, and for the roles among them; nothing else."""
    declared = list(components)
    types = sorted({str(one["type"]) for one in declared if str(one["type"]).startswith("AWS::")})
    made = [one["parameters"] for one in declared if one["type"] == "AWS::IAM::Role"]
    roles = [f"arn:aws:iam::{ACCOUNT}:role{one.get('Path') or '/'}{one['RoleName']}" for one in made]
    sandbox.aws.limit_agent(printed_for(tuple(types), tuple(sorted(roles))))


def attach(url: str) -> None:
    """The same for a sandbox that is another process, with a person's key and the calls of the guide."""
    iam = boto3.client(
        "iam", endpoint_url=url, region_name="eu-west-1", aws_access_key_id=PERSON_ACCESS_KEY, aws_secret_access_key="x"
    )
    iam.create_user(UserName=AGENT)
    for number, document in enumerate(printed(), 1):
        made = iam.create_policy(PolicyName=f"{AGENT}-{number}", PolicyDocument=json.dumps(document))["Policy"]
        iam.attach_user_policy(UserName=AGENT, PolicyArn=made["Arn"])
