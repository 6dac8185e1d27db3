"""The parts of a cycle that decide what is tried, what is confirmed first, and what is held back; each by itself.

The cloud is a shelf, the control plane a list of what was published, and both clocks are set by the test.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from fractal_cloud.agent.client import LeaseLost
from fractal_cloud.agent.cycle import Cycle
from fractal_cloud.agent.cycle_state import CycleContext
from fractal_cloud.agent.link_reconciler import Phase
from fractal_cloud.agent.reading import Reader, Snapshot
from fractal_cloud.agent.scope import AbsentReads
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.model.errors import Conflict, Denied, Transient, Unreadable
from fractal_cloud.model.identity import Identity
from fractal_cloud.model.observed import Refusal
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.situation import Trace
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.model.wire import JournalEntry, ScopeReport
from fractal_cloud.offers.link import Handlers
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.offers.secret import SealingKey
from fractal_cloud.rules.judge import Judgement, Step, Verb
from fractal_cloud.rules.situate import View
from tests.direct.shelf import KIND, ItemOffer, ShelfScope, WindowOffer, component, item
from tests.direct.things import ME, MINE, NOW, OTHER, SCOPE, intent, memory

SETTINGS = AgentSettings(cycle_seconds=30.0, concurrency=1)
CREATE = Step(Verb.CREATE, "create")
DELETED = Judgement("S7", Status.DELETED, Stance.MANAGED, "left", carried_out=True, finished=True, left=True)


class Stage(ShelfScope):
    """A scope with a cycle in it."""

    def __init__(self, offer: ItemOffer | None = None) -> None:
        super().__init__(offer or ItemOffer())
        self.published: list[ScopeReport] = []
        self.allowed = True
        self.stopwatch = 100.0
        self.pool = ThreadPoolExecutor(2)
        offers = {KIND: self.facts}
        self.context = CycleContext(
            settings=SETTINGS,
            offers=offers,
            reader=Reader(offers, self.pool, 100),
            pool=self.pool,
            publisher=self,
            watchdog=self.watchdog,
            handlers=Handlers(),
            sealing=SealingKey(b"\0" * 32),
            now=lambda: NOW,
            may_write=lambda: self.allowed,
            steadily=lambda: self.stopwatch,
        )
        self.begin()

    def begin(self) -> Cycle:
        """The next cycle of the scope."""
        self.cycle = Cycle(self.held, self.context)
        return self.cycle

    def publish(self, report: ScopeReport) -> datetime:
        self.published.append(report)
        return NOW

    @property
    def traces(self) -> dict[str, View]:
        return self.cycle._evaluator.traces


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.pool.shutdown()


@pytest.fixture
def windowed() -> Iterator[Stage]:
    made = Stage(WindowOffer())
    yield made
    made.pool.shutdown()


# --- the right to write


@pytest.mark.rule("S16")
@pytest.mark.parametrize(
    ("allowed", "lost", "expected"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_a_scope_is_written_to_only_while_it_is_ours_and_the_agent_may(
    stage: Stage, allowed: bool, lost: bool, expected: bool
) -> None:
    stage.allowed, stage.held.is_lost = allowed, lost
    assert stage.cycle._state.may_write() is expected


# --- what is tried


@pytest.mark.rule("S21")
def test_a_step_is_tried_once_in_a_cycle_and_not_while_it_is_held_back(stage: Stage) -> None:
    tracked = component()
    stage.add(tracked)
    cycle = stage.cycle
    step = Step(Verb.UPDATE, "drift")
    assert cycle._waves._may_try(tracked, step)
    assert not cycle._waves._may_try(tracked, None)
    cycle._waves._attempted.add((tracked.uid, "update:[]"))
    assert not cycle._waves._may_try(tracked, step)
    assert cycle._waves._may_try(tracked, Step(Verb.FINISH, "handshake")), "another step is another matter"
    other = component(uid="u2")
    assert cycle._waves._may_try(other, step), "and so is another component"


@pytest.mark.rule("S21")
@pytest.mark.parametrize(
    ("verb", "until", "expected"), [("update", 1, False), ("update", 0, True), ("delete", 1, True)]
)
def test_a_refused_write_waits_until_its_next_try_is_due(stage: Stage, verb: str, until: int, expected: bool) -> None:
    refusal = Refusal(verb=verb, message="no", since=NOW, until=NOW + timedelta(seconds=60 * until))
    tracked = component(memory(refusal=refusal))
    stage.add(tracked)
    assert stage.cycle._waves._may_try(tracked, Step(Verb.UPDATE, "drift")) is expected


@pytest.mark.rule("L10")
def test_a_deletion_waits_for_what_links_made_and_nothing_else_does(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracked = component(deleting=True)
    stage.add(tracked)
    asked: list[Any] = []

    def holds(*given: Any) -> bool:
        asked.append(given)
        return True

    monkeypatch.setattr(stage.cycle._links, "holds_deletion", holds)
    assert not stage.cycle._waves._may_try(tracked, Step(Verb.DELETE, "delete"))
    assert asked == [(tracked, stage.cycle._evaluator.judge(tracked))]
    assert stage.cycle._waves._may_try(tracked, Step(Verb.UPDATE, "drift"))
    monkeypatch.setattr(stage.cycle._links, "holds_deletion", lambda *_: False)
    assert stage.cycle._waves._may_try(tracked, Step(Verb.DELETE, "delete"))


# --- rivals


def _declared(uid: str, live_system_id: str, hours: int, name: str = "web", **more: Any) -> Any:
    identity = Identity(KIND, SCOPE, name)
    values = {"identity": identity, "declared_identity": identity, "deployed_at": NOW + timedelta(hours=hours), **more}
    return component(memory(Stance.NONE, resource_id=None), uid=uid, live_system_id=live_system_id, **values)


@pytest.mark.rule("O2")
def test_of_several_that_would_create_one_resource_the_first_deployed_does(stage: Stage) -> None:
    late, early, alone = _declared("a", ME, 2), _declared("b", OTHER, 1), _declared("c", ME, 0, "other")
    third = _declared("d", "ls-c", 3)
    cycle = stage.cycle
    assert cycle._waves._without_rivals([late, early, alone, third]) == [alone, early]
    assert cycle._evaluator.rivals == {"a": OTHER, "d": OTHER}


@pytest.mark.rule("O2")
def test_of_two_deployed_at_the_same_moment_the_name_decides(stage: Stage) -> None:
    one, two = _declared("a", OTHER, 1), _declared("b", ME, 1)
    assert stage.cycle._waves._without_rivals([one, two]) == [two]
    assert stage.cycle._evaluator.rivals == {"a": ME}


@pytest.mark.rule("O2", "S17")
def test_who_tried_already_in_this_cycle_does_not_try_again_and_still_is_the_rival(stage: Stage) -> None:
    one, two = _declared("a", ME, 1), _declared("b", OTHER, 2)
    stage.cycle._waves._created.add("a")
    assert stage.cycle._waves._without_rivals([one, two]) == []
    assert stage.cycle._evaluator.rivals == {"b": ME}


@pytest.mark.rule("S17")
@pytest.mark.parametrize(
    ("offer", "error", "remembered", "expected"),
    [
        (ItemOffer, Conflict("taken"), memory(intent=intent(attempts=2)), True),
        (ItemOffer, Conflict("taken"), memory(intent=intent(attempts=3)), True),
        (ItemOffer, Conflict("taken"), memory(intent=intent(attempts=1)), False),
        (ItemOffer, Conflict("taken"), memory(), False),
        (ItemOffer, Denied("no"), memory(intent=intent(attempts=2)), False),
        (ItemOffer, None, memory(intent=intent(attempts=2)), False),
        (WindowOffer, Conflict("taken"), memory(intent=intent(attempts=2)), False),
    ],
)
def test_a_name_may_be_taken_by_the_own_try_before_whose_answer_was_lost(
    offer: type[ItemOffer], error: Any, remembered: Any, expected: bool
) -> None:
    stage = Stage(offer())
    assert stage.cycle._outcomes._may_be_its_own_rival(component(remembered), error) is expected
    stage.pool.shutdown()


# --- what had an id is confirmed gone first


def _vanished(stage: Stage, remembered: Any = None, **more: Any) -> Any:
    tracked = component(remembered or memory(), **more)
    stage.add(tracked)
    return tracked


@pytest.mark.rule("S19")
def test_what_vanished_is_read_by_its_id_before_it_is_created_again(stage: Stage) -> None:
    tracked = _vanished(stage)
    assert stage.cycle._waves._confirm_gone([tracked]) == {"u1"}
    assert stage.shelf.calls == [("read", "id-1", frozenset())]
    assert stage.traces["u1"].trace is Trace.GONE
    assert not stage.cycle._waves.has_findings
    assert stage.cycle._waves._confirm_gone([tracked]) == {"u1"}
    assert len(stage.shelf.calls) == 1, "once in a cycle"


@pytest.mark.rule("S19")
def test_what_never_had_an_id_is_created_without_a_read(stage: Stage) -> None:
    tracked = _vanished(stage, memory(Stance.NONE, resource_id=None))
    assert stage.cycle._waves._confirm_gone([tracked]) == {"u1"}
    assert stage.shelf.calls == []


@pytest.mark.rule("S19", "S18")
@pytest.mark.parametrize("more", [{"name": "other"}, {"moved_to": "us-east-1"}])
def test_what_is_found_elsewhere_is_not_created_again(stage: Stage, more: dict[str, Any]) -> None:
    tracked = _vanished(stage)
    stage.shelf.items["id-1"] = found = item(MINE, **more)
    assert stage.cycle._waves._confirm_gone([tracked]) == set()
    assert stage.traces["u1"] == View(trace=Trace.ELSEWHERE, elsewhere=found)
    assert stage.cycle._waves.has_findings


@pytest.mark.rule("S19", "S0")
def test_what_cannot_be_read_by_its_id_is_not_created_again(stage: Stage) -> None:
    tracked = _vanished(stage)
    error = Unreadable("throttled")

    def fail() -> None:
        raise error

    stage.shelf.before["read"] = fail
    assert stage.cycle._waves._confirm_gone([tracked]) == set()
    assert stage.traces["u1"] == View(error=error)
    assert stage.cycle._waves.has_findings


@pytest.mark.rule("S15", "S19")
def test_what_the_list_did_not_show_but_its_id_does_is_there(stage: Stage) -> None:
    tracked = _vanished(stage)
    stage.shelf.items["id-1"] = found = item(MINE)
    assert stage.cycle._waves._confirm_gone([tracked]) == set()
    assert stage.cycle._evaluator.view(tracked) == View(sighting=found)
    assert stage.cycle._waves.has_findings


@pytest.mark.rule("S19")
def test_each_is_confirmed_by_itself_and_what_was_found_out_stays_so(stage: Stage) -> None:
    gone = _vanished(stage)
    identity = Identity(KIND, SCOPE, "db")
    there = component(
        memory(resource_id="id-2"), uid="u2", component_id="db", identity=identity, declared_identity=identity
    )
    stage.add(there)
    stage.shelf.items["id-2"] = Sighting(KIND, "other", "id-2", protocol=MINE)
    assert stage.cycle._waves._confirm_gone([gone, there]) == {"u1"}
    assert stage.cycle._waves.has_findings
    assert stage.cycle._waves._confirm_gone([gone]) == {"u1"}
    assert stage.cycle._waves.has_findings


@pytest.mark.rule("S17")
def test_an_open_creation_with_a_predicted_id_is_read_by_it(stage: Stage) -> None:
    stage.offer.predicted = {"i1": "id-marked"}  # type: ignore[misc]
    tracked = _vanished(stage, memory(intent=intent(), resource_id=None))
    assert stage.cycle._waves._confirm_gone([tracked]) == {"u1"}
    assert stage.shelf.calls == [("read", "id-marked", frozenset())]


# --- looks without what a lost answer may have made


@pytest.mark.rule("S17")
def test_reads_without_it_are_counted_by_the_steady_clock_until_it_shows(stage: Stage) -> None:
    tracked = _vanished(stage, memory(intent=intent(), resource_id=None))
    other = component(memory(Stance.NONE, resource_id=None), uid="u2")
    stage.add(other)
    stage.cycle._observer.count_absent_reads()
    stage.stopwatch += 7.0
    stage.begin()._observer.count_absent_reads()
    counted = stage.held.observed.absent_reads
    assert {uid: (reads.count, reads.span) for uid, reads in counted.items()} == {"u1": (2, timedelta(seconds=7))}
    stage.cycle._evaluator.snapshot.put(item(MINE))
    stage.cycle._evaluator.refresh(NOW)
    stage.cycle._observer.count_absent_reads()
    assert counted == {}
    assert tracked.memory.intent is not None


@pytest.mark.rule("S17", "S0")
def test_a_read_that_failed_counts_for_nothing_and_begins_the_window_anew(stage: Stage) -> None:
    _vanished(stage, memory(intent=intent(), resource_id=None))
    stage.cycle._observer.count_absent_reads()
    stage.cycle._evaluator.snapshot.errors[KIND] = Unreadable("throttled")
    stage.cycle._evaluator.refresh(NOW)
    stage.cycle._observer.count_absent_reads()
    assert stage.held.observed.absent_reads == {}


GIVEN_UP = JournalEntry(id="e1", uid="u1", generation=3, verb="update", reason="drift", error="no answer")


@pytest.mark.rule("S24", "S17")
def test_reads_since_a_write_was_given_up_are_counted_whatever_they_show_but_not_where_they_fail(stage: Stage) -> None:
    tracked = _vanished(stage, open_writes=(GIVEN_UP,))
    stage.add(component(uid="u2", open_writes=(GIVEN_UP.model_copy(update={"outcome": "done"}),)))
    stage.cycle._observer.count_absent_reads()
    stage.cycle._evaluator.snapshot.put(item(MINE))
    stage.cycle._evaluator.refresh(NOW)
    stage.stopwatch += 5.0
    stage.cycle._observer.count_absent_reads()
    counted = stage.held.observed.reads_since
    assert {uid: (reads.count, reads.span) for uid, reads in counted.items()} == {"u1": (2, timedelta(seconds=5))}
    stage.cycle._evaluator.snapshot.errors[KIND] = Unreadable("throttled")
    stage.cycle._evaluator.refresh(NOW)
    stage.cycle._observer.count_absent_reads()
    assert counted[tracked.uid].count == 2


@pytest.mark.rule("S19", "S24")
def test_what_nobody_expected_in_a_direct_read_is_unreadable(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    tracked = _vanished(stage)
    fault = RuntimeError("a fault of our own")

    def fail(_: Any) -> Any:
        raise fault

    monkeypatch.setattr(stage.cycle._state, "offer_of", fail)
    found = stage.cycle._observer._read_by_id(tracked)
    assert isinstance(found, Unreadable)
    assert found.message == describe_unexpected(fault)


class Denying(ItemOffer):
    """Whose «not found» may mean «not authorised»."""

    not_found_may_mean_denied = True


@pytest.mark.rule("O17")
def test_where_not_found_may_mean_not_authorised_every_absence_is_counted() -> None:
    stage = Stage(Denying())
    _vanished(stage)
    stage.cycle._observer.count_absent_reads()
    assert stage.held.observed.absent_reads["u1"].count == 1
    stage.pool.shutdown()


def _reads(count: int, seconds: float) -> AbsentReads:
    return AbsentReads(count, timedelta(seconds=seconds))


@pytest.mark.rule("S17")
@pytest.mark.parametrize(
    ("reads", "over"),
    [
        (None, False),
        (_reads(1, 3600.0), False),
        (_reads(2, 59.9), False),
        (_reads(2, 60.0), True),
        (_reads(3, 61.0), True),
    ],
)
def test_the_window_is_two_reads_and_two_cycles_at_least(windowed: Stage, reads: Any, over: bool) -> None:
    tracked = _vanished(windowed, memory(intent=intent()))
    if reads is not None:
        windowed.held.observed.absent_reads["u1"] = reads
    assert windowed.cycle._evaluator._is_window_over(tracked) is over


@pytest.mark.rule("S17", "O10")
def test_what_is_recognised_by_its_name_needs_no_window_but_before_its_deletion_ends(stage: Stage) -> None:
    open_one = memory(intent=intent())
    assert stage.cycle._evaluator._is_window_over(component(open_one))
    assert not stage.cycle._evaluator._is_window_over(component(open_one, deleting=True))
    assert not stage.cycle._evaluator._is_window_over(component(memory(intent=intent(resource_id="id-1"))))
    assert stage.cycle._evaluator._is_window_over(component(memory(), deleting=True)), "without an intent there is none"
    stage.held.observed.absent_reads["u1"] = _reads(2, 60.0)
    assert stage.cycle._evaluator._is_window_over(component(open_one, deleting=True))


@pytest.mark.rule("S17", "O10")
def test_a_lost_creation_is_awaited_before_its_deletion_ends(stage: Stage) -> None:
    lost = _vanished(stage, memory(intent=intent(), resource_id=None), deleting=True)
    judgement = stage.cycle._evaluator.judge(lost)
    assert (judgement.rule, judgement.finished) == ("S17", False)
    stage.held.observed.absent_reads["u1"] = _reads(2, 60.0)
    assert stage.cycle._evaluator.judge(lost).finished


# --- a try that was not sent


@pytest.mark.rule("S21", "S16")
def test_a_try_that_the_guard_stopped_leaves_the_back_off_of_the_refused_one(stage: Stage) -> None:
    """Something else begins to change it between the list and the guard's read: nothing is sent, and nothing known."""
    refused = Refusal(verb="update", message="denied", since=NOW - timedelta(hours=1), times=3, until=NOW)
    web = component(memory(refusal=refused), parameters={"size": 3})
    stage.add(web)
    drifting = item(MINE, actual={"size": 2})
    stage.shelf.items["id-1"] = drifting

    def begin_to_change() -> None:
        stage.shelf.items["id-1"] = replace(drifting, condition=Condition.CHANGING)

    stage.shelf.before["read"] = begin_to_change
    stage.begin().run()
    assert [call[0] for call in stage.shelf.calls if call[0] != "list"] == ["read"], "the try was stopped by its guard"
    assert web.memory.refusal == refused
    stage.shelf.items["id-1"] = drifting
    stage.begin().run()
    assert [call[0] for call in stage.shelf.writes if call[0] != "list"] == ["update"]
    assert web.memory.refusal is None, "a try that goes through ends it"


