"""Lays a LiveSystem's dependencies out as a small drawing: what is needed stands left of what needs it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_DRAWN = 40
WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE = 168, 40, 56, 16, 8
MOST_LETTERS = 18


@dataclass(frozen=True, slots=True)
class Node:
    """One component in the drawing."""

    id: str
    label: str
    status: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes, and the curves between them as SVG paths."""

    nodes: Sequence[Node]
    curves: Sequence[str]
    width: int
    height: int


def draw(components: Sequence[Mapping[str, Any]]) -> Drawing | None:
    """The drawing of some components, or None where one would help nobody: too many, or nothing depends on anything."""
    needs = {
        str(c["componentId"]): [str(name) for name in c["declaration"].get("dependencies", ())] for c in components
    }
    if len(components) > MOST_DRAWN or not any(needs.values()):
        return None
    columns = _columns(needs)
    statuses = {str(c["componentId"]): str(c["status"]) for c in components}
    nodes = {
        name: Node(name, _label(name), statuses[name], EDGE + x * (WIDTH + GAP_X), EDGE + y * (HEIGHT + GAP_Y))
        for x, column in enumerate(columns)
        for y, name in enumerate(column)
    }
    curves = [_curve(nodes[needed], nodes[name]) for name in nodes for needed in needs[name] if needed in nodes]
    tallest = max(len(column) for column in columns)
    return Drawing(
        list(nodes.values()),
        curves,
        width=2 * EDGE + len(columns) * WIDTH + (len(columns) - 1) * GAP_X,
        height=2 * EDGE + tallest * HEIGHT + (tallest - 1) * GAP_Y,
    )


def _columns(needs: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Components by the length of the longest way to something that needs nothing."""
    depth: dict[str, int] = {}

    def measure(name: str) -> int:
        if name not in depth:
            depth[name] = 0  # a cycle cannot be deployed; if there were one, it would end here
            depth[name] = 1 + max((measure(needed) for needed in needs[name] if needed in needs), default=-1)
        return depth[name]

    for name in sorted(needs):
        measure(name)
    columns: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in sorted(depth, key=lambda item: (depth[item], item)):
        columns[depth[name]].append(name)
    return _untangled(columns, needs)


def _untangled(columns: list[list[str]], needs: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Order each column by where its needs stand in the columns before: fewer curves cross."""
    height = {name: float(index) for index, name in enumerate(columns[0])}
    for column in columns[1:]:
        middle = {name: _mean([height[needed] for needed in needs[name] if needed in height]) for name in column}
        column.sort(key=lambda name: (middle[name], name))
        height.update((name, float(index)) for index, name in enumerate(column))
    return columns


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _curve(start: Node, end: Node) -> str:
    x1, y1 = start.x + WIDTH, start.y + HEIGHT // 2
    x2, y2 = end.x, end.y + HEIGHT // 2
    bend = (x1 + x2) // 2
    return f"M{x1} {y1} C{bend} {y1} {bend} {y2} {x2} {y2}"


def _label(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"
