"""The page of one component: what is wrong in words, and the ways to take it over, keep it and hand it back."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from fractal_cloud.control.dashboard.absorb import absorption
from fractal_cloud.control.dashboard.requests import ends
from fractal_cloud.model.catalog import TypeFacts
from tests.dashboard import axe
from tests.dashboard.conftest import PATIENCE_MS, Server, Tab, Visitor
from tests.dashboard.test_pages import broken, text_of
from tests.world import ADMIN_TOKEN, World, subnet, vpc

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=PATIENCE_MS)
NET = "/ui/livesystems/team/components/net"


def deploy(world: World) -> str:
    world.deploy("team", vpc(enableDnsHostnames=False), subnet())
    world.settle()
    return str(world.output("team", "net", "vpcId"))


class Mouse:
    """A person who clicks, and how often."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.steps = 0

    def press(self, role: Any, name: str) -> None:
        self.steps += 1
        self.page.get_by_role(role, name=name, exact=True).first.click()


class Keyboard(Mouse):
    """The same by keyboard alone: Tab until it is there, then Enter."""

    def press(self, role: Any, name: str) -> None:
        self.steps += 1
        wanted = self.page.get_by_role(role, name=name, exact=True).first
        expect(wanted).to_be_visible()
        for _ in range(80):
            self.page.keyboard.press("Tab")
            if wanted.evaluate("element => element === document.activeElement"):
                break
        else:
            raise AssertionError(f"{name!r} is not reached with Tab")
        self.page.keyboard.press("Enter")


@pytest.mark.rule("G13")
@pytest.mark.parametrize("person", [Mouse, Keyboard])
def test_from_all_livesystems_to_broken_glass_in_four_steps_and_back_in_three(
    world: World, admin_tab: Tab, person: Callable[[Page], Mouse]
) -> None:
    vpc_id = deploy(world)
    page = admin_tab.open("/ui")
    out = person(page)
    out.press("link", "team")
    expect(page).to_have_url(re.compile("/livesystems/team$"))
    out.press("link", "net")
    out.press("link", "Break the glass …")
    out.press("button", "Break the glass")
    expect(page.locator("#asked")).to_be_visible()
    world.settle()
    expect(page.locator("#override")).to_contain_text("Held by hand since")
    assert "managed-by" not in world.person.tags(vpc_id)
    assert out.steps <= 4

    page = admin_tab.open("/ui")
    back = person(page)
    back.press("link", "team")
    back.press("link", "Hand back …")
    back.press("button", "Re-adopt")
    expect(page).to_have_url(re.compile("/components/net$"))
    world.settle()
    expect(page.locator("#words")).to_contain_text("As declared. The agent keeps it so.")
    assert world.person.tags(vpc_id)["managed-by"] == "fractal-cloud"
    assert back.steps <= 3
    world.assert_safe()


@pytest.mark.rule("G13")
def test_an_end_is_chosen_in_local_time_with_utc_beside_it(world: World, server: Server, browser: Browser) -> None:
    deploy(world)
    context = browser.new_context(timezone_id="Asia/Kolkata")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{server.url}/ui?token={ADMIN_TOKEN}")
    page.goto(f"{server.url}{NET}/break")
    expect(page.get_by_label("4 h")).to_be_checked()
    tomorrow = page.get_by_label("tomorrow 09:00")
    expect(page.locator("label", has=tomorrow)).to_have_text(re.compile(r"tomorrow 09:00\s+03:30 UTC"))
    page.get_by_label("Date and time in your time").fill("2099-01-31T18:00")
    expect(page.locator("output")).to_have_text("2099-01-31 12:30 UTC")
    expect(page.get_by_label("another time")).to_be_checked()
    page.get_by_role("button", name="Break the glass").click()
    world.settle()
    assert world.component("team", "net")["override"]["until"] == "2099-01-31T12:30:00Z"
    page.goto(server.url + NET)
    page.get_by_role("button", name="Extend: tomorrow 09:00").click()
    expect(page.locator("#events + .events")).to_contain_text("OverrideExtended")
    until = datetime.fromisoformat(world.component("team", "net")["override"]["until"])
    assert (until.hour, until.minute) == (3, 30)
    context.close()


