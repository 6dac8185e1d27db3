"""Random histories on every cloud: people with the vendor's own tools, an agent that dies, a cloud with moods.

The same as `test_machine`, in the terms that every provider's suite brings: a type, and the actions of a person on it.
SAFETY in every moment; LIVENESS when people stop: all comes to rest, and every status says what the cloud shows.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from hypothesis.strategies import SearchStrategy

from fractal_cloud.agent.client import ControlPlaneUnreachable
from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE, RECONCILE_VALUE
from fractal_cloud.testing import Found, OfferExample, OperatorActions
from fractal_sandbox import Sandbox
from fractal_sandbox.calls import Call, RecordedCall
from tests.conftest import SOAK
from tests.faults.effects import Fault, Killed
from tests.machine.actions import Action, Interruption
from tests.machine.rest import assert_fits, come_to_rest, components, line
from tests.offers.suites import MakesAnew, Stage, Suite, suites
from tests.orphans import assert_nothing_is_orphaned

LIVE_SYSTEMS = ("ls-a", "ls-b")
NAMES = ("shared", "own-a", "own-b")
COMPONENTS = ("shared", "same", "own")
THEIRS = "note"
ON_RESOURCES = (
    *("edit", "edit", "edit", "untag", "untag", "hand_back", "hand_back", "hand_back"),
    *("tag_foreign", "wipe", "give_away", "ask_reconcile", "put_managed_by"),
    *("own_a", "own_b", "disown", "destroy", "make_anew"),
)
AT_THE_WRONG_MOMENT = ("untag", "untag", "give_away", "own_a", "own_b", "disown", "wipe", "destroy", "make_anew")
MOODS = ("well", "well", "well", "slow", "late", "lost", "lost", "lost and late", "denied", "throttled", "list", "get")
RUN = [
    pytest.param(suite.key, kind, id=suite.key if kind == suite.machine else kind, marks=suite.marks())
    for suite in suites().values()
    for kind in ([suite.machine] if suite.machine else []) + [kind for kind in suite.kinds() if suite.is_frozen(kind)]
]
# Different histories for different clouds: together they try more than each alone.
HISTORIES = settings(
    settings.get_profile("soak" if SOAK else "default"),
    max_examples=int(os.environ.get("FRACTAL_HISTORIES", "300" if SOAK else "4")),
    stateful_step_count=15,
    derandomize=not SOAK,
    suppress_health_check=list(HealthCheck),
)


# --- what people do


def on_resources(words: tuple[str, ...] = ON_RESOURCES) -> SearchStrategy[Action]:
    """Somebody with the vendor's tools does something to one resource."""
    return st.builds(Action, st.sampled_from(words), st.integers(0, 7))


def deployments() -> SearchStrategy[Action]:
    """A declaration of one of the two LiveSystems: both may declare the shared one, each has one of its own."""
    chosen = st.fixed_dictionaries(
        {
            "live_system": st.sampled_from(LIVE_SYSTEMS),
            "changed": st.integers(0, 3),
            "own": st.booleans(),
            "tag": st.sampled_from([False, False, True]),
            "import_only": st.sampled_from([False, False, False, True]),
            "shared": st.sampled_from(["shared", "shared", "same"]),
        }
    )
    return chosen.map(lambda body: Action("deploy", body=body))


def anything() -> SearchStrategy[Action]:
    """Two actions of three are done with the vendor's tools."""
    about = st.sampled_from([f"{ls}/{component}" for ls in LIVE_SYSTEMS for component in COMPONENTS])
    asked = st.builds(
        lambda word, what: Action(word, body={"about": what}), st.sampled_from(["force_push", "break_glass"]), about
    )
    deleted = st.sampled_from(LIVE_SYSTEMS).map(lambda ls: Action("delete", body={"live_system": ls}))
    ways = (on_resources(), on_resources(), on_resources(), on_resources(), deployments(), asked, deleted)
    return st.sampled_from(range(len(ways))).flatmap(ways.__getitem__)


def interruptions() -> SearchStrategy[list[Interruption]]:
    """What people do during a cycle: often to what the agent works on at that moment."""
    aimed = st.builds(
        Interruption,
        st.sampled_from(["look", "write"]),
        st.integers(1, 3),
        on_resources(AT_THE_WRONG_MOMENT),
        st.just(True),
    )
    anyhow = st.builds(Interruption, st.just("call"), st.integers(1, 12), anything(), st.just(False))
    ways = (aimed, aimed, anyhow)
    return st.lists(st.sampled_from(range(len(ways))).flatmap(ways.__getitem__), max_size=2)


