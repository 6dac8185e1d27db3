"""Where values stand in a declaration written in YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from fractal_cloud.cli.absorbing.nodes import Node
from fractal_cloud.cli.absorbing.python import parameters_in
from fractal_cloud.cli.yaml_loader import Loader
from fractal_cloud.model.visible_text import escaped_json, hidden_character


class Yaml:
    """One document or several, as `fractal deploy` takes them."""

    comment = "#"

    def places(self, text: str, live_system: str, component: str, names: Iterable[str]) -> Mapping[str, Node]:
        """Where the parameters of a component stand."""
        del names
        documents = [_node(found) for found in yaml.compose_all(text, Loader) if found is not None]
        return parameters_in(documents, text, live_system, component)

    def written(self, value: Any, quote: str = "") -> str:
        """A value on one line, in the quotes that stood there; in double quotes where YAML would read it otherwise."""
        if isinstance(value, list):
            return f"[{', '.join(self._inside(one) for one in value)}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self._inside(key)}: {self._inside(one)}' for key, one in value.items())}}}"
        if not isinstance(value, str):
            return json.dumps(value)
        if quote == "'" and "'" not in value and value.isprintable():
            return f"'{value}'"
        if quote == '"' or hidden_character(value) is not None or not _reads_as(value, value):
            return escaped_json(json.dumps(value, ensure_ascii=False))
        return value

    def _inside(self, value: Any) -> str:
        """A value inside a list or a map on one line, where some more characters mean something."""
        text = self.written(value)
        if isinstance(value, str) and text == value and set(value) & set(",[]{}"):
            return escaped_json(json.dumps(value, ensure_ascii=False))
        return text


def _reads_as(text: str, value: Any) -> bool:
    try:
        return bool(yaml.load(f"a: {text}\n", Loader) == {"a": value})  # noqa: S506 - it builds plain data only
    except yaml.YAMLError:
        return False


def _node(found: yaml.Node) -> Node:
    start, line = found.start_mark.index, found.start_mark.line + 1
    if isinstance(found, yaml.SequenceNode):
        items = [_node(one) for one in found.value]
        end = items[-1].end if items and not found.flow_style else found.end_mark.index
        return Node(start, end, line, items=items, is_block=not found.flow_style)
    if isinstance(found, yaml.MappingNode):
        entries = {str(key.value): _node(value) for key, value in found.value}
        ends = [node.end for node in entries.values()]
        end = max(ends) if ends and not found.flow_style else found.end_mark.index
        return Node(start, end, line, entries=entries)
    style = found.style or "" if isinstance(found, yaml.ScalarNode) else ""
    return Node(start, found.end_mark.index, line, is_plain=style not in ("|", ">"), quote=style)
