"""Comments of a YAML document, by what they stand at: so that they can be written again beside the same field.

PyYAML drops comments, but says where every value begins and ends: what lies between is read from the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

Path = tuple[str | int, ...]
_BEHIND: Final = re.compile(r"[\s:,\]}\[{|>+-]*\s(#.*)$")
_OF_HELM: Final = "# Source: "


@dataclass(frozen=True, slots=True)
class Comments:
    """``above``: lines that stand above a field; ``beside``: what stands behind it; ``after``: behind everything."""

    above: dict[Path, list[str]] = field(default_factory=dict)
    beside: dict[Path, str] = field(default_factory=dict)
    after: list[str] = field(default_factory=list)

    def below(self, *start: str | int) -> Comments:
        """Those of the value at a path, by the rest of their paths."""
        size = len(start)
        return Comments(
            {path[size:]: lines for path, lines in self.above.items() if path[:size] == start},
            {path[size:]: text for path, text in self.beside.items() if path[:size] == start},
        )


def places(node: yaml.Node, path: Path = ()) -> Iterator[tuple[int, int, Path]]:
    """The line and column at which each field and each entry of a list begins, outer ones first."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            yield key.start_mark.line, key.start_mark.column, here
            yield from places(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield value.start_mark.line, value.start_mark.column, (*path, index)
            yield from places(value, (*path, index))


def comments_of(text: str, node: yaml.Node) -> Comments:
    """The comments of one document of a text."""
    lines = text.splitlines()
    first, last = _reach(lines, node)
    ends, inside = _ends(node)
    begins: dict[int, Path] = {}
    for row, _, place in places(node):
        begins.setdefault(row, place)
    found = Comments()
    waiting: list[str] = []
    for number in range(first, last):
        if number in inside:
            continue
        line, path = lines[number], begins.get(number)
        if path is not None and waiting:
            found.above[path] = waiting
            waiting = []
        if line.lstrip().startswith("#"):
            waiting += [line.strip()] if not line.startswith(_OF_HELM) else []
        elif path is not None and (behind := _BEHIND.match(line[ends.get(number, len(line)) :])):
            found.beside[path] = behind[1].strip()
    found.after.extend(waiting)
    return found


def _reach(lines: list[str], node: yaml.Node) -> tuple[int, int]:
    """The lines of a document: from the mark before it to the one behind it."""
    first, last = node.start_mark.line, node.start_mark.line
    while first > 0 and not lines[first - 1].startswith(("---", "...")):
        first -= 1
    while last < len(lines) and not (lines[last].startswith(("---", "...")) and last > node.start_mark.line):
        last += 1
    return first, last


def _ends(node: yaml.Node) -> tuple[dict[int, int], set[int]]:
    """Where the last value on each line ends, and the lines that lie within a text of several lines."""
    ends: dict[int, int] = {}
    inside: set[int] = set()
    for scalar in _scalars(node):
        begin, end = scalar.start_mark, scalar.end_mark
        if scalar.style in ("|", ">"):
            inside.update(range(begin.line + 1, end.line + (end.column > 0)))
            ends[begin.line] = max(ends.get(begin.line, 0), begin.column)
        else:
            inside.update(range(begin.line + 1, end.line))
            ends[end.line] = max(ends.get(end.line, 0), end.column)
    return ends, inside


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(key)
            yield from _scalars(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _scalars(value)