@dataclass(frozen=True)
class Existing:
    """A resource that is there, and the example of its type."""

    example: OfferExample
    found: Found

    @property
    def operator(self) -> OperatorActions:
        return self.example.operator

    def is_one_of(self, ids: Sequence[str]) -> bool:
        """Whether it is known by one of these ids, as a call names them."""
        names = (self.found.handle, self.found.resource_id)
        return any(one in names or one.rpartition("/")[2] in names for one in ids)


class People:
    """Everybody but the agent."""

    def __init__(self, stage: Stage) -> None:
        self._world, self._example = stage.world, stage.example
        self._examples = {**dict.fromkeys(NAMES, stage.example), **stage.others}
        self._lock = threading.Lock()
        self.others = tuple(stage.others)
        self.foreign: dict[str, str] = {}
        self.stamped: set[str] = set()

    def existing(self, *names: str) -> list[Existing]:
        """Everything that is there, or what bears these names."""
        examples = {name: self._examples[name] for name in names or self._examples}
        return [Existing(example, found) for name, example in examples.items() for found in example.operator.find(name)]

    def do(self, action: Action, about: Sequence[str] = ()) -> None:
        """Do one action, to what these ids name where something is known by them; refusals are no fault."""
        with self._lock:
            if action.body:
                getattr(self, f"_{action.word}")(**action.body)
                return
            existing = self.existing()
            existing = [one for one in existing if one.is_one_of(about)] or existing
            if existing:
                self._on(action, existing[action.number % len(existing)])

    def _on(self, action: Action, one: Existing) -> None:
        try:
            getattr(self, f"_{action.word}")(one, action.number)
        except Exception as refusal:
            # Every vendor's tools refuse in their own way; what must not happen is that it is gone or busy unnoticed.
            if one.found.resource_id in {one.found.resource_id for one in self.existing()} and action.word == "untag":
                raise AssertionError(f"{action} was refused: {refusal!r}") from refusal

    # with the vendor's tools

    def _untag(self, one: Existing, _: int) -> None:
        one.operator.untag(one.found, MANAGED_BY)

    def _hand_back(self, one: Existing, _: int) -> None:
        one.operator.tag(one.found, {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE})

    def _give_away(self, one: Existing, _: int) -> None:
        one.operator.tag(one.found, {MANAGED_BY: "terraform"})

    def _ask_reconcile(self, one: Existing, _: int) -> None:
        one.operator.tag(one.found, {RECONCILE: RECONCILE_VALUE})

    def _put_managed_by(self, one: Existing, _: int) -> None:
        one.operator.tag(one.found, {MANAGED_BY: OURS})

    def _own_a(self, one: Existing, _: int) -> None:
        self._stamp(one, "ls-a")

    def _own_b(self, one: Existing, _: int) -> None:
        self._stamp(one, "ls-b")

    def _stamp(self, one: Existing, owner: str) -> None:
        self.stamped |= {one.found.resource_id, one.found.handle}
        one.operator.tag(one.found, {OWNER: owner})

    def _disown(self, one: Existing, _: int) -> None:
        one.operator.untag(one.found, OWNER)

    def _wipe(self, one: Existing, _: int) -> None:
        one.operator.untag(one.found, MANAGED_BY, OWNER, RECONCILE)

    def _tag_foreign(self, one: Existing, number: int) -> None:
        one.operator.tag(one.found, {THEIRS: f"team-{number}"})
        self.foreign[one.found.resource_id] = f"team-{number}"

    def _edit(self, one: Existing, number: int) -> None:
        names = _simple(one.example)
        if names:
            name = names[number % len(names)]
            one.operator.edit(one.found.resource_id, name, one.example.changes[name])

    def _destroy(self, one: Existing, _: int) -> None:
        one.operator.delete(one.found)
        self._forget(one.found)

    def _make_anew(self, one: Existing, _: int) -> None:
        """Where somebody can delete and create under one name, or else nothing."""
        if isinstance(one.operator, MakesAnew):
            one.operator.make_anew(one.found)
            self._forget(one.found)

    def _forget(self, found: Found) -> None:
        """Its tags went with it: what comes after it under the same id, as on Azure, never had them."""
        self.foreign.pop(found.resource_id, None)

    # through the product

    def _deploy(self, live_system: str, changed: int, own: bool, tag: bool, import_only: bool, shared: str) -> None:
        names = _simple(self._example)
        changes = {name: self._example.changes[name] for number, name in enumerate(names) if changed >> number & 1}

        def declared(component_id: str, name: str, **more: Any) -> dict[str, Any]:
            made = self._example.under_name(component_id, **more)
            named = {self._example.name_parameter: name, **self._example.own(name)}
            return {**made, "parameters": {**made["parameters"], **changes, **named}}

        parts = [*self._example.parents, declared(shared, "shared", importOnly=import_only), *self.parts_of(shared)]
        if own:
            parts.append(declared("own", f"own-{live_system[-1]}"))
        body = {"id": live_system, "readoption": "tag" if tag else "handshake", "components": parts}
        self._world.api.put(f"/livesystems/{live_system}", json=body)

    def parts_of(self, shared: str) -> list[dict[str, Any]]:
        """What is declared within the shared one, where its type has parts that histories are about too (S25)."""
        del shared
        return []

    def _delete(self, live_system: str) -> None:
        self._world.api.delete(f"/livesystems/{live_system}")

    def _force_push(self, about: str) -> None:
        live_system, component = about.split("/")
        self._world.force_push(live_system, component)

    def _break_glass(self, about: str) -> None:
        live_system, component = about.split("/")
        self._world.glass(live_system, component, "break", reason="because")

    def assert_foreign_tags_survive(self) -> None:
        """SAFETY: nobody else's tags are lost (T1)."""
        existing = self.existing()
        gone = self.foreign.keys() - {one.found.resource_id for one in existing}
        for resource_id in gone:
            del self.foreign[resource_id]
        for one in existing:
            expected = self.foreign.get(one.found.resource_id)
            assert expected is None or one.found.tags.get(THEIRS) == expected, f"{one.found} lost {THEIRS}={expected}"


