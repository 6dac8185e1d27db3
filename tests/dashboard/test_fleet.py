"""The pages over all LiveSystems: what needs a person comes first, and everything can be found (C11, G13)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, expect
from starlette.testclient import TestClient

from fractal_cloud.control.app import create_app
from fractal_cloud.control.dashboard import filters
from fractal_cloud.control.settings import ControlSettings
from tests import library_caches
from tests.dashboard import axe
from tests.dashboard.conftest import PATIENCE_MS, Server, Visitor
from tests.dashboard.played_fleet import ACCOUNT, OTHER_ACCOUNT, Fleet
from tests.dashboard.test_pages import text_of
from tests.world import ADMIN_TOKEN

pytestmark = [pytest.mark.xdist_group("browser")]
expect.set_options(timeout=PATIENCE_MS)
MANY = 201
LISTS = ("/ui", "/ui?page=2", "/ui/overrides", "/ui/agents", "/ui/scopes", "/ui/components?status=Failed")


def _app(path: Path) -> FastAPI:
    return create_app(ControlSettings(database_url=library_caches.database(path), admin_token=ADMIN_TOKEN))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet in which some things went wrong, and one of two accounts is not read any more. Tests only read it."""
    app = _app(tmp_path_factory.mktemp("fleet") / "fleet.db")
    with TestClient(app):
        made = Fleet(app, MANY).build()
        made.go_wrong()
        made.fall_silent(made.agents[1])
        yield made


@pytest.fixture
def visitor(fleet: Fleet) -> Visitor:
    fleet.read(None, fleet.agents[0])
    return Visitor(fleet.app)


def listed(page: str) -> list[str]:
    """The LiveSystems of the list, in its order."""
    return re.findall(r'<tr id="ls-([^"]+)"', page)


def test_the_first_page_begins_with_what_needs_a_person(visitor: Visitor) -> None:
    page = visitor.page("/ui")
    text = text_of(page)
    said = [
        "3 failed components team-197/subnet denied: ec2:CreateSubnet",
        "2 missing components team-195/net vpc-0fe is gone",
        "1 overdue override team-003/gate held by anna since",
        "4 overrides, oldest first team-007/gate held by somebody unknown since",
        f"1 scope not being read aws {OTHER_ACCOUNT} eu-west-1 120 components, last read",
        "All LiveSystems 1–50 of 201",
    ]
    places = [text.find(words) for words in said]
    assert -1 not in places, said[places.index(-1)]
    assert places == sorted(places)
    for link in (
        "/ui/components?status=Failed",
        "/ui/components?status=Missing",
        "/ui/overrides?override=overdue",
        "/ui/overrides",
        "/ui/scopes?stale=true",
    ):
        assert f'href="{link}"' in page
        assert visitor.get(link).status_code == 200
    assert "INC-4711: locked out of the bastion" in text


def test_the_list_is_the_worst_first(visitor: Visitor) -> None:
    found = listed(visitor.page("/ui"))
    assert found[:6] == ["team-197", "team-198", "team-200", "team-195", "team-196", "team-003"]
    places = [found.index(name) for name in ("team-004", "team-007", "team-000")]
    assert places == sorted(places), "what nobody reads, then what is held by hand, then what is well"
    assert listed(visitor.page("/ui?sort=id"))[:2] == ["team-000", "team-001"]


def test_pages_are_counted_and_show_everything_once(visitor: Visitor) -> None:
    seen: list[str] = []
    path, places = "/ui", []
    while path:
        page = visitor.page(path)
        places.append(re.findall(r'id="all">All LiveSystems <span class="quiet">([^<]+)<', page)[0])
        seen += listed(page)
        following = re.search(r'<a href="([^"]+)" rel="next"', page)
        path = following[1] if following else ""
    assert places == ["1–50 of 201", "51–100 of 201", "101–150 of 201", "151–200 of 201", "201–201 of 201"]
    assert len(seen) == len(set(seen)) == MANY
    assert '<a href="/ui?page=2" rel="prev">' in visitor.page("/ui?page=3")
    assert '<a href="/ui" rel="prev">' in visitor.page("/ui?page=2")
    assert "3 failed components" in text_of(visitor.page("/ui?page=2")), "what needs a person is named on every page"


