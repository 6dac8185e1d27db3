"""Selectors that match no pods of any workload declared beside them: nobody is served, or everybody is shut out. Pure.

Pods of others may run in the same namespace, so this warns and refuses nothing; where no workload is declared at all,
nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.offers.family import Declared
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import type_name
from fractal_cloud.offers.kubernetes.any_kind.linked_pods import POD_TEMPLATE
from fractal_cloud.offers.kubernetes.any_kind.tables import POD_TEMPLATES
from fractal_cloud.offers.kubernetes.network_policy import KubernetesNetworkPolicy
from fractal_cloud.offers.kubernetes.policy_rules import is_reference, parsed_labels
from fractal_cloud.offers.kubernetes.service import KubernetesService
from fractal_cloud.offers.kubernetes.workload import SELECTED_BY, KubernetesWorkload

_SHOWN: Final = 5
_OF_NAMESPACE: Final = "kubernetes.io/metadata.name"
Labels = Mapping[str, str]
Place = tuple[str, str]
"""Cluster and namespace, as they are declared."""


@dataclass(frozen=True, slots=True)
class _Workload:
    """Something that runs pods: ``kind`` as in ``apps/Deployment``."""

    kind: str
    name: str
    labels: Labels


@dataclass(frozen=True, slots=True)
class _Selects:
    """One selector of a component. ``what`` it is for; ``matching``: as the API spells a label selector."""

    what: str
    place: Place
    matching: Mapping[str, Any]


def warnings(components: Sequence[Declared]) -> Iterator[str]:
    """What matches none of the workloads that are declared in its namespace, while there are some."""
    workloads: dict[Place, list[_Workload]] = {}
    for one in components:
        found = _workload(one)
        if found is not None:
            workloads.setdefault(_place(one), []).append(found)
    for one in components:
        for selects in _selectors(one):
            there = workloads.get(selects.place, [])
            if there and not any(_matches(selects.matching, workload.labels) for workload in there):
                where = (
                    f"no workload declared in namespace {selects.place[1]!r} has: their pods have {_labels_in(there)}"
                )
                yield f"{one.id!r}: {selects.what} has {_text(selects.matching)}, which {where}"
        target = _scaled(one)
        there = workloads.get(_place(one), [])
        if target is not None and there and not any((each.kind, each.name) == target for each in there):
            known = ", ".join(sorted(f"{each.kind} {each.name!r}" for each in there)[:_SHOWN])
            yield (
                f"{one.id!r}: it scales {target[0]} {target[1]!r}, which is not declared in namespace "
                f"{_place(one)[1]!r}: declared there are {known}"
            )


def _place(component: Declared, namespace: str = "") -> Place:
    given = component.parameters
    found = namespace or _word(given.get("namespace")) or "default"
    return _word(given.get("cluster")), found


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _name(component: Declared) -> str:
    return _word(component.parameters.get("name")) or component.id


def _workload(component: Declared) -> _Workload | None:
    given = component.parameters
    if component.type == KubernetesWorkload.type:
        labels = {**_labels(given.get("podLabels")), SELECTED_BY: _name(component)}
        return _Workload("apps/Deployment", _name(component), labels)
    name = type_name(component.type)
    if name is None:
        return None
    if name.unversioned == "Pod":
        return _Workload("Pod", _name(component), _labels(_at(given, "metadata.labels")))
    place = _word(given.get(POD_TEMPLATE)) or POD_TEMPLATES.get(name.unversioned, "")
    if not place or name.unversioned == "PodTemplate" or not isinstance(_at(given, place), Mapping):
        return None
    return _Workload(name.unversioned, _name(component), _labels(_at(given, f"{place}.metadata.labels")))


def _selectors(component: Declared) -> Iterator[_Selects]:
    """Every selector that says which pods are meant; one that means all, or refers to a component, is none."""
    for what, place, selector in _said(component):
        if selector and not any(key.startswith("$") for key in selector) and _is_plain(selector):
            yield _Selects(what, place, selector)


def _said(component: Declared) -> Iterator[tuple[str, Place, Mapping[str, Any]]]:
    here, given, spec = _place(component), component.parameters, component.parameters.get("spec")
    name = type_name(component.type)
    if component.type == KubernetesService.type:
        yield "its selector", here, _match(given.get("selector"))
    elif component.type == KubernetesNetworkPolicy.type:
        yield "its podSelector", here, _match(given.get("podSelector"))
        for direction in ("ingress", "egress"):
            for rule in _maps(given.get(direction)):
                if rule.get("namespaceSelector") is None:
                    yield f"a peer in {direction}", here, _match(_parsed(rule.get("podSelector")))
    elif name is not None and isinstance(spec, Mapping):
        yield from _of_kind(component, name.unversioned, spec)


def _of_kind(component: Declared, kind: str, spec: Mapping[str, Any]) -> Iterator[tuple[str, Place, Mapping[str, Any]]]:
    here = _place(component)
    if kind == "Service":
        yield "its selector", here, _match(spec.get("selector"))
    elif kind == "policy/PodDisruptionBudget":
        yield "its selector", here, _mapping(spec.get("selector"))
    elif kind == "networking.k8s.io/NetworkPolicy":
        yield "its podSelector", here, _mapping(spec.get("podSelector"))
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for rule in _maps(spec.get(direction)):
                for peer in _maps(rule.get(peers)):
                    where = _place_of(component, peer)
                    if where is not None:
                        yield f"a peer in {direction}", where, _mapping(peer.get("podSelector"))


def _place_of(component: Declared, peer: Mapping[str, Any]) -> Place | None:
    """The one namespace that a peer is in; None where it may be in several."""
    said = peer.get("namespaceSelector")
    if said is None:
        return _place(component)
    matching = _mapping(_mapping(said).get("matchLabels"))
    is_one = set(_mapping(said)) == {"matchLabels"} and set(matching) == {_OF_NAMESPACE}
    return _place(component, _word(matching[_OF_NAMESPACE])) if is_one else None


def _scaled(component: Declared) -> tuple[str, str] | None:
    """What an autoscaler scales, where that is a kind of which workloads are."""
    name = type_name(component.type)
    if name is None or name.unversioned != "autoscaling/HorizontalPodAutoscaler":
        return None
    target = _mapping(_at(component.parameters, "spec.scaleTargetRef"))
    group, _, _ = _word(target.get("apiVersion")).rpartition("/")
    kind = f"{group}/{_word(target.get('kind'))}" if group else _word(target.get("kind"))
    named = _word(target.get("name"))
    return (kind, named) if kind in POD_TEMPLATES and named and "$" not in named else None


def _match(labels: Any) -> Mapping[str, Any]:
    return {"matchLabels": labels} if isinstance(labels, Mapping) and labels else {}


def _parsed(selector: Any) -> Any:
    """A peer's labels, which may be written as text; nothing where they are those of a component."""
    if not isinstance(selector, str):
        return selector
    try:
        return None if is_reference(selector) else parsed_labels(selector)
    except ValueError:
        return None


