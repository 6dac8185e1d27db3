"""Who is notified of what, when, and how often: on both databases, by a clock that stands, by a real receiver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from fractal_cloud.control.notifying.sender import Sender
from fractal_cloud.control.store import notification_queue, notifications, open_store
from fractal_cloud.control.store.errors import NotFound, Refused
from fractal_cloud.control.store.housekeeping import keep_house, mark_overdue
from fractal_cloud.control.store.records import iso
from fractal_cloud.control.store.schema import counters, notified_topics
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Stance, Status
from tests.notifications.receiver import Receiver, in_thread
from tests.notifications.subscribing import SETTINGS, subscribe
from tests.store.playing import CATALOG, Player, World, net

GROUP = SETTINGS.group_seconds
LONG = 1_000_000.0
"""A cycle in which no agent is taken for dead, whatever time passes."""
REPEAT = SETTINGS.repeat_minutes * 60


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with in_thread(tmp_path / "receiver") as made:
        yield made


@pytest.fixture
def agent(world: World) -> Player:
    """An agent that has settled a LiveSystem of three nets."""
    player = world.agent(cycle=LONG)
    world.deploy("ls-a", *(net(f"n{number}") for number in range(3)))
    player.settle()
    return player


def _fail(player: Player, *ids: str, live_system: str = "ls-a", message: str = "quota reached") -> None:
    player.report(*(player.says(live_system, one, status=Status.FAILED, message=message) for one in ids))


def _recover(player: Player, *ids: str, live_system: str = "ls-a") -> None:
    player.report(*(player.says(live_system, one) for one in ids))


def _break(player: Player, one: str = "n0", **more: Any) -> None:
    override = {"stance": Stance.OVERRIDE, "status": Status.MANUAL_OVERRIDE, "overridden": True}
    player.report(player.says("ls-a", one, **override, message="managed-by is absent", **more))


def _named(data: dict[str, Any]) -> list[str]:
    return [item["componentId"] for item in data["items"]]


@pytest.mark.rule("C4")
def test_many_components_that_fail_at_once_are_one_message_that_names_them(
    world: World, agent: Player, receiver: Receiver
) -> None:
    team = subscribe(world.store, receiver)
    _fail(agent, "n0", "n1")
    team.run()
    assert receiver.received == [], "others of the group may follow"
    world.clock.advance(GROUP / 2)
    _fail(agent, "n2")
    team.run()
    world.clock.advance(GROUP / 2)
    team.run()
    [data] = receiver.data
    assert (data["kind"], data["liveSystemId"], data["count"]) == ("Failed", "ls-a", 3)
    assert _named(data) == ["n0", "n1", "n2"]
    assert data["summary"] == "Failed: 3 components of ls-a: n0, n1, n2"
    assert data["items"][0]["message"] == "quota reached"
    team.run()
    assert len(receiver.received) == 1
    assert (team.shown["sent"], team.shown["pending"]) == (1, 0)


def test_a_message_names_a_bounded_number_of_things(world: World, receiver: Receiver) -> None:
    names = [f"n{number}" for number in range(50)]
    player = world.agent(cycle=LONG)
    world.deploy("ls-a", *map(net, names))
    player.settle()
    team = subscribe(world.store, receiver)
    _fail(player, *names, message="x" * 3_000)
    team.run()
    world.clock.advance(GROUP)
    team.run()
    [data] = receiver.data
    assert (data["count"], len(data["items"])) == (50, notification_queue.MOST_NAMED)
    assert data["summary"].endswith(" and 45 more")
    assert len(receiver.received[0]["body"]) < 32_000


@pytest.mark.rule("C4")
def test_a_status_that_flaps_is_sent_once_in_a_window(world: World, agent: Player, receiver: Receiver) -> None:
    team = subscribe(world.store, receiver)
    for _ in range(5):
        _fail(agent, "n0")
        team.run()
        world.clock.advance(GROUP)
        _recover(agent, "n0")
        team.run()
    assert len(receiver.received) == 1
    world.clock.advance(REPEAT)
    team.run()
    assert len(receiver.received) == 1, "a condition that does not change is not repeated"
    _fail(agent, "n0")
    team.run()
    world.clock.advance(GROUP)
    team.run()
    assert [data["kind"] for data in receiver.data] == ["Failed", "Failed"]
    assert len(set(receiver.ids)) == 2


@pytest.mark.rule("G13")
def test_begin_and_end_of_overrides_are_each_notified_in_their_order(
    world: World, agent: Player, receiver: Receiver
) -> None:
    team = subscribe(world.store, receiver)
    _break(agent)
    _recover(agent, "n0")
    _break(agent)
    team.run()
    world.clock.advance(GROUP)
    team.run()
    notified = [data["kind"] for data in receiver.data if data["kind"].startswith("Override")]
    assert notified == ["OverrideBegun", "OverrideEnded", "OverrideBegun"], "the last one notified is how it is"
    [begun, *_] = receiver.data
    assert (begun["items"][0]["by"], begun["items"][0]["message"]) == ("unknown", "managed-by is absent")


@pytest.mark.rule("G13")
def test_an_override_whose_date_passes_is_notified(world: World, agent: Player, receiver: Receiver) -> None:
    team = subscribe(world.store, receiver, kinds=["OverrideOverdue"])
    until = world.clock.now + timedelta(hours=1)
    _break(agent, override_until=until)
    world.clock.advance(3_601)
    mark_overdue(world.store.database)
    team.run()
    world.clock.advance(GROUP)
    team.run()
    [data] = receiver.data
    assert data["kind"] == "OverrideOverdue"
    assert data["items"][0]["after"]["until"] == iso(until)


@pytest.mark.rule("O5")
def test_drift_is_notified_of_what_is_owned_and_never_of_what_is_imported(
    world: World, agent: Player, receiver: Receiver
) -> None:
    world.deploy("ls-b", net("n0"))
    agent.claim()
    imported = {"stance": Stance.IMPORTED, "status": Status.EXTERNALLY_MANAGED, "owner": "ls-a"}
    agent.report(agent.says("ls-b", "n0", **imported))
    team = subscribe(world.store, receiver)
    drift = {"output_fields": {"drift": {"size": {"declared": 1, "actual": 2}}}}
    agent.report(agent.says("ls-b", "n0", **imported, **drift), agent.says("ls-a", "n0", **drift))
    team.run()
    world.clock.advance(GROUP)
    team.run()
    [data] = receiver.data
    assert (data["kind"], data["liveSystemId"], data["items"][0]["message"]) == (
        "DriftFound",
        "ls-a",
        "size: declared 1, actual 2",
    )
    assert data["items"][0]["after"] == {"size": {"declared": 1, "actual": 2}}
    agent.report(agent.says("ls-b", "n0", **{**imported, "status": Status.MISSING}))
    team.run()
    world.clock.advance(GROUP)
    team.run()
    assert [(d["kind"], d["liveSystemId"]) for d in receiver.data[1:]] == [("Missing", "ls-b")], "but Missing is"


@pytest.mark.rule("C4")
def test_what_a_deploy_is_about_to_change_is_no_drift_to_be_notified_of(
    world: World, agent: Player, receiver: Receiver
) -> None:
    team = subscribe(world.store, receiver)
    drift = {"output_fields": {"drift": {"size": {"declared": 2, "actual": 1}}}}
    world.deploy("ls-a", *(net(f"n{number}", parameters={"size": 2}) for number in range(3)))
    agent.claim()
    agent.report(agent.says("ls-a", "n0", status=Status.MUTATING, observed_generation=1, **drift))
    world.clock.advance(1)
    agent.settle()
    assert "DriftFound" in world.kinds("ls-a", "n0")
    world.clock.advance(1)
    agent.report(agent.says("ls-a", "n1", **drift))
    team.run()
    world.clock.advance(GROUP)
    team.run()
    [data] = receiver.data
    assert (data["kind"], _named(data)) == ("DriftFound", ["n1"]), "somebody changed it after the deploy was done"


@pytest.mark.rule("O8")
def test_an_owner_that_moves_is_notified_once_however_many_declare_the_resource(
    world: World, agent: Player, receiver: Receiver
) -> None:
    for name in ("ls-b", "ls-c"):
        world.deploy(name, net("n0"))
    agent.claim()
    imported = {"stance": Stance.IMPORTED, "status": Status.EXTERNALLY_MANAGED}
    for name in ("ls-b", "ls-c"):
        agent.report(agent.says(name, "n0", **imported, owner="ls-a"))
    team = subscribe(world.store, receiver)
    for name in ("ls-a", "ls-b", "ls-c"):
        agent.report(agent.says(name, "n0", **imported, owner="ls-b"))
    team.run()
    world.clock.advance(GROUP)
    team.run()
    [data] = receiver.data
    assert data["kind"] == "OwnerMoved"
    assert data["items"][0]["message"] == "owner of id-n0 was 'ls-a', is 'ls-b'"


def test_a_subscription_gets_what_it_asked_for_and_nothing_from_before(
    world: World, agent: Player, receiver: Receiver
) -> None:
    world.deploy("ls-prod", net("p0"), environment="prod")
    player = world.agent("a2", realm="acct-2", environment="prod", cycle=LONG)
    player.settle("ls-prod")
    _fail(agent, "n0")
    by_name = subscribe(world.store, receiver, name="by-name", live_systems=["ls-prod"])
    subscribe(world.store, receiver, name="by-environment", environments=["prod"], url=receiver.url + "&env")
    subscribe(world.store, receiver, name="by-kind", kinds=["Missing"], url=receiver.url + "&kind")
    _fail(player, "p0", live_system="ls-prod")
    _fail(agent, "n1")
    by_name.run()
    world.clock.advance(GROUP)
    by_name.run()
    notified = sorted(
        (one["path"].partition("secret")[2], data["liveSystemId"])
        for one, data in zip(receiver.received, receiver.data, strict=True)
    )
    assert notified == [("", "ls-prod"), ("&env", "ls-prod")]


def test_what_is_nobodys_is_notified_only_where_no_environment_is_named(world: World, receiver: Receiver) -> None:
    team = subscribe(world.store, receiver)
    subscribe(world.store, receiver, name="prod", environments=["prod"], url=receiver.url + "&env")
    with world.store.write() as tx:
        for _ in range(3):
            world.store.refusals.record(tx, EventKind.REPORT_REFUSED, "tok", "a1", "beyond its lease")
    team.run()
    world.clock.advance(GROUP)
    team.run()
    [data] = receiver.data
    assert (data["kind"], data["liveSystemId"]) == ("AgentRefused", None)
    assert receiver.received[0]["path"].endswith("path-secret")


@pytest.mark.rule("C11")
def test_a_scope_that_nobody_reads_is_notified_and_so_is_its_first_read_after_that(
    world: World, receiver: Receiver
) -> None:
    cycle = 60.0
    player = world.agent(cycle=cycle)
    world.deploy("ls-a", net())
    player.settle()
    player.beat({"test/acct/north": world.clock.now})
    team = subscribe(world.store, receiver, environments=["default"])
    subscribe(world.store, receiver, name="prod", environments=["prod"], url=receiver.url + "&prod")
    world.clock.advance(3 * cycle)
    keep_house(world.store.database, cycle)
    team.run()
    world.clock.advance(GROUP)
    team.run()
    [unread] = [data for data in receiver.data if data["kind"] == "ScopeUnread"]
    assert unread["items"][0]["after"]["scope"] == "test/acct/north"
    assert unread["summary"].startswith("Nobody reads: scope 'test/acct/north' was last read at ")
    player.claim()
    player.beat({"test/acct/north": world.clock.now})
    team.run()
    world.clock.advance(GROUP)
    team.run()
    assert [data["kind"] for data in receiver.data if data["kind"].startswith("Scope")] == ["ScopeUnread", "ScopeRead"]
    assert not any(one["path"].endswith("&prod") for one in receiver.received)


@pytest.mark.rule("C4")
def test_a_receiver_that_fails_is_tried_again_later_and_later_with_one_id_and_one_body(
    world: World, agent: Player, receiver: Receiver
) -> None:
    team = subscribe(world.store, receiver)
    receiver.answers(status=503)
    _fail(agent, "n0")
    team.run()
    world.clock.advance(GROUP)
    waits = []
    for _ in range(12):
        began = world.clock.now
        team.run()
        team.run()
        shown = team.shown
        waits.append((shown["nextTry"] - began).total_seconds())
        world.clock.now = shown["nextTry"]
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600]
    assert len(receiver.received) == 12, "one try each: not one while it waits"
    assert (team.shown["lastError"], team.shown["failures"]) == ("answered 503", 12)
    _fail(agent, "n1")
    receiver.answers(status=200)
    team.run()
    assert len({one["body"] for one in receiver.received[:13]}) == 1
    assert len(set(receiver.ids[:13])) == 1
    world.clock.advance(GROUP)
    team.run()
    assert [data["count"] for data in receiver.data[12:]] == [1, 1], "what came meanwhile is notified apart"
    assert (team.shown["failures"], team.shown["lastError"], team.shown["failingSince"]) == (0, "", None)


def test_the_wait_has_jitter_and_is_as_long_as_the_receiver_asks(
    world: World, agent: Player, receiver: Receiver
) -> None:
    team = subscribe(world.store, receiver)
    team.sender._jitter = lambda: 1.0
    receiver.answers(status=429, headers={"Retry-After": "100"})
    _fail(agent, "n0")
    team.run()
    world.clock.advance(GROUP)
    team.run()
    assert (team.shown["nextTry"] - world.clock.now).total_seconds() == 100 * 1.25


@pytest.mark.rule("C4")
def test_what_nobody_accepts_for_a_day_is_given_up_with_an_event(
    world: World, agent: Player, receiver: Receiver
) -> None:
    team = subscribe(world.store, receiver)
    receiver.answers(status=500)
    _fail(agent, "n0")
    team.run()
    world.clock.advance(GROUP)
    team.run()
    world.clock.advance(23 * 3_600)
    _fail(agent, "n1")
    team.run()
    world.clock.advance(3_600)
    team.run()
    [event] = [one for one in world.events() if one["kind"] == "NotificationGivenUp"]
    assert event["message"].startswith("1 notification for 'team' at http://127.0.0.1")
    assert "(Failed ls-a): answered 500" in event["message"]
    assert (team.shown["givenUp"], team.shown["pending"]) == (1, 1), "the younger one is tried further"
    receiver.answers(status=200)
    world.clock.advance(600)
    team.run()
    assert team.shown["pending"] == 0
    assert _named(receiver.data[-1]) == ["n1"]


def test_a_message_that_is_refused_as_such_does_not_hold_up_those_behind_it(
    world: World, agent: Player, receiver: Receiver
) -> None:
    team = subscribe(world.store, receiver)
    receiver.answers(status=422)
    _fail(agent, "n0")
    team.run()
    for _ in range(notification_queue.MOST_REFUSALS):
        world.clock.advance(601)
        team.run()
    assert (team.shown["givenUp"], team.shown["pending"]) == (1, 0)
    assert len(receiver.received) == notification_queue.MOST_REFUSALS


def test_a_dead_receiver_costs_a_bounded_number_of_rows_and_loses_nothing_it_could_name(
    world: World, receiver: Receiver
) -> None:
    player = world.agent(cycle=LONG)
    names = [f"ls-{number}" for number in range(notification_queue.MOST_QUEUED + 30)]
    for name in names:
        world.deploy(name, net(f"n-{name}"))
    player.settle()
    team = subscribe(world.store, receiver)
    player.report(*(player.says(name, f"n-{name}", status=Status.FAILED) for name in names))
    team.run()
    assert team.shown["pending"] == notification_queue.MOST_QUEUED + 1
    world.clock.advance(GROUP)
    team.run()
    assert sum(data["count"] for data in receiver.data) == len(names)
    last = receiver.data[-1]
    assert (last["liveSystemId"], last["count"], len(last["items"])) == (None, 30, notification_queue.MOST_NAMED)
    assert last["summary"].startswith("Failed: 30 components of several LiveSystems: ls-")


def test_one_of_several_processes_sends_and_what_one_died_with_is_sent_by_another(
    world: World, agent: Player, receiver: Receiver, database_url: str
) -> None:
    team = subscribe(world.store, receiver)
    other = Sender(open_store(database_url, types_here=CATALOG, clock=world.clock), SETTINGS)
    _fail(agent, "n0")
    other.collect()
    team.sender.collect()
    world.clock.advance(GROUP)
    claimed = team.sender.claim()
    assert claimed is not None
    other.run_once()
    assert receiver.received == [], "it is claimed"
    with world.store.write() as tx:
        delivery = notification_queue.next_of(tx, claimed, SETTINGS.pace)
    assert delivery is not None
    team.sender._send(claimed, delivery)
    world.clock.advance(SETTINGS.pace.claim.total_seconds())  # and its process dies before it could record that
    other.run_once()
    assert len(receiver.ids) == 2
    assert len(set(receiver.ids)) == 1, "at least once, under the same id"
    with world.store.write() as tx:
        notification_queue.failed(tx, claimed, delivery, notification_queue.Failure("late"), SETTINGS.pace)
    assert team.shown["failures"] == 0, "who lost the claim has no say any more"
    other._store.close()


def test_the_cursor_moves_with_what_it_queued_and_nothing_is_written_where_there_is_no_news(
    world: World, agent: Player, receiver: Receiver
) -> None:
    def cursor() -> int | None:
        with world.store.read() as tx:
            query = select(counters.c.value).where(counters.c.name == notification_queue.CURSOR)
            return tx.connection.execute(query).scalar()

    sender = Sender(world.store, SETTINGS)
    _fail(agent, "n0")
    sender.run_once()
    assert cursor() is None, "nobody has subscribed"
    team = subscribe(world.store, receiver)
    _fail(agent, "n1", "n2")
    while notification_queue.collect(world.store.database, SETTINGS.pace, at_once=1):
        pass
    assert team.shown["pending"] == 1
    before = cursor()
    team.run()
    world.deploy("ls-b", net("b0"))
    team.run()
    assert cursor() == before


def test_what_was_notified_is_forgotten_after_the_window(world: World, agent: Player, receiver: Receiver) -> None:
    team = subscribe(world.store, receiver)
    _fail(agent, "n0", "n1")
    team.run()
    world.clock.advance(REPEAT + 1)
    _fail(agent, "n2")
    team.run()
    with world.store.read() as tx:
        assert tx.connection.execute(select(func.count()).select_from(notified_topics)).scalar_one() == 1


def test_a_test_goes_first_is_tried_once_and_says_what_came_of_it(
    world: World, agent: Player, receiver: Receiver
) -> None:
    team = subscribe(world.store, receiver, kinds=["Missing"])

    def try_it() -> dict[str, Any]:
        with world.store.write() as tx:
            notification_queue.queue_test(tx, notifications.require(tx, "team", None), "bea")
        team.run()
        found: dict[str, Any] = team.shown["test"]
        return found

    receiver.answers(status=404)
    failed = try_it()
    assert (failed["outcome"], failed["error"]) == ("failed", "answered 404")
    assert (team.shown["failures"], team.shown["pending"]) == (0, 0)
    receiver.answers(status=200)
    assert try_it()["outcome"] == "sent"
    assert receiver.data[-1]["kind"] == "Test"
    assert receiver.data[-1]["items"][0]["by"] == "bea"


def test_what_is_removed_is_gone_with_all_that_was_to_be_sent(world: World, agent: Player, receiver: Receiver) -> None:
    team = subscribe(world.store, receiver)
    with pytest.raises(Refused, match="there is a subscription 'team' already"):
        subscribe(world.store, receiver)
    _fail(agent, "n0")
    team.run()
    with world.store.write() as tx:
        notifications.remove(tx, "team", "bea", None)
    world.clock.advance(GROUP)
    team.run()
    assert receiver.received == []
    with world.store.read() as tx, pytest.raises(NotFound):
        notifications.require(tx, "team", None)
    assert [e["kind"] for e in world.events() if e["kind"].startswith("Notification")] == [
        "NotificationAdded",
        "NotificationRemoved",
    ]
    assert "1 that were to be sent are dropped" in world.events()[-1]["message"]


def test_a_subscription_sealed_with_another_key_says_so_and_sends_nothing(
    world: World, agent: Player, receiver: Receiver
) -> None:
    team = subscribe(world.store, receiver)
    other = Sender(world.store, replace(SETTINGS, key="another-key-" * 4))
    _fail(agent, "n0")
    other.run_once()
    world.clock.advance(GROUP)
    other.run_once()
    assert receiver.received == []
    assert "it was sealed with another key" in team.shown["lastError"]
