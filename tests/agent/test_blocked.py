"""How long a deletion is refused because of something else before it counts as waiting for a person (C8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from fractal_cloud.agent.errors import WriteErrors
from fractal_cloud.agent.journal import EntryRef
from fractal_cloud.agent.report_builder import ReportBuilder
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.writing import Outcome, Planned
from fractal_cloud.model.errors import CloudError, Conflict, Overtaken, Throttled, Transient
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.rules.judge import Judgement, Step, Verb
from fractal_cloud.rules.situate import TypeTraits
from tests.deciding.test_requests import asked

pytestmark = pytest.mark.rule("C8")
NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
CYCLE = timedelta(seconds=180)
DELETING = Judgement("S12", Status.DELETING, Stance.MANAGED, "deleting", step=Step(Verb.DELETE, "delete"))


class _Offers(dict[str, Any]):
    """Offers of which only the traits are asked for: none holds data."""

    def __missing__(self, name: str) -> Any:
        class Facts:
            traits = TypeTraits()

        return Facts


def _held() -> HeldScope:
    return HeldScope(Scope("aws", "1", "eu"), cast("Any", None), lambda: None)


def _component(*, stuck: bool = False) -> Tracked:
    component = asked()
    component.deleting = True
    component.memory = replace(component.memory, stuck=stuck)
    return component


def _tried(held: HeldScope, component: Tracked, error: CloudError, at: datetime) -> Judgement:
    """One cycle in which the deletion was tried."""
    errors = _errors(held)
    errors.add(Outcome(Planned(component, Step(Verb.DELETE, "delete"), "1", None), error=error), EntryRef(), at)
    return errors.explain(component, DELETING, at)


def _errors(held: HeldScope) -> WriteErrors:
    return WriteErrors(held, ReportBuilder(held, cast("Any", None)), _Offers(), CYCLE)


@pytest.mark.parametrize(
    ("reason", "after", "stuck"),
    [
        ("the first refusal may pass by itself", timedelta(), False),
        ("one cycle may not be enough", CYCLE, False),
        ("just below two", 2 * CYCLE - timedelta(microseconds=1), False),
        ("two settled cycles, whatever woke the agent in between", 2 * CYCLE, True),
    ],
)
def test_two_settled_cycles_are_counted_from_the_first_refusal(reason: str, after: timedelta, stuck: bool) -> None:
    held, component = _held(), _component()
    for seconds in range(0, int(after.total_seconds()), 7):
        _tried(held, component, Conflict("in use by subnet-1"), NOW + timedelta(seconds=seconds))
    shown = _tried(held, component, Conflict("in use by subnet-1"), NOW + after)
    assert (shown.stuck, shown.status) == (stuck, Status.DELETING), reason


@pytest.mark.parametrize("error", [Throttled("later"), Transient("no answer"), Overtaken("somebody was faster")])
def test_what_passes_by_itself_is_never_counted(error: CloudError) -> None:
    held, component = _held(), _component()
    for cycle in range(20):
        assert not _tried(held, component, error, NOW + cycle * CYCLE).stuck


def test_another_agent_goes_on_where_it_was_published_and_a_try_that_goes_through_ends_it() -> None:
    held, component = _held(), _component(stuck=True)
    assert _tried(held, component, Conflict("in use"), NOW).stuck
    _errors(held).forget(component)
    assert not _tried(
        held, replace(component, memory=replace(component.memory, stuck=False)), Conflict("in use"), NOW
    ).stuck