def _simple(example: OfferExample) -> list[str]:
    """The parameters that can be edited to a plain value."""
    return [name for name in example.editable() if isinstance(example.changes[name], str | int | bool)]


class FrozenPeople(People):
    """People where no tag can be changed: what they do by tags elsewhere, they do through the product (G13)."""

    def _untag(self, one: Existing, _: int) -> None:
        self._ask("break", one.found)

    def _hand_back(self, one: Existing, _: int) -> None:
        self._ask("readopt", one.found)

    def _ask(self, action: str, found: Found) -> None:
        owner = found.tags[OWNER]
        for component in COMPONENTS:
            shown = self._world.find_component(owner, component)
            if shown is not None and shown["resourceId"] == found.resource_id:
                self._world.glass(owner, component, action)


# --- the histories


class Histories(RuleBasedStateMachine):
    """One history on a cloud that was reset."""

    def __init__(self, stage: Stage, suite: Suite) -> None:
        super().__init__()
        self.world, self.suite = stage.world, suite
        self.world.start_over()
        self.people = self.meet(stage)
        self.knobs = self.world.cloud.knobs

    def meet(self, stage: Stage) -> People:
        """The people of this history."""
        return People(stage)

    @initialize(deployed=st.lists(deployments(), min_size=1, max_size=3))
    def live_systems_are_deployed(self, deployed: list[Action]) -> None:
        for action in deployed:
            self.people.do(action)
        self.world.cycle()

    @rule(actions=st.lists(anything(), min_size=1, max_size=3), during=interruptions())
    def people_act_and_a_cycle_passes(self, actions: list[Action], during: list[Interruption]) -> None:
        for action in actions:
            self.people.do(action)
        self.a_cycle_passes(during)

    @rule(during=interruptions())
    def a_cycle_passes(self, during: list[Interruption]) -> None:
        self._interrupt(during)
        with suppress(ControlPlaneUnreachable):  # a new agent whose first read is refused has no cloud: it comes again
            self.world.cycle()

    @rule(during=interruptions(), effect=st.none() | st.integers(0, 3))
    def the_agent_dies(self, during: list[Interruption], effect: int | None) -> None:
        """In its sleep, or right after one of its effects in a cycle; whoever follows knows nothing."""
        if effect is not None:
            self.world.effects.arm(effect, Fault.KILLED_AFTER)
            with suppress(Killed):
                self.a_cycle_passes(during)
            self.world.effects.arm()
        self.world.restart_agent()

    def _interrupt(self, during: list[Interruption]) -> None:
        self.knobs._before_hooks.clear()
        counts: Counter[str] = Counter()

        def act(call: Call) -> None:
            kinds = {"call", "write" if call.is_write else "look" if call.resource_ids else "call"}
            counts.update(kinds)
            for one in during:
                if one.before in kinds and counts[one.before] == one.nth:
                    self.people.do(one.action, call.resource_ids if one.aimed else ())

        if during:
            self.knobs.before_call(act, actor="agent")

    @rule(mood=st.sampled_from(MOODS), nth=st.integers(1, 3))
    def the_cloud_has_a_mood(self, mood: str, nth: int) -> None:
        refused: Mapping[str, Any] = {**self.suite.refusals["denied"], "actor": "agent"}
        match mood:
            case "well":
                self.knobs.reset()
            case "slow":
                self.knobs.slow_creation(reads=2)
            case "late":
                self.knobs.late_visibility(reads=1)
            case "lost":
                self.knobs.fail(when="after", cut=True, nth=nth, actor="agent", writes_only=True)
            case "lost and late":
                self.knobs.late_visibility(reads=1)
                self.knobs.fail(when="after", cut=True, nth=nth, actor="agent", operation=self.suite.creates)
            case "denied":
                self.knobs.fail(nth=nth, writes_only=True, **refused)
            case "throttled":
                self.knobs.throttle(next_calls=1, actor="agent", writes_only=True)
            case "list":
                self.knobs.fail(nth=nth, operation=self.suite.lists, **refused)
            case _:
                self.knobs.fail(nth=nth, operation=self.suite.gets, **refused)

    @invariant()
    def nothing_forbidden_was_done(self) -> None:
        self.world.assert_safe()
        self.people.assert_foreign_tags_survive()

    def teardown(self) -> None:
        """All rests at the end, and every status says what the cloud shows (S1 to S12)."""
        self.knobs.reset()
        come_to_rest(self.world)
        self.nothing_forbidden_was_done()
        assert_nothing_is_orphaned(self.world, self.people.stamped)
        for component in components(self.world):
            component_id = component["componentId"]
            if component["deleting"] or component_id not in (*COMPONENTS, *self.people.others):
                continue
            name = {"same": "shared", "own": f"own-{component['liveSystemId'][-1]}"}.get(component_id, component_id)
            found = [one.found for one in self.people.existing(name)]
            if len(found) == 1:
                assert_fits(component, found[0].resource_id, found[0].tags)
            elif not found:
                allowed = ("Missing", "ManualOverride", "Failed", "Instantiating")
                assert component["status"] in allowed, f"absent, yet {line(component)}"


