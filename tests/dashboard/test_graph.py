"""The drawing of what needs what."""

from __future__ import annotations

import re

from fractal_cloud.control.dashboard.graph import HEIGHT, MOST_DRAWN, WIDTH, Drawing, draw, worst_first
from fractal_cloud.control.store.graph import Edge, Vertex


def component(name: str, kind: str = "AwsSubnet", status: str = "Active", **more: object) -> Vertex:
    return Vertex(name, f"NetworkAndCompute.IaaS.{kind}", "aws", status, **more)  # type: ignore[arg-type]


def drawn(vertices: list[Vertex], edges: list[Edge], *opened: str) -> Drawing:
    found = draw(vertices, edges, opened)
    assert found is not None
    return found


def many(count: int, status: str = "Active") -> tuple[list[Vertex], list[Edge]]:
    """A network, and so many subnets in it."""
    names = [f"subnet-{index:03}" for index in range(count)]
    vertices = [component("net", "AwsVpc"), *(component(name, status=status) for name in names)]
    return vertices, [Edge(name, "net") for name in names]


def test_what_is_needed_stands_left_of_what_needs_it() -> None:
    vertices = [component("web"), component("public"), component("net")]
    drawing = drawn(vertices, [Edge("web", "public"), Edge("web", "elsewhere"), Edge("public", "net")])
    x = {node.id: node.x for node in drawing.nodes}
    assert x["net"] < x["public"] < x["web"]
    assert len(drawing.curves) == 2, "what is not here gets no curve"
    assert all(node.x + WIDTH <= drawing.width and node.y + HEIGHT <= drawing.height for node in drawing.nodes)


def test_a_link_is_dashed_and_orders_nothing() -> None:
    drawing = drawn([component("a"), component("b")], [Edge("a", "b", is_link=True), Edge("b", "a", is_link=True)])
    assert [curve.is_link for curve in drawing.curves] == [True, True]
    assert len({node.x for node in drawing.nodes}) == 1


def test_imported_and_stale_components_are_marked_in_words() -> None:
    vertices = [
        component("net", "AwsVpc", "ExternallyManaged", stance="imported"),
        component("web", is_stale=True),
    ]
    nodes = {node.id: node for node in drawn(vertices, [Edge("web", "net")]).nodes}
    assert nodes["net"].is_imported
    assert "imported" in nodes["net"].detail
    assert nodes["web"].is_stale
    assert nodes["web"].detail == "✓ Active · stale"


def test_no_two_boxes_lie_on_each_other_and_a_long_column_goes_on_beside_itself() -> None:
    drawing = drawn(*many(30))
    places = [(node.x, node.y) for node in drawing.nodes]
    assert len(set(places)) == 31
    for x, y in places:
        assert not any((x, y) != (a, b) and abs(x - a) < WIDTH and abs(y - b) < HEIGHT for a, b in places)
    assert drawing.height < 500
    numbers = [int(number) for curve in drawing.curves for number in re.findall(r"[CHMV ](-?\d+)", curve.path)]
    assert min(numbers) >= 0
    assert max(numbers) <= drawing.width


def test_long_names_stay_in_their_box() -> None:
    drawing = drawn([component("a" * 63), component("b")], [Edge("b", "a" * 63)])
    assert max(len(node.label) for node in drawing.nodes) <= 21
    assert any("a" * 63 in node.title for node in drawing.nodes)


def test_nothing_is_drawn_where_it_would_help_nobody() -> None:
    assert draw([], []) is None
    assert draw([component("net"), component("other")], []) is None


def test_beyond_forty_boxes_those_of_one_type_are_one() -> None:
    drawing = drawn(*many(499))
    assert drawing.is_collapsed
    assert [node.label for node in drawing.nodes] == ["net", "AwsSubnet × 499"]
    assert drawing.nodes[1].detail == "✓ 499 Active"
    assert len(drawing.curves) == 1
    assert not drawn(*many(MOST_DRAWN - 1)).is_collapsed


def test_an_opened_group_shows_its_members_as_far_as_there_is_space() -> None:
    vertices, edges = many(499)
    drawing = drawn(vertices, edges, "NetworkAndCompute.IaaS.AwsSubnet", "nothing-like-that")
    assert drawing.opened == ["NetworkAndCompute.IaaS.AwsSubnet"]
    assert len(drawing.nodes) <= MOST_DRAWN
    assert {"net", "subnet-000", "subnet-010"} <= {node.id for node in drawing.nodes}
    assert any(node.group and node.label.startswith("AwsSubnet × 4") for node in drawing.nodes)


def test_what_needs_a_person_is_never_inside_a_group() -> None:
    vertices, edges = many(200)
    vertices[7] = component("subnet-006", status="Failed")
    vertices[9] = component("subnet-008", status="ManualOverride")
    vertices[11] = component("subnet-010", is_stale=True)
    drawing = drawn(vertices, edges)
    assert {"subnet-006", "subnet-008", "subnet-010"} <= {node.id for node in drawing.nodes}
    assert len(drawing.nodes) == 5


def test_however_much_is_wrong_the_drawing_stays_small_and_a_group_shows_its_gravest() -> None:
    drawing = drawn(*many(300, "Failed"))
    assert len(drawing.nodes) <= MOST_DRAWN
    [group] = [node for node in drawing.nodes if node.group]
    assert group.status == "Failed"
    vertices = [component(f"c{index}", f"Type{index}", status="Failed") for index in range(200)]
    assert len(drawn(vertices, [Edge("c1", "c0")]).nodes) <= MOST_DRAWN


def test_a_cycle_ends() -> None:
    assert draw([component("a"), component("b")], [Edge("a", "b"), Edge("b", "a")]) is not None


def test_worst_first_is_what_needs_a_person_first() -> None:
    found = worst_first(
        [
            *(component("j-active"), component("i-imported", status="ExternallyManaged")),
            component("h-changing", status="Mutating"),
            component("g-stale", is_stale=True),
            component("f-held", status="ManualOverride"),
            component("e-overdue", status="ManualOverride", is_overdue=True),
            component("d-missing", status="Missing"),
            component("c-failed", status="Failed"),
        ]
    )
    assert [vertex.id[0] for vertex in found] == list("cdefghij")