@pytest.mark.rule("C9")
@pytest.mark.parametrize("deleting", [False, True])
def test_no_link_is_planned_for_what_is_held(stage: Stage, deleting: bool) -> None:
    web = component(deleting=deleting)
    stage.add(web)
    seen = item(MINE)
    stage.cycle._evaluator.snapshot = Snapshot(sightings={KIND: {seen.resource_id: seen}})
    judgement = stage.cycle._evaluator.judge(web)
    links = stage.cycle._links
    assert links._phase(web, judgement)[0] is (Phase.END if deleting else Phase.ACT)
    web.in_recovery = True
    assert links._phase(web, judgement) == (Phase.LEAVE, "")


# --- what is left is held back


@pytest.mark.rule("O10")
def test_what_is_left_stays_until_what_it_depends_on_is_done_with_in_the_same_report(stage: Stage) -> None:
    net = component(uid="net", component_id="net", deleting=True)
    web = component(uid="web", component_id="web", deleting=True, dependencies=("net",))
    stage.add(net, web)
    waiting = Judgement("S12", Status.DELETING, Stance.MANAGED, "deleting", in_progress=True)
    hold = stage.cycle._conclusions._hold_families
    held = replace(DELETED, status=Status.DELETING, finished=False, carried_out=False, in_progress=True)
    assert hold({"web": DELETED, "net": waiting}) == {"web": held, "net": waiting}
    assert hold({"web": DELETED, "net": DELETED}) == {"web": DELETED, "net": DELETED}
    assert hold({"web": waiting, "net": waiting}) == {"web": waiting, "net": waiting}
    gone = replace(DELETED, left=False)
    assert hold({"web": gone, "net": waiting}) == {"web": gone, "net": waiting}, "what is gone needs nothing"
    unfinished = replace(DELETED, finished=False)
    assert hold({"web": unfinished, "net": waiting}) == {"web": unfinished, "net": waiting}


