"""Selectors: which objects a list or a watch is about, by labels and by fields.

Pure. A selector that cannot be read is refused as the real server refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fractal_sandbox.kubernetes.errors import bad_request
from fractal_sandbox.kubernetes.kinds import Object

__all__ = ["Selection", "parse_selection"]

_KEY: Final = r"[A-Za-z0-9]([A-Za-z0-9./_-]*[A-Za-z0-9])?"
_SET: Final = re.compile(rf"(?P<key>{_KEY})\s+(?P<how>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL: Final = re.compile(rf"(?P<key>{_KEY})\s*(?P<how>==|=|!=)\s*(?P<value>[A-Za-z0-9._-]*)")
_EXISTS: Final = re.compile(rf"(?P<absent>!)?\s*(?P<key>{_KEY})")
_FIELDS: Final = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True)
class _Requirement:
    key: str
    values: frozenset[str] | None = None  # None: any value
    is_negated: bool = False

    def fits(self, labels: Mapping[str, str]) -> bool:
        has = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return has != self.is_negated


@dataclass(frozen=True)
class Selection:
    """All requirements of one list or watch; without any, everything fits."""

    labels: tuple[_Requirement, ...] = ()
    fields: tuple[_Requirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.labels and not self.fields

    def fits(self, item: Object) -> bool:
        metadata = item["metadata"]
        labels = metadata.get("labels") or {}
        fields = {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
        return all(one.fits(labels) for one in self.labels) and all(one.fits(fields) for one in self.fields)


def parse_selection(labels: str, fields: str) -> Selection:
    """Read the two selectors of a request."""
    return Selection(
        tuple(_label_requirement(term) for term in _terms(labels)),
        tuple(_field_requirement(term) for term in _terms(fields)),
    )


def _terms(selector: str) -> list[str]:
    """Split at the commas that are not inside parentheses."""
    return [term.strip() for term in re.split(r",(?![^(]*\))", selector) if term.strip()]


def _label_requirement(term: str) -> _Requirement:
    if found := _SET.fullmatch(term):
        values = frozenset(value.strip() for value in found["values"].split(","))
        return _Requirement(found["key"], values, found["how"] == "notin")
    if found := _EQUAL.fullmatch(term):
        return _Requirement(found["key"], frozenset([found["value"]]), found["how"] == "!=")
    if found := _EXISTS.fullmatch(term):
        return _Requirement(found["key"], None, bool(found["absent"]))
    raise bad_request(f"unable to parse requirement: found {term!r}, expected: a label selector")


def _field_requirement(term: str) -> _Requirement:
    found = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", term)
    if not found:
        raise bad_request(f"invalid field selector {term!r}; can't understand it")
    key, how, value = found.groups()
    if key not in _FIELDS:
        raise bad_request(f'"{key}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    return _Requirement(key, frozenset([value]), how == "!=")
