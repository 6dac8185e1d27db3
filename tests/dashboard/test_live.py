"""The dashboard in a real browser: it lives without being loaded again, and its buttons work."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.conftest import PATIENCE_MS, Server, Tab
from tests.world import ADMIN_TOKEN, World, subnet, vpc

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=PATIENCE_MS)
NET = "/ui/livesystems/team/components/net"
EVIL = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


def deploy(world: World) -> str:
    """A small LiveSystem, settled; returns the id of its VPC."""
    world.deploy("team", vpc(enableDnsHostnames=False), subnet(), description=EVIL)
    world.settle()
    return str(world.output("team", "net", "vpcId"))


@pytest.mark.rule("G1", "G3", "G13")
def test_a_person_logs_in_and_sees_an_override_with_its_drift_appear(world: World, tab: Tab) -> None:
    vpc_id = deploy(world)
    page = tab.open("/ui/livesystems/team")
    assert page.url.endswith("/ui/login?next=/ui/livesystems/team")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not known here")
    page.get_by_label("Token").fill(ADMIN_TOKEN)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#connection")).to_have_text("live")
    page.evaluate("window.isSamePage = true")
    expect(page.locator("#component-net")).to_contain_text("Active")

    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    world.settle()
    net = page.locator("#component-net")
    expect(net).to_contain_text("ManualOverride")
    expect(net).to_contain_text("Who took it over is not known: it was found so in the cloud.")
    expect(net.locator("tr.differs")).to_have_text(re.compile(r"enableDnsHostnames\s+differs\s+false\s+true"))
    expect(page.locator(".events")).to_contain_text("GlassBroken")
    expect(page.locator(".title")).to_contain_text("ManualOverride")
    expect(page).to_have_title(re.compile("team: ManualOverride"))
    assert tab.is_same_page

    world.person.hand_back(vpc_id)
    world.settle()
    expect(net).not_to_contain_text("ManualOverride")
    expect(net.locator("tr.differs")).to_have_count(0)
    assert tab.is_same_page


@pytest.mark.rule("G12", "G13")
def test_the_buttons_break_the_glass_and_hand_it_back_after_a_confirmation(world: World, admin_tab: Tab) -> None:
    vpc_id = deploy(world)
    admin_tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = admin_tab.open_live(NET)
    page.get_by_role("button", name="Copy: Break the glass").click()
    expect(page.get_by_role("button", name="Copy: Break the glass")).to_have_text("Copied")
    command = page.evaluate("navigator.clipboard.readText()")
    assert command == page.locator("#command-break-1").inner_text()
    assert vpc_id in command

    page.get_by_role("link", name="Break the glass …").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Break the glass: net?")
    page.get_by_label("Reason").fill(EVIL)
    page.get_by_label("Date and time").fill("2099-01-31T18:00")
    assert world.status("team", "net") == "Active", "nothing happens before it is confirmed"
    page.get_by_role("button", name="Break the glass").click()
    expect(page.locator("#asked")).to_contain_text("was asked for by admin")
    world.settle()
    expect(page.locator("#override")).to_contain_text(EVIL)
    expect(page.locator("#override")).to_contain_text("admin")
    expect(page.locator("#asked")).to_have_count(0)

    page.get_by_role("link", name="Re-adopt …").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Re-adopt: net?")
    page.get_by_role("button", name="Re-adopt").click()
    world.settle()
    expect(page.locator(".title")).to_contain_text("Active")
    assert world.person.tags(vpc_id)["managed-by"] == "fractal-cloud"
    assert page.evaluate("window.hacked") is None
    assert admin_tab.complaints == []
    world.assert_safe()


def test_text_from_people_is_never_run(world: World, admin_tab: Tab) -> None:
    deploy(world)
    page = admin_tab.open_live("/ui/livesystems/team")
    expect(page.get_by_text(EVIL)).to_be_visible()
    world.deploy("team", vpc(enableDnsHostnames=False), subnet(), description=f"new {EVIL}")
    expect(page.get_by_text(f"new {EVIL}")).to_be_visible()
    assert admin_tab.is_same_page
    assert page.evaluate("window.hacked") is None
    assert admin_tab.complaints == []
    assert all(url.startswith(admin_tab.base) for url in admin_tab.asked), "nothing is fetched from elsewhere"
    assert not any(ADMIN_TOKEN in url for url in admin_tab.asked[1:])


def test_a_lost_connection_is_shown_and_comes_back_by_itself(world: World, admin_tab: Tab, server: Server) -> None:
    page = admin_tab.open_live("/ui")
    expect(page.get_by_role("heading", name="Nothing is deployed yet")).to_be_visible()
    server.stop()
    expect(page.locator("#connection")).to_contain_text("Connection lost")
    world.deploy("team", vpc())
    server.start()
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#ls-team")).to_contain_text("default")
    assert admin_tab.is_same_page


def test_focus_and_opened_details_survive_an_update(world: World, admin_tab: Tab) -> None:
    deploy(world)
    page = admin_tab.open_live(NET)
    page.get_by_text("As JSON").click()
    link = page.get_by_role("link", name="Force Push …")
    link.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    world.deploy("team", vpc(enableDnsHostnames=False), subnet())
    world.settle()
    expect(page.locator("#facts + dl")).to_contain_text("2, applied")
    expect(link).to_be_focused()
    expect(page.locator("pre")).to_be_visible()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_deleted_livesystem_leads_back_to_all(world: World, admin_tab: Tab) -> None:
    deploy(world)
    page = admin_tab.open_live("/ui/livesystems/team")
    page.get_by_role("link", name="Delete …").click()
    page.get_by_label("Type team to confirm").fill("team")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".notice")).to_contain_text("It is being deleted")
    world.settle()
    expect(page).to_have_url(f"{admin_tab.base}/ui")
    expect(page.locator(".events")).to_contain_text("Deleted")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_every_page_without_sideways_scrolling(
    world: World, server: Server, browser: Browser, scheme: str
) -> None:
    vpc_id = deploy(world)
    world.person.break_glass(vpc_id)
    world.settle()
    is_dark = scheme == "dark"
    context = browser.new_context(
        viewport={"width": 380, "height": 800}, color_scheme="dark" if is_dark else "light", has_touch=True
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{server.url}/ui?token={ADMIN_TOKEN}")
    for path in ("/ui", "/ui/livesystems/team", NET, f"{NET}/break", "/ui/livesystems/team/delete", "/ui/nowhere"):
        page.goto(server.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380, path
        tallest = page.evaluate("Math.max(0, ...[...document.querySelectorAll('caption')].map(c => c.offsetHeight))")
        assert tallest < 100, "text runs across the screen, not down"
    brightness = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
    assert (int(brightness) < 60) is is_dark
    context.close()
