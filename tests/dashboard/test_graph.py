"""The drawing of what needs what."""

from __future__ import annotations

from typing import Any

from fractal_cloud.control.dashboard.graph import MOST_DRAWN, draw


def component(name: str, *needs: str) -> dict[str, Any]:
    return {"componentId": name, "status": "Active", "declaration": {"dependencies": list(needs)}}


def test_what_is_needed_stands_left_of_what_needs_it() -> None:
    drawing = draw([component("web", "public", "firewall"), component("public", "net"), component("net")])
    assert drawing is not None
    x = {node.id: node.x for node in drawing.nodes}
    assert x["net"] < x["public"] < x["web"]
    assert len(drawing.curves) == 2, "what is not shown gets no curve"
    assert all(node.x + 168 <= drawing.width and node.y + 40 <= drawing.height for node in drawing.nodes)


def test_no_two_boxes_lie_on_each_other() -> None:
    drawing = draw([component("net"), *(component(f"subnet-{index}", "net") for index in range(9))])
    assert drawing is not None
    assert len({(node.x, node.y) for node in drawing.nodes}) == 10


def test_long_names_stay_in_their_box() -> None:
    drawing = draw([component("a" * 63), component("b", "a" * 63)])
    assert drawing is not None
    assert max(len(node.label) for node in drawing.nodes) <= 18


def test_nothing_is_drawn_where_it_would_help_nobody() -> None:
    assert draw([]) is None
    assert draw([component("net"), component("other")]) is None
    assert draw([component(f"c{index}", "c0") for index in range(MOST_DRAWN + 1)]) is None


def test_a_cycle_ends() -> None:
    assert draw([component("a", "b"), component("b", "a")]) is not None
