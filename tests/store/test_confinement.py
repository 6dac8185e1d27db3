"""A report is confined to its lease: one foreign item, and nothing of it is applied (A3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from sqlalchemy import insert, update

from fractal_cloud.control.store import journal, reports, requests, resources
from fractal_cloud.control.store.driver import observe_statements
from fractal_cloud.control.store.errors import LeaseLost, ReportRefused
from fractal_cloud.control.store.report_words import MOST_NAME, MOST_VALUE, MOST_WORDS
from fractal_cloud.control.store.requests import Asked
from fractal_cloud.control.store.schema import components, metadata, scopes
from fractal_cloud.control.store.schema import journal as journal_table
from fractal_cloud.model.event import AGENT_EVENTS, EventKind
from fractal_cloud.model.link import LinkState, LinkStates
from fractal_cloud.model.observed import ChangedBy, Intent, Refusal, Setback
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import AgentEvent, ComponentChange, JournalEntry, KnownResource, RequestKind
from tests.store.playing import CATALOG, Json, Player, World, component, net

NORTH, SOUTH = "test/acct/north", "test/acct/south"
STATE: Final = LinkState(link_type="xLink", other_type="T", other_provider="p", fields={"user": "evil"})
OVERRIDE: Final[Json] = {"stance": Stance.OVERRIDE, "status": Status.MANUAL_OVERRIDE, "overridden": True}


@dataclass
class Two:
    """Two LiveSystems in two scopes, each with an agent of its own; ``mallory`` is the one that lies."""

    world: World
    mallory: Player
    victim: Player

    @property
    def own(self) -> str:
        """The uid of the component in its own scope."""
        return self.mallory.uid("ls-m", "own")

    @property
    def prey(self) -> str:
        """The uid of the component that is another's."""
        return self.victim.uid("ls-v", "prey")

    def forge(self, **items: Any) -> None:
        """Report something under its own lease."""
        sent = self.mallory.sent()
        report = sent.report.scopes[0].model_copy(update=items)
        sent.report.scopes[:] = [report]
        with self.world.store.write() as tx:
            reports.report(tx, sent.report, sent.token_id)

    def change(self, **more: Any) -> ComponentChange:
        """What it honestly says of its own component, but for what is given."""
        return self.mallory.says("ls-m", "own", **more)

    def dump(self) -> dict[str, list[Json]]:
        """Every row of every table."""
        with self.world.store.read() as tx:
            return {
                table.name: [dict(row._mapping) for row in tx.connection.execute(table.select())]
                for table in metadata.sorted_tables
            }


def _entry(entry_id: str, uid: str, **more: Any) -> JournalEntry:
    return JournalEntry(
        **{
            "id": entry_id,
            "uid": uid,
            "generation": 1,
            "verb": "update",
            "reason": "drift",
            "outcome": "failed",
            **more,
        }
    )


@pytest.fixture
def two(world: World) -> Two:
    """Both scopes are settled; the victim has a write under way, one that is done, and an operator's request."""
    world.deploy("ls-m", net("own"), net("twin"))
    world.deploy(
        "ls-v", net("prey", region="south"), component("source", "Other.Thing", {}, links=[{"target": "prey"}])
    )
    victim = world.agent("v1")
    victim.claim()
    assert set(victim.tokens) == {NORTH, SOUTH}
    mallory = world.agent("m1", realm="acct")
    _give(world, mallory, NORTH)
    mallory.claim()
    victim.claim()
    prey = victim.uid("ls-v", "prey")
    known = [KnownResource(identity=f"Test.Net:{SOUTH}:prey", owner="ls-v", resource_id="id-prey")]
    entries = [_entry("open", prey, outcome=None), _entry("done", prey, outcome="done")]
    victim.report(victim.says("ls-v", "prey"), resources=known, journal=entries)
    mallory.report(mallory.says("ls-m", "own"), mallory.says("ls-m", "twin"))
    with world.store.write() as tx:
        requests.ask(tx, "ls-v", "prey", Asked(RequestKind.FORCE_PUSH, "ann"), CATALOG)
    return Two(world, mallory, victim)