def _is_plain(selector: Mapping[str, Any]) -> bool:
    """Whether a selector says labels, and refers to nothing that is known only later."""
    labels = _mapping(selector.get("matchLabels"))
    return not any(key.startswith("$") or not isinstance(one, str) or "${" in one for key, one in labels.items())


def _matches(selector: Mapping[str, Any], labels: Labels) -> bool:
    wanted = _mapping(selector.get("matchLabels"))
    if any("${" in labels.get(key, "") for key in wanted):
        return True  # what it will be is not known yet
    return all(labels.get(key) == one for key, one in wanted.items()) and all(
        _fits(one, labels) for one in _maps(selector.get("matchExpressions"))
    )


def _fits(expression: Mapping[str, Any], labels: Labels) -> bool:
    key, values = _word(expression.get("key")), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return True


def _text(selector: Mapping[str, Any]) -> str:
    parts = [f"{key}={one}" for key, one in sorted(_mapping(selector.get("matchLabels")).items())]
    for one in _maps(selector.get("matchExpressions")):
        values = ",".join(map(str, one.get("values") or ()))
        parts.append(f"{one.get('key')} {one.get('operator')}" + (f" ({values})" if values else ""))
    return ",".join(parts)


def _labels_in(workloads: Sequence[_Workload]) -> str:
    found = sorted({",".join(f"{k}={v}" for k, v in sorted(one.labels.items())) or "no labels" for one in workloads})
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _labels(value: Any) -> dict[str, str]:
    return {str(key): str(one) for key, one in value.items()} if isinstance(value, Mapping) else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _at(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = values.get(name) if isinstance(values, Mapping) else None
    return values
