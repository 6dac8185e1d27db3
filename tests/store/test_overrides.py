"""An override that stands is extended and handed over: in memory, by one event, and no report undoes it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from fractal_cloud.control.store import overrides, requests
from fractal_cloud.control.store.errors import Refused
from fractal_cloud.control.store.housekeeping import mark_overdue
from fractal_cloud.control.store.overrides import Terms
from fractal_cloud.control.store.requests import Asked
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import RequestKind
from tests.store.playing import CATALOG, Player, World, net

Json = dict[str, Any]


def _held(world: World, by: str | None = None, **more: Any) -> Player:
    """A component in override: found on the cloud, or by somebody's request."""
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.settle()
    if by is None:
        _report(agent)
        return agent
    _break(world, by, **more)
    agent.claim()
    request = agent.work[agent.uid("ls-a", "net")].request
    assert request is not None
    _report(agent, used_request=request.id, override_by=by, **{f"override_{name}": more[name] for name in more})
    return agent


def _report(agent: Player, **more: Any) -> None:
    """What an agent reports of an override, as far as it knows who, why and until when."""
    said = {"stance": Stance.OVERRIDE, "status": Status.MANUAL_OVERRIDE, "overridden": True}
    agent.report(agent.says("ls-a", "net", **said, **more))


def _extend(world: World, until: datetime, **more: Any) -> Json:
    with world.store.write() as tx:
        return overrides.extend(tx, "ls-a", "net", Terms("cid", until=until, **more))


def _hand_over(world: World, to: str, **more: Any) -> Json:
    with world.store.write() as tx:
        return overrides.hand_over(tx, "ls-a", "net", Terms("cid", to=to, **more))


def _break(world: World, by: str, **more: Any) -> Json:
    with world.store.write() as tx:
        return requests.ask(tx, "ls-a", "net", Asked(RequestKind.BREAK, by, **more), CATALOG)


def _override(world: World) -> Json:
    found: Json = world.component("ls-a", "net")["override"]
    return found


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.rule("G13", "C4")
def test_an_extension_is_one_event_with_before_and_after(world: World) -> None:
    first, later = world.clock.now + timedelta(hours=1), world.clock.now + timedelta(hours=4)
    _held(world, "ann", reason="an incident", until=first)
    since = _override(world)["since"]
    count = len(world.events("ls-a"))
    answer = _extend(world, later)
    assert answer["changed"]
    assert _override(world) | {"until": None} == {"since": since, "by": "ann", "reason": "an incident", "until": None}
    assert _moment(_override(world)["until"]) == later
    (event,) = world.events("ls-a")[count:]
    assert (event["kind"], event["by"], event["componentId"]) == ("OverrideExtended", "cid", "net")
    assert _moment(event["before"]["until"]) == first
    assert _moment(event["after"]["until"]) == later
    assert event["after"]["by"] == "ann", "who extends it does not take it over"


@pytest.mark.rule("G13", "C4")
def test_a_hand_over_is_one_event_and_keeps_what_it_does_not_name(world: World) -> None:
    until = world.clock.now + timedelta(hours=1)
    _held(world, "ann", reason="an incident", until=until)
    count = len(world.events("ls-a"))
    _hand_over(world, "bea")
    assert (_override(world)["by"], _override(world)["reason"]) == ("bea", "an incident")
    assert _moment(_override(world)["until"]) == until
    (event,) = world.events("ls-a")[count:]
    assert (event["kind"], event["before"]["by"], event["after"]["by"]) == ("OverrideHandedOver", "ann", "bea")
    _hand_over(world, "dan", reason="her shift ended", until=until + timedelta(hours=1))
    assert (_override(world)["by"], _override(world)["reason"]) == ("dan", "her shift ended")
    assert _moment(_override(world)["until"]) == until + timedelta(hours=1)


@pytest.mark.rule("G13")
def test_an_override_found_on_the_cloud_gets_a_name_and_an_end(world: World) -> None:
    _held(world)
    assert _override(world)["by"] is None
    _extend(world, world.clock.now + timedelta(hours=4))
    assert _override(world)["by"] is None, "nobody knows who took it over, and the one who extends it did not"
    _hand_over(world, "bea")
    assert _override(world)["by"] == "bea"


@pytest.mark.rule("G13")
@pytest.mark.parametrize("is_found", [True, False], ids=["found on the cloud", "broken through the product"])
def test_a_report_judged_before_the_change_does_not_undo_it(world: World, is_found: bool) -> None:
    until = world.clock.now + timedelta(hours=1)
    agent = _held(world) if is_found else _held(world, "ann", until=until)
    known = {} if is_found else {"override_by": "ann", "override_until": until}
    later = world.clock.now + timedelta(hours=4)
    _hand_over(world, "bea", until=later)
    _report(agent, output_fields={"netId": "n-2"}, **known)
    assert world.component("ls-a", "net")["outputFields"] == {"netId": "n-2"}, "the rest of the report counts"
    assert (_override(world)["by"], _moment(_override(world)["until"])) == ("bea", later)