def _give(world: World, to: Player, scope: str) -> None:
    with world.store.write() as tx:
        here = update(scopes).where(scopes.c.key == scope)
        tx.connection.execute(here.values(holder=to.id, token=scopes.c.token + 1))


Forged = Callable[[Two], Json]

FOREIGN: Final[dict[str, tuple[Forged, str]]] = {
    "the status of another's component": (
        lambda two: {"changes": [two.change(), two.victim.says("ls-v", "prey")]},
        "was never in it",
    ),
    "a uid that nobody drew": (
        lambda two: {"changes": [ComponentChange(uid="0" * 32, stance=Stance.MANAGED, status=Status.ACTIVE)]},
        "was never in it",
    ),
    "an event of another's component": (
        lambda two: {"events": [AgentEvent(uid=two.prey, kind=EventKind.UNREADABLE)]},
        "was never in it",
    ),
    "a new journal entry of another's component": (
        lambda two: {"journal": [_entry("new", two.prey)]},
        "was never in it",
    ),
    "the outcome of another's intent": (lambda two: {"journal": [_entry("open", two.prey)]}, "was never in it"),
    "the outcome of another's intent as of its own component": (
        lambda two: {"journal": [_entry("open", two.own)]},
        "journal entry 'open' is of another component",
    ),
    "another outcome of what was closed": (
        lambda two: {"journal": [_entry("done", two.own)]},
        "journal entry 'done' is of another component",
    ),
    "an intent that has the id of another's": (
        lambda two: {"journal": [_entry("open", two.own, outcome=None)]},
        "journal entry 'open' is of another component",
    ),
    "a refusal counted in another's entry": (
        lambda two: {"journal": [_entry("new", two.own, repeats="done")]},
        "journal entry 'done' is of another component",
    ),
    "the owner of another's resource": (
        lambda two: {"resources": [KnownResource(identity=f"Test.Net:{SOUTH}:prey", owner="ls-m")]},
        "is of another scope",
    ),
    "nothing known of another's resource": (
        lambda two: {"resources": [KnownResource(identity=f"Test.Net:{SOUTH}:prey")]},
        "is of another scope",
    ),
    "a resource of another scope that nobody knows": (
        lambda two: {"resources": [KnownResource(identity=f"Test.Net:{SOUTH}:x", owner="ls-m")]},
        "is of another scope",
    ),
    "its own scope in the name of another's resource": (
        lambda two: {"resources": [KnownResource(identity=f"Test.Net:{SOUTH}:prey:{NORTH}:x", owner="ls-m")]},
        "is of another scope",
    ),
    "a resource of a type that is none": (
        lambda two: {"resources": [KnownResource(identity=f"Evil.Type:{NORTH}:x", owner="ls-m")]},
        "is of another scope",
    ),
    "a link key for a source that has no link to it": (
        lambda two: {"changes": [two.change(output_fields={"linkedCredentials.source.user": "evil"})]},
        "has no inbound half of a link with 'source'",
    ),
    "a link key for a source of another LiveSystem": (
        lambda two: {"changes": [two.change(output_fields={"linkedCredentials.ls-v/source.user": "evil"})]},
        "has no inbound half of a link with 'ls-v/source'",
    ),
    "a key of a link that it does not declare": (
        lambda two: {"changes": [two.change(output_fields={"xLink.prey.user": "evil"})]},
        "has no outbound half of a link with 'prey'",
    ),
    "the state of a link that leads nowhere": (
        lambda two: {"changes": [two.change(links=LinkStates(inbound={"source": STATE}))]},
        "has no inbound half of a link with 'source'",
    ),
    "who broke the glass": (
        lambda two: {"changes": [two.change(**OVERRIDE, override_by="the-boss")]},
        "'the-boss' asked for nothing",
    ),
    "who handed it back": (
        lambda two: {"changes": [two.change(**OVERRIDE, readopted_by="ann")]},
        "'ann' asked for nothing",
    ),
    "the end of what nobody deletes": (
        lambda two: {"changes": [two.change(finished=True)]},
        "is finished, which nobody deletes",
    ),
    "a generation that was never deployed": (
        lambda two: {"changes": [two.change(observed_generation=2)]},
        "generation 2 of component",
    ),
    "a write of a generation that was never deployed": (
        lambda two: {"journal": [_entry("new", two.own, generation=2)]},
        "generation 2 of component",
    ),
    "a version that was never sent": (
        lambda two: {"changes": [two.change()], "version": 99},
        "version 99 of its work was never sent",
    ),
}


