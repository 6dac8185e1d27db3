"""The rights that `fractal agent policy --provider gcp` prints, put in force by the commands it prints.

The commands are carried out on a small model of IAM: roles, bindings on projects and on service accounts, and
conditions, whose expressions an implementation of their language evaluates that is not ours.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import cel
import pytest
import yaml
from typer.testing import CliRunner

from fractal_cloud.cli.app import app
from fractal_cloud.offers.gcp.link_storage import LINK_PROJECT
from fractal_sandbox import Sandbox
from fractal_sandbox.gcp import OTHER_PROJECT, PROJECT
from fractal_sandbox.gcp.permissions import Need, needs_of
from fractal_sandbox.rest import Draft, Request, Route
from tests.offers.gcp.examples import ACCOUNT, OTHER_ACCOUNT

MEMBER: Final = "serviceAccount:fractal@fractal-agents.iam.gserviceaccount.com"
# What the tests' declarations run as, and the buckets that they link to.
FLAGS: Final = (
    *("--service-account", ACCOUNT, "--service-account", OTHER_ACCOUNT),
    *("--with-links", "--bucket", "shop-*", "--bucket", "example-*", "--link-project", OTHER_PROJECT),
)
# What Google's own role for using service accounts holds.
USE_ACCOUNT: Final = ("iam.serviceAccounts.actAs", "iam.serviceAccounts.get", "iam.serviceAccounts.list")
PREDEFINED: Final = {"roles/iam.serviceAccountUser": USE_ACCOUNT}


@dataclass(frozen=True)
class Binding:
    """A role that the agent has on a resource and everything below it, where a condition holds."""

    resource: str
    permissions: frozenset[str]
    condition: str = ""


@dataclass
class Iam:
    """Roles and bindings, as the printed commands make them."""

    roles: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(PREDEFINED))
    bindings: list[Binding] = field(default_factory=list)

    def allows(self, need: Need) -> bool:
        """Whether a binding grants it."""
        return any(
            need.permission in one.permissions and _covers(one.resource, need.resource) and _holds(one.condition, need)
            for one in self.bindings
        )

    def on(self, resource: str) -> frozenset[str]:
        """Every permission on a resource, whatever the conditions say."""
        return frozenset().union(*(one.permissions for one in self.bindings if _covers(one.resource, resource)))

    def missing(self, request: Request, route: Route, draft: Draft) -> str:
        """What a call of the agent lacks."""
        return next((need.permission for need in needs_of(request, route, draft) if not self.allows(need)), "")


def _covers(bound: str, resource: str) -> bool:
    """A project covers its buckets and accounts; names of buckets do not say whose they are: here they are one's."""
    if resource.startswith("projects/_/buckets/"):
        return bound == f"projects/{PROJECT}"
    if resource.startswith("projects/-/serviceAccounts/"):
        project = resource.partition("@")[2].partition(".")[0]
        return bound in (resource, f"projects/{project}")
    return bound == resource


def _holds(condition: str, need: Need) -> bool:
    if not condition:
        return True
    is_bucket = need.resource.startswith("projects/_/buckets/")
    kind = "storage.googleapis.com/Bucket" if is_bucket else "cloudresourcemanager.googleapis.com/Project"
    attributes = {"iam.googleapis.com/modifiedGrantsByRole": list(need.roles)} if need.roles else {}
    context = cel.Context({"resource": {"name": need.resource, "type": kind}, "api": attributes})
    context.add_function("getAttribute", lambda api, name, default: api.get(name, default))
    context.add_function("hasOnly", lambda these, allowed: all(one in allowed for one in these))
    return bool(_compiled(condition).execute(context))


@cache
def _compiled(expression: str) -> Any:
    return cel.compile(expression)


@cache
def granted(*flags: str) -> Iam:
    """The bindings that somebody makes who runs what is printed."""
    result = CliRunner().invoke(app, ["agent", "policy", "--provider", "gcp", *flags])
    assert result.exit_code == 0, result.output
    comments = [line.removeprefix("#   ") for line in result.output.splitlines() if line.startswith("#   ")]
    files: dict[str, Any] = {}
    iam = Iam()
    for line in comments:
        command, _, name = line.partition(" > ")
        words = [one.replace("AGENT", MEMBER).replace("PROJECT", PROJECT) for one in shlex.split(command)]
        if words[0] == "fractal":
            printed = CliRunner().invoke(app, shlex.split(command)[1:])
            assert printed.exit_code == 0, printed.output
            files[name] = yaml.safe_load(printed.output)
        else:
            _run(iam, words, files)
    return iam


def _run(iam: Iam, words: Sequence[str], files: dict[str, Any]) -> None:
    options = dict(one.removeprefix("--").split("=", 1) for one in words if one.startswith("--"))
    plain = [one for one in words if not one.startswith("--")]
    match plain:
        case ["gcloud", "iam", "roles", "create", name]:
            role = files[options["file"]]
            iam.roles[f"projects/{options['project']}/roles/{name}"] = tuple(role["includedPermissions"])
        case ["gcloud", "projects", "add-iam-policy-binding", project]:
            assert options["member"] == MEMBER
            from_file = options.get("condition-from-file")
            assert from_file or options["condition"] == "None", "gcloud would ask which condition is meant"
            condition = files[from_file]["expression"] if from_file else ""
            iam.bindings.append(Binding(f"projects/{project}", frozenset(iam.roles[options["role"]]), condition))
        case ["gcloud", "iam", "service-accounts", "add-iam-policy-binding", account]:
            assert options["member"] == MEMBER
            resource = f"projects/-/serviceAccounts/{account}"
            iam.bindings.append(Binding(resource, frozenset(iam.roles[options["role"]])))
        case _:
            raise AssertionError(f"what is {words}?")


@contextmanager
def printed_rights(sandbox: Sandbox, *flags: str) -> Iterator[None]:
    """Let the agent do what is printed for it, and nothing else; its links have a project of their own."""
    iam = granted(*(flags or FLAGS))
    with sandbox.gcp.restrict_agent(iam.missing), pytest.MonkeyPatch.context() as patch:
        patch.setenv(LINK_PROJECT, OTHER_PROJECT)
        yield