class FrozenHistories(Histories):
    """Where tags are frozen, the cloud's judge sees no override: what was remembered before a cycle is held to it."""

    def meet(self, stage: Stage) -> People:
        return FrozenPeople(stage)

    @rule(during=interruptions())
    def a_cycle_passes(self, during: list[Interruption]) -> None:
        held = {(c["liveSystemId"], c["componentId"]) for c in components(self.world) if _is_in_override(c)}
        since = len(self.world.cloud.calls)
        super().a_cycle_passes(during)
        if any(one.action.word in ("force_push", "hand_back", "deploy") for one in during):
            return
        writes = [call for call in self.world.cloud.calls.all()[since:] if call.actor == "agent" and call.is_write]
        made = {_about(call) for call in writes if call.operation.startswith("create")}
        broken = [call for call in writes if call.effect and _about(call) in held - made]
        assert not broken, f"written to although an override was remembered: {broken}"


def _is_in_override(component: Mapping[str, Any]) -> bool:
    """Whether an override is remembered, and nobody has asked for anything else since."""
    override = component["override"] or {}
    return component["stance"] == "override" and not component["request"] and not override.get("readoptedBy")


def _about(call: RecordedCall) -> tuple[str | None, str | None]:
    return call.origin.live_system, call.origin.component


@pytest.mark.hypothesis
@pytest.mark.timeout(600)
@pytest.mark.rule(
    "S7", "S9", "S11", "S12", "S15", "S16", "S17", "S20", "G1", "G7", "G10", "O1", "O2", "O3", "T1", "T3", "T4"
)
@pytest.mark.parametrize(("provider", "kind"), RUN)
def test_whatever_people_do_nothing_forbidden_is_written_and_all_comes_to_rest(
    provider: str, kind: str, session_sandbox: Sandbox, tmp_path: Path
) -> None:
    suite = suites()[provider]
    machine = FrozenHistories if suite.is_frozen(kind) else Histories
    with suite.stage(session_sandbox, tmp_path, suite.kinds()[kind]) as stage:
        run_state_machine_as_test(lambda: machine(stage, suite), settings=HISTORIES)  # type: ignore[arg-type]
