"""On every cloud: the agent dies, loses an answer, cannot read, or has forgotten all, at whatever effect (S17, S0, C2).

The quick run lets the faults take turns over a type or two of each provider; the long run has all of them everywhere.
AWS, which came first, has files of its own beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.faults.effects import Fault
from tests.faults.lives import Effects, Life, strike_all, strike_whole
from tests.offers.suites import Stage, Suite, suites

DEADLY = (Fault.KILLED_AFTER, Fault.ANSWER_LOST)
LIVE_SYSTEM = "ls-a"
# A refusal, and no answer at all; `make soak` tries the others too.
QUICK = ("denied", "cut off")
STRUCK = [suite for suite in suites().values() if suite.effects]


def _types(chosen: Callable[[Suite, str], bool], *more: Any) -> list[Any]:
    return [
        pytest.param(suite.key, kind, id=kind, marks=[*suite.marks(), *more])
        for suite in STRUCK
        for kind in suite.kinds()
        if chosen(suite, kind)
    ]


def _first_or_frozen(suite: Suite, kind: str) -> bool:
    return kind in suite.always[:1] or suite.is_frozen(kind)


def _strike(
    sandbox: Sandbox,
    folder: Path,
    suite: Suite,
    name: str,
    faults: Sequence[Fault],
    record: Callable[[str, object], None],
) -> None:
    kind = suite.kinds()[name]
    with suite.stage(sandbox, folder, kind) as stage:
        world, offer = stage.world, installed()[kind.type]
        effects = strike_all(lambda number: Life(offer, stage.example, world, number), world, faults)
    _record(name, effects, suite.effects[name], record)


def _record(name: str, effects: Effects, at_least: int, record: Callable[[str, object], None]) -> None:
    points = sum(map(len, effects.values()))
    print(f"{name}: {points} crash points: {effects}")
    record("crash points", points)
    assert points >= at_least


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "C7", "T1", "T2", "O10", "G10", "S16")
@pytest.mark.parametrize(
    ("provider", "kind"), _types(lambda suite, kind: _first_or_frozen(suite, kind) and not suite.has_long_lives)
)
def test_a_life_goes_on_whatever_effect_is_struck_by_one_fault_or_another(
    provider: str,
    kind: str,
    session_sandbox: Sandbox,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    _strike(session_sandbox, tmp_path, suites()[provider], kind, DEADLY, record_property)


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "O10")
@pytest.mark.parametrize(
    ("provider", "kind"), _types(lambda suite, kind: suite.whole is not None and kind == suite.whole[0])
)
def test_a_whole_livesystem_comes_and_goes_whatever_effect_is_struck(
    provider: str,
    kind: str,
    session_sandbox: Sandbox,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    suite = suites()[provider]
    assert suite.whole is not None
    with suite.stage(session_sandbox, tmp_path, suite.kinds()[kind]) as stage:
        effects = strike_whole(stage.example, stage.world, DEADLY)
    _record(f"a whole LiveSystem of {provider}", effects, suite.whole[1], record_property)


@pytest.mark.soak
@pytest.mark.rule("S17")
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize(("provider", "kind"), _types(lambda *_: True))
def test_a_life_goes_on_whatever_happens_at_whatever_effect(
    provider: str,
    kind: str,
    fault: Fault,
    session_sandbox: Sandbox,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    _strike(session_sandbox, tmp_path, suites()[provider], kind, [fault], record_property)


# --- what cannot be read


def _refusals() -> list[Any]:
    return [
        pytest.param(
            suite.key,
            kind,
            refusal,
            id=f"{kind}-{refusal}",
            marks=[*suite.marks(), *([] if kind in suite.always[:1] and refusal in QUICK else [pytest.mark.soak])],
        )
        for suite in STRUCK
        for kind in suite.kinds()
        for refusal in suite.refusals
    ]


@pytest.mark.rule("S0", "S22")
@pytest.mark.parametrize(("provider", "kind", "refusal"), _refusals())
def test_what_cannot_be_read_is_neither_created_changed_nor_deleted(
    provider: str, kind: str, refusal: str, session_sandbox: Sandbox, tmp_path: Path
) -> None:
    suite = suites()[provider]
    with suite.stage(session_sandbox, tmp_path, suite.kinds()[kind]) as stage:
        _is_left_alone(stage, lambda: _fail_lists(stage, suite, refusal))


@pytest.mark.rule("S0")
@pytest.mark.parametrize(("provider", "kind"), _types(lambda suite, kind: kind in suite.always[:1]))
def test_a_list_that_breaks_off_after_its_first_page_shows_nothing_at_all(
    provider: str, kind: str, session_sandbox: Sandbox, tmp_path: Path
) -> None:
    suite = suites()[provider]
    with suite.stage(session_sandbox, tmp_path, suite.kinds()[kind]) as stage:
        knobs = stage.world.cloud.knobs

        def break_off() -> None:
            knobs.page_size = 1
            knobs.fail_page(2, operation=suite.lists, status=500, times=None, actor="agent")

        _is_left_alone(stage, break_off)


def _fail_lists(stage: Stage, suite: Suite, refusal: str) -> None:
    knobs = stage.world.cloud.knobs
    knobs.fail(operation=suite.lists, times=None, actor="agent", **suite.refusals[refusal])


def _is_left_alone(stage: Stage, spoil: Callable[[], None]) -> None:
    """One that drifts, one to be deleted, one to be created: none is touched while lists cannot be read."""
    world, example = stage.world, stage.example
    name = str(example.declaration["id"])
    drifting, going, coming = (example.under_name(f"{name}-{number}") for number in range(3))
    world.deploy(LIVE_SYSTEM, *example.parents, drifting, going)
    world.settle()
    for parameter in example.editable()[:1]:
        [found] = example.operator.find(drifting["id"])
        example.operator.edit(found.resource_id, parameter, example.changes[parameter])
    before = len(world.writes())
    spoil()
    world.deploy(LIVE_SYSTEM, *example.parents, drifting, coming)
    world.cycle(3)
    assert len(world.writes()) == before, world.writes()[before:]
    shown = world.component(LIVE_SYSTEM, drifting["id"])
    assert shown["status"] == "Active"
    assert shown["observedGeneration"] == 1
    assert world.component(LIVE_SYSTEM, going["id"])["status"] != "Deleted"
    world.cloud.knobs.reset()
    world.survive(at_most=200)
    assert [len(example.operator.find(one["id"])) for one in (drifting, going, coming)] == [1, 0, 1]
    world.assert_safe()


# --- what is forgotten


@pytest.mark.rule("C2", "S11b")
@pytest.mark.parametrize(("provider", "kind"), _types(_first_or_frozen))
def test_a_wiped_memory_makes_nothing_twice_and_deletes_nothing(
    provider: str, kind: str, session_sandbox: Sandbox, tmp_path: Path
) -> None:
    suite = suites()[provider]
    with suite.stage(session_sandbox, tmp_path, suite.kinds()[kind]) as stage:
        world, example = stage.world, stage.example
        world.deploy(LIVE_SYSTEM, *example.components)
        world.settle()
        before = {one["id"]: world.component(LIVE_SYSTEM, one["id"])["resourceId"] for one in example.components}
        world.close()
        world.open_control_plane("another.db")
        writes = len(world.writes())
        world.deploy(LIVE_SYSTEM, *example.components)
        world.settle()
        after = {one["id"]: world.component(LIVE_SYSTEM, one["id"]) for one in example.components}
        assert {name: one["resourceId"] for name, one in after.items()} == before
        subject = after.pop(str(example.declaration["id"])) if suite.is_frozen(kind) else None
        assert {one["status"] for one in after.values()} <= {"Active", "ExternallyManaged"}
        assert len(world.writes()) == writes
        if subject is not None:
            _waits_for_somebody(stage, subject)
        world.assert_safe()


def _waits_for_somebody(stage: Stage, subject: dict[str, Any]) -> None:
    """Somebody may have taken it over, and no tag could say so: nothing is changed until it is handed back (S11b)."""
    world, example = stage.world, stage.example
    name = str(example.declaration["id"])
    assert (subject["status"], subject["stance"]) == ("ManualOverride", "override"), subject["message"]
    assert f"fractal glass {LIVE_SYSTEM} {name} --readopt" in subject["message"]
    writes = len(world.writes())
    parameter = example.editable()[0]
    [found] = example.operator.find(name)
    example.operator.edit(found.resource_id, parameter, example.changes[parameter])
    world.deploy(LIVE_SYSTEM, *example.components)
    world.cycle(3)
    assert list(world.component(LIVE_SYSTEM, name)["outputFields"]["drift"]) == [parameter]
    assert len(world.writes()) == writes, "changed though an override may have been forgotten"
    assert world.force_push(LIVE_SYSTEM, name).status_code == 202
    world.settle()
    shown = world.component(LIVE_SYSTEM, name)
    assert (shown["status"], shown["stance"]) == ("Active", "managed"), shown["message"]
    assert "drift" not in shown["outputFields"]


@pytest.mark.rule("O2")
@pytest.mark.parametrize(("provider", "kind"), _types(_first_or_frozen))
def test_of_two_that_come_at_once_one_creates_and_one_imports(
    provider: str, kind: str, session_sandbox: Sandbox, tmp_path: Path
) -> None:
    suite = suites()[provider]
    with suite.stage(session_sandbox, tmp_path, suite.kinds()[kind]) as stage:
        world, example = stage.world, stage.example
        for live_system in ("ls-a", "ls-b"):
            world.deploy(live_system, *example.components)
        world.survive()
        statuses = sorted(world.status(live_system, str(example.declaration["id"])) for live_system in ("ls-a", "ls-b"))
        assert statuses == ["Active", "ExternallyManaged"]
        assert len(example.operator.find(str(example.declaration["id"]))) == 1
        world.assert_safe()