@pytest.mark.rule("A3")
def test_a_report_with_one_foreign_item_is_refused_as_a_whole(two: Two) -> None:
    before = two.dump()
    for name, (forged, why) in FOREIGN.items():
        with pytest.raises(ReportRefused, match="is refused as a whole") as refused:
            two.forge(**forged(two))
        assert why in refused.value.message, name
        assert two.dump() == before, name


@pytest.mark.rule("A3")
def test_an_operators_request_for_another_component_is_not_used_up(two: Two) -> None:
    two.victim.claim()
    request = two.victim.work[two.prey].request
    assert request is not None
    with pytest.raises(ReportRefused, match="uses up an operator's request for another component"):
        two.forge(changes=[two.change(used_request=request.id)])
    two.forge(changes=[two.change(used_request="one that was given up meanwhile")])


@pytest.mark.rule("A3", "C4")
def test_an_agent_reports_only_events_that_nobody_else_can_know(two: Two) -> None:
    for kind in sorted(set(EventKind) - AGENT_EVENTS):
        with pytest.raises(ReportRefused, match=f"event '{kind.value}' is not an agent's to report"):
            two.forge(events=[AgentEvent(uid=two.own, kind=kind)])
    two.forge(events=[AgentEvent(uid=two.own, kind=kind) for kind in sorted(AGENT_EVENTS)])
    assert set(two.world.kinds("ls-m", "own")) >= {kind.value for kind in AGENT_EVENTS}


@pytest.mark.rule("A3")
def test_one_refused_report_holds_up_no_other(two: Two) -> None:
    honest = two.victim.sent(two.victim.says("ls-v", "prey", message="honest"))
    forged = two.mallory.sent(two.change(observed_generation=99, message="forged"))
    with two.world.store.write() as tx:
        refused, applied = reports.apply(tx, [forged, honest])
    assert isinstance(refused, ReportRefused)
    assert not isinstance(applied, Exception)
    assert two.world.component("ls-v", "prey")["message"] == "honest"
    assert two.world.component("ls-m", "own")["message"] == ""


# --- what is not foreign


@pytest.mark.rule("A3", "S17")
def test_what_left_the_scope_is_ignored_and_its_journal_outcome_is_kept(two: Two) -> None:
    uid = two.own
    two.forge(journal=[_entry("mine", uid, outcome=None)])
    two.world.deploy("ls-m", net("own", region="south", parameters={"name": "elsewhere"}), net("twin"))
    two.forge(changes=[two.change(established=False)])
    assert two.world.component("ls-m", "own")["scope"] == SOUTH
    late = AgentEvent(uid=uid, kind=EventKind.UNREADABLE, message="too late")
    two.forge(
        changes=[two.change(message="too late")],
        journal=[_entry("mine", uid, outcome="done"), _entry("new", uid, outcome="done")],
        events=[late],
    )
    assert two.world.component("ls-m", "own")["message"] != "too late"
    assert "Unreadable" not in two.world.kinds("ls-m")
    assert {entry["id"]: entry["outcome"] for entry in _journal(two.world, "ls-m", "own")} == {"mine": "done"}


def _journal(world: World, live_system_id: str, component_id: str) -> list[Json]:
    with world.store.read() as tx:
        return journal.list_of(tx, live_system_id, component_id, 100, None)


@pytest.mark.rule("A3")
def test_of_what_left_the_scope_nobody_closes_what_another_intended(two: Two) -> None:
    uid = two.own
    two.world.deploy("ls-m", net("own", region="south", parameters={"name": "elsewhere"}), net("twin"))
    two.forge(changes=[two.change(established=False)])
    two.victim.claim()
    two.victim.report(two.victim.says("ls-m", "own"), journal=[_entry("theirs", uid, outcome=None)])
    two.forge(journal=[_entry("theirs", uid, outcome="failed")])
    assert [entry["outcome"] for entry in _journal(two.world, "ls-m", "own")] == ["unknown"]


