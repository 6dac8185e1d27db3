"""Where values stand in a declaration written in Python, and in JSON, whose words Python can read too."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from pydantic.alias_generators import to_camel

from fractal_cloud.cli.absorbing.nodes import ByHand, Node
from fractal_cloud.model.visible_text import escaped_json

_JSON_WORDS = ("true", "false", "null")


class _Source:
    """A text and the values in it."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines(keepends=True)
        self._lines = lines
        self._starts = [0, *accumulate(map(len, lines))]

    def node(self, found: ast.expr) -> Node:
        """A value, with its parts."""
        items: list[Node] | None = None
        entries: dict[str, Node] | None = None
        is_plain = _is_word(found)
        if isinstance(found, ast.List | ast.Tuple):
            items = [self.node(one) for one in found.elts]
            is_plain = all(item.is_plain for item in items)
        elif isinstance(found, ast.Dict):
            entries = {
                key.value: self.node(value)
                for key, value in zip(found.keys, found.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
            is_plain = len(entries) == len(found.keys) and all(entry.is_plain for entry in entries.values())
        elif isinstance(found, ast.Call) and not found.args:
            entries = {_parameter(word.arg): self.node(word.value) for word in found.keywords if word.arg is not None}
        return Node(*self._span(found), found.lineno, items, entries, is_plain)

    def _span(self, found: ast.expr) -> tuple[int, int]:
        assert found.end_lineno is not None
        assert found.end_col_offset is not None
        return self._at(found.lineno, found.col_offset), self._at(found.end_lineno, found.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        """A position in the text; Python counts columns in bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _is_word(found: ast.expr) -> bool:
    if isinstance(found, ast.UnaryOp) and isinstance(found.op, ast.USub):
        found = found.operand
    return isinstance(found, ast.Constant) or (isinstance(found, ast.Name) and found.id in _JSON_WORDS)


class Python:
    """Components are calls that name an id: `nc.aws.vpc(id="net")`, `aws.resource("AWS::SQS::Queue", "jobs")`."""

    comment = "#"

    def places(self, text: str, live_system: str, component: str, names: Iterable[str]) -> Mapping[str, Node]:
        """Where the arguments of the one call stand that makes a component of this id."""
        del live_system
        source = _Source(text)
        calls = [call for call in _calls(ast.parse(text)) if _id_of(call) == component]
        wanted = set(names)
        calls = [call for call in calls if wanted <= {_parameter(word.arg or "") for word in call.keywords}] or calls
        if len(calls) != 1:
            many = f"{len(calls)} calls make" if calls else "no call makes"
            raise ByHand(f'{many} a component with id="{component}"')
        return {_parameter(word.arg): source.node(word.value) for word in calls[0].keywords if word.arg is not None}

    def written(self, value: Any, quote: str = "") -> str:
        """A value as Python writes it, in double quotes."""
        del quote
        if isinstance(value, str):
            return escaped_json(json.dumps(value, ensure_ascii=False))
        if isinstance(value, list):
            return f"[{', '.join(map(self.written, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self.written(key)}: {self.written(one)}' for key, one in value.items())}}}"
        return repr(value)


class Json:
    """One object, or a list of objects, as `fractal deploy` takes them."""

    comment = ""

    def places(self, text: str, live_system: str, component: str, names: Iterable[str]) -> Mapping[str, Node]:
        """Where the parameters of a component stand."""
        del names
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # \/ is fine in JSON
            whole = _Source(text).node(ast.parse(text.strip() and text, mode="eval").body)
        return parameters_in([whole], text, live_system, component)

    def written(self, value: Any, quote: str = "") -> str:
        """A value as JSON."""
        del quote
        return escaped_json(json.dumps(value, ensure_ascii=False))


def parameters_in(documents: Iterable[Node], text: str, live_system: str, component: str) -> Mapping[str, Node]:
    """The parameters of a component of a LiveSystem, in documents that hold plain objects."""

    def said(node: Node | None) -> str:
        return "" if node is None else text[node.start : node.end].strip("\"'")

    for document in documents:
        for whole in document.items or [document]:
            entries = whole.entries or {}
            if said(entries.get("id")) != live_system or "components" not in entries:
                continue
            for one in entries["components"].items or []:
                parts = one.entries or {}
                if said(parts.get("id")) == component and "parameters" in parts:
                    return parts["parameters"].entries or {}
    raise ByHand(f"the parameters of {component!r} are not written out in it")


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _parameter(word: str) -> str:
    """The parameter that a keyword sets: types by their vendor's own names keep these as they are."""
    return word if word != word.lower() else to_camel(word)


def _id_of(call: ast.Call) -> str | None:
    """The id of the component that a call makes: its keyword, or what stands after the name of the type."""
    named = [word.value for word in call.keywords if word.arg == "id"]
    after_type = call.args[1:2] if _is_resource(call.func) else []
    for found in (*named, *after_type):
        if isinstance(found, ast.Constant) and isinstance(found.value, str):
            return found.value
    return None


def _is_resource(function: ast.expr) -> bool:
    """Whether a call is `aws.resource("AWS::SQS::Queue", "jobs")`, or that of another provider."""
    return isinstance(function, ast.Attribute) and function.attr == "resource"
