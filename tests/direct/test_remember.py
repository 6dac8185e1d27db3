"""From a judgement to what is remembered and published of a component: whole memories, field by field."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fractal_cloud.model.errors import Unreadable
from fractal_cloud.model.link import NO_LINKS, LinkState, LinkStates
from fractal_cloud.model.observed import Observed, Override, Refusal, Setback
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tags import NO_TAGS, OURS, ProtocolTags
from fractal_cloud.model.tracked import AT_PUBLICATION
from fractal_cloud.model.wire import Bound, RequestKind
from fractal_cloud.rules import words
from fractal_cloud.rules.drift import Difference
from fractal_cloud.rules.judge import Judgement
from fractal_cloud.rules.remember import observed_after
from fractal_cloud.rules.requests import Answer
from fractal_cloud.rules.situate import ABSENT, GONE, View
from tests.direct.things import ME, MINE, NOW, OTHER, intent, memory, request, sighting, tracked

MANAGED, OVERRIDE, IMPORTED, NONE = Stance.MANAGED, Stance.OVERRIDE, Stance.IMPORTED, Stance.NONE
ACTIVE = Status.ACTIVE
FREE = ProtocolTags(owner=ME)
EARLIER = NOW - timedelta(hours=3)
TWO = View(fitting=(sighting(), sighting(resource_id="id-2")))


def seen(tags: ProtocolTags = MINE, **more: Any) -> View:
    return View(sighting=sighting(tags, **more))


def judged(stance: Stance = MANAGED, status: Status | None = ACTIVE, **more: Any) -> Judgement:
    values: dict[str, Any] = {"rule": "S12", "message": "as declared", "carried_out": True, **more}
    return Judgement(status=status, stance=stance, **values)


BEFORE = Observed(
    stance=NONE,
    status=Status.INSTANTIATING,
    message="creating",
    owner=OTHER,
    resource_id="id-0",
    incarnation="old",
    output_fields={"vpcId": "id-0"},
    observed_generation=1,
    established=True,
    setbacks=(Setback(parameter="size", at=[NOW]),),
    refusal=Refusal(verb="update", message="no", since=NOW),
    waits_for=("net",),
    stuck=True,
)


def test_what_was_seen_is_what_is_remembered() -> None:
    component = tracked(BEFORE, parameters={"size": 3})
    view = seen(resource_id="id-1", incarnation="new", actual={"size": 3, "extra": 1}, outputs={"vpcId": "id-1"})
    found = observed_after(component, view, judged(waits_for=("sub",), setbacks=BEFORE.setbacks))
    assert found == Observed(
        stance=MANAGED,
        status=ACTIVE,
        message="as declared",
        owner=ME,
        resource_id="id-1",
        incarnation="new",
        output_fields={"vpcId": "id-1", "size": 3},
        observed_generation=3,
        established=True,
        waits_for=("sub",),
        setbacks=BEFORE.setbacks,
        refusal=BEFORE.refusal,
        stuck=False,
    )


@pytest.mark.rule("S0")
def test_what_cannot_be_read_stays_as_it_was_but_for_the_message() -> None:
    view = View(error=Unreadable("throttled"))
    unread = judged(status=None, message="cannot be read", stuck=False, waits_for=("sub",))
    found = observed_after(tracked(BEFORE), view, unread)
    assert found == replace(BEFORE, message="cannot be read", stuck=False, waits_for=("sub",))
    waiting = replace(BEFORE, links=LINKED)
    found = observed_after(tracked(waiting), view, judged(message="cannot be read", stuck=True))
    assert found == replace(waiting, message="cannot be read; link to 'db': no key", stuck=True, waits_for=())


@pytest.mark.rule("S24")
def test_what_could_not_be_judged_is_failed_and_all_else_stays() -> None:
    known = replace(BEFORE, links=LINKED)
    unmonitored = judged(NONE, Status.FAILED, rule="S24", message="its offer failed")
    expected = replace(known, status=Status.FAILED, message="its offer failed; link to 'db': no key")
    assert observed_after(tracked(known), seen(), unmonitored) == expected
    unchanged = observed_after(tracked(known), seen(), replace(unmonitored, status=None))
    assert unchanged.status is Status.INSTANTIATING


@pytest.mark.rule("C9", "S12a")
@pytest.mark.parametrize(
    ("rule", "stance", "noticing", "restored"),
    [
        ("S4", MANAGED, False, False),
        ("S9", MANAGED, False, False),
        ("S11a", MANAGED, False, False),
        ("S12", MANAGED, False, False),
        ("S12", MANAGED, True, True),
        ("S9", OVERRIDE, False, True),
        ("S12a", MANAGED, False, True),
        ("S7", OVERRIDE, False, True),
        ("S14", MANAGED, False, True),
    ],
)
def test_what_a_backup_remembered_counts_until_it_was_shown_and_taken_over(
    rule: str, stance: Stance, noticing: bool, restored: bool
) -> None:
    judgement = judged(stance, rule=rule, noticing=noticing)
    assert observed_after(tracked(memory(restored=True)), seen(), judgement).restored is restored
    assert observed_after(tracked(memory()), seen(), judgement).restored is False


@pytest.mark.rule("C9", "S17")
def test_an_intent_of_a_backup_only_recognises_and_hides_no_absence() -> None:
    found = observed_after(tracked(memory(intent=intent(restored=True))), ABSENT, judged())
    assert found.absent_since == AT_PUBLICATION
    assert found.intent == intent(restored=True)


@pytest.mark.rule("S20")
def test_a_judgement_that_changes_nothing_leaves_the_memory_equal() -> None:
    component = tracked(memory(message="as declared", status=ACTIVE, owner=ME, output_fields={}))
    assert observed_after(component, seen(), judged()) == component.memory


@pytest.mark.rule("S22")
def test_a_generation_is_observed_only_when_it_was_carried_out() -> None:
    component = tracked(BEFORE)
    assert observed_after(component, seen(), judged(carried_out=False)).observed_generation == 1
    assert observed_after(component, seen(), judged()).observed_generation == 3


@pytest.mark.rule("S13")
def test_a_status_that_is_not_said_stays() -> None:
    assert observed_after(tracked(BEFORE), seen(), judged(status=None)).status is Status.INSTANTIATING
    assert observed_after(tracked(BEFORE), seen(), judged(stuck=True)).stuck


# --- absent, several


@pytest.mark.rule("S2", "S3", "S4a")
def test_an_absence_is_remembered_from_its_publication_and_what_it_was_stays_known() -> None:
    component = tracked(replace(BEFORE, output_fields={"vpcId": "id-0", "size": 3}))
    found = observed_after(component, GONE, judged(status=Status.MISSING, message="gone"))
    assert (found.absent_since, found.established) == (AT_PUBLICATION, False)
    assert (found.owner, found.resource_id, found.incarnation) == (OTHER, "id-0", "old")
    assert found.output_fields == {}
    again = observed_after(tracked(replace(BEFORE, absent_since=EARLIER)), ABSENT, judged())
    assert again.absent_since == EARLIER
    back = observed_after(tracked(replace(BEFORE, absent_since=EARLIER)), seen(), judged())
    assert (back.absent_since, back.established) == (None, True)


@pytest.mark.rule("S14")
def test_several_say_nothing_of_absence() -> None:
    known = replace(BEFORE, absent_since=EARLIER)
    found = observed_after(tracked(known), TWO, judged(status=Status.FAILED, carried_out=False))
    assert (found.absent_since, found.established) == (EARLIER, True)
    assert (found.owner, found.resource_id) == (OTHER, "id-0")
    assert found.output_fields == known.output_fields
    fresh = observed_after(tracked(replace(known, established=False, absent_since=None)), TWO, judged())
    assert (fresh.established, fresh.absent_since) == (False, None)


@pytest.mark.rule("S12a")
def test_the_notice_is_remembered_from_its_publication_and_forgotten_when_it_is_over() -> None:
    first = observed_after(tracked(memory(NONE)), seen(), judged(NONE, noticing=True))
    assert first.noticed_since == AT_PUBLICATION
    still = observed_after(tracked(memory(NONE, noticed_since=EARLIER)), seen(), judged(NONE, noticing=True))
    assert still.noticed_since == EARLIER
    over = observed_after(tracked(memory(NONE, noticed_since=EARLIER)), seen(), judged())
    assert over.noticed_since is None


# --- open creations


@pytest.mark.rule("S17")
@pytest.mark.parametrize(
    ("view", "judgement", "is_open"),
    [
        (seen(), judged(carried_out=False), True),
        (seen(), judged(), False),
        (seen(), judged(OVERRIDE, carried_out=False), False),
        (ABSENT, judged(carried_out=False), True),
        (ABSENT, judged(), True),
        (ABSENT, judged(OVERRIDE), True),
        (TWO, judged(IMPORTED), True),
    ],
)
def test_a_creation_is_open_until_it_is_complete_or_somebody_elses(view: View, judgement: Any, is_open: bool) -> None:
    component = tracked(memory(intent=intent()))
    found = observed_after(component, view, judgement)
    assert (found.intent == intent()) is is_open
    assert (found.intent is None) is not is_open
    assert found.established is (is_open or view.sighting is not None or view is TWO)


@pytest.mark.rule("S17")
def test_an_absence_counts_only_without_an_open_creation() -> None:
    assert observed_after(tracked(memory(intent=intent())), ABSENT, judged()).absent_since is None
    known = memory(intent=intent(), absent_since=EARLIER)
    assert observed_after(tracked(known), ABSENT, judged()).absent_since == EARLIER


@pytest.mark.rule("S17")
@pytest.mark.parametrize("tagging", ["owed", "begun", ""])
def test_whose_tags_were_once_seen_owes_none_any_more(tagging: str) -> None:
    component = tracked(memory(intent=intent(tagging=tagging, attempts=2)))
    kept = observed_after(component, seen(NO_TAGS), judged(carried_out=False)).intent
    assert kept == intent(tagging=tagging, attempts=2)
    assert observed_after(component, ABSENT, judged()).intent == intent(tagging=tagging, attempts=2)
    for tags in (MINE, ProtocolTags(reconcile=True), FREE):
        tagged = observed_after(component, seen(tags), judged(carried_out=False)).intent
        assert tagged == intent(tagging="", attempts=2)


# --- what is deleted keeps the id it is bound to


@pytest.mark.rule("O19")
def test_what_took_the_name_of_something_deleted_is_not_published_as_it() -> None:
    component = tracked(memory(incarnation="a"), deleting=True, bound=Bound(resource_id="id-0"))
    found = observed_after(component, seen(resource_id="id-9", incarnation="b"), judged(status=Status.DELETING))
    assert (found.resource_id, found.incarnation, found.owner) == ("id-1", "a", ME)
    own = observed_after(component, seen(resource_id="id-0", incarnation="b"), judged(status=Status.DELETING))
    assert (own.resource_id, own.incarnation) == ("id-0", "b")
    declared = replace(component, deleting=False)
    assert observed_after(declared, seen(resource_id="id-9"), judged()).resource_id == "id-9"


# --- overrides

KNOWN = Override(since=EARLIER, by="ann", reason="night shift", until=NOW)
BREAK = request(RequestKind.BREAK, reason="incident 7", until=NOW)
PUSH = request()


def override_after(known: Override | None, judgement: Judgement, view: View | None = None, **more: Any) -> Any:
    return observed_after(tracked(memory(OVERRIDE, override=known, **more)), view or seen(FREE), judgement).override


@pytest.mark.rule("G13", "G5")
def test_an_override_is_remembered_as_long_as_it_lasts() -> None:
    assert override_after(None, judged(OVERRIDE, rule="S7")) == Override(since=AT_PUBLICATION)
    assert override_after(KNOWN, judged(OVERRIDE, rule="S7")) == KNOWN
    for stance in (MANAGED, IMPORTED, NONE):
        assert override_after(KNOWN, judged(stance)) is None


@pytest.mark.rule("G13")
def test_who_broke_the_glass_and_why_is_remembered() -> None:
    expected = Override(since=AT_PUBLICATION, by="jo", reason="incident 7", until=NOW)
    assert override_after(None, judged(OVERRIDE, answer=Answer(BREAK, acts=True))) == expected
    assert override_after(KNOWN, judged(OVERRIDE, answer=Answer(BREAK))) == expected.model_copy(
        update={"since": EARLIER}
    )
    assert override_after(KNOWN, judged(OVERRIDE, answer=Answer(BREAK, refusal="no"))) == KNOWN
    assert override_after(KNOWN, judged(OVERRIDE, answer=Answer(PUSH, acts=True))) == KNOWN


@pytest.mark.rule("S17", "S7")
def test_tags_that_were_lost_while_they_were_put_on_are_the_reason() -> None:
    lost = Override(since=AT_PUBLICATION, reason=words.tagging_lost())
    begun: dict[str, Any] = {"intent": intent(tagging="begun")}
    assert override_after(None, judged(OVERRIDE, rule="S7"), **begun) == lost
    assert override_after(None, judged(OVERRIDE, rule="S10"), **begun) == Override(since=AT_PUBLICATION)
    assert override_after(KNOWN, judged(OVERRIDE, rule="S7"), **begun) == KNOWN


@pytest.mark.rule("S17", "S7")
def test_that_nobody_knows_how_a_creation_ended_is_the_reason_where_its_tags_were_still_owed() -> None:
    lost = Override(since=AT_PUBLICATION, reason=words.creation_lost())
    owed: dict[str, Any] = {"intent": intent(tagging="owed")}
    assert override_after(None, judged(OVERRIDE, rule="S7"), **owed) == lost
    assert override_after(KNOWN, judged(OVERRIDE, rule="S7"), **owed) == KNOWN


@pytest.mark.rule("G13", "G10")
def test_a_request_that_is_carried_out_by_memory_is_remembered_for_that_resource() -> None:
    acts = judged(OVERRIDE, answer=Answer(PUSH, acts=True, by_memory=True))
    assert override_after(KNOWN, acts) == KNOWN.model_copy(update={"readopted_by": "jo"})
    assert override_after(None, acts) == Override(since=AT_PUBLICATION, readopted_by="jo")
    for answer in (Answer(PUSH, by_memory=True), Answer(PUSH, acts=True), None):
        assert override_after(KNOWN, judged(OVERRIDE, answer=answer)) == KNOWN
    given_back = KNOWN.model_copy(update={"readopted_by": "jo"})
    assert override_after(given_back, judged(OVERRIDE)) == given_back
    for view in (ABSENT, seen(resource_id="id-2")):
        assert override_after(given_back, judged(OVERRIDE), view) == KNOWN, (
            "it was for another, or for one that is gone"
        )


# --- output fields

STATE = LinkState(link_type="db", other_type="T", other_provider="aws", fields={"host": "h"}, waits="no key")
LINKED = LinkStates(outbound={"db": STATE})
FIELDS = {"db.db.host": "h"}


@pytest.mark.rule("G3", "L3")
def test_output_fields_are_outputs_declared_actual_values_drift_and_link_keys() -> None:
    component = tracked(
        memory(output_fields={"policy": "p", "old": 1}, links=LINKED),
        parameters={"name": "web", "size": 3, "policy": "q", "zone": "a"},
    )
    view = seen(name="real", outputs={"vpcId": "id-1"}, actual={"size": 2, "extra": 5})
    drift = {"zone": Difference("a", "b"), "size": Difference(3, 2)}
    found = observed_after(component, view, judged(drift=drift))
    assert found.output_fields == {
        "vpcId": "id-1",
        "name": "real",
        "size": 2,
        "policy": "p",
        "drift": {"size": {"declared": 3, "actual": 2}, "zone": {"declared": "a", "actual": "b"}},
        **FIELDS,
    }
    assert list(found.output_fields["drift"]) == ["size", "zone"]
    assert found.links is LINKED
    assert found.message == "as declared; link to 'db': no key"


@pytest.mark.rule("G3")
def test_no_difference_no_drift_and_a_name_only_where_it_is_declared() -> None:
    view = seen(outputs={"vpcId": "id-1"}, actual={"size": 2})
    assert observed_after(tracked(), view, judged()).output_fields == {"vpcId": "id-1"}
    assert view.sighting is not None
    assert view.sighting.outputs == {"vpcId": "id-1"}, "and what was seen is not changed"


@pytest.mark.rule("L3", "L13")
def test_what_links_published_stays_while_the_resource_is_gone() -> None:
    component = tracked(memory(links=LINKED, output_fields={"vpcId": "id-1", **FIELDS}))
    assert observed_after(component, GONE, judged()).output_fields == FIELDS
    assert observed_after(component, TWO, judged()).output_fields == {"vpcId": "id-1", **FIELDS}
    assert observed_after(tracked(memory(links=NO_LINKS)), GONE, judged()).output_fields == {}


@pytest.mark.rule("L7")
def test_a_link_that_cannot_be_carried_out_fails_its_source() -> None:
    failed = LinkStates(outbound={"db": STATE.model_copy(update={"failed": True})})
    found = observed_after(tracked(memory(links=failed)), seen(), judged())
    assert found.status is Status.FAILED
    assert observed_after(
        tracked(memory(links=failed)), seen(FREE), judged(OVERRIDE, Status.MANUAL_OVERRIDE)
    ).status is (Status.MANUAL_OVERRIDE)


def test_the_tag_of_another_owner_is_remembered_as_seen() -> None:
    assert observed_after(tracked(), seen(ProtocolTags(OURS, owner=OTHER)), judged(IMPORTED)).owner == OTHER
    assert observed_after(tracked(), seen(NO_TAGS), judged(OVERRIDE)).owner is None
