"""Network policies: who may talk to chosen pods, and to whom they may talk."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import field_validator, model_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.kubernetes.kinds import Labels, Object, ObjectKind, Selected, object_name
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, ObjectComponent, ObjectOffer
from fractal_cloud.offers.kubernetes.policy_rules import (
    KubernetesNetworkPolicyRule,
    from_rules,
    spelled_as,
    to_rules,
)
from fractal_cloud.offers.kubernetes.tags import glass
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.offers.offer import Wanted

NETWORK_POLICY: Final = ObjectKind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")

# Parameter, and where its peers stand in a rule.
_RULES: Mapping[str, str] = {"ingress": "from", "egress": "to"}


class KubernetesNetworkPolicy(ObjectComponent):
    """Who may talk to chosen pods, and to whom they may: what no rule allows is refused."""

    type = "NetworkAndCompute.CaaS.KubernetesNetworkPolicy"

    workload: Selected[KubernetesWorkload] | None = parameter(
        default=None,
        reference=(KubernetesWorkload.type, "selector"),
        description="The workload whose pods it is about; instead of `podSelector`.",
    )
    pod_selector: Labels | None = parameter(
        default=None, description="Labels of the pods it is about, {} for all in the namespace; instead of `workload`."
    )
    policy_types: list[Literal["Ingress", "Egress"]] | None = parameter(
        default=None,
        compare="unordered",
        min_length=1,
        description="Which directions it is about; Kubernetes takes Ingress, and Egress where there are egress rules.",
    )
    ingress: list[KubernetesNetworkPolicyRule] | None = parameter(
        default=None, compare="unordered", description="Who may talk to them, whole; [] for nobody, [{}] for everybody."
    )
    egress: list[KubernetesNetworkPolicyRule] | None = parameter(
        default=None,
        compare="unordered",
        description="To whom they may talk, whole; [] for nobody, [{}] for everybody.",
    )

    _check_name = field_validator("name")(object_name)

    @model_validator(mode="after")
    def _selects_once(self) -> Self:
        if (self.workload is None) == (self.pod_selector is None):
            raise ValueError("give either workload or podSelector, to say which pods are meant")
        return self


class KubernetesNetworkPolicyOffer(ObjectOffer[KubernetesNetworkPolicy]):
    """How network policies are read and changed."""

    component = KubernetesNetworkPolicy
    title = "Network policy"
    object_kind = NETWORK_POLICY
    vendor_type = "networking.k8s.io/v1/NetworkPolicy"
    outputs: ClassVar[Mapping[str, str]] = OUTPUTS
    glass = glass(NETWORK_POLICY)

    def actual(self, item: Object) -> dict[str, Any]:
        """Which pods, which directions, and the rules one by one."""
        spec = item["spec"]
        selector = spec.get("podSelector") or {}
        pods = dict(selector.get("matchLabels") or {})
        if selector.get("matchExpressions"):
            pods["matchExpressions"] = str(selector["matchExpressions"])
        return {
            "podSelector": pods,
            "workload": pods,
            "policyTypes": spec.get("policyTypes") or [],
            **{name: from_rules(spec.get(name), peers) for name, peers in _RULES.items()},
        }

    def as_declared(self, sighting: Sighting, declared: Mapping[str, Any], published: Mapping[str, Any]) -> Sighting:
        """With rules spelled as they are declared, where they mean the same."""
        sighting = super().as_declared(sighting, declared, published)
        rules = {
            name: spelled_as(declared[name], sighting.actual[name])
            for name in _RULES
            if isinstance(declared.get(name), list) and isinstance(sighting.actual.get(name), list)
        }
        return replace(sighting, actual={**sighting.actual, **rules})

    def apply(self, item: Object, wanted: Wanted[KubernetesNetworkPolicy], names: Collection[str]) -> None:
        """Write what is declared."""
        declared, spec = wanted.component, item["spec"]
        for name, pods in (("podSelector", declared.pod_selector), ("workload", declared.workload)):
            if name in names and isinstance(pods, dict):
                spec["podSelector"] = {"matchLabels": dict(pods)} if pods else {}
        if "policyTypes" in names:
            spec["policyTypes"] = declared.policy_types
        for name, rules in (("ingress", declared.ingress), ("egress", declared.egress)):
            if name in names:
                spec[name] = to_rules(rules or [], _RULES[name])
