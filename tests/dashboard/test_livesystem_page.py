"""The page of one LiveSystem in a real browser, wide and narrow, small and large."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

from tests.dashboard.conftest import PATIENCE_MS, Server, Tab, Visitor
from tests.world import ADMIN_TOKEN, World, subnet, vpc

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=PATIENCE_MS)
TEAM = "/ui/livesystems/team"


def shop(count: int) -> list[dict[str, object]]:
    """A network with so many components in all."""
    return [vpc(), *(subnet(f"subnet-{n:03}", cidrBlock=f"10.0.{n % 256}.0/24") for n in range(count - 1))]


def test_on_a_phone_25_components_are_at_most_3000_pixels_tall(world: World, server: Server, browser: Browser) -> None:
    world.deploy("team", *shop(25))
    world.settle()
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.url}/ui?token={ADMIN_TOKEN}")
    page.goto(server.url + TEAM)
    rows = page.locator("tbody.fine")
    expect(rows).to_have_count(25)
    boxes = [row.bounding_box() for row in rows.all()]
    assert max(box["height"] for box in boxes if box is not None) <= 56, "a healthy component is a line, stale or not"
    box = page.locator("body").bounding_box()
    assert box is not None
    assert box["height"] <= 3000
    assert box["width"] <= 390
    drawing, table = page.locator(".drawing").bounding_box(), page.locator("table.lines").bounding_box()
    assert drawing is not None
    assert table is not None
    assert drawing["y"] < table["y"]
    context.close()


def test_the_graph_stands_above_the_table_and_can_be_made_larger(world: World, admin_tab: Tab) -> None:
    world.deploy("team", vpc(), subnet())
    world.settle()
    page = admin_tab.open_live(TEAM)
    drawing = page.locator(".drawing svg")
    before = drawing.bounding_box()
    table = page.locator("table.lines").bounding_box()
    actions = page.locator(".title .actions").bounding_box()
    assert before is not None
    assert table is not None
    assert actions is not None
    assert actions["y"] < before["y"] < table["y"]
    page.get_by_role("button", name="Zoom in").click()
    expect(drawing).to_have_attribute("width", str(round(before["width"] * 1.25)))
    page.locator(".drawing").hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, 100)
    page.keyboard.up("Control")
    expect(drawing).not_to_have_attribute("width", str(round(before["width"] * 1.25)))
    world.deploy("team", vpc(), subnet())
    world.settle()
    expect(page.locator("main")).to_contain_text("generation 2")
    expect(drawing).not_to_have_attribute("width", str(round(before["width"])))
    assert admin_tab.is_same_page
    assert admin_tab.complaints == []


def test_without_javascript_everything_is_there(world: World, server: Server, browser: Browser) -> None:
    world.deploy("team", *shop(3))
    world.settle()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.url}/ui?token={ADMIN_TOKEN}")
    page.goto(server.url + TEAM)
    expect(page.locator("svg .node")).to_have_count(3)
    expect(page.get_by_role("button", name="Zoom in")).to_be_hidden()
    page.get_by_label("fit").check()
    page.get_by_role("link", name="subnet-000").last.click()
    expect(page.locator("#words")).to_contain_text("As declared. The agent keeps it so.")
    page.get_by_role("link", name="Break the glass …").click()
    expect(page.get_by_label("4 h")).to_be_checked()
    expect(page.get_by_text("Date and time in UTC")).to_be_visible()
    context.close()


def test_500_components_are_pages_below_100_kilobytes_with_one_box_per_type(api: TestClient, visitor: Visitor) -> None:
    api.post("/livesystems", json={"id": "team", "components": shop(500)})
    page = ""
    for path in (TEAM, f"{TEAM}?page=5", f"{TEAM}?open=NetworkAndCompute.IaaS.AwsSubnet", f"{TEAM}?page=10"):
        page = visitor.page(path)
        assert len(page.encode()) < 100_000, path
    assert "AwsSubnet × 499" in visitor.page(TEAM)
    assert "451–500 of 500" in page
    assert "?page=9" in page
    opened = visitor.page(f"{TEAM}?open=NetworkAndCompute.IaaS.AwsSubnet&page=2")
    assert "close AwsSubnet" in opened
    assert f'href="{TEAM}?page=2"' in opened, "closed again, on the same page of the table"
    assert 'href="/ui/livesystems/team/components/subnet-003"' in opened


def test_an_act_in_the_product_is_one_line_of_events(world: World) -> None:
    world.deploy("team", vpc(), subnet())
    world.settle()
    world.glass("team", "net", "break", reason="INC-4711")
    world.settle()
    visitor = Visitor(world.app)
    for path in (TEAM, f"{TEAM}/components/net"):
        newest = visitor.page(path).partition('<ol class="events">')[2].partition("</li>")[0]
        assert "<strong>GlassBroken</strong>" in newest, path
        assert "Active → ManualOverride" in newest
        assert "<summary>3 events</summary>" in newest
    assert "3 events, 2 components" in visitor.page(TEAM), "the deploy"
    kinds = [event["kind"] for event in world.events("team") if event["componentId"] == "net"]
    assert {"GlassRequested", "GlassBroken", "StatusChanged"} <= set(kinds), "the API still has them all"


@pytest.mark.rule("G13")
def test_what_is_wrong_comes_first_and_says_so_in_words(world: World) -> None:
    world.deploy("team", vpc(), subnet("a-subnet"))
    world.settle()
    world.glass("team", "net", "break", reason="INC-4711")
    world.settle()
    page = Visitor(world.app).page(TEAM)
    assert page.index('id="component-net"') < page.index('id="component-a-subnet"')
    assert "by admin: INC-4711. The agent reads it and changes nothing." in page
