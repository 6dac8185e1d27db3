"""Lays a LiveSystem out as a small drawing: what is needed stands left of what needs it, links are dashed. Pure.

Beyond ``MOST_DRAWN`` components those of one type are drawn as one box, which a link opens. What needs a person keeps a
box of its own, so that a failure is never inside a healthy-looking group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fractal_cloud.control.dashboard.filters import MARKS, STATUSES, short
from fractal_cloud.control.store.graph import Edge, Vertex
from fractal_cloud.model.status import Status

MOST_DRAWN = 40
MOST_GROUPS = 15
MOST_ROWS = 8
WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE = 184, 40, 48, 14, 12
MOST_LETTERS = 21

_RANKS: Mapping[str, int] = {
    **{status.value: 6 for status in Status},
    Status.FAILED.value: 0,
    Status.MISSING.value: 1,
    Status.MANUAL_OVERRIDE.value: 3,
    **dict.fromkeys((Status.DELETING, Status.RECONCILE_REQUESTED, Status.MUTATING, Status.INSTANTIATING), 5),
}
_OVERDUE, _STALE = 2, 4


def rank(vertex: Vertex) -> int:
    """How much a component needs a person; 0 most of all."""
    found = _RANKS.get(vertex.status, 0)
    if vertex.is_overdue:
        found = min(found, _OVERDUE)
    return min(found, _STALE) if vertex.is_stale else found


def worst_first(vertices: Iterable[Vertex]) -> list[Vertex]:
    """Components in the order in which somebody on call wants them: worst first, then by id."""
    return sorted(vertices, key=lambda vertex: (rank(vertex), vertex.id))


def needs_person(vertex: Vertex) -> bool:
    """Whether it is in none of the states that end by themselves."""
    return rank(vertex) <= _STALE


@dataclass(frozen=True, slots=True)
class Node:
    """One box: a component, or all of a group that are not drawn by themselves.

    ``group``: what the group is opened by, empty for a component. ``status``: its own, or the gravest in the group.
    """

    id: str
    label: str
    detail: str
    status: str
    x: int
    y: int
    group: str = ""
    title: str = ""
    is_imported: bool = False
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """A line between two boxes as an SVG path; a link is dashed."""

    path: str
    is_link: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes, and the curves between them; ``opened``: the groups whose members are drawn one by one."""

    nodes: Sequence[Node]
    curves: Sequence[Curve]
    width: int
    height: int
    is_collapsed: bool = False
    opened: Sequence[str] = ()


@dataclass(slots=True)
class _Box:
    """What one box stands for."""

    key: str
    group: str = ""
    members: list[Vertex] = field(default_factory=list)


def draw(vertices: Sequence[Vertex], edges: Sequence[Edge], opened: Collection[str] = ()) -> Drawing | None:
    """The drawing of a LiveSystem, or None where one would help nobody: nothing refers to anything."""
    known = {vertex.id for vertex in vertices}
    inside = [edge for edge in edges if edge.source in known and edge.target in known]
    if not inside:
        return None
    is_collapsed = len(vertices) > MOST_DRAWN
    boxes = _collapsed(vertices, opened) if is_collapsed else [_Box(one.id, members=[one]) for one in vertices]
    at = {member.id: box.key for box in boxes for member in box.members}
    between = {(at[edge.source], at[edge.target], edge.is_link) for edge in inside}
    between = {(source, target, is_link) for source, target, is_link in between if source != target}
    needs: dict[str, list[str]] = {box.key: [] for box in boxes}
    for source, target, is_link in sorted(between):
        if not is_link:
            needs[source].append(target)
    places = _places(_columns(needs))
    nodes = {box.key: _node(box, places[box.key]) for box in boxes}
    curves = [Curve(_curve(places[target], places[source]), is_link) for source, target, is_link in sorted(between)]
    return Drawing(
        sorted(nodes.values(), key=lambda node: (node.x, node.y)),
        curves,
        width=max(node.x for node in nodes.values()) + WIDTH + EDGE,
        height=max(node.y for node in nodes.values()) + HEIGHT + EDGE,
        is_collapsed=is_collapsed,
        opened=sorted(set(opened) & set(_groups(vertices).values())) if is_collapsed else (),
    )


# --- many components as few boxes


def _groups(vertices: Iterable[Vertex]) -> dict[str, str]:
    """The group of each component: its type, or its provider where there are too many types."""
    every = list(vertices)
    types = {name for name, _ in Counter(vertex.type for vertex in every).most_common(MOST_GROUPS)}
    return {vertex.id: vertex.type if vertex.type in types else vertex.provider for vertex in every}


