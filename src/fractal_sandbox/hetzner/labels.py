"""Labels: what Hetzner allows in them, and which resources a label selector means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fractal_sandbox.rest import Refused

__all__ = ["checked", "matches"]

_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_PREFIX = r"(?=[^/]{1,253}/)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*/"
_KEY = re.compile(rf"({_PREFIX})?{_NAME}\Z")
_VALUE = re.compile(rf"({_NAME})?\Z")
_SET = re.compile(r"(?P<key>\S+)\s+(?P<not>not\s*)?in\s*\((?P<values>[^)]*)\)\Z")


def checked(labels: Any) -> dict[str, str]:
    """Labels as they may be stored; refuses what Hetzner refuses."""
    if not isinstance(labels, dict):
        raise Refused(422, "invalid_input", "invalid input in field 'labels'")
    for key, value in labels.items():
        if not _KEY.match(key) or not isinstance(value, str) or not _VALUE.match(value):
            raise Refused(422, "invalid_input", f"invalid input in field 'labels': {key}={value}")
    return dict(labels)


def matches(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether a selector means a resource with these labels: all its comma-separated terms must hold."""
    terms = re.split(r",(?![^(]*\))", selector)
    return all(_holds(term.strip(), labels) for term in terms if term.strip())


def _holds(term: str, labels: Mapping[str, str]) -> bool:
    if found := _SET.match(term):
        values = {value.strip() for value in found["values"].split(",")}
        return (labels.get(found["key"]) in values) != bool(found["not"])
    if "!=" in term:
        key, value = term.split("!=", 1)
        return labels.get(key) != value
    if "=" in term:
        key, value = re.split(r"==?", term, maxsplit=1)
        return labels.get(key) == value
    return term[1:] not in labels if term.startswith("!") else term in labels