@pytest.mark.rule("O18")
def test_nobody_ends_in_a_report_in_which_its_dependents_do_not(stage: Stage) -> None:
    """A judgement expects that the dependents end; an error or a link may hold them back after all."""
    net = component(uid="net", component_id="net", deleting=True)
    web = component(uid="web", component_id="web", deleting=True, dependencies=("net",))
    disk = component(uid="disk", component_id="disk", deleting=True, dependencies=("web",))
    stage.add(net, web, disk)
    waiting = Judgement("S12", Status.DELETING, Stance.MANAGED, "deleting", in_progress=True)
    gone = replace(DELETED, left=False)
    held = replace(gone, status=Status.DELETING, finished=False, carried_out=False, in_progress=True)
    hold = stage.cycle._conclusions._hold_families
    assert hold({"net": gone, "web": gone, "disk": waiting}) == {"net": held, "web": held, "disk": waiting}
    assert hold({"net": gone, "web": gone, "disk": gone}) == {"net": gone, "web": gone, "disk": gone}
    left = hold({"net": DELETED, "web": DELETED, "disk": waiting})["web"]
    assert not left.finished, "what is left waits for its dependents as well"


@pytest.mark.rule("O10")
@pytest.mark.parametrize(
    "other",
    [
        {"deleting": False},
        {"deleting": True, "live_system_id": OTHER},
        {"deleting": True, "component_id": "elsewhere"},
    ],
)
def test_what_is_left_waits_for_nothing_that_is_not_its_own_dependency_being_deleted(stage: Stage, other: Any) -> None:
    net = component(**{"uid": "net", "component_id": "net", **other})
    web = component(uid="web", component_id="web", deleting=True, dependencies=("net",))
    stage.add(net, web)
    waiting = Judgement("S12", Status.DELETING, Stance.MANAGED, "deleting", in_progress=True)
    assert stage.cycle._conclusions._hold_families({"web": DELETED, "net": waiting})["web"] == DELETED