@pytest.mark.parametrize(
    ("query", "total", "first"),
    [
        ("search=team-19", 10, "team-197"),
        ("search=stage", 40, "team-004"),
        ("search=AwsSecurityGroup", MANY, "team-197"),
        (f"search={OTHER_ACCOUNT}", 40, "team-004"),
        ("search=id-subnet", MANY, "team-197"),
        ("search=vpc-0fe", 2, "team-195"),
        ("status=Missing", 2, "team-195"),
        ("environment=stage", 40, "team-004"),
        ("override=overdue", 1, "team-003"),
        ("stale=true", 40, "team-004"),
        ("status=Failed&environment=prod&search=team-20", 1, "team-200"),
        ("status=Failed&environment=stage", 0, ""),
    ],
)
def test_search_and_filters_stand_in_the_address(visitor: Visitor, query: str, total: int, first: str) -> None:
    page = visitor.page(f"/ui?{query}")
    found = listed(page)
    assert found[:1] == ([first] if first else [])
    assert (f"of {total}<" in page) if total else "No LiveSystem is like that" in page
    for name, value in (pair.split("=") for pair in query.split("&")):
        if name in ("status", "environment"):
            assert f'<option value="{value}" selected>' in page, "the form shows what was asked for"
        elif name == "search":
            assert f'name="search" value="{value}"' in page
        else:
            assert f"{name}: {value}" in page, "what the form does not show can be taken out"


def test_empty_fields_of_a_form_leave_no_trace_in_the_address(visitor: Visitor) -> None:
    answer = visitor.get("/ui?search=team-1&status=&environment=&sort=worst")
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui?search=team-1&sort=worst")


@pytest.mark.parametrize("query", ["statsu=Failed", "status=Broken", "page=0", "page=x", "sort=size", "search=%00"])
def test_a_filter_that_is_none_is_refused_and_not_ignored(visitor: Visitor, query: str) -> None:
    answer = visitor.get(f"/ui?{query}")
    assert answer.status_code == 422
    if query.startswith("statsu"):
        assert "statsu: is no query parameter here" in answer.text


def test_a_link_with_filters_survives_the_login(fleet: Fleet) -> None:
    client = TestClient(fleet.app, follow_redirects=False)
    led = client.get("/ui/overrides?override=overdue").headers["location"]
    assert led == "/ui/login?next=/ui/overrides%3Foverride%3Doverdue"
    assert 'value="/ui/overrides?override=overdue"' in client.get(led).text


@pytest.mark.rule("C11")
def test_nothing_is_green_that_nobody_reads(tmp_path: Path) -> None:
    app = _app(tmp_path / "silent.db")
    with TestClient(app):
        silent = Fleet(app, 6).build()
        visitor = Visitor(app)
        well = visitor.page("/ui")
        assert "Nothing: no component failed or is missing" in text_of(well)
        assert 's-Active"' in well
        for player in silent.agents:
            silent.fall_silent(player)
        page = visitor.page("/ui")
        assert "2 scopes not being read" in text_of(page)
        assert 's-Active"' not in page, "a status that nobody has read is marked, and not green"
        assert page.count("s-Active is-stale") == 6
        assert "Nothing: no component" not in page
        assert "○" in visitor.page("/ui/scopes")
        assert "alive, not reading" in visitor.page("/ui/agents")


# --- the other lists


def rows(page: str) -> list[str]:
    return [text_of(row).strip() for row in re.findall(r"<tr id=.*?</tr>", page, re.DOTALL)]


@pytest.mark.rule("G13")
def test_overrides_come_overdue_first_then_the_oldest(visitor: Visitor) -> None:
    found = rows(visitor.page("/ui/overrides"))
    assert [row.split(" ")[0] for row in found] == ["team-003/gate", "team-007/gate", "team-006/gate", "team-005/gate"]
    assert "anna" in found[0]
    assert "overdue INC-4711: locked out of the bastion ingress: + tcp 22 from 10.0.0.0/8" in found[0]
    assert "unknown" in found[1]
    assert "no end none given nothing" in found[1]
    assert [row.split(" ")[0] for row in rows(visitor.page("/ui/overrides?override=overdue"))] == ["team-003/gate"]
    assert [row.split(" ")[0] for row in rows(visitor.page("/ui/overrides?by=admin"))] == ["team-005/gate"]
    assert 'href="/ui/overrides?by=admin">mine</a>' in visitor.page("/ui/overrides"), "mine are the visitor's own"
    assert "No override is like that" in visitor.page("/ui/overrides?search=nothing-of-that-name")


@pytest.mark.rule("C11")
def test_agents_and_scopes_say_who_reads_what_the_silent_first(visitor: Visitor) -> None:
    first, second = rows(visitor.page("/ui/scopes"))
    assert first.startswith(f"aws {OTHER_ACCOUNT} eu-west-1 ○ not read")
    assert re.search(r"agent-a 483 1\.4 s 12 2 0$", second)
    assert len(rows(visitor.page("/ui/scopes?stale=true"))) == 1
    assert len(rows(visitor.page(f"/ui/scopes?search={ACCOUNT}"))) == 1
    assert len(rows(visitor.page("/ui/scopes?search=agent-a"))) == 1
    agents = rows(visitor.page("/ui/agents"))
    assert [one.split(" ")[0] for one in agents] == ["agent-b", "agent-a"]
    assert f"every 5 s 1 aws {ACCOUNT}" in agents[1]


