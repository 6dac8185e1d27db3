"""Reading objects in Kubernetes' protobuf, in which newer kubectls send what `kubectl create …` makes.

Only the fields that those commands fill; anything else that is not empty is refused rather than lost. Answers are
always JSON, which every client accepts. Field numbers are those of the API's published `generated.proto` files.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final

from fractal_sandbox.kubernetes.kinds import Object

__all__ = ["MEDIA_TYPE", "decode"]

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"

# number: (name, type). A type is a scalar, a message, `[…]` for a repeated one, or `{…}` for a map from text to one.
_MESSAGES: Final[dict[str, dict[int, tuple[str, str]]]] = {
    "Unknown": {1: ("type", "TypeMeta"), 2: ("raw", "raw")},
    "TypeMeta": {1: ("apiVersion", "text"), 2: ("kind", "text")},
    "ObjectMeta": {
        1: ("name", "text"),
        2: ("generateName", "text"),
        3: ("namespace", "text"),
        11: ("labels", "{text}"),
        12: ("annotations", "{text}"),
        14: ("finalizers", "[text]"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta")},
    "ServiceAccount": {1: ("metadata", "ObjectMeta")},
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{bytes}"),
        3: ("type", "text"),
        4: ("stringData", "{text}"),
        5: ("immutable", "flag"),
    },
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{text}"),
        3: ("binaryData", "{bytes}"),
        4: ("immutable", "flag"),
    },
    "Service": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ServiceSpec")},
    "ServiceSpec": {
        1: ("ports", "[ServicePort]"),
        2: ("selector", "{text}"),
        3: ("clusterIP", "text"),
        4: ("type", "text"),
        7: ("sessionAffinity", "text"),
        10: ("externalName", "text"),
        11: ("externalTrafficPolicy", "text"),
    },
    "ServicePort": {
        1: ("name", "text"),
        2: ("protocol", "text"),
        3: ("port", "number"),
        4: ("targetPort", "IntOrString"),
        5: ("nodePort", "number"),
    },
    "IntOrString": {1: ("type", "number"), 2: ("number", "number"), 3: ("text", "text")},
    "Deployment": {1: ("metadata", "ObjectMeta"), 2: ("spec", "DeploymentSpec")},
    "DeploymentSpec": {
        1: ("replicas", "number"),
        2: ("selector", "LabelSelector"),
        3: ("template", "PodTemplateSpec"),
    },
    "LabelSelector": {1: ("matchLabels", "{text}")},
    "PodTemplateSpec": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodSpec")},
    "PodSpec": {2: ("containers", "[Container]"), 3: ("restartPolicy", "text"), 8: ("serviceAccountName", "text")},
    "Container": {
        1: ("name", "text"),
        2: ("image", "text"),
        3: ("command", "[text]"),
        4: ("args", "[text]"),
        6: ("ports", "[ContainerPort]"),
        7: ("env", "[EnvVar]"),
    },
    "ContainerPort": {1: ("name", "text"), 3: ("containerPort", "number"), 4: ("protocol", "text")},
    "EnvVar": {1: ("name", "text"), 2: ("value", "text")},
    "DeleteOptions": {1: ("gracePeriodSeconds", "number"), 2: ("preconditions", "Preconditions")},
    "Preconditions": {1: ("uid", "text"), 2: ("resourceVersion", "text")},
}
_KEPT_ZERO: Final = ("replicas",)  # Go sends this one only if it was set


def decode(body: bytes) -> Object:
    """Return the object in a body; raises ValueError where it is none, or holds what is not known here."""
    if not body.startswith(_MAGIC):
        raise ValueError("the body does not begin as Kubernetes' protobuf does")
    envelope = _message("Unknown", body[len(_MAGIC) :])
    kind = envelope["type"]["kind"]
    if kind not in _MESSAGES:
        raise ValueError(f"{kind} is not read in protobuf here: send JSON")
    return {**envelope["type"], **_message(kind, envelope["raw"])}


def _message(kind: str, data: bytes) -> Object:
    found: Object = {}
    for number, value in _fields(data):
        if number not in _MESSAGES[kind]:
            if not _is_empty(value):
                raise ValueError(f"field {number} of {kind} is not read in protobuf here: send JSON")
            continue
        name, form = _MESSAGES[kind][number]
        if form.startswith("["):
            found.setdefault(name, []).append(_value(form[1:-1], value))
        elif form.startswith("{"):
            assert isinstance(value, bytes)
            pair = dict(_fields(value))
            found.setdefault(name, {})[_value("text", pair[1])] = _value(form[1:-1], pair.get(2, b""))
        else:
            read = _value(form, value)
            if read not in ("", 0, False, {}) or name in _KEPT_ZERO:
                found[name] = read
    return found


def _value(form: str, value: int | bytes) -> Any:
    if isinstance(value, int):
        return bool(value) if form == "flag" else value
    if form == "text":
        return value.decode()
    if form == "bytes":
        return base64.b64encode(value).decode()
    if form == "raw":
        return value
    read = _message(form, value)
    if form == "IntOrString":
        return read.get("text", "") if read.get("type") else read.get("number", 0)
    return read


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _varint(data, at)
        if key & 7 == 0:
            yield key >> 3, value
        elif key & 7 == 2:
            yield key >> 3, data[at : at + value]
            at += value
        else:
            raise ValueError("a field has a type that no object of Kubernetes uses")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data):
            raise ValueError("the body ends in the middle of a number")
        number |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return number, at


def _is_empty(value: int | bytes) -> bool:
    """Return whether a value says nothing: Go writes empty messages and zeros out."""
    if isinstance(value, int):
        return value == 0
    try:
        return all(_is_empty(inner) for _, inner in _fields(value))
    except ValueError:
        return False
