"""The rights that `fractal agent policy --provider kubernetes` prints, in force: roles and admission policies.

Roles are evaluated by the sandbox, and by the server itself where a real one takes its place; the expressions of the
admission policies by an implementation of their language that is not ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, Final

import cel
import yaml

from fractal_cloud.offers.kubernetes.admission import ACCOUNT, HOME
from fractal_cloud.offers.kubernetes.policy import policy
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes.rbac import service_account
from fractal_sandbox.kubernetes.writing import Plan

Object = dict[str, Any]
AGENT: Final = service_account(HOME, ACCOUNT)
# Every namespace that tests declare something in.
NAMESPACES: Final = ("default", "shop", "emissary")
TYPES: Final = ("v1/ServiceAccount", "rbac.authorization.k8s.io/v1/Role", "storage.k8s.io/v1/StorageClass")
OPTIONS: Final = PolicyOptions(with_links=True, with_generated_secrets=True, namespaces=NAMESPACES, types=TYPES)
_API: Final = "rbac.authorization.k8s.io"
# All rights there are, for tests about what only somebody with them is answered.
EVERYTHING: Final[tuple[Object, ...]] = (
    {
        "apiVersion": f"{_API}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "everything"},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ],
    },
    {
        "apiVersion": f"{_API}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "everything"},
        "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": "everything"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": HOME}],
    },
)
_OPERATIONS: Final = {"create": "CREATE", "update": "UPDATE", "delete": "DELETE"}


@cache
def printed(options: PolicyOptions = OPTIONS) -> tuple[Object, ...]:
    """The documents as they are printed."""
    return tuple(yaml.safe_load_all(policy(options)))


@contextmanager
def printed_rights(sandbox: Sandbox, options: PolicyOptions = OPTIONS) -> Iterator[None]:
    """Let the agent do in both clusters what is printed for it, and nothing else."""
    documents = printed(options)
    refusal = AdmissionPolicies(documents).refusal
    with ExitStack() as stack:
        for cluster in (sandbox.kubernetes, sandbox.kubernetes_2):
            stack.enter_context(cluster.restrict_agent(AGENT, documents, refusal))
        yield


class AdmissionPolicies:
    """The validating admission policies among some documents; an expression that fails denies, as their policy says."""

    def __init__(self, documents: Sequence[Object]) -> None:
        bound = {one["spec"]["policyName"] for one in documents if one["kind"] == "ValidatingAdmissionPolicyBinding"}
        found = [one for one in documents if one["kind"] == "ValidatingAdmissionPolicy"]
        self._policies = [one for one in found if one["metadata"]["name"] in bound]

    def refusal(self, plan: Plan, user: str = AGENT.name) -> str:
        """Why a write is denied; empty where it is not."""
        request = {"userInfo": {"username": user}, "operation": _OPERATIONS[plan.verb]}
        variables = {"object": plan.after, "oldObject": plan.before, "request": request}
        for one in self._policies:
            spec = one["spec"]
            if not _concerns(spec, plan, variables):
                continue
            for rule in spec["validations"]:
                if not _holds(rule["expression"], variables):
                    return f"ValidatingAdmissionPolicy {one['metadata']['name']!r} denied request: {rule['message']}"
        return ""


def _concerns(spec: Object, plan: Plan, variables: Object) -> bool:
    is_rule = any(
        plan.kind.group in rule["apiGroups"]
        and plan.kind.plural in rule["resources"]
        and _OPERATIONS[plan.verb] in rule["operations"]
        for rule in spec["matchConstraints"]["resourceRules"]
    )
    return is_rule and all(_holds(one["expression"], variables) for one in spec["matchConditions"])


def _holds(expression: str, variables: Object) -> bool:
    try:
        return _compiled(expression).execute(variables) is True
    except Exception:  # noqa: BLE001
        return False  # whatever is wrong with it: failurePolicy is Fail


@cache
def _compiled(expression: str) -> Any:
    return cel.compile(expression)