@pytest.mark.rule("A3", "C7")
def test_the_next_holder_of_a_scope_closes_what_its_predecessor_left_open(two: Two) -> None:
    _give(two.world, two.victim, NORTH)
    two.world.deploy("ls-m", net("own"), net("twin"))
    two.victim.versions.pop(NORTH, None)
    two.victim.claim()
    two.mallory.work.clear()
    uid = two.victim.uid("ls-m", "own")
    _write_open(two.world, uid, "m1", "left")
    two.victim.report(two.victim.says("ls-m", "own"), journal=[_entry("left", uid, outcome="unknown", error="died")])
    (entry,) = [one for one in _journal(two.world, "ls-m", "own") if one["id"] == "left"]
    assert (entry["outcome"], entry["error"], entry["agentId"]) == ("unknown", "died", "m1")


def _write_open(world: World, uid: str, agent_id: str, entry_id: str) -> None:
    with world.store.write() as tx:
        row: Json = {"id": entry_id, "uid": uid, "live_system_id": "ls-m", "component_id": "own", "agent_id": agent_id}
        row |= {"generation": 1, "verb": "update", "reason": "drift", "before": {}, "after": {}, "tags": {}}
        tx.connection.execute(insert(journal_table).values(**row, request_ids=[], error="", at=tx.now))


@pytest.mark.rule("A3", "C7")
def test_an_outcome_is_written_once(two: Two) -> None:
    two.forge(journal=[_entry("mine", two.own, outcome=None)])
    two.forge(journal=[_entry("mine", two.own, outcome="done")])
    two.forge(journal=[_entry("mine", two.own, outcome="failed", error="changed my mind")])
    two.forge(journal=[_entry("mine", two.own, outcome=None, error="given up")])
    (entry,) = _journal(two.world, "ls-m", "own")
    assert (entry["outcome"], entry["error"]) == ("done", "")


@pytest.mark.rule("A3", "O10")
def test_what_was_finished_may_be_reported_once_more(two: Two) -> None:
    two.world.deploy("ls-m", net("twin"))
    two.mallory.claim()
    change = two.mallory.says("ls-m", "own", status=Status.DELETED, finished=True)
    for _ in range(2):
        two.forge(changes=[change])
    assert two.world.kinds("ls-m", "own").count("StatusChanged") == 2


@pytest.mark.rule("A3", "L3")
def test_link_keys_of_declared_links_are_published_and_stay_until_they_are_taken_back(two: Two) -> None:
    two.world.deploy("ls-m", net("own"), net("twin", links=[{"target": "own"}]))
    two.mallory.claim()
    keys = {"linkedCredentials.twin.user": "u"}
    two.forge(changes=[two.change(output_fields=keys, links=LinkStates(inbound={"twin": STATE}))])
    two.forge(changes=[two.mallory.says("ls-m", "twin", output_fields={"xLink.own.user": "u"})])
    two.world.deploy("ls-m", net("own"), net("twin"))
    two.mallory.claim()
    more = {**keys, "linkedCredentials.twin.secretName": "s"}
    two.forge(changes=[two.change(output_fields=more, links=LinkStates(inbound={"twin": STATE}))])
    assert two.world.component("ls-m", "own")["outputFields"] == more
    two.forge(changes=[two.change(output_fields={})])
    with pytest.raises(ReportRefused, match="has no inbound half"):
        two.forge(changes=[two.change(output_fields=keys)])


@pytest.mark.rule("A3", "L12")
def test_the_owner_publishes_for_a_source_of_another_live_system_that_it_lets_in(two: Two) -> None:
    two.world.deploy("ls-m", net("own", linksFrom=["ls-x"]), net("twin"))
    imported = net("theirs", parameters={"name": "own"})
    two.world.deploy("ls-x", imported, net("user", links=[{"target": "theirs"}]))
    two.mallory.claim()
    two.forge(changes=[two.mallory.says("ls-x", "theirs", stance=Stance.IMPORTED, owner="ls-m")])
    two.mallory.claim()
    keys = {"linkedCredentials.ls-x/user.user": "u"}
    two.forge(changes=[two.change(output_fields=keys)])
    assert two.world.component("ls-m", "own")["outputFields"] == keys