def _collapsed(vertices: Sequence[Vertex], opened: Collection[str]) -> list[_Box]:
    """Boxes for many components: the worst and those of opened groups by themselves, as far as there is space."""
    groups = _groups(vertices)
    members: dict[str, list[Vertex]] = {}
    for vertex in worst_first(vertices):
        members.setdefault(groups[vertex.id], []).append(vertex)
    space = MOST_DRAWN - len(members)
    wanted = [vertex for vertex in worst_first(vertices) if needs_person(vertex)]
    wanted += [vertex for name in opened for vertex in members.get(name, ()) if not needs_person(vertex)]
    single = {vertex.id for vertex in wanted[:space]}
    boxes = [_Box(vertex.id, members=[vertex]) for vertex in wanted[:space]]
    for name, found in members.items():
        left = [vertex for vertex in found if vertex.id not in single]
        if len(left) == 1:
            boxes.append(_Box(left[0].id, members=left))
        elif left:
            # A component's id holds no colon: no group has the key of a component.
            boxes.append(_Box(f"group:{name}", name, left))
    return boxes


def _node(box: _Box, place: _Place) -> Node:
    if not box.group:
        [one] = box.members
        word = "imported" if one.is_imported and one.status == Status.EXTERNALLY_MANAGED.value else one.status
        detail = f"{MARKS.get(one.status, '·')} {word}" + (" · stale" if one.is_stale else "")
        return Node(
            *(one.id, _cut(one.id), detail, one.status, place.x, place.y),
            title=f"{one.id}, {short(one.type)}",
            is_imported=one.is_imported,
            is_stale=one.is_stale,
        )
    counts = sorted(Counter(vertex.status for vertex in box.members).items(), key=_gravity)
    words = [f"{MARKS.get(status, '·')} {count} {status}" for status, count in counts]
    stale = sum(vertex.is_stale for vertex in box.members)
    return Node(
        id=box.key,
        label=_cut(short(box.group), f" × {len(box.members)}"),
        detail=(words[0] if len(counts) == 1 else "  ".join(word.rpartition(" ")[0] for word in words))
        + (f" · {stale} stale" if stale else ""),
        status=counts[0][0],
        x=place.x,
        y=place.y,
        group=box.group,
        title=f"{len(box.members)} of {box.group}: {', '.join(words)}",
        is_stale=stale > 0,
        is_imported=all(vertex.is_imported for vertex in box.members),
    )


def _gravity(counted: tuple[str, int]) -> int:
    return STATUSES.index(counted[0]) if counted[0] in STATUSES else 0


def _cut(name: str, behind: str = "") -> str:
    most = MOST_LETTERS - len(behind)
    return (name if len(name) <= most else f"{name[: most - 1]}…") + behind


# --- where the boxes stand


def _columns(needs: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Boxes by the length of the longest way to something that needs nothing."""
    depth: dict[str, int] = {}

    def measure(name: str) -> int:
        if name not in depth:
            depth[name] = 0  # groups may need each other in a circle: it ends here
            depth[name] = 1 + max((measure(needed) for needed in needs[name]), default=-1)
        return depth[name]

    for name in sorted(needs):
        measure(name)
    columns: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in sorted(depth, key=lambda item: (depth[item], item)):
        columns[depth[name]].append(name)
    return _untangled([column for column in columns if column], needs)


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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a box stands, and from where to where its column goes: a long column goes on beside itself."""

    x: int
    y: int
    left: int
    right: int

    @property
    def middle(self) -> int:
        return self.y + HEIGHT // 2


def _places(columns: Sequence[Sequence[str]]) -> dict[str, _Place]:
    places: dict[str, _Place] = {}
    left = EDGE
    for column in columns:
        parts = -(-len(column) // MOST_ROWS)
        rows = -(-len(column) // parts)
        right = left + parts * WIDTH + (parts - 1) * GAP_Y
        for index, name in enumerate(column):
            part, row = divmod(index, rows)
            places[name] = _Place(left + part * (WIDTH + GAP_Y), EDGE + row * (HEIGHT + GAP_Y), left, right)
        left = right + GAP_X
    return places


def _curve(one: _Place, other: _Place) -> str:
    """A line between two boxes; past the boxes of their columns it runs in the gaps between the rows."""
    if one.left == other.left:
        x1, x2 = one.x + WIDTH, other.x + WIDTH
        bulge = max(x1, x2) + GAP_X // 2
        return f"M{x1} {one.middle} C{bulge} {one.middle} {bulge} {other.middle} {x2} {other.middle}"
    start, end = (one, other) if one.left < other.left else (other, one)
    x1, y1, x2, y2 = start.x + WIDTH, start.middle, end.x, end.middle
    path = f"M{x1} {y1}"
    if x1 < start.right:
        y1, x1 = start.y + HEIGHT + GAP_Y // 2, start.right
        path += f" q6 0 6 6 V{y1 - 6} q0 6 6 6 H{x1}"
    behind = ""
    if end.left < x2:
        gap = end.y - GAP_Y // 2
        behind = f" H{x2 - 12} q6 0 6 6 V{y2 - 6} q0 6 6 6"
        x2, y2 = end.left, gap
    bend = (x1 + x2) // 2
    return f"{path} C{bend} {y1} {bend} {y2} {x2} {y2}{behind}"
