"""Which situations wait for a person, and which pass by themselves (C8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.errors import (
    AwaitsPerson,
    CloudError,
    Conflict,
    Denied,
    Invalid,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.model.status import Status
from fractal_cloud.rules.drift import ComparedType
from fractal_cloud.rules.judge import Circumstances, judge
from fractal_cloud.rules.remember import observed_after
from fractal_cloud.rules.situate import Claims, TypeTraits, View
from tests.deciding.test_requests import CYCLE, FREE, NOW, asked

pytestmark = pytest.mark.rule("C8")
FACTS = TypeFacts(type="Test.Thing", provider="test", title="Thing", parameter_schema={"type": "object"}, place=[])


def _context(**more: tuple[str, ...]) -> Circumstances:
    return Circumstances(ComparedType(FACTS), TypeTraits(), Claims(), NOW, CYCLE, **more)  # type: ignore[arg-type]


@pytest.mark.rule("S0")
@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize(
    ("error", "stuck"),
    [
        (Denied("no"), True),
        (Invalid("no such region"), True),
        (AwaitsPerson("several parents"), True),
        (Unreadable("half a page"), False),
        (Throttled("later"), False),
        (Transient("no answer"), False),
        (Conflict("busy"), False),
    ],
)
def test_an_unreadable_component_waits_for_a_person_only_where_reading_again_changes_nothing(
    error: CloudError, stuck: bool, deleting: bool
) -> None:
    component = replace(asked(), request=None, deleting=deleting)
    view = View(error=error)
    remembered = observed_after(component, view, judge(component, view, _context()))
    assert remembered.stuck is stuck
    assert remembered.status is component.memory.status


def test_what_cannot_be_read_says_what_it_waits_for_and_forgets_it_once_it_can_be_read() -> None:
    """A parent in another scope that has failed: the mutation must find the way to it."""
    component = replace(asked(), request=None)
    view = View(error=Unreadable("'net', which it is in, is not known to be there"))
    component.memory = observed_after(component, view, judge(component, view, _context(waits_for=("net",))))
    assert component.memory.waits_for == ("net",)
    view = View(sighting=FREE)
    assert observed_after(component, view, judge(component, view, _context())).waits_for == ()


@pytest.mark.rule("S14", "S22")
def test_several_of_one_name_wait_for_a_person_and_reach_no_generation_in_manual_override() -> None:
    component = replace(asked(), request=None)
    view = View(fitting=(FREE, replace(FREE, resource_id="id-2")))
    remembered = observed_after(component, view, judge(component, view, _context()))
    assert (remembered.stuck, remembered.observed_generation) == (True, component.memory.observed_generation)
    assert remembered.status is component.memory.status


@pytest.mark.rule("S18")
def test_what_stands_elsewhere_than_declared_in_override_says_so_and_holds_up_who_waits_for_it() -> None:
    component = replace(asked(), request=None)
    component.declared_identity = replace(component.identity, name="other")
    view = View(sighting=FREE)
    judgement = judge(component, view, _context())
    assert (judgement.status, judgement.stuck) == (Status.MANUAL_OVERRIDE, True)
    assert 'name is "web" and cannot become "other" in place' in judgement.message