@pytest.mark.rule("G13")
def test_an_override_is_extended_and_handed_over_in_one_step_each(world: World) -> None:
    visitor = broken(world)
    assert visitor.send(f"{NET}/extend", end="4h").headers["location"] == NET
    until = datetime.fromisoformat(world.component("team", "net")["override"]["until"])
    assert abs(until - datetime.now(UTC) - timedelta(hours=4)) < timedelta(minutes=5)
    assert visitor.send(f"{NET}/hand-over", to="bea").headers["location"] == NET
    assert world.component("team", "net")["override"]["by"] == "bea"
    text = text_of(visitor.page(NET))
    assert "UTC by bea, until" in text
    assert "OverrideHandedOver net" in text
    refused = visitor.send(f"{NET}/hand-over", to="two\nlines")
    assert refused.status_code == 422
    assert "Hand over: net?" in refused.text
    assert visitor.send(f"{NET}/extend").status_code == 422
    nobody = visitor.send("/ui/livesystems/team/components/subnet/extend", end="1h")
    assert nobody.status_code == 409
    assert "not in manual override" in nobody.text


def test_ends_to_choose_from_are_named_for_what_they_are() -> None:
    late = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    assert [(end.title, end.at.isoformat()) for end in ends(late)] == [
        ("1 h", "2027-01-01T00:30:00+00:00"),
        ("4 h", "2027-01-01T03:30:00+00:00"),
        ("tomorrow 09:00", "2027-01-01T09:00:00+00:00"),
    ]


@pytest.mark.parametrize(
    ("fields", "hours"),
    [({"end": "1h"}, 1), ({"end": "none"}, None), ({}, None), ({"end": "1h", "until": "2099-01-31T18:00"}, 0)],
)
def test_a_typed_time_counts_before_a_chosen_end(world: World, fields: dict[str, str], hours: int | None) -> None:
    deploy(world)
    visitor = Visitor(world.app)
    assert visitor.send(f"{NET}/break", None, **fields).status_code == 303
    until = world.component("team", "net")["request"]["until"]
    if hours == 0:
        assert until == "2099-01-31T18:00:00Z"
    elif hours is None:
        assert until is None
    else:
        passed = datetime.fromisoformat(until) - datetime.now(UTC)
        assert timedelta(minutes=50) < passed <= timedelta(hours=hours)


@pytest.mark.rule("G14")
def test_the_page_shows_the_change_that_would_keep_what_was_done_by_hand(world: World, admin_tab: Tab) -> None:
    broken(world)
    admin_tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = admin_tab.open_live(NET)
    page.get_by_role("button", name="Copy: the change to the declaration").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "--- team/net declared\n+++ team/net actual\n" in copied
    assert "-    enableDnsHostnames: false\n+    enableDnsHostnames: true\n" in copied
    world.deploy("team", vpc(enableDnsHostnames=True), subnet())
    world.settle()
    expect(page.locator("#absorb")).to_have_count(0)
    assert admin_tab.complaints == []


@pytest.mark.rule("G14", "A8")
def test_a_secret_is_in_no_diff_and_neither_is_what_names_another_component() -> None:
    facts = TypeFacts(
        type="Storage.PaaS.Thing",
        provider="aws",
        title="Thing",
        parameter_schema={"properties": {"vpc": {"x-fractal": {"reference": ["T", "id"]}}}},
    )
    component = {
        "liveSystemId": "team",
        "componentId": "db",
        "type": "Storage.PaaS.Thing",
        "status": "ManualOverride",
        "declaration": {"id": "db", "type": "Storage.PaaS.Thing", "parameters": {"vpc": "net", "size": 1}},
        "outputFields": {
            "drift": {
                "size": {"declared": 1, "actual": 2},
                "password": {"declared": "(sensitive)", "actual": "(sensitive: differs)"},
                "vpc": {"declared": "vpc-1", "actual": "vpc-2"},
            }
        },
    }
    found = absorption(component, facts)
    assert found is not None
    assert "-    size: 1\n+    size: 2\n" in found.diff
    assert "sensitive" not in found.diff
    assert "vpc-2" not in found.diff
    assert len(found.left) == 2
    assert absorption({**component, "status": "Active"}, facts) is None


@pytest.mark.rule("G12")
def test_the_words_come_first_and_the_tags_below(world: World) -> None:
    text = text_of(broken(world).page(NET))
    words = text.index("Held by hand since")
    assert words < text.index("Re-adopt when the work by hand is done") < text.index("managed-by")
    assert "Force Push does the same from any status" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_wrong_wide_or_narrow(
    world: World, server: Server, browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    broken(world)
    context = browser.new_context(color_scheme=scheme)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{server.url}/ui?token={ADMIN_TOKEN}")
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for path in ("/ui/livesystems/team", NET, f"{NET}/break"):
            page.goto(server.url + path)
            assert axe.violations(page) == [], (path, width)
    context.close()