# --- nothing is being written any more when a cycle is over


def _one_of_many(index: int) -> Any:
    name = f"web-{index}"
    identity = Identity(KIND, SCOPE, name)
    more = {"component_id": name, "identity": identity, "declared_identity": identity}
    return component(memory(Stance.NONE, resource_id=None), uid=f"u{index}", **more)


@pytest.mark.rule("S16", "S17")
def test_a_cycle_that_ends_early_waits_for_the_writes_that_are_under_way(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first creations are under way while the intents of the next are published: that fails, and they go on."""
    many = [_one_of_many(index) for index in range(3)]
    stage.add(*many)
    begun, goes_on = threading.Event(), threading.Event()
    done: list[str] = []

    def create(cloud: Any, wanted: Any, tags: ProtocolTags) -> Sighting:
        begun.set()
        goes_on.wait(60)
        done.append(wanted.component.id)
        return Sighting(KIND, wanted.component.name, f"id-{wanted.component.id}", protocol=tags)

    def publish(report: ScopeReport) -> datetime:
        stage.published.append(report)
        if len(stage.published) == 1:
            return NOW
        begun.wait(60)
        threading.Timer(0.3, goes_on.set).start()  # long after the cycle would have gone on
        raise LeaseLost("it is another agent's")

    monkeypatch.setattr(stage.offer, "create", create)
    monkeypatch.setattr(stage, "publish", publish)
    cycle = stage.begin()
    judgements = cycle._judge(many)
    with pytest.raises(LeaseLost):
        cycle._waves.write(many, judgements)
    assert done, "what was under way had ended when the cycle did"
    assert "web-2" not in done, "and what was not published was never begun"


@pytest.mark.rule("S17")
def test_a_creation_whose_name_its_own_lost_try_took_keeps_its_intent(stage: Stage) -> None:
    for attempts, error, kept in (
        (2, Conflict("the name is taken"), True),
        (1, Conflict("the name is taken"), False),
        (2, Transient("no answer"), True),
        (2, Denied("no"), False),
    ):
        tracked = component(memory(Stance.NONE, resource_id=None, intent=intent(attempts=attempts - 1)))
        stage.held.work.tracked.clear()
        stage.add(tracked)
        cycle = stage.begin()

        def fail(error: Any = error) -> None:
            raise error

        stage.shelf.before["create"] = fail
        outcomes = cycle._waves.write([tracked], cycle._judge([tracked]))
        cycle._outcomes.apply(outcomes)
        assert (tracked.memory.intent is not None) is kept, (attempts, error)
