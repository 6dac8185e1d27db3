"""Agents die, tags vanish at the wrong moment, databases are lost: nothing is doubled or left behind (S16, S17)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fractal_cloud.agent.client import ControlPlane, ControlPlaneUnreachable
from fractal_cloud.model.errors import Conflict, Denied, Throttled, Transient
from fractal_cloud.model.wire import Report, Reported
from tests.links.world import World, database, link, workload

APP = workload("app", link("db", database="orders"))


class Killed(BaseException):
    """The agent's process ends here."""


class Dying(ControlPlane):
    """The way to the control plane of an agent that dies: from the nth report on, nothing is heard of it."""

    def __init__(self, plane: ControlPlane, reports_left: int) -> None:
        self.__dict__ = plane.__dict__
        self.reports_left = reports_left

    def report(self, report: Report) -> Reported:
        """Publish, as long as it lives."""
        if self.reports_left == 0:
            raise ControlPlaneUnreachable("the agent is dead: nothing of it is heard")
        self.reports_left -= 1
        return super().report(report)


def _dies_after(reports: int) -> Callable[[ControlPlane], ControlPlane]:
    return lambda plane: Dying(plane, reports)


def _at_rest(links: World) -> None:
    links.settle(at_most=30)
    assert links.east.roles("db") == ["app@orders"]
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles["app@orders"].password == secret
    assert links.east.marks() == {"ls-a/db<ls-a/app"}
    assert links.west.marks() == {"ls-a/app>db"}


def _nothing_left(links: World) -> None:
    links.deploy("ls-a", database(), workload("app"))
    links.settle(at_most=30)
    assert not links.east.marks() | links.west.marks()
    assert not links.fields("ls-a", "db")


@pytest.mark.rule("S17", "C7")
@pytest.mark.parametrize("provider", ["east", "west"])
@pytest.mark.parametrize("reports", [0, 1])
@pytest.mark.parametrize("stays", [True, False], ids=["the link stays", "the link goes meanwhile"])
def test_an_agent_that_dies_around_a_half_leaves_nothing_double_and_nothing_behind(
    links: World, provider: str, reports: int, *, stays: bool
) -> None:
    """0: before it is known that the half will run; 1: after it ran, before anybody heard what came of it."""
    links.deploy("ls-a", database(), workload("app"))
    links.settle()
    links.deploy("ls-a", database(), APP)
    if provider == "west":
        links.cycle("east")
    links.restart_agent(provider, _dies_after(reports))
    links.cycle(provider)
    ran = links.east.handler_runs["grant"] if provider == "east" else links.west.handler_runs["use"]
    assert ran == (reports if provider == "east" else min(reports, ran))
    links.restart_agent(provider)
    if stays:
        _at_rest(links)
    else:
        _nothing_left(links)


@pytest.mark.rule("S17")
@pytest.mark.parametrize("operation", ["put_role", "drop_role", "put_secret"])
@pytest.mark.parametrize("error", [Transient("no answer"), Throttled("slow down"), Conflict("busy")])
def test_a_half_that_fails_in_the_middle_is_finished_or_taken_back(
    links: World, operation: str, error: Exception
) -> None:
    links.deploy("ls-a", database(), workload("app", link("db", database="old")))
    links.settle()
    for store in (links.east, links.west):
        store.failing[operation] = error  # type: ignore[assignment]
    links.deploy("ls-a", database(), workload("app", link("db", database="never")))
    links.cycle()
    links.cycle()
    for store in (links.east, links.west):
        store.failing.clear()
    links.deploy("ls-a", database(), APP)
    _at_rest(links)
    _nothing_left(links)


@pytest.mark.rule("S17")
def test_settings_that_were_tried_and_given_up_leave_nothing(links: World) -> None:
    links.deploy("ls-a", database(), workload("app", link("db", database="old")))
    links.settle()
    links.deploy("ls-a", database(), workload("app", link("db", database="tried")))
    links.restart_agent("east", _dies_after(1))
    links.cycle("east")
    assert links.east.roles("db") == ["app@tried"]
    links.restart_agent("east")
    links.deploy("ls-a", database(), APP)
    _at_rest(links)


