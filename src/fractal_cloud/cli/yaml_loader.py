"""YAML as people mean it: `no` is text, 12:30 is text, a date is text, and no key stands twice in one object.

These are the scalars of YAML 1.2's core schema; the library's own are those of 1.1.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
)


MAX_DEPTH = 64
MAX_NODES = 500_000


class Loader(yaml.SafeLoader):
    """Builds plain data and nothing else, and no more of it than a file can mean (aliases multiply what they name)."""

    _depth = 0

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse what is nested deeper than any declaration, before it is read to its end."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # PyYAML has no types for it
            raise yaml.composer.ComposerError(
                None, None, f"is nested deeper than {MAX_DEPTH} levels: declare it flatter", mark
            )
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def compose_document(self) -> yaml.Node | None:
        """Refuse aliases that stand for more than a file can mean, before anything is built of them."""
        node = super().compose_document()
        if node is not None:
            _weigh(node, {}, set())
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that stands twice, instead of silently taking the last."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands twice in one object: keep one of them", key.start_mark
                )
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Read decimal, octal (0o17) and hexadecimal numbers; a leading zero means nothing."""
        text = str(self.construct_scalar(node))
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _weigh(node: yaml.Node, known: dict[int, int], inside: set[int]) -> int:
    """How many values a node stands for, those counted again that an alias repeats."""
    if id(node) in inside:
        raise yaml.composer.ComposerError(None, None, "has an alias that contains itself", node.start_mark)
    if id(node) not in known:
        inside.add(id(node))
        parts = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_weigh(part, known, inside) for part in parts)
        inside.discard(id(node))
        if known[id(node)] > MAX_NODES:
            text = f"its aliases stand for more than {MAX_NODES:,} values: write fewer"
            raise yaml.composer.ComposerError(None, None, text, node.start_mark)
    return known[id(node)]


for _name, _pattern, _first in _SCALARS:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(rf"(?:{_pattern})$"), list(_first))
Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
