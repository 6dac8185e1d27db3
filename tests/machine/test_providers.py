"""Random histories on every cloud: people with the vendor's own tools, an agent that dies, a cloud with moods.

The same as `test_machine`, told in the words that every provider's suite brings: a type, and a person's hands on it.
SAFETY in every moment; LIVENESS when people stop: all comes to rest, and every status says what the cloud shows.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from hypothesis.strategies import SearchStrategy

from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE, RECONCILE_VALUE
from fractal_cloud.sandbox import Sandbox
from fractal_cloud.sandbox.calls import Call
from fractal_cloud.testing import Found
from tests.conftest import SOAK
from tests.machine.deeds import Deed, Interruption
from tests.machine.rest import assert_fits, come_to_rest, components, line
from tests.offers.suites import Stage, Suite, suites

LIVE_SYSTEMS = ("ls-a", "ls-b")
NAMES = ("shared", "own-a", "own-b")
THEIRS = "note"
ON_RESOURCES = (
    *("edit", "edit", "edit", "untag", "untag", "hand_back", "hand_back", "hand_back"),
    *("tag_foreign", "wipe", "give_away", "ask_reconcile", "put_managed_by"),
    *("own_a", "own_b", "disown", "destroy"),
)
AT_THE_WRONG_MOMENT = ("untag", "untag", "give_away", "own_a", "own_b", "disown", "wipe", "destroy")
MOODS = ("well", "well", "well", "slow", "late", "lost", "lost", "lost and late", "denied", "throttled", "list", "get")
RUN = [suite for suite in suites().values() if suite.machine]
# Different histories for different clouds: together they try more than each alone.
HISTORIES = settings(
    settings.get_profile("soak" if SOAK else "default"),
    max_examples=int(os.environ.get("FRACTAL_HISTORIES", "300" if SOAK else "4")),
    stateful_step_count=15,
    derandomize=not SOAK,
    suppress_health_check=list(HealthCheck),
)


# --- what people do


def on_resources(words: tuple[str, ...] = ON_RESOURCES) -> SearchStrategy[Deed]:
    """Somebody with the vendor's tools does something to one resource."""
    return st.builds(Deed, st.sampled_from(words), st.integers(0, 7))


def deployments() -> SearchStrategy[Deed]:
    """A declaration of one of the two LiveSystems: both may declare the shared one, each has one of its own."""
    return st.builds(
        lambda live_system, changed, own, tag, import_only: Deed(
            "deploy",
            body={"live_system": live_system, "changed": changed, "own": own, "tag": tag, "import_only": import_only},
        ),
        st.sampled_from(LIVE_SYSTEMS),
        st.integers(0, 3),
        st.booleans(),
        st.sampled_from([False, False, True]),
        st.sampled_from([False, False, False, True]),
    )


def anything() -> SearchStrategy[Deed]:
    """Two deeds of three are done with the vendor's tools."""
    about = st.sampled_from([f"{ls}/{component}" for ls in LIVE_SYSTEMS for component in ("shared", "own")])
    asked = st.builds(
        lambda word, what: Deed(word, body={"about": what}), st.sampled_from(["force_push", "break_glass"]), about
    )
    deleted = st.sampled_from(LIVE_SYSTEMS).map(lambda ls: Deed("delete", body={"live_system": ls}))
    ways = (on_resources(), on_resources(), on_resources(), on_resources(), deployments(), asked, deleted)
    return st.sampled_from(range(len(ways))).flatmap(ways.__getitem__)


def interruptions() -> SearchStrategy[list[Interruption]]:
    """What people do during a cycle: often right before the agent writes."""
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