@pytest.mark.rule("G13", "S20")
def test_the_agent_hears_of_the_change_and_publishes_it_from_then_on(world: World) -> None:
    agent = _held(world, "ann")
    later = world.clock.now + timedelta(hours=4)
    _hand_over(world, "bea", until=later)
    agent.claim()
    memory = agent.work[agent.uid("ls-a", "net")].memory
    assert memory.override is not None
    assert (memory.override.by, memory.override.until) == ("bea", later)
    _report(agent, output_fields={"netId": "n-2"}, override_by="bea", override_until=later)
    assert _override(world)["by"] == "bea"


@pytest.mark.rule("G13", "G5")
def test_the_overdue_mark_goes_with_a_date_to_come_and_comes_again_with_it(world: World) -> None:
    agent = _held(world, "ann", until=world.clock.now + timedelta(hours=1))
    world.clock.advance(3700)
    mark_overdue(world.store.database)
    assert world.component("ls-a", "net")["overdue"]
    _hand_over(world, "bea")
    assert world.component("ls-a", "net")["overdue"], "another name is no other date"
    _extend(world, world.clock.now + timedelta(hours=1))
    assert not world.component("ls-a", "net")["overdue"]
    mark_overdue(world.store.database)
    assert not world.component("ls-a", "net")["overdue"]
    agent.claim()
    world.clock.advance(3700)
    mark_overdue(world.store.database)
    assert world.component("ls-a", "net")["overdue"]
    assert world.kinds("ls-a").count("OverrideOverdue") == 2


@pytest.mark.rule("G13")
def test_a_request_that_is_still_open_carries_the_change_along(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.settle()
    _break(world, "ann", reason="an incident", until=world.clock.now + timedelta(hours=1))
    later = world.clock.now + timedelta(hours=4)
    answer = _extend(world, later)
    assert answer["before"]["since"] is None, "asked for, and not carried out yet"
    agent.claim()
    request = agent.work[agent.uid("ls-a", "net")].request
    assert request is not None
    assert (request.kind, request.by, request.until) == (RequestKind.BREAK, "ann", later)


@pytest.mark.rule("G13")
def test_a_request_used_up_while_it_was_extended_brings_its_name_and_the_new_end(world: World) -> None:
    agent = _held(world)
    first, later = world.clock.now + timedelta(hours=1), world.clock.now + timedelta(hours=4)
    _break(world, "ann", reason="an incident", until=first)
    agent.claim()
    request = agent.work[agent.uid("ls-a", "net")].request
    assert request is not None
    _extend(world, later)
    _report(agent, override_by="ann", override_reason="an incident", override_until=first, used_request=request.id)
    assert world.component("ls-a", "net")["request"] is None
    assert (_override(world)["by"], _override(world)["reason"]) == ("ann", "an incident")
    assert _moment(_override(world)["until"]) == later


@pytest.mark.rule("G13")
def test_what_nobody_holds_cannot_be_extended(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.settle()
    count = len(world.events("ls-a"))
    with pytest.raises(Refused, match="'net' is Active and not in manual override: nobody holds it"):
        _extend(world, world.clock.now + timedelta(hours=4))
    with pytest.raises(Refused, match="fractal glass ls-a net --break"):
        _hand_over(world, "bea")
    assert len(world.events("ls-a")) == count


@pytest.mark.rule("G13", "C4")
def test_the_same_again_is_no_event_and_no_write(world: World) -> None:
    _held(world, "ann")
    _hand_over(world, "bea")
    before, count = world.component("ls-a", "net"), len(world.events("ls-a"))
    world.clock.advance(60)
    assert not _hand_over(world, "bea")["changed"]
    assert len(world.events("ls-a")) == count
    assert world.component("ls-a", "net")["lastUpdated"] == before["lastUpdated"]


@pytest.mark.rule("G13", "C4")
def test_breaking_the_glass_again_says_who_held_it_before(world: World) -> None:
    _held(world, "ann", reason="an incident")
    answer = _break(world, "bea", reason="mine now")
    assert answer["alreadyInOverride"] == ["net"]
    assert answer["override"]["by"] == "ann"
    event = world.events("ls-a")[-1]
    assert (event["kind"], event["before"]["by"], event["after"]["by"]) == ("GlassRequested", "ann", "bea")
