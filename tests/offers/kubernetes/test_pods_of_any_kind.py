"""What is denied to the agent's Deployments is denied to the pods of every other kind that it may be given (A7).

The printed policies are asked themselves, without a cluster: their expressions are evaluated by an implementation of
their language that is not ours.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any, Final

import pytest

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.kubernetes.any_kind import catalogue
from fractal_cloud.offers.kubernetes.any_kind.rights import REFUSED
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox.kubernetes.kinds import Kind
from fractal_sandbox.kubernetes.writing import Plan
from tests.offers.kubernetes.attempts import CONTAINERS, POD_SPECS, TEMPLATES
from tests.offers.kubernetes.rights import AdmissionPolicies, printed

Object = dict[str, Any]
PATHS: Final = {
    "v1/PodTemplate": "template",
    "v1/ReplicationController": "spec.template",
    "apps/v1/DaemonSet": "spec.template",
    "apps/v1/Deployment": "spec.template",
    "apps/v1/ReplicaSet": "spec.template",
    "apps/v1/StatefulSet": "spec.template",
    "batch/v1/CronJob": "spec.jobTemplate.spec.template",
    "batch/v1/Job": "spec.template",
}
"""Every built-in kind that describes pods, but for pods themselves, for which no rights are printed."""
HARMLESS: Final[Object] = {
    "securityContext": {"runAsNonRoot": True, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "settings"}}],
    "nodeSelector": {"disk": "ssd"},
}
HARMLESS_CONTAINER: Final[Object] = {
    "ports": [{"containerPort": 80}],
    "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    "envFrom": [{"configMapRef": {"name": "settings"}}],
    "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
    "readinessProbe": {"tcpSocket": {"port": 80}},
    "securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "c", "mountPath": "/c"}],
}


@cache
def policies() -> AdmissionPolicies:
    types = tuple(one for one in PATHS if one != "apps/v1/Deployment")
    return AdmissionPolicies(printed(PolicyOptions(with_links=True, namespaces=("default",), types=types)))


def kind_of(component_type: str) -> Kind:
    found = catalogue.find(component_type)
    assert found is not None
    kind = found.object_kind()
    return Kind(kind.group, kind.version, kind.kind, kind.plural)


def made(component_type: str, pod: Object, container: Object, template: Object | None = None) -> Object:
    """An object of a kind with this in its pods and in their container."""
    containers = [{"name": "main", "image": "x", **container}]
    inner: Any = {"metadata": {"labels": {"app": "x"}}, **(template or {}), "spec": {"containers": containers, **pod}}
    for step in reversed(PATHS[component_type].split(".")):
        inner = {step: inner}
    return {"metadata": {"name": "x", "namespace": "default"}, **inner}


def refusal(component_type: str, before: Object | None, after: Object) -> str:
    verb: Any = "create" if before is None else "update"
    return policies().refusal(Plan(kind_of(component_type), verb, before, after))


@pytest.mark.rule("A7")
@pytest.mark.parametrize("component_type", PATHS)
def test_pods_of_no_kind_run_as_somebody_or_mount_or_reach_what_is_not_their_own(component_type: str) -> None:
    plain = made(component_type, HARMLESS, HARMLESS_CONTAINER)
    assert refusal(component_type, None, plain) == ""
    assert refusal(component_type, plain, deepcopy(plain)) == ""
    for attempt in (*POD_SPECS, *CONTAINERS, *TEMPLATES):
        evil = made(component_type, POD_SPECS.get(attempt, {}), CONTAINERS.get(attempt, {}), TEMPLATES.get(attempt))
        assert "denied" in refusal(component_type, None, evil), attempt
        assert "denied" in refusal(component_type, plain, evil), attempt
        assert refusal(component_type, evil, deepcopy(evil)) == "", f"{attempt}: what somebody else put there stays"


@pytest.mark.rule("A7")
def test_every_built_in_kind_that_describes_pods_is_confined_or_refused() -> None:
    """By the published schemas: whatever leads to a container stands in one of the two tables."""
    for name in catalogue.names():
        kind = catalogue.find(name)
        assert kind is not None
        if kind.lacks or name in PATHS or kind.name.unversioned in REFUSED:
            continue
        assert not any(one.endswith(".PodSpec") for one in _definitions_in(kind.schema, kind.definitions)), name


def _definitions_in(schema: Any, definitions: Any) -> set[str]:
    """The names of all definitions that a schema leads to."""
    found: set[str] = set()
    left = [schema]
    while left:
        one = left.pop()
        values = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        left += [value for value in values if isinstance(value, dict | list)]
        reference = one.get("$ref") if isinstance(one, dict) else None
        name = reference.rpartition("/")[2] if isinstance(reference, str) else ""
        if name and name not in found:
            found.add(name)
            left.append(definitions[name])
    return found


@pytest.mark.rule("A7")
def test_pods_of_a_stateful_set_mount_the_claims_that_it_describes_and_no_others() -> None:
    mounted = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    item = made("apps/v1/StatefulSet", {}, mounted)
    assert "mount" in refusal("apps/v1/StatefulSet", None, item)
    item["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {}}]
    assert refusal("apps/v1/StatefulSet", None, item) == ""


@pytest.mark.rule("A7")
@pytest.mark.parametrize(
    "component_type",
    [
        *("admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", "v1/Endpoints", "apps/v1/ControllerRevision"),
        *("admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding", "discovery.k8s.io/v1/EndpointSlice"),
        *("certificates.k8s.io/v1/ClusterTrustBundle", "certificates.k8s.io/v1/PodCertificateRequest", "v1/Pod"),
    ],
)
def test_no_rights_are_printed_for_what_confines_the_agent_or_leads_around_it(component_type: str) -> None:
    with pytest.raises(PolicyOptionError, match="leads to more rights"):
        printed(PolicyOptions(types=(component_type,)))