def test_failed_components_are_listed_over_all_livesystems(visitor: Visitor) -> None:
    page = visitor.page("/ui/components?status=Failed")
    assert [row.split(" ")[0] for row in rows(page)] == [f"team-{number}/subnet" for number in (197, 198, 200)]
    assert "1–3 of 3" in page
    assert [row.split(" ")[0] for row in rows(visitor.page("/ui/components?search=vpc-0fe"))] == [
        *("team-195/net", "team-196/net"),
    ]


@pytest.mark.rule("A1")
def test_a_token_bound_to_an_environment_sees_that_one_alone_on_every_list(fleet: Fleet, visitor: Visitor) -> None:
    made = fleet.api.post("/tokens", json={"role": "reader", "name": "of-stage", "environments": ["stage"]}).json()
    bound = Visitor(fleet.app, made["token"])
    page = bound.page("/ui")
    assert len(listed(page)) == 40
    assert {int(name[-3:]) % 5 for name in listed(page)} == {4}
    assert "failed" not in text_of(page)
    assert '<option value="prod"' not in page
    for path in ("/ui/overrides", "/ui/components?status=Failed"):
        assert rows(bound.page(path)) == []
    assert [OTHER_ACCOUNT in row for row in rows(bound.page("/ui/scopes"))] == [True]
    assert [row.split(" ")[0] for row in rows(bound.page("/ui/agents"))] == ["agent-b"]
    assert "team-003" not in page


def test_an_account_that_is_reached_by_several_names_is_named_once() -> None:
    reaches = [{"provider": "aws", "name": name, "realm": ACCOUNT} for name in ("", "main")]
    assert filters.realms({"reaches": [*reaches, {"provider": "gcp", "name": "", "realm": "p"}]}) == [
        *(f"aws {ACCOUNT}", "gcp p"),
    ]


def test_every_list_is_small_and_asks_nobody_else(visitor: Visitor) -> None:
    for path in LISTS:
        page = visitor.page(path)
        assert len(page.encode()) < 100_000
        assert not re.search(r"<script(?! src=\"/ui/static/)|<style|\sstyle=|\son\w+=|https?://", page)


# --- in a browser


@pytest.fixture(scope="module")
def fleet_server(fleet: Fleet) -> Iterator[Server]:
    running = Server(fleet.app)
    running.start()
    yield running
    running.stop()


def enter(browser: Browser, server: Server, **how: object) -> Page:
    context = browser.new_context(**how)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{server.url}/ui?token={ADMIN_TOKEN}")
    return page


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_everybody_can_use_the_lists(fleet_server: Server, browser: Browser, scheme: str, width: int) -> None:
    page = enter(browser, fleet_server, color_scheme=scheme, viewport={"width": width, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in LISTS:
        page.goto(fleet_server.url + path)
        assert axe.violations(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is not wider than {width}"
    assert all(url.startswith(fleet_server.url) for url in asked)
    page.context.close()


@pytest.mark.browser
def test_healthy_rows_are_one_line_on_a_telephone(fleet_server: Server, browser: Browser) -> None:
    page = enter(browser, fleet_server, viewport={"width": 390, "height": 844})
    page.goto(f"{fleet_server.url}/ui?environment=prod&status=Active")
    heights = page.evaluate("[...document.querySelectorAll('tr.healthy')].map((row) => row.offsetHeight)")
    assert len(heights) == 50
    assert max(heights) <= 44
    page.context.close()


@pytest.mark.browser
def test_the_fleet_is_searched_by_keyboard_and_without_javascript(fleet_server: Server, browser: Browser) -> None:
    page = enter(browser, fleet_server, java_script_enabled=False)
    page.get_by_label("Search").focus()
    page.keyboard.type("team-1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui?search=team-1&sort=worst")
    expect(page.locator("#all")).to_have_text(re.compile("1–50 of 100"))
    following = page.get_by_role("link", name="Next")
    following.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#all")).to_have_text(re.compile("51–100 of 100"))
    page.get_by_label("Status").select_option("Failed")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#all")).to_have_text(re.compile("1–2 of 2"))
    page.get_by_role("link", name="Show all").click()
    expect(page.locator("#all")).to_have_text(re.compile("1–50 of 201"))
    page.get_by_role("link", name="Overrides", exact=True).click()
    expect(page.locator("h1")).to_have_text("Overrides")
    page.context.close()


@pytest.mark.browser
def test_an_open_fleet_page_shows_by_itself_what_begins_to_fail(browser: Browser, tmp_path: Path) -> None:
    app = _app(tmp_path / "live.db")
    with TestClient(app):
        small = Fleet(app, 10).build()
        server = Server(app)
        server.start()
        page = enter(browser, server)
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator(".calm")).to_contain_text("Nothing: no component failed")
        small.go_wrong()
        expect(page.locator("#needed-failed")).to_contain_text("3")
        expect(page.locator("table.fleet tbody tr").first).to_contain_text("Failed")
        page.context.close()
        server.stop()