@pytest.mark.rule("S16")
def test_a_tag_removed_between_the_read_and_the_write_stops_the_handler(links: World) -> None:
    links.deploy("ls-a", database(), workload("app"))
    links.settle()

    def break_glass(operation: str) -> None:
        if operation == "read Toy.EastDatabase":
            links.east.break_glass("db")

    links.east.before.append(break_glass)
    links.deploy("ls-a", database(), APP)
    links.cycle("east")
    links.east.before.clear()
    assert not links.east.handler_runs["grant"]
    (entry,) = links.journal("ls-a", "db")
    assert entry["outcome"] == "abandoned"
    assert "managed-by" not in entry["tags"], "the tags are those seen right before it"
    links.settle()
    assert links.status("ls-a", "db") == "ManualOverride"
    assert not links.east.roles("db")
    links.east.hand_back("db")
    _at_rest(links)


@pytest.mark.rule("S16")
@pytest.mark.parametrize("action", ["untag", "rename", "move"])
def test_the_guard_of_a_revoke_sees_what_people_did_a_moment_before(links: World, action: str) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()

    def act(operation: str) -> None:
        if operation == "read Toy.EastDatabase" and links.east.has("db"):
            thing = links.east.named("db")
            if action == "untag":
                links.east.break_glass("db")
            elif action == "rename":
                thing.name = "another"
            else:
                links.east.give_to("db", "ls-z")

    links.east.before.append(act)
    links.deploy("ls-a", database(), workload("app"))
    links.cycle("east")
    links.east.before.clear()
    assert not links.east.handler_runs["withdraw"]


@pytest.mark.rule("C7")
def test_every_half_is_journalled_before_and_after_and_no_entry_holds_a_secret(links: World) -> None:
    links.deploy("ls-a", database(), workload("app"))
    links.settle()
    links.deploy("ls-a", database(), APP)
    seen: list[str] = []

    def record_outcomes(operation: str) -> None:
        if operation == "put_role":
            seen.extend(entry["outcome"] for entry in links.journal("ls-a", "db"))

    links.east.before.append(record_outcomes)
    links.settle()
    assert seen == ["unknown"], "the intent stands before the role is made"
    entries = links.journal("ls-a", "db")
    assert {entry["outcome"] for entry in entries} == {"done"}
    made = entries[-1]
    assert made["after"]["link"] == {
        "half": "inbound",
        "linkType": "databaseLink",
        "other": "app",
        "settings": {"database": "orders"},
    }
    assert made["tags"]["managed-by"] == "fractal-cloud"
    assert made["requestIds"]
    password = links.east.named("db").roles["app@orders"].password
    assert password not in str(entries) + str(links.journal("ls-a", "app"))


@pytest.mark.rule("C7", "S17")
def test_an_intent_whose_agent_died_is_closed_as_unknown(links: World) -> None:
    links.deploy("ls-a", database(), workload("app"))
    links.settle()
    links.deploy("ls-a", database(), APP)
    links.restart_agent("east", _dies_after(1))
    links.cycle("east")
    links.restart_agent("east")
    _at_rest(links)
    assert "unknown" in {entry["outcome"] for entry in links.journal("ls-a", "db")}


@pytest.mark.rule("C2")
def test_with_the_database_lost_and_everything_deployed_again_nothing_is_doubled(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    for provider in ("east", "west"):
        links.agents[provider].close()
    links.api.__exit__(None, None, None)
    links.open_control_plane("another.db")
    links.deploy("ls-a", database(), APP)
    links.cycle()
    assert "is shown for one cycle before anything of it is written" in links.message("ls-a", "db")
    _at_rest(links)
    assert len(links.east.things) == len(links.west.things) == 1
    _nothing_left(links)


@pytest.mark.rule("S21")
def test_a_handler_that_is_denied_is_reported_and_backs_off(links: World) -> None:
    links.east.failing["put_role"] = Denied("you may not make roles")
    links.deploy("ls-a", database(), APP)
    links.cycle("west")
    for _ in range(15):
        links.cycle("east")
    assert "link from 'app': you may not make roles" in links.message("ls-a", "db")
    assert links.status("ls-a", "db") == "Active"
    assert links.east.calls["put_role"] < 13
    links.east.failing.clear()
    links.deploy("ls-a", database(), workload("app", link("db", database="orders", access="read")))
    links.settle()
    assert links.east.roles("db") == ["app@orders"]


@pytest.mark.rule("S17")
def test_an_agent_that_may_not_write_any_more_comes_back_to_its_links(links: World) -> None:
    links.deploy("ls-a", database(), workload("app"))
    links.settle()
    links.cycle()
    links.deploy("ls-a", database(), APP)
    agent = links.agents["east"]
    around, agent._context = (
        agent._context,
        type(agent._context)(
            **{name: getattr(agent._context, name) for name in agent._context.__slots__} | {"may_write": lambda: False}
        ),
    )
    links.cycle("east")
    links.cycle("east")
    agent._context = around
    _at_rest(links)
