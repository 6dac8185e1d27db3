"""The two halves of a link meet in published output fields, and nowhere else (L2–L5, L8, L11)."""

from __future__ import annotations

import threading
import time

import pytest

from fractal_cloud.model.wire import Wait
from fractal_cloud.offers.link import InboundLink
from tests.agent_answers import answered_by_agent
from tests.links.link_handlers import Anything
from tests.links.world import World, database, gateway, link, workload

APP = workload("app", link("db", database="orders"))


@pytest.mark.rule("L3", "L4", "L9")
def test_a_workload_in_one_cloud_gets_its_own_role_in_a_database_of_another(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    published = links.fields("ls-a", "db")
    assert published["linkedCredentials.app.user"] == "app@orders"
    keys = ("endpoint", "user", "secretName", "received")
    assert set(links.fields("ls-a", "app")) == {f"databaseLink.db.{key}" for key in keys}
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles["app@orders"].password == secret
    assert links.west.named("app").actual["environment"]["databaseLink.db.secretName"] == "toy-west:ls-a/app>db"
    assert not any(value == secret for value in published.values())


@pytest.mark.rule("L3", "L8")
def test_inside_one_cloud_a_secret_of_that_cloud_is_named_and_nothing_travels(links: World) -> None:
    links.deploy("ls-a", database(), workload("app", link("db", database="orders"), at="east"))
    links.settle()
    published = links.fields("ls-a", "db")
    assert published["linkedCredentials.app.secretName"] == "toy-east:ls-a/db<ls-a/app"
    assert "linkedCredentials.app.sealed" not in published
    assert links.fields("ls-a", "app")["databaseLink.db.secretName"] == "toy-east:ls-a/db<ls-a/app"


@pytest.mark.rule("L2")
def test_a_cycle_of_links_settles_and_a_cycle_of_dependencies_is_refused(links: World) -> None:
    one = workload("one", link("two"), at="east")
    two = workload("two", link("one"), at="west")
    links.deploy("ls-a", one, two)
    links.settle()
    assert links.fields("ls-a", "one")["greetLink.two.endpoint"] == "two.toy:5000"
    assert links.fields("ls-a", "two")["greetLink.one.cross"] is True
    refused = links.put("ls-b", {**one, "dependencies": ["two"]}, {**two, "dependencies": ["one"]})
    assert refused.status_code == 422
    assert "go in a circle, one → two → one" in refused.text


@pytest.mark.rule("L2", "L5", "C8")
def test_a_link_never_orders_creation_and_a_mutation_completes_although_it_waits(links: World) -> None:
    links.kill_agent("east")
    mutation = links.deploy("ls-a", database(), APP)
    links.cycle("west")
    assert links.west.has("app")
    assert links.status("ls-a", "app") == "Active"
    assert "link to 'db': 'db' has published nothing for it yet" in links.message("ls-a", "app")
    links.start_agent("east")
    links.cycle("east")
    links.east.handler_runs.clear()
    links.kill_agent("west")
    links.cycle("east")
    waiting = links.mutation("ls-a", mutation)
    assert waiting["status"] == "Completed"
    assert waiting["linksWaiting"] == ["link of 'app' to 'db': 'db' has published nothing for it yet"]
    links.start_agent("west")
    links.settle()
    assert links.mutation("ls-a", mutation)["linksWaiting"] == []
    assert links.message("ls-a", "app") == links.message("ls-a", "db")


@pytest.mark.rule("L5", "S20")
def test_settled_links_run_no_half_write_nothing_and_report_nothing(links: World) -> None:
    links.deploy("ls-a", database(), gateway(), workload("app", link("db", database="x"), link("edge", prefix="/a")))
    links.settle()
    links.cycle()
    for store in (links.east, links.west):
        store.handler_runs.clear()
        store.calls.clear()
    results = links.cycle()
    assert not any(result.changes or result.writes for result in results)
    assert links.east.handler_runs == {"granted": 1, "routes_open": 1}
    assert links.west.handler_runs == {"used": 1}
    assert set(links.west.calls) == {"list Toy.WestWorkload", "list secrets"}


@pytest.mark.rule("L5")
def test_a_half_that_runs_again_provides_the_same_and_changes_nothing(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    before = (links.fields("ls-a", "db"), links.fields("ls-a", "app"), links.east.named("db").roles)
    links.deploy("ls-a", database(parameters={"size": 3}), APP)
    links.settle()
    after = (links.fields("ls-a", "db"), links.fields("ls-a", "app"), links.east.named("db").roles)
    assert after[0]["linkedCredentials.app.endpoint"] == "db.toy:5003"
    assert after[1]["databaseLink.db.endpoint"] == "db.toy:5003"
    assert after[2] == before[2], "the password is the same"
    assert after[0]["linkedCredentials.app.version"] == before[0]["linkedCredentials.app.version"]


@pytest.mark.rule("L8")
@pytest.mark.parametrize(
    ("own", "other", "crosses"),
    [("aws", "aws", False), ("aws", "azure", True), ("", "", True), ("aws", "", True), ("", "aws", True)],
)
def test_a_link_crosses_clouds_unless_both_providers_are_known_and_the_same(
    own: str, other: str, *, crosses: bool
) -> None:
    made = InboundLink("db", "app", "ls-a", "T", own, other, Anything(), cloud=None)
    assert made.is_cross_cloud() is crosses


@pytest.mark.rule("L11")
def test_a_publication_ends_the_long_poll_of_the_other_sides_agent_at_once(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.cycle("west")
    agent = links.agents["west"]
    agent._claim()
    woken: list[float] = []

    def wait() -> None:
        started = time.monotonic()
        answer = agent._control.wait(Wait(agent_id=agent.settings.agent_id, wake=agent._wake, seconds=20))
        assert answer.woken
        woken.append(time.monotonic() - started)

    poll = threading.Thread(target=wait)
    poll.start()
    time.sleep(0.1)
    links.agents["east"].run_once()
    poll.join(timeout=15)
    assert woken
    assert woken[0] < 10
    links.agents["west"].run_once()
    assert "databaseLink.db.user" in links.fields("ls-a", "app")
    links.agents["west"].run_once()
    assert links.west.named("app").actual["environment"]["databaseLink.db.user"] == "app@orders"


@pytest.mark.rule("L11")
def test_no_half_waits_for_another_and_one_side_alone_comes_to_rest(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.kill_agent("west")
    for _ in range(4):
        links.cycle("east")
    assert all(result.settled for result in links.cycle("east"))
    links.start_agent("west")


@pytest.mark.rule("L3")
def test_a_new_publication_shows_as_an_update_of_the_workload(links: World) -> None:
    links.deploy("ls-a", database(), workload("app"))
    links.settle()
    assert links.west.named("app").actual["environment"] == {}
    links.west.calls.clear()
    links.deploy("ls-a", database(), APP)
    links.settle()
    assert links.west.calls["update"] == 1
    links.deploy("ls-a", database(), workload("app"))
    links.settle()
    assert links.west.named("app").actual["environment"] == {}
    assert links.status("ls-a", "app") == "Active"


@pytest.mark.rule("S20")
def test_a_plan_runs_no_half_and_writes_nothing(links: World) -> None:
    links.deploy("ls-a", database(), workload("app"))
    links.settle()
    for store in (links.east, links.west):
        store.handler_runs.clear()
        store.calls.clear()
    body = {"id": "ls-a", "components": [database(), APP]}
    assert answered_by_agent(lambda: links.api.post("/livesystems/ls-a/plan", json=body), links.cycle).json()
    assert not links.east.handler_runs["grant"]
    assert not links.west.handler_runs["use"]
    assert not {"update", "put_role", "put_secret", "tag"} & (set(links.east.calls) | set(links.west.calls))
