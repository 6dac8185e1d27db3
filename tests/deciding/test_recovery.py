"""What follows for a component whose memory comes from a restored backup (C9): pure, and time is an argument."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.identity import Identity, Scope
from fractal_cloud.model.observed import Intent, Observed, Override
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tags import OURS, ProtocolTags
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import OperatorRequest, RequestKind
from fractal_cloud.rules.drift import ComparedType
from fractal_cloud.rules.judge import Circumstances, Judgement, Verb, judge
from fractal_cloud.rules.remember import observed_after
from fractal_cloud.rules.situate import ABSENT, Claims, TypeTraits, View

NOW = datetime(2026, 11, 18, 3, 0, tzinfo=UTC)
CYCLE = timedelta(seconds=180)
IDENTITY = Identity("T", Scope("test", "acct", "here"), "net")
FACTS = TypeFacts(
    type="T",
    provider="test",
    title="T",
    place=["region"],
    parameter_schema={"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}},
)


def _tracked(memory: Observed, **more: Any) -> Tracked:
    values: dict[str, Any] = {
        "uid": "u1",
        "live_system_id": "ls-a",
        "component_id": "net",
        "type": "T",
        "parameters": {"size": 2},
        "dependencies": (),
        "ignore_drift": frozenset(),
        "import_only": False,
        "readoption_by_tag": False,
        "deployed_at": NOW - timedelta(days=1),
        "generation": 1,
        "identity": IDENTITY,
        "declared_identity": IDENTITY,
        "deleting": False,
        "request": None,
        "memory": memory,
    }
    return Tracked(**{**values, **more})


def _context(**more: Any) -> Circumstances:
    values: dict[str, Any] = {
        "compared": ComparedType(FACTS),
        "traits": TypeTraits(),
        "claims": Claims({"ls-a"}, "ls-a"),
        "now": NOW,
        "cycle": CYCLE,
        "declared": {"size": 2},
    }
    return Circumstances(**{**values, **more})


def _seen(size: int = 1, **tags: Any) -> View:
    protocol = ProtocolTags(**{"managed_by": OURS, "owner": "ls-a", **tags})
    sighting = Sighting(type="T", resource_id="id-1", name="net", protocol=protocol, actual={"size": size})
    return View(sighting=sighting)


OF_BACKUP = Observed(stance=Stance.MANAGED, status=Status.ACTIVE, resource_id="id-1", restored=True, established=True)
REQUESTS = [
    None,
    OperatorRequest(id="r", kind=RequestKind.FORCE_PUSH, by="ann", at=NOW, generation=1),
    OperatorRequest(id="r", kind=RequestKind.BREAK, by="ann", at=NOW, generation=1),
]


@pytest.mark.rule("C9")
@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize("stance", list(Stance))
@pytest.mark.parametrize("view", [ABSENT, _seen(), _seen(managed_by=None), _seen(reconcile=True), _seen(owner=None)])
def test_nothing_is_written_and_nothing_ends_while_a_live_system_is_in_recovery(
    view: View, stance: Stance, deleting: bool, request_: OperatorRequest | None
) -> None:
    memory = replace(OF_BACKUP, stance=stance, intent=Intent(id="i", at=NOW, restored=True, tagging="begun"))
    tracked = _tracked(memory, in_recovery=True, deleting=deleting, request=request_)
    found = judge(tracked, view, _context())
    assert (found.rule, found.status, found.step, found.finished, found.stance) == ("C9", None, None, False, stance)
    assert found.answer is None, "a request is neither carried out nor used up"
    assert found.stuck
    assert "restored from a backup" in found.message
    assert "fractal restored confirm ls-a" in found.message
    after = observed_after(tracked, view, found)
    assert (after.stance, after.status, after.restored, after.stuck) == (stance, Status.ACTIVE, True, True)
    assert after.noticed_since is None


def _life(tracked: Tracked, view: View, now: datetime, context: Circumstances) -> Judgement:
    """One cycle at a time: judge, and remember it."""
    found = judge(tracked, view, replace(context, now=now))
    memory = observed_after(tracked, view, found)
    if memory.noticed_since is not None and tracked.memory.noticed_since is None:
        memory = replace(memory, noticed_since=now)
    tracked.memory = memory
    return found


@pytest.mark.rule("C9", "S12a")
def test_once_confirmed_a_change_is_shown_for_one_settled_cycle_before_it_is_written() -> None:
    tracked = _tracked(OF_BACKUP)
    first = _life(tracked, _seen(), NOW, _context())
    assert (first.rule, first.step, first.noticing) == ("S12a", None, True)
    soon = _life(tracked, _seen(), NOW + CYCLE / 2, _context())
    assert (soon.rule, soon.step) == ("S12a", None)
    later = _life(tracked, _seen(), NOW + CYCLE, _context())
    assert later.rule == "S12"
    assert later.step is not None
    assert later.step.verb is Verb.UPDATE
    assert not tracked.memory.restored
    again = _life(tracked, _seen(3), NOW + 2 * CYCLE, _context())
    assert again.step is not None, "from then on it is managed as ever"


@pytest.mark.rule("C9", "S12a", "O10")
@pytest.mark.parametrize("intent", [None, Intent(id="i", at=NOW, restored=True)])
def test_once_confirmed_a_deletion_is_shown_for_one_settled_cycle_before_it_is_made(intent: Intent | None) -> None:
    tracked = _tracked(replace(OF_BACKUP, intent=intent), deleting=True)
    first = _life(tracked, _seen(), NOW, _context())
    assert (first.rule, first.step, first.finished) == ("S12a", None, False)


@pytest.mark.rule("C9", "S4a", "S17")
def test_an_open_intent_of_a_backup_is_no_reason_to_create_what_holds_data() -> None:
    context = _context(traits=TypeTraits(holds_data=True))
    intent = Intent(id="i", at=NOW - timedelta(days=1))
    memory = replace(OF_BACKUP, intent=intent.model_copy(update={"restored": True}))
    tracked = _tracked(memory)
    found = _life(tracked, ABSENT, NOW, context)
    assert (found.rule, found.step, found.status) == ("S4a", None, Status.MISSING)
    assert tracked.memory.intent is not None, "it still recognises what it made"
    assert tracked.memory.absent_since is not None, "so that a deploy after this creates it"
    of_today = _tracked(replace(OF_BACKUP, restored=False, intent=intent))
    assert judge(of_today, ABSENT, context).step is not None, "one of this incarnation goes on"


@pytest.mark.rule("C9", "S17", "T3")
def test_tags_that_a_backup_owed_are_not_put_on() -> None:
    memory = replace(OF_BACKUP, intent=Intent(id="i", at=NOW, tagging="begun", restored=True))
    bare = _seen(managed_by=None, owner=None)
    found = judge(_tracked(memory), bare, _context(is_own_creation=True))
    assert (found.rule, found.step, found.stance) == ("S7", None, Stance.OVERRIDE)


@pytest.mark.rule("C9")
def test_what_has_frozen_tags_waits_in_override_once_it_is_confirmed() -> None:
    context = _context(traits=TypeTraits(tags_frozen=True))
    found = judge(_tracked(OF_BACKUP), _seen(), context)
    assert (found.status, found.step, found.stance) == (Status.MANUAL_OVERRIDE, None, Stance.OVERRIDE)
    handed = Override(since=NOW, readopted_by="ann")
    of_today = replace(OF_BACKUP, restored=False, stance=Stance.OVERRIDE, override=handed)
    assert judge(_tracked(of_today), _seen(), context).rule == "S9", "asked for since, it is handed back"