@pytest.mark.rule("A3", "L10")
def test_a_link_that_was_taken_away_meanwhile_is_no_forgery(two: Two) -> None:
    two.world.deploy("ls-m", net("own"), net("twin", links=[{"target": "own"}]))
    two.mallory.claim()
    two.world.deploy("ls-m", net("own"), net("twin"))
    with pytest.raises(LeaseLost, match="has news since version"):
        two.forge(changes=[two.change(output_fields={"linkedCredentials.twin.user": "u"})])


@pytest.mark.rule("A3", "G13")
def test_a_request_that_was_given_up_meanwhile_is_no_forgery(two: Two) -> None:
    with two.world.store.write() as tx:
        requests.ask(tx, "ls-m", "own", Asked(RequestKind.BREAK, "ann"), CATALOG)
    two.mallory.claim()
    two.forge(changes=[two.change(**OVERRIDE, override_by="ann")])
    assert two.world.component("ls-m", "own")["override"]["by"] == "ann"
    two.forge(changes=[two.change()])
    with two.world.store.write() as tx:
        requests.ask(tx, "ls-m", "own", Asked(RequestKind.BREAK, "bob"), CATALOG)
    two.mallory.claim()
    with two.world.store.write() as tx:
        tx.connection.execute(update(components).where(components.c.uid == two.own).values(request=None))
        tx.connection.execute(
            update(components)
            .where(components.c.uid == two.own)
            .values(declared_version=components.c.declared_version + 1)
        )
    with pytest.raises(LeaseLost, match="has news since version"):
        two.forge(changes=[two.change(**OVERRIDE, override_by="bob")])


@pytest.mark.rule("A3", "O13")
def test_a_resource_is_remembered_by_its_own_scope_without_a_change_of_its_component(two: Two) -> None:
    known = KnownResource(identity=f"Test.Net:{NORTH}:own", owner="ls-m", resource_id="id-own")
    left = KnownResource(identity=f"Test.Net:{NORTH}:gone", owner="ls-m", resource_id="id-gone", left_by="ls-m")
    two.forge(resources=[known, left])
    with two.world.store.read() as tx:
        found = {one["identity"]: one["owner"] for one in resources.list_page(tx, 10, None)}
    assert found[known.identity] == found[left.identity] == "ls-m"


# --- words

HIDDEN: Final = ("\x1b[2J", "two\nlines", "\u202e", "\x9b31m", "\x7f", "\x00", "\u2028")
WORDS: Final[dict[str, Callable[[Two, str], Json]]] = {
    "a message": lambda two, word: {"changes": [two.change(message=word)]},
    "a resource id": lambda two, word: {"changes": [two.change(resource_id=word)]},
    "an owner": lambda two, word: {"changes": [two.change(owner=word)]},
    "an incarnation": lambda two, word: {"changes": [two.change(incarnation=word)]},
    "the name of an output field": lambda two, word: {"changes": [two.change(output_fields={word: "x"})]},
    "the reason of an override": lambda two, word: {"changes": [two.change(**OVERRIDE, override_reason=word)]},
    "what it waits for": lambda two, word: {"changes": [two.change(waits_for=(word,))]},
    "the message of a refusal": lambda two, word: {
        "changes": [two.change(refusal=Refusal(verb="update", message=word, since=two.world.clock.now))]
    },
    "who set a value back": lambda two, word: {
        "changes": [two.change(setbacks=(Setback(parameter="size", at=[two.world.clock.now], by=word),))]
    },
    "who changed it": lambda two, word: {"changes": [two.change(changed_by=(_changed(two, by=word),))]},
    "which call changed it": lambda two, word: {"changes": [two.change(changed_by=(_changed(two, how=word),))]},
    "an intent": lambda two, word: {"changes": [two.change(intent=Intent(id=word, at=two.world.clock.now))]},
    "why a link waits": lambda two, word: {
        "changes": [two.change(links=LinkStates(outbound={"x": STATE.model_copy(update={"waits": word})}))]
    },
    "the error of a write": lambda two, word: {"journal": [_entry("new", two.own, error=word)]},
    "the id of an entry": lambda two, word: {"journal": [_entry(word, two.own)]},
    "a request id": lambda two, word: {"journal": [_entry("new", two.own, request_ids=[word])]},
    "the reason of a write": lambda two, word: {"journal": [_entry("new", two.own, reason=word)]},
    "an event": lambda two, word: {"events": [AgentEvent(uid=two.own, kind=EventKind.UNREADABLE, message=word)]},
    "an identity": lambda two, word: {"resources": [KnownResource(identity=f"Test.Net:{NORTH}:{word}")]},
    "the owner of a resource": lambda two, word: {
        "resources": [KnownResource(identity=f"Test.Net:{NORTH}:own", owner=word)]
    },
}


