"""Reports: all or nothing, stamps, events, journal, and what an unchanged component costs."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.control.store import journal, reports, requests, resources
from fractal_cloud.control.store.errors import LeaseLost, ReportRefused
from fractal_cloud.control.store.requests import Asked
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import AgentEvent, JournalEntry, KnownResource, RequestKind
from tests.store.playing import CATALOG, Player, World, box, net, sub

Json = dict[str, Any]
OVERRIDE = {"stance": Stance.OVERRIDE, "status": Status.MANUAL_OVERRIDE, "overridden": True}


@pytest.fixture
def agent(world: World) -> Player:
    """An agent that has claimed ls-a with two components."""
    world.deploy("ls-a", net(), box())
    player = world.agent()
    player.claim()
    return player


def test_a_stale_token_refuses_the_whole_report(world: World, agent: Player) -> None:
    other = world.agent("a2")
    world.clock.advance(11)
    other.beat()
    other.claim(limit=1)  # takes the global scope; the other one is still the old holder's
    agent.beat()
    with pytest.raises(LeaseLost, match="another holder"):
        agent.report(agent.says("ls-a", "net"), agent.says("ls-a", "box"))
    assert world.component("ls-a", "net")["status"] == "Instantiating"
    assert world.kinds("ls-a") == ["Deployed"]


@pytest.mark.rule("C4", "C8", "L11")
def test_reports_of_one_batch_are_applied_as_if_one_by_one(world: World) -> None:
    """One of them is refused, and leaves no trace; the others have all they would have had alone."""
    world.deploy("ls-a", net(), sub(), box())
    world.deploy("ls-b", net("net-b", region="south"), box("box-b", dependencies=["net-b"]))
    late, first = world.agent("late"), world.agent("first")
    late.claim(limit=1)
    taken = next(iter(late.work.values()))
    world.clock.advance(11)
    first.beat()
    first.claim()  # all of it: the other was not heard of in time
    spoken = late.sent(late.says(taken.live_system_id, taken.declaration.id, message="a voice from the past"))
    parts = [p for p in first.work.values() if p.uid != taken.uid]
    mutation = world.live_system("ls-b")["mutationId"]
    alone = [first.sent(first.says(p.live_system_id, p.declaration.id)) for p in parts]
    with world.store.write() as tx:
        outcomes = reports.apply(tx, [alone[0], spoken, *alone[1:]])
    assert [isinstance(outcome, LeaseLost) for outcome in outcomes] == [False, True, *(False for _ in alone[1:])]
    assert world.component(taken.live_system_id, taken.declaration.id)["status"] == "Instantiating"
    for part in parts:
        assert world.component(part.live_system_id, part.declaration.id)["status"] == "Active"
        assert world.kinds(part.live_system_id, part.declaration.id) == ["StatusChanged"]
    numbers = [event["seq"] for event in world.events()]
    assert numbers == sorted(set(numbers))
    assert world.mutation("ls-b", mutation)["status"] == (
        "InProgress" if taken.live_system_id == "ls-b" else "Completed"
    )
    first.claim()
    assert first.versions["test/acct/global"] == 2, "what the box of ls-b depends on was published"


def test_what_is_reported_under_another_scopes_lease_is_refused_even_by_its_own_holder(
    world: World, agent: Player
) -> None:
    sent = agent.sent(agent.says("ls-a", "net"))
    sent.report.scopes[0].changes.append(agent.says("ls-a", "box"))
    with world.store.write() as tx, pytest.raises(ReportRefused, match="was never in it"):
        reports.report(tx, sent.report, sent.token_id)
    assert world.component("ls-a", "net")["status"] == "Instantiating"
    assert world.component("ls-a", "box")["status"] == "Instantiating"


@pytest.mark.rule("C8")
def test_the_progress_of_a_mutation_is_derived_from_its_components_when_asked(world: World, agent: Player) -> None:
    deploy = world.live_system("ls-a")["mutationId"]
    assert world.mutation("ls-a", deploy)["status"] == "InProgress"
    at = agent.report(agent.says("ls-a", "net"), agent.says("ls-a", "box")).at
    mutation = world.mutation("ls-a", deploy)
    assert (mutation["status"], mutation["updatedAt"]) == ("Completed", at)
    world.clock.advance(3)
    agent.report(agent.says("ls-a", "net", status=Status.MUTATING))
    assert world.mutation("ls-a", deploy)["status"] == "InProgress"
    world.deploy("ls-a", net(), box(), net("more", region="south"))
    frozen = world.mutation("ls-a", deploy)
    assert frozen["status"] == "Cancelled"
    agent.report(agent.says("ls-a", "net"))
    assert world.mutation("ls-a", deploy) == frozen


def test_a_holder_that_was_not_heard_of_in_time_is_refused(world: World, agent: Player) -> None:
    world.clock.advance(11)
    with pytest.raises(LeaseLost, match="heartbeat"):
        agent.report(agent.says("ls-a", "net"))


@pytest.mark.rule("S20")
def test_an_unchanged_component_costs_no_write(world: World, agent: Player) -> None:
    agent.report(agent.says("ls-a", "net"))
    before = world.component("ls-a", "net")
    world.clock.advance(3)
    agent.report(agent.says("ls-a", "net"))
    assert world.component("ls-a", "net")["lastUpdated"] == before["lastUpdated"]


def test_times_are_those_of_the_first_publication_and_end_with_their_flag(world: World, agent: Player) -> None:
    first = agent.report(agent.says("ls-a", "net", absent=True, noticed=True)).at
    world.clock.advance(3)
    agent.report(agent.says("ls-a", "net", absent=True, noticed=True, message="still"))
    agent.versions.clear()
    agent.claim()
    memory = agent.work[agent.uid("ls-a", "net")].memory
    assert (memory.absent_since, memory.noticed_since) == (first, first)
    agent.report(agent.says("ls-a", "net"))
    agent.versions.clear()
    agent.claim()
    memory = agent.work[agent.uid("ls-a", "net")].memory
    assert (memory.absent_since, memory.noticed_since) == (None, None)


@pytest.mark.rule("G13")
def test_an_override_says_since_when_by_whom_and_why(world: World, agent: Player) -> None:
    agent.report(agent.says("ls-a", "net"))
    since = agent.report(agent.says("ls-a", "net", **OVERRIDE)).at
    world.clock.advance(3)
    with world.store.write() as tx:
        requests.ask(tx, "ls-a", "net", Asked(RequestKind.BREAK, "ann", "incident"), CATALOG)
    agent.claim()
    agent.report(agent.says("ls-a", "net", **OVERRIDE, override_by="ann", override_reason="incident"))
    override = world.component("ls-a", "net")["override"]
    assert override["since"] == since.isoformat().replace("+00:00", "Z")
    assert (override["by"], override["reason"], override["until"]) == ("ann", "incident", None)
    agent.report(agent.says("ls-a", "net"))
    assert world.component("ls-a", "net")["override"] is None


@pytest.mark.rule("C4", "G1")
def test_a_broken_glass_and_a_readoption_are_events(world: World, agent: Player) -> None:
    agent.report(agent.says("ls-a", "net"))
    agent.report(agent.says("ls-a", "net", **OVERRIDE, message="managed-by is absent"))
    agent.report(agent.says("ls-a", "net"))
    found = [e for e in world.events("ls-a") if e["componentId"] == "net"]
    assert [(e["kind"], e["by"]) for e in found] == [
        ("StatusChanged", "a1"),
        ("StatusChanged", "a1"),
        ("GlassBroken", "unknown"),
        ("StatusChanged", "a1"),
        ("Readopted", "a1"),
    ]
    assert (found[1]["before"], found[1]["after"]) == ("Active", "ManualOverride")


@pytest.mark.rule("C4", "O5")
def test_drift_is_an_event_for_an_owner_and_none_for_an_importer(world: World, agent: Player) -> None:
    drift: Json = {"drift": {"size": {"declared": 1, "actual": 2}}}
    agent.report(agent.says("ls-a", "net"), agent.says("ls-a", "box", stance=Stance.IMPORTED))
    agent.report(
        agent.says("ls-a", "net", output_fields=drift),
        agent.says("ls-a", "box", stance=Stance.IMPORTED, output_fields=drift),
    )
    agent.report(agent.says("ls-a", "net"), agent.says("ls-a", "box", stance=Stance.IMPORTED))
    assert world.kinds("ls-a", "net") == ["StatusChanged", "DriftFound", "DriftCorrected"]
    assert world.kinds("ls-a", "box") == ["StatusChanged"]


@pytest.mark.rule("C4", "O8")
def test_a_moved_owner_is_an_event(world: World, agent: Player) -> None:
    agent.report(agent.says("ls-a", "net"))
    agent.report(agent.says("ls-a", "net", owner="ls-b", stance=Stance.IMPORTED, status=Status.EXTERNALLY_MANAGED))
    assert world.kinds("ls-a", "net") == ["StatusChanged", "StatusChanged", "OwnerChanged"]


@pytest.mark.rule("C4", "S4a")
def test_a_lost_resource_is_one_event(world: World, agent: Player) -> None:
    agent.report(agent.says("ls-a", "box"))
    agent.report(agent.says("ls-a", "box", status=Status.MISSING, absent=True))
    agent.report(agent.says("ls-a", "box", status=Status.MISSING, absent=True, message="still missing"))
    assert world.kinds("ls-a", "box") == ["StatusChanged", "StatusChanged", "ResourceLost"]


@pytest.mark.rule("C4")
def test_what_only_the_agent_can_know_is_an_event_in_its_words(world: World, agent: Player) -> None:
    found = AgentEvent(uid=agent.uid("ls-a", "box"), kind=EventKind.UNREADABLE, message="the agent's words")
    agent.report(agent.says("ls-a", "box"), events=[found])
    (event,) = [event for event in world.events("ls-a") if event["kind"] == "Unreadable"]
    assert (event["by"], event["componentId"], event["message"]) == ("a1", "box", "the agent's words")


@pytest.mark.rule("C4")
def test_events_are_numbered_without_gaps_in_the_order_of_their_commits(world: World, agent: Player) -> None:
    agent.report(agent.says("ls-a", "net"), agent.says("ls-a", "box"))
    world.deploy("ls-b", net())
    assert [event["seq"] for event in world.events()] == [1, 2, 3, 4, 5, 6]


@pytest.mark.rule("G10", "S17")
def test_a_request_is_used_up_only_by_its_own_id(world: World, agent: Player) -> None:
    agent.report(agent.says("ls-a", "net", **OVERRIDE))
    with world.store.write() as tx:
        requests.ask(tx, "ls-a", "net", Asked(RequestKind.FORCE_PUSH, "ann"), CATALOG)
    agent.claim()
    request = agent.work[agent.uid("ls-a", "net")].request
    assert request is not None
    agent.report(agent.says("ls-a", "net", **OVERRIDE, used_request="another"))
    assert world.component("ls-a", "net")["request"]["id"] == request.id
    agent.report(agent.says("ls-a", "net", **OVERRIDE, used_request=request.id))
    assert world.component("ls-a", "net")["request"] is None


@pytest.mark.rule("C7")
def test_an_intent_is_unknown_until_its_outcome_is_reported_and_travels_to_the_next_holder(
    world: World, agent: Player
) -> None:
    uid = agent.uid("ls-a", "net")
    entry = JournalEntry(id="j1", uid=uid, generation=1, verb="create", reason="deploy", after={"size": 1})
    agent.report(agent.says("ls-a", "net", status=Status.INSTANTIATING), journal=[entry])
    assert _outcomes(world) == ["unknown"]
    agent.versions.clear()
    agent.claim()
    assert [write.id for write in agent.work[uid].open_writes] == ["j1"]
    done = entry.model_copy(update={"outcome": "done", "resource_id": "n-1", "request_ids": ["r-1"]})
    agent.report(agent.says("ls-a", "net"), journal=[done])
    assert _outcomes(world) == ["done"]
    with world.store.read() as tx:
        found = journal.list_of(tx, "ls-a", "net", 10, None)[0]
    assert (found["resourceId"], found["requestIds"], found["agentId"]) == ("n-1", ["r-1"], "a1")


def _outcomes(world: World) -> list[str]:
    with world.store.read() as tx:
        return [entry["outcome"] for entry in journal.list_of(tx, "ls-a", "net", 10, None)]


@pytest.mark.rule("O13")
def test_a_resource_knows_its_owner_and_its_importers(world: World, agent: Player) -> None:
    world.deploy("ls-b", net())
    world.deploy("ls-c", net())
    known = KnownResource(identity="Test.Net:test/acct/north:net", owner="ls-a", resource_id="n-1")
    agent.claim()
    agent.report(agent.says("ls-a", "net"), resources=[known])
    with world.store.read() as tx:
        (found,) = resources.list_page(tx, 10, None)
        again = resources.get(tx, found["key"])
    assert again == found
    assert (found["owner"], found["importers"], found["resourceId"]) == ("ls-a", ["ls-b", "ls-c"], "n-1")
    assert (found["type"], found["scope"], found["name"]) == ("Test.Net", "test/acct/north", "net")
    agent.versions.clear()
    works = {lease.scope: lease.work for lease in agent.claim().leases}
    work = works["test/acct/north"]
    assert work is not None
    assert work.resources == [known]


def test_a_report_about_a_component_that_is_gone_is_passed_over(world: World, agent: Player) -> None:
    world.delete("ls-a")
    agent.claim()
    change = agent.says("ls-a", "box", status=Status.DELETED, finished=True)
    agent.report(change)
    agent.report(change)
    assert world.kinds("ls-a", "box").count("StatusChanged") == 1


@pytest.mark.rule("S17", "C5")
def test_an_intent_judged_from_a_declaration_that_changed_since_is_refused(world: World, agent: Player) -> None:
    uid = agent.uid("ls-a", "box")
    intent = JournalEntry(id="j1", uid=uid, generation=1, verb="delete", reason="delete")
    world.deploy("ls-a", net(), box())
    with pytest.raises(LeaseLost, match="declared anew"):
        agent.report(agent.says("ls-a", "box"), journal=[intent])
    agent.claim()
    agent.report(agent.says("ls-a", "box"), journal=[intent])


@pytest.mark.rule("O10")
def test_a_component_put_back_while_its_deletion_ended_begins_anew(world: World, agent: Player) -> None:
    world.deploy("ls-a", net())
    agent.claim()
    ended = agent.says("ls-a", "box", status=Status.DELETED, finished=True)
    world.deploy("ls-a", net(), box())
    agent.report(ended)
    assert world.component("ls-a", "box")["status"] == "Instantiating"


@pytest.mark.rule("C8", "S22")
@pytest.mark.parametrize(
    "outcome", [{"status": Status.FAILED, "message": "denied"}, {"status": Status.INSTANTIATING, "stuck": True}]
)
def test_what_an_agent_found_out_before_a_deploy_says_nothing_of_it(world: World, agent: Player, outcome: Json) -> None:
    """The agent judges again: what it comes to must differ from what the store has, or nobody would hear of it."""
    change = agent.says("ls-a", "net", **outcome, observed_generation=0)
    mutation = world.deploy("ls-a", net(), box())
    agent.report(change, agent.says("ls-a", "box"))
    assert world.mutation("ls-a", mutation)["status"] == "InProgress"
    agent.claim()
    memory = agent.work[agent.uid("ls-a", "net")].memory
    assert (memory.message, memory.stuck) != (change.message, change.stuck)
    agent.report(change, agent.says("ls-a", "box"))
    assert world.mutation("ls-a", mutation)["status"] == "Failed"


@pytest.mark.rule("C8", "C3")
def test_a_mutation_keeps_why_it_failed_when_a_newer_one_replaces_it(world: World, agent: Player) -> None:
    mutation = str(world.live_system("ls-a")["mutationId"])
    agent.report(
        agent.says("ls-a", "net", status=Status.INSTANTIATING, stuck=True, message="several", observed_generation=0),
        agent.says("ls-a", "box"),
    )
    before = world.mutation("ls-a", mutation)
    assert (before["status"], before["reasons"]) == ("Failed", ["net (Instantiating): several"])
    world.deploy("ls-a", net(), box())
    after = world.mutation("ls-a", mutation)
    assert (after["status"], after["reasons"]) == ("Failed", ["net (Instantiating): several"])
