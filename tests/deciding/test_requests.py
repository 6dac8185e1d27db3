"""What becomes of an operator's request, without any cloud: every refusal, every way to become void."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fractal_cloud.model.identity import Identity, Scope
from fractal_cloud.model.observed import Observed, Override
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tags import OURS, ProtocolTags
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import OperatorRequest, RequestKind
from fractal_cloud.rules.requests import answer_request
from fractal_cloud.rules.situate import ABSENT, TypeTraits, View, is_handed_back

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CYCLE = timedelta(seconds=180)
SCOPE = Scope("aws", "123456789012", "eu-west-1")
IDENTITY = Identity("Test.Thing", SCOPE, "web")
FREE = Sighting("Test.Thing", "web", "id-1", protocol=ProtocolTags(owner="ls-a"))
MANAGED = Sighting("Test.Thing", "web", "id-1", protocol=ProtocolTags(OURS, owner="ls-a"))


def asked(kind: RequestKind = RequestKind.FORCE_PUSH, **more: Any) -> Tracked:
    """A component in override that somebody asked something of, a minute ago."""
    values: dict[str, Any] = {
        "id": "r1",
        "kind": kind,
        "by": "jo",
        "at": NOW - timedelta(seconds=60),
        "generation": 3,
        "resource_id": "id-1",
        "stance": Stance.OVERRIDE,
        **more,
    }
    memory = Observed(stance=Stance.OVERRIDE, resource_id="id-1", override=Override(since=NOW - timedelta(seconds=300)))
    return Tracked(
        uid="u1",
        live_system_id="ls-a",
        component_id="web",
        type="Test.Thing",
        parameters={},
        dependencies=(),
        ignore_drift=frozenset(),
        import_only=False,
        readoption_by_tag=False,
        deployed_at=NOW - timedelta(hours=1),
        generation=3,
        identity=IDENTITY,
        declared_identity=IDENTITY,
        deleting=False,
        request=OperatorRequest(**values),
        memory=memory,
    )


def refusal(tracked: Tracked, view: View, traits: TypeTraits | None = None) -> str:
    answer = answer_request(tracked, view, traits or TypeTraits(), now=NOW, cycle=CYCLE)
    assert answer is not None
    assert answer.acts is not bool(answer.refusal)
    return answer.refusal


def owned_by(owner: str | None, managed_by: str | None = None) -> View:
    return View(sighting=replace(FREE, protocol=ProtocolTags(managed_by, owner=owner)))


@pytest.mark.rule("G10")
def test_a_force_push_on_what_is_in_override_is_carried_out() -> None:
    assert refusal(asked(), View(sighting=FREE)) == ""
    assert refusal(asked(), owned_by(None)) == "", "where there is no owner, it is stamped"


@pytest.mark.rule("G10", "T7", "S6", "O12")
@pytest.mark.parametrize(
    ("tracked", "view", "traits", "reason"),
    [
        (asked(), ABSENT, TypeTraits(), "absent"),
        (asked(), View(fitting=(FREE, replace(FREE, resource_id="id-2"))), TypeTraits(), "id-1, id-2"),
        (asked(), View(sighting=FREE), TypeTraits(taggable=False), "cannot carry tags"),
        (replace(asked(), import_only=True), View(sighting=FREE), TypeTraits(), "importOnly"),
        (asked(), owned_by("ls-b"), TypeTraits(), "'ls-b' owns it"),
        (asked(), owned_by("ls-a", "terraform"), TypeTraits(), "'terraform'"),
        (replace(asked(), generation=4), View(sighting=FREE), TypeTraits(), "deployed again"),
        (asked(resource_id="id-9"), View(sighting=FREE), TypeTraits(), "id-9"),
        (asked(at=NOW - timedelta(seconds=400)), View(sighting=FREE), TypeTraits(), "two cycles"),
        (asked(at=NOW - timedelta(seconds=310)), View(sighting=FREE), TypeTraits(), "removed after"),
        (replace(asked(), deleting=True), View(sighting=FREE), TypeTraits(), "being deleted"),
    ],
)
def test_a_force_push_is_refused_with_a_reason(tracked: Tracked, view: View, traits: TypeTraits, reason: str) -> None:
    assert reason in refusal(tracked, view, traits)


@pytest.mark.rule("G10")
def test_a_force_push_asked_while_managed_is_void_once_somebody_took_the_resource_over() -> None:
    tracked = asked(stance=Stance.MANAGED)
    tracked.memory = replace(tracked.memory, stance=Stance.MANAGED, override=None)
    assert "removed after" in refusal(tracked, View(sighting=FREE))
    assert refusal(tracked, View(sighting=MANAGED)) == ""


@pytest.mark.rule("G13")
def test_glass_is_broken_as_long_as_managed_by_is_on() -> None:
    tracked = asked(RequestKind.BREAK)
    acting = answer_request(tracked, View(sighting=MANAGED), TypeTraits(), now=NOW, cycle=CYCLE)
    assert acting is not None
    assert acting.acts
    assert not acting.is_used_up, "a crash before the tag is off leaves it open"
    done = answer_request(tracked, View(sighting=FREE), TypeTraits(), now=NOW, cycle=CYCLE)
    assert done is not None
    assert not done.acts
    assert done.is_used_up
    assert done.refusal == ""


@pytest.mark.rule("S0", "G10")
def test_nothing_is_answered_while_the_resource_cannot_be_read() -> None:
    from fractal_cloud.model.errors import Unreadable

    assert answer_request(asked(), View(error=Unreadable("throttled")), TypeTraits(), now=NOW, cycle=CYCLE) is None


# --- where tags are frozen, the request itself is all there is

FROZEN = TypeTraits(tags_frozen=True)


@pytest.mark.rule("G13", "S17")
def test_where_tags_are_frozen_publishing_a_broken_glass_uses_it_up() -> None:
    for stance in Stance:
        tracked = asked(RequestKind.BREAK)
        tracked.memory = replace(tracked.memory, stance=stance)
        answer = answer_request(tracked, View(sighting=MANAGED), FROZEN, now=NOW, cycle=CYCLE)
        assert answer is not None
        assert (answer.acts, answer.by_memory, answer.is_used_up, answer.refusal) == (True, True, True, "")


@pytest.mark.rule("G10", "S17")
@pytest.mark.parametrize("stance", Stance)
def test_where_tags_are_frozen_a_force_push_is_remembered_unless_it_is_managed_anyway(stance: Stance) -> None:
    tracked = asked()
    tracked.memory = replace(tracked.memory, stance=stance)
    answer = answer_request(tracked, View(sighting=MANAGED), FROZEN, now=NOW, cycle=CYCLE)
    assert answer is not None
    assert (answer.acts, answer.is_used_up, answer.refusal) == (stance is not Stance.MANAGED, True, "")


FROZEN_WORDS = {
    RequestKind.FORCE_PUSH: "can never be adopted",
    RequestKind.BREAK: "can never be adopted",
    RequestKind.TRANSFER: "nothing was written|can never be moved",
}


@pytest.mark.rule("S6a", "G10", "G13", "O8")
@pytest.mark.parametrize("kind", RequestKind)
@pytest.mark.parametrize(
    "view", [owned_by(None), owned_by(None, OURS), owned_by("ls-a"), owned_by("ls-a", "terraform")]
)
def test_what_has_frozen_tags_that_are_not_ours_is_nobodys_to_ask_for(kind: RequestKind, view: View) -> None:
    assert re.search(FROZEN_WORDS[kind], refusal(asked(kind), view, FROZEN))


@pytest.mark.rule("S9", "S17")
def test_a_handing_back_is_for_the_very_resource_that_it_was_asked_for() -> None:
    tracked = asked()
    handed = Override(since=NOW, readopted_by="jo")
    tracked.memory = replace(tracked.memory, override=handed)
    assert is_handed_back(tracked, View(sighting=MANAGED))
    assert not is_handed_back(tracked, View(sighting=replace(MANAGED, resource_id="id-2"))), "another one of that name"
    assert not is_handed_back(tracked, ABSENT)
    for stance in (Stance.NONE, Stance.MANAGED, Stance.IMPORTED):
        tracked.memory = replace(tracked.memory, stance=stance)
        assert not is_handed_back(tracked, View(sighting=MANAGED)), stance
    tracked.memory = replace(tracked.memory, stance=Stance.OVERRIDE, override=Override(since=NOW))
    assert not is_handed_back(tracked, View(sighting=replace(MANAGED, protocol=ProtocolTags(OURS, True, "ls-a")))), (
        "a tag that nobody can take off again says nothing"
    )