class People:
    """Everybody but the agent."""

    def __init__(self, stage: Stage) -> None:
        self._world, self._example = stage.world, stage.example
        self._hands = stage.example.hands
        self._lock = threading.Lock()
        self.foreign: dict[str, str] = {}

    def standing(self) -> list[Found]:
        return [found for name in NAMES for found in self._hands.find(name)]

    def do(self, deed: Deed) -> None:
        """Do one deed; refusals are no fault."""
        with self._lock:
            if deed.body:
                getattr(self, f"_{deed.word}")(**deed.body)
                return
            standing = self.standing()
            if standing:
                self._on(deed, standing[deed.number % len(standing)])

    def _on(self, deed: Deed, found: Found) -> None:
        try:
            getattr(self, f"_{deed.word}")(found, deed.number)
        except Exception as refusal:
            # Every vendor's tools refuse in their own way; what must not happen is that it is gone or busy unnoticed.
            if found.resource_id in {one.resource_id for one in self.standing()} and deed.word == "untag":
                raise AssertionError(f"{deed} was refused: {refusal!r}") from refusal

    # with the vendor's tools

    def _untag(self, found: Found, _: int) -> None:
        self._hands.untag(found, MANAGED_BY)

    def _hand_back(self, found: Found, _: int) -> None:
        self._hands.tag(found, {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE})

    def _give_away(self, found: Found, _: int) -> None:
        self._hands.tag(found, {MANAGED_BY: "terraform"})

    def _ask_reconcile(self, found: Found, _: int) -> None:
        self._hands.tag(found, {RECONCILE: RECONCILE_VALUE})

    def _put_managed_by(self, found: Found, _: int) -> None:
        self._hands.tag(found, {MANAGED_BY: OURS})

    def _own_a(self, found: Found, _: int) -> None:
        self._hands.tag(found, {OWNER: "ls-a"})

    def _own_b(self, found: Found, _: int) -> None:
        self._hands.tag(found, {OWNER: "ls-b"})

    def _disown(self, found: Found, _: int) -> None:
        self._hands.untag(found, OWNER)

    def _wipe(self, found: Found, _: int) -> None:
        self._hands.untag(found, MANAGED_BY, OWNER, RECONCILE)

    def _tag_foreign(self, found: Found, number: int) -> None:
        self._hands.tag(found, {THEIRS: f"team-{number}"})
        self.foreign[found.resource_id] = f"team-{number}"

    def _edit(self, found: Found, number: int) -> None:
        names = [name for name in self._example.editable() if isinstance(self._example.changes[name], str | int | bool)]
        if names:
            name = names[number % len(names)]
            self._hands.edit(found.resource_id, name, self._example.changes[name])

    def _destroy(self, found: Found, _: int) -> None:
        self._hands.delete(found)

    # through the product

    def _deploy(self, live_system: str, changed: int, own: bool, tag: bool, import_only: bool) -> None:
        names = [name for name in self._example.editable() if isinstance(self._example.changes[name], str | int | bool)]
        changes = {name: self._example.changes[name] for number, name in enumerate(names) if changed >> number & 1}

        def declared(component_id: str, name: str, **more: Any) -> dict[str, Any]:
            made = self._example.under_name(component_id, **more)
            return {**made, "parameters": {**made["parameters"], **changes, "name": name}}

        parts = [*self._example.parents, declared("shared", "shared", importOnly=import_only)]
        if own:
            parts.append(declared("own", f"own-{live_system[-1]}"))
        body = {"id": live_system, "readoption": "tag" if tag else "handshake", "components": parts}
        self._world.api.put(f"/livesystems/{live_system}", json=body)

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
        for found in self.standing():
            expected = self.foreign.get(found.resource_id)
            assert expected is None or found.tags.get(THEIRS) == expected, f"{found} lost {THEIRS}={expected}"


# --- the histories


class Histories(RuleBasedStateMachine):
    """One history on a cloud that was reset."""

    def __init__(self, stage: Stage, suite: Suite) -> None:
        super().__init__()
        self.world, self.suite = stage.world, suite
        self.world.start_over()
        self.people = People(stage)
        self.knobs = self.world.cloud.knobs

    @initialize(deployed=st.lists(deployments(), min_size=1, max_size=3))
    def live_systems_are_deployed(self, deployed: list[Deed]) -> None:
        for deed in deployed:
            self.people.do(deed)
        self.world.cycle()

    @rule(deeds=st.lists(anything(), min_size=1, max_size=3), during=interruptions())
    def people_act_and_a_cycle_passes(self, deeds: list[Deed], during: list[Interruption]) -> None:
        for deed in deeds:
            self.people.do(deed)
        self.a_cycle_passes(during)

    @rule(during=interruptions())
    def a_cycle_passes(self, during: list[Interruption]) -> None:
        self._interrupt(during)
        self.world.cycle()

    @rule()
    def the_agent_dies(self) -> None:
        """In its sleep; whoever follows knows nothing. (Its death at every effect is tried by the crash suite.)"""
        self.world.restart_agent()

    def _interrupt(self, during: list[Interruption]) -> None:
        self.knobs._before_hooks.clear()
        counts: Counter[str] = Counter()

        def act(call: Call) -> None:
            kinds = {"call", "write" if call.is_write else "look" if call.resource_ids else "call"}
            counts.update(kinds)
            for one in during:
                if one.before in kinds and counts[one.before] == one.nth:
                    self.people.do(one.deed)

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
        for component in components(self.world):
            if component["deleting"] or component["componentId"] not in ("shared", "own"):
                continue
            name = "shared" if component["componentId"] == "shared" else f"own-{component['liveSystemId'][-1]}"
            found = self.people._hands.find(name)
            if len(found) == 1:
                assert_fits(component, found[0].resource_id, found[0].tags)
            elif not found:
                allowed = ("Missing", "ManualOverride", "Failed", "Instantiating")
                assert component["status"] in allowed, f"absent, yet {line(component)}"


@pytest.mark.hypothesis
@pytest.mark.timeout(600)
@pytest.mark.rule("S7", "S9", "S11", "S12", "S15", "S16", "S20", "G1", "G7", "G10", "O1", "O3", "T1", "T3", "T4")
@pytest.mark.parametrize("provider", [pytest.param(s.key, marks=s.marks()) for s in RUN])
def test_whatever_people_do_nothing_forbidden_is_written_and_all_comes_to_rest(
    provider: str, session_sandbox: Sandbox, tmp_path: Path
) -> None:
    suite = suites()[provider]
    with suite.stage(session_sandbox, tmp_path, suite.kinds()[suite.machine]) as stage:
        run_state_machine_as_test(lambda: Histories(stage, suite), settings=HISTORIES)  # type: ignore[arg-type]
