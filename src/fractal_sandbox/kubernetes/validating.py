"""What the API server refuses to keep: bad names and labels, missing fields, and changes to what cannot change.

Pure. Only the rules that a provider of ours can run into; the words are the real server's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from fractal_sandbox.kubernetes.errors import Cause, invalid
from fractal_sandbox.kubernetes.kinds import Kind, Object
from fractal_sandbox.kubernetes.quantities import value_of

__all__ = ["validate", "validate_change"]

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PATTERNS: Final = {
    _DNS_LABEL: (
        (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character"
        ),
        "'my-name',  or '123-abc'",
    ),
    _DNS_1035: (
        (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character"
        ),
        "'my-name',  or 'abc-123'",
    ),
    _SUBDOMAIN: (
        (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character"
        ),
        "'example.com'",
    ),
}
_NAME_PART: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DATA_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_ANNOTATIONS: Final = 256 * 1024
_IMMUTABLE: Final = "field is immutable"


def validate(kind: Kind, item: Object, causes: list[Cause] | None = None) -> None:
    """Raise the refusal of an object that breaks rules, with all of them, and with those found before."""
    found = [*(causes or []), *_metadata(kind, item["metadata"])]
    if kind.kind in _RULES and not kind.is_custom:
        found += _RULES[kind.kind](item)
    if found:
        raise invalid(kind, item["metadata"]["name"], found)


def validate_change(kind: Kind, before: Object, after: Object) -> None:
    """Raise the refusal of a change to what cannot change."""
    if kind.is_custom or kind.kind not in _CHANGES:
        return
    found = _CHANGES[kind.kind](before, after)
    if found:
        raise invalid(kind, after["metadata"]["name"], found)


# Metadata


def _metadata(kind: Kind, metadata: Object) -> list[Cause]:
    found = _name(kind, metadata["name"])
    for key, value in (metadata.get("labels") or {}).items():
        found += _label("metadata.labels", key, value)
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        found += _qualified("metadata.annotations", key.lower())
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > _ANNOTATIONS:
        found.append(
            Cause("metadata.annotations", f"Too long: must have at most {_ANNOTATIONS} bytes", "FieldValueTooLong")
        )
    return found


def _name(kind: Kind, name: str) -> list[Cause]:
    if kind.kind == "Service" and not kind.is_custom:
        return _name_by(_DNS_1035, 63, name)
    return _name_by(_DNS_LABEL, 63, name) if kind.kind == "Namespace" else _name_by(_SUBDOMAIN, 253, name)


def _name_by(pattern: re.Pattern[str], limit: int, name: str, field: str = "metadata.name") -> list[Cause]:
    if len(name) > limit:
        return [Cause.wrong(field, name, f"must be no more than {limit} characters")]
    if pattern.fullmatch(name):
        return []
    what, example = _PATTERNS[pattern]
    return [Cause.wrong(field, name, f"{what} (e.g. {example}, regex used for validation is '{pattern.pattern}')")]


def _label(field: str, key: str, value: Any) -> list[Cause]:
    found = _qualified(field, key)
    text = str(value)
    if len(text.encode()) > 63:
        found.append(Cause.wrong(field, text, "must be no more than 63 characters"))
    if text and not _NAME_PART.fullmatch(text):
        why = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )
        found.append(Cause.wrong(field, text, why))
    return found


def _qualified(field: str, key: str) -> list[Cause]:
    prefix, _, name = key.rpartition("/")
    if not _NAME_PART.fullmatch(name) or len(name) > 63:
        why = (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        )
        return [Cause.wrong(field, key, why)]
    if "/" in key and (not _SUBDOMAIN.fullmatch(prefix) or len(prefix) > 253):
        return [
            Cause.wrong(field, key, "prefix part a lowercase RFC 1123 subdomain must consist of lower case letters")
        ]
    return []


# Kinds


def _deployment(item: Object) -> list[Cause]:
    spec = item["spec"]
    found = []
    if not isinstance(spec["replicas"], int) or spec["replicas"] < 0:
        found.append(Cause.wrong("spec.replicas", spec["replicas"], "must be greater than or equal to 0"))
    selector = (spec.get("selector") or {}).get("matchLabels") or {}
    labels = spec["template"]["metadata"].get("labels") or {}
    for key, value in labels.items():
        found += _label("spec.template.metadata.labels", key, value)
    if "selector" not in spec:
        found.append(Cause.required("spec.selector"))
    elif not selector and not spec["selector"].get("matchExpressions"):
        found.append(Cause.wrong("spec.selector", "{}", "empty selector is invalid for deployment"))
    if "selector" not in spec or any(labels.get(key) != value for key, value in selector.items()):
        why = "`selector` does not match template `labels`"
        found.append(Cause.wrong("spec.template.metadata.labels", labels, why))
    if spec["strategy"]["type"] == "Recreate" and "rollingUpdate" in spec["strategy"]:
        why = "may not be specified when strategy `type` is 'Recreate'"
        found.append(Cause.prohibited("spec.strategy.rollingUpdate", why))
    if spec["template"]["spec"]["restartPolicy"] != "Always":
        why = f'Unsupported value: "{spec["template"]["spec"]["restartPolicy"]}": supported values: "Always"'
        found.append(Cause("spec.template.spec.restartPolicy", why, "FieldValueNotSupported"))
    return found + _pod_spec("spec.template.spec", spec["template"]["spec"])


def _pod(item: Object) -> list[Cause]:
    return _pod_spec("spec", item["spec"])


def _pod_spec(path: str, spec: Object) -> list[Cause]:
    containers = spec.get("containers") or []
    if not containers:
        return [Cause.required(f"{path}.containers")]
    found: list[Cause] = []
    names: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}.containers[{index}]"
        name = container.get("name", "")
        if not name:
            found.append(Cause.required(f"{at}.name"))
        elif wrong := _name_by(_DNS_LABEL, 63, name, f"{at}.name"):
            found += wrong
        elif name in names:
            found.append(Cause(f"{at}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate"))
        names.add(name)
        if not container.get("image"):
            found.append(Cause.required(f"{at}.image"))
        for place, port in enumerate(container.get("ports") or []):
            found += _port(f"{at}.ports[{place}].containerPort", port.get("containerPort"))
        found += _resources(f"{at}.resources", container.get("resources") or {})
    return found


def _port(field: str, port: Any) -> list[Cause]:
    if port is None:
        return [Cause.required(field)]
    if not isinstance(port, int) or not 1 <= port <= 65535:
        return [Cause.wrong(field, port, "must be between 1 and 65535, inclusive")]
    return []


def _resources(path: str, resources: Object) -> list[Cause]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return [
        Cause.wrong(f"{path}.requests", requests[key], f"must be less than or equal to {key} limit")
        for key in sorted(requests.keys() & limits.keys())
        if value_of(requests[key]) > value_of(limits[key])
    ]


def _service(item: Object) -> list[Cause]:
    spec = item["spec"]
    ports = spec.get("ports") or []
    found: list[Cause] = []
    if spec["type"] == "ExternalName":
        if not spec.get("externalName"):
            found.append(Cause.required("spec.externalName"))
        if spec.get("clusterIP"):
            found.append(Cause.prohibited("spec.clusterIP", "may not be set when `type` is 'ExternalName'"))
    elif not ports and spec.get("clusterIP") != "None":
        found.append(Cause.required("spec.ports"))
    if spec["type"] not in ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"):
        known = '"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
        why = f'Unsupported value: "{spec["type"]}": supported values: {known}'
        found.append(Cause("spec.type", why, "FieldValueNotSupported"))
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = f"spec.ports[{index}]"
        found += _port(f"{at}.port", port.get("port"))
        if isinstance(port.get("targetPort"), int):
            found += _port(f"{at}.targetPort", port["targetPort"])
        name = port.get("name", "")
        if not name and len(ports) > 1:
            found.append(Cause.required(f"{at}.name"))
        elif name and name in seen:
            found.append(Cause(f"{at}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate"))
        seen.add(name)
    for key, value in (spec.get("selector") or {}).items():
        found += _label("spec.selector", key, value)
    return found


def _claim(item: Object) -> list[Cause]:
    spec = item["spec"]
    found = []
    if not spec.get("accessModes"):
        found.append(Cause.required("spec.accessModes", "at least 1 access mode is required"))
    storage = (spec["resources"].get("requests") or {}).get("storage")
    if storage is None:
        found.append(Cause.required("spec.resources[storage]"))
    elif value_of(storage) <= 0:
        found.append(Cause.wrong("spec.resources[storage]", storage, "must be greater than zero"))
    return found


def _data(item: Object) -> list[Cause]:
    why = (
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME', "
        f" or 'key-name', regex used for validation is '{_DATA_KEY.pattern}')"
    )
    return [
        Cause.wrong(f"{field}[{key}]", key, why)
        for field in ("data", "binaryData")
        for key in item.get(field) or {}
        if not _DATA_KEY.fullmatch(key) or len(key) > 253
    ]


def _network_policy(item: Object) -> list[Cause]:
    found = []
    spec = item["spec"]
    for direction in ("ingress", "egress"):
        for index, rule in enumerate(spec.get(direction) or []):
            for place, port in enumerate(rule.get("ports") or []):
                if isinstance(port.get("port"), int):
                    found += _port(f"spec.{direction}[{index}].ports[{place}].port", port["port"])
            for place, peer in enumerate(rule.get("from" if direction == "ingress" else "to") or []):
                if not peer:
                    at = f"spec.{direction}[{index}].{'from' if direction == 'ingress' else 'to'}[{place}]"
                    found.append(Cause.required(at, "must specify a peer"))
    for index, kind in enumerate(spec["policyTypes"]):
        if kind not in ("Ingress", "Egress"):
            why = f'Unsupported value: "{kind}": supported values: "Ingress", "Egress"'
            found.append(Cause(f"spec.policyTypes[{index}]", why, "FieldValueNotSupported"))
    return found


def _definition(item: Object) -> list[Cause]:
    spec, name = item["spec"], item["metadata"]["name"]
    found = [Cause.required(f"spec.{field}") for field in ("group", "scope", "versions") if not spec.get(field)]
    found += [Cause.required(f"spec.names.{field}") for field in ("plural", "kind") if not spec["names"].get(field)]
    if not found and name != f"{spec['names']['plural']}.{spec['group']}":
        found.append(Cause.wrong("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    return found


_RULES: Final[dict[str, Callable[[Object], list[Cause]]]] = {
    "Deployment": _deployment,
    "Pod": _pod,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
    "Secret": _data,
    "ConfigMap": _data,
    "NetworkPolicy": _network_policy,
    "CustomResourceDefinition": _definition,
}


# Changes


def _changed_deployment(before: Object, after: Object) -> list[Cause]:
    if before["spec"]["selector"] == after["spec"].get("selector"):
        return []
    return [Cause.wrong("spec.selector", json.dumps(after["spec"].get("selector")), _IMMUTABLE)]


def _changed_service(before: Object, after: Object) -> list[Cause]:
    old, new = before["spec"], after["spec"]
    if "ExternalName" in (old["type"], new["type"]) or not old.get("clusterIP"):
        return []
    if old["clusterIP"] != new.get("clusterIP"):
        return [Cause.wrong("spec.clusterIPs[0]", [new.get("clusterIP", "")], "may not change once set")]
    return []


def _changed_claim(before: Object, after: Object) -> list[Cause]:
    old, new = before["spec"], after["spec"]
    was, wanted = (value_of(spec["resources"]["requests"]["storage"]) for spec in (old, new))
    is_bound = before.get("status", {}).get("phase") == "Bound"
    apart = ("resources", "volumeAttributesClassName") if is_bound else ()
    if {k: v for k, v in old.items() if k not in apart} != {k: v for k, v in new.items() if k not in apart}:
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        return [Cause.prohibited("spec", why)]
    if wanted < was:
        return [Cause.prohibited("spec.resources.requests.storage", "field can not be less than previous value")]
    return []


def _changed_secret(before: Object, after: Object) -> list[Cause]:
    found = []
    if before.get("type") != after.get("type"):
        found.append(Cause.wrong("type", after.get("type"), _IMMUTABLE))
    if before.get("immutable"):
        if not after.get("immutable"):
            found.append(Cause.prohibited("immutable", "field is immutable when `immutable` is set"))
        found += [
            Cause.prohibited(field, "field is immutable when `immutable` is set")
            for field in ("data", "binaryData")
            if before.get(field) != after.get(field)
        ]
    return found


_CHANGES: Final[dict[str, Callable[[Object, Object], list[Cause]]]] = {
    "Deployment": _changed_deployment,
    "Service": _changed_service,
    "PersistentVolumeClaim": _changed_claim,
    "Secret": _changed_secret,
    "ConfigMap": _changed_secret,
}