def _changed(two: Two, **more: str) -> ChangedBy:
    return ChangedBy.model_validate({"parameter": "size", "seen": two.world.clock.now, "state": "known", **more})


@pytest.mark.rule("A3")
def test_no_more_changes_are_kept_of_a_component_than_agents_name(two: Two) -> None:
    many = tuple(_changed(two, by=f"anna-{number}") for number in range(11))
    assert "more than 10 changes" in _refused(two, {"changes": [two.change(changed_by=many)]})


@pytest.mark.rule("A6")
def test_control_characters_in_an_agents_words_are_refused(two: Two) -> None:
    before = two.dump()
    said = {(what, word): _refused(two, forged(two, word)) for what, forged in WORDS.items() for word in HIDDEN}
    assert [spoken for spoken, why in said.items() if "has the control character" not in why] == []
    assert two.dump() == before


def _refused(two: Two, items: Json) -> str:
    """Why a report is refused; empty where it is not."""
    try:
        two.forge(**items)
    except ReportRefused as error:
        return error.message
    return ""


@pytest.mark.rule("A6")
def test_words_without_end_are_refused(two: Two) -> None:
    long = "x" * (max(MOST_NAME, MOST_WORDS) + 1)
    said = {what: _refused(two, forged(two, long)) for what, forged in WORDS.items()}
    assert [what for what, why in said.items() if "characters, and no more than" not in why] == []


@pytest.mark.rule("A6")
def test_values_may_have_lines_and_are_bounded_in_size_and_depth(two: Two) -> None:
    two.forge(changes=[two.change(output_fields={"userData": "#!/bin/sh\n\techo \x1b[1m\n"})])
    with pytest.raises(ReportRefused, match="have more than"):
        two.forge(changes=[two.change(output_fields={"userData": "x" * (MOST_VALUE + 1)})])
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    with pytest.raises(ReportRefused, match="too many levels"):
        two.forge(journal=[_entry("new", two.own, after={"size": deep})])


# --- what it costs


@pytest.mark.rule("A3")
def test_an_honest_report_costs_no_statement_more(two: Two) -> None:
    """Confinement reads nothing for a report of its own components; with journal entries, one statement for all."""
    changes = [two.change(message="news"), two.mallory.says("ls-m", "twin", message="news")]
    known = [KnownResource(identity=f"Test.Net:{NORTH}:{name}", owner="ls-m") for name in ("own", "twin")]
    assert _read(two, changes=changes, resources=known) == []
    assert _read(two, journal=[_entry(f"mine-{n}", two.own, outcome=None) for n in range(10)]) == ["journal"]


def _read(two: Two, **items: Any) -> list[str]:
    """The tables that only confinement reads from, once for every statement."""
    seen: list[str] = []
    with observe_statements(seen.append):
        two.forge(**items)
    texts = [" ".join(text.split()) for text in seen if text.startswith("SELECT")]
    return [
        table for text in texts for table in ("departures", "journal", "resources") if f" FROM {table} WHERE" in text
    ]
