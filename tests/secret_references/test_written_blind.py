"""Secrets that a cloud takes and never returns: compared with what was last written, by a keyed digest (A8)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pytest

from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.secrets import CycleSecrets, DigestKey, Secrets
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.referable import SecretText
from fractal_cloud.model.status import Status
from fractal_cloud.offers.offer import parameter_schema
from fractal_cloud.offers.secret import Secret
from fractal_cloud.rules.drift import ComparedType, find_drift, in_turn
from fractal_cloud.rules.hiding import OTHER_SECRET
from fractal_cloud.rules.judge import Lacking, Verb, judge
from fractal_cloud.rules.situate import ABSENT, View
from tests.direct.things import context, memory, sighting, tracked

REFERENCE = {"$secret": "pin"}


class Door(Component):
    """A type whose cloud takes a PIN and never shows it."""

    type = "Test.PaaS.Door"
    provider = "test"

    pin: SecretText = parameter(secret=True, write_only=True)
    colour: str | None = parameter(default=None)


COMPARED = ComparedType(
    TypeFacts(type=Door.type, provider="test", title="Door", parameter_schema=parameter_schema(Door))
)


def _secrets(value: str, key: bytes = b"k" * 32, **remembered: Any) -> tuple[CycleSecrets, Any]:
    door = tracked(memory(**remembered), parameters={"pin": REFERENCE}, secrets=frozenset({"pin"}))
    held = HeldScope(Scope("test", "1", "here"), cast("Any", None), lambda: None)
    held.work.tracked[door.uid], held.work.has_secrets = door, True
    watchdog = Watchdog(5.0)
    made = CycleSecrets(held, Secrets(lambda *_: Secret(value), DigestKey(key), watchdog, ThreadPoolExecutor(1)))
    made.refresh()
    watchdog.close()
    return made, door


def _actual(made: CycleSecrets, door: Any) -> Any:
    return made.hidden(door, COMPARED, sighting(), door.parameters).actual.get("pin")


@pytest.mark.rule("A8")
def test_what_was_written_is_as_declared_until_the_secret_changes() -> None:
    made, door = _secrets("1234")
    assert _actual(made, door) == OTHER_SECRET, "nothing is known to be written"
    written = made.written(door, COMPARED.write_only_values(door.parameters))
    assert "1234" not in str(written)
    same, door = _secrets("1234", secrets=written)
    assert _actual(same, door) == REFERENCE
    assert not find_drift(COMPARED, same.hiding(door, COMPARED).declared(door.parameters), {"pin": REFERENCE})
    rotated, door = _secrets("4321", secrets=written)
    assert _actual(rotated, door) == OTHER_SECRET


@pytest.mark.rule("A8")
def test_a_digest_of_another_key_is_never_equal_so_that_the_value_is_written_once_more() -> None:
    made, door = _secrets("1234")
    other, door = _secrets("1234", b"o" * 32, secrets=made.written(door, COMPARED.write_only_values(door.parameters)))
    assert _actual(other, door) == OTHER_SECRET


@pytest.mark.rule("A8")
def test_an_importer_sees_nothing_of_it() -> None:
    made, door = _secrets("1234")
    imported = replace(door, import_only=True)
    assert "pin" not in made.hidden(imported, COMPARED, sighting(), imported.parameters).actual


@pytest.mark.rule("A8")
def test_it_is_written_by_itself_after_everything_else() -> None:
    drift = find_drift(COMPARED, {"pin": REFERENCE, "colour": "red"}, {"pin": OTHER_SECRET, "colour": "blue"})
    assert set(drift) == {"pin", "colour"}
    assert set(in_turn(COMPARED, drift)) == {"colour"}
    assert set(in_turn(COMPARED, {"pin": drift["pin"]})) == {"pin"}


# --- a secret without a value


@pytest.mark.rule("A8")
@pytest.mark.parametrize("is_passing", [False, True])
def test_without_a_value_nothing_is_created_or_changed(is_passing: bool) -> None:
    lacking = Lacking("secret 'pin' is not bound", is_passing)
    new = tracked(memory(resource_id=None, established=False, observed_generation=0))
    created = judge(new, ABSENT, context(lacking=lacking))
    assert created.step is None
    assert created.message == lacking.message
    assert created.status is (None if is_passing else Status.FAILED)
    door = tracked(parameters={"size": 1})
    settled = judge(door, View(sighting=sighting()), context(lacking=lacking))
    assert settled.step is None
    assert not settled.carried_out
    assert settled.status is (None if is_passing else Status.FAILED)


@pytest.mark.rule("A8", "O10")
def test_a_deletion_needs_no_secret() -> None:
    going = tracked(deleting=True)
    judged = judge(going, View(sighting=sighting()), context(lacking=Lacking("secret 'pin' is not bound")))
    assert judged.step is not None
    assert judged.step.verb is Verb.DELETE
