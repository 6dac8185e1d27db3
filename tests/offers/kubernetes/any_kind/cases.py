"""Objects of many kinds as people write them, each with what somebody else edits in it: plain data, from YAML.

`built_in.yaml` has the built-in kinds, `custom.yaml` definitions with objects of their kinds. What is tried on them
stands in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fractal_cloud.offers.kubernetes.any_kind.manifests import parts_of
from fractal_cloud.rules.nested.path import Element, parsed

VALUE = "s3cret-value"
"""What every secret in these objects is."""


@dataclass(frozen=True)
class KindCase:
    """``change``: where somebody else edits it, and to what; ``extra``: an entry that he adds to a map that is ours.

    ``is_silent``: the edit is none of what is declared. ``status``: what a controller reports.
    """

    type: str
    parameters: Mapping[str, Any]
    change: Mapping[str, Any] | None = None
    extra: str = ""
    is_silent: bool = False
    status: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.parameters["name"])

    def resolved(self) -> dict[str, Any]:
        """Its parameters with the values of secrets."""
        found: dict[str, Any] = _filled(self.parameters)
        return found

    def edited(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The object as somebody else leaves it."""
        changed = deepcopy(dict(item))
        if self.change is not None:
            _set(changed, str(self.change["path"]), self.change["value"])
        if self.extra:
            _set(changed, self.extra, "more")
        return changed


def cases(file: str) -> list[KindCase]:
    """The objects of one file, in its order."""
    text = (Path(__file__).parent / file).read_text("utf-8")
    return [_case(one) for one in yaml.safe_load_all(text) if one]


def _case(one: Mapping[str, Any]) -> KindCase:
    component_type, parameters = parts_of(one["object"])
    silent, extra = bool(one.get("silent")), str(one.get("extra", ""))
    return KindCase(component_type, parameters, one.get("change"), extra, silent, one.get("status"))


def _filled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return VALUE if "$secret" in value else {name: _filled(one) for name, one in value.items()}
    return [_filled(one) for one in value] if isinstance(value, list) else value


def _set(item: Any, path: str, value: Any) -> None:
    *way, last = parsed(path)
    for step in way:
        if isinstance(step, Element):
            item = next(one for one in item if all(str(one.get(name)) == text for name, text in step.keys))
        else:
            item = item.setdefault(step, {})
    item[last] = value
