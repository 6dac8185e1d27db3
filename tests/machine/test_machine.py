"""Two LiveSystems, one agent that dies at random, a cloud with moods, and people who do what they like, whenever.

SAFETY is asked after every step: no write was forbidden at the agent's last read, nothing exists twice because of the
agent, nobody else's tags are lost. LIVENESS is asked at the end: see `rest`. The statuses then must be true.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fractal_cloud.agent.client import ControlPlane, ControlPlaneRefuses, ControlPlaneUnreachable, LeaseLost
from fractal_cloud.model.wire import Report, Reported
from fractal_sandbox import Sandbox
from fractal_sandbox.calls import Call
from tests import aws_rights, postgres
from tests.agent_answers import answered_by_agent
from tests.conftest import SOAK
from tests.machine.actions import Action, Interruption, anything, deployments, interruptions
from tests.machine.hanging import CALL_SECONDS, HANGS, Hanging
from tests.machine.people import People
from tests.machine.rest import assert_truth, come_to_rest
from tests.orphans import assert_nothing_is_orphaned
from tests.world import Person, World
from tests.world import world as make_world

HIDDEN_READS = 1
"""In how many looks a creation may stay invisible: the visibility window is at least two (S17)."""


class Dying(ControlPlane):
    """The way to the control plane of an agent that dies: from the nth report on, nothing is heard of it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.__dict__ = plane.__dict__
        self.reports_left: int | None = None

    def report(self, report: Report) -> Reported:
        """Publish, as long as it lives."""
        if self.reports_left is not None:
            if self.reports_left == 0:
                raise ControlPlaneUnreachable("the agent is dead: nothing of it is heard")
            self.reports_left -= 1
        return super().report(report)


DENIED = "UnauthorizedOperation"
REFUSALS: dict[str, dict[str, Any]] = {
    "lost": {"when": "after", "cut": True, "writes_only": True},
    "denied": {"code": DENIED, "status": 403, "writes_only": True},
    "quota": {"code": "VpcLimitExceeded", "status": 400, "operation": "Create*"},
}
MOODS = (
    *(
        "well",
        "well",
        "well",
        "slow",
        "late",
        "lost",
        "lost and late",
        "lost and late",
        "denied",
        "throttled",
        "enforcing",
        "quota",
        "no answer of AWS",
        "nothing at all",
    ),
    *("DescribeVpcs", "DescribeSubnets", "DescribeSecurityGroups", "DescribeVpcAttribute"),
)

actions = st.lists(anything(), min_size=1, max_size=3)


class Histories(RuleBasedStateMachine):
    """One history. ``world`` is set by the factory of each example."""

    def __init__(self, made: World) -> None:
        super().__init__()
        self.world = made
        self.people = People(made)
        self.has_backup = self.was_restored = False
        self.sandbox = made.sandbox
        self.sandbox.aws.lift_limits()  # the guard alone; a mood of the cloud sets them
        self.knobs = made.sandbox.aws.knobs
        self.hanging = Hanging(self.knobs)
        self._new_agent()

    def _new_agent(self) -> None:
        # The connections are kept: they know nothing of the protocol, and making them anew is slow.
        sessions = self.world.agent._reachable.sessions
        self.world.restart_agent()
        self.world.agent.close()
        self._start_agent(sessions)

    def _start_agent(self, sessions: dict[str, Any]) -> None:
        self.world.start_agent(Dying)
        self.world.agent._reachable.sessions.update(sessions)
        self.hanging.watch(self.world.agent)

    @property
    def _plane(self) -> Dying:
        plane = self.world.agent._control
        assert isinstance(plane, Dying)
        return plane

    # --- the start

    @initialize(deployed=st.lists(deployments(), min_size=1, max_size=3), dice=st.integers(0, 999))
    def live_systems_are_deployed(self, deployed: list[Action], dice: int) -> None:
        self.world.dice.seed(dice)
        for action in deployed:
            self.people.do(action)
        self.world.cycle()

    # --- what people do, between cycles and during them

    @rule(actions=actions)
    def people_act(self, actions: list[Action]) -> None:
        for action in actions:
            self.people.do(action)

    @rule(actions=actions, during=interruptions())
    def people_act_and_a_cycle_passes(self, actions: list[Action], during: list[Interruption]) -> None:
        self.people_act(actions)
        self.a_cycle_passes(during)

    @rule(during=interruptions())
    def a_cycle_passes(self, during: list[Interruption]) -> None:
        self._interrupt(during)
        self.world.cycle()
        self.hanging.carry_out_late()

    @rule(how=st.sampled_from(sorted(HANGS)), nth=st.integers(1, 2), deployed=deployments(), during=interruptions())
    def a_call_hangs_and_is_given_up(self, how: str, nth: int, deployed: Action, during: list[Interruption]) -> None:
        """It hangs on while people and agents do what they like, until the cloud is well again (S24)."""
        self.hanging.begin(how, nth)
        self.people_act_and_a_cycle_passes([deployed], during)

    @rule(during=interruptions(), reports=st.none() | st.integers(0, 3))
    def the_agent_dies(self, during: list[Interruption], reports: int | None) -> None:
        """In its sleep, or in a cycle after so many reports."""
        if reports is not None:
            self._plane.reports_left = reports
            self.a_cycle_passes(during)
        self._new_agent()

    @rule(during=interruptions())
    def another_agent_claims_all_and_the_first_comes_back(self, during: list[Interruption]) -> None:
        """The first one was away and does not know that its scopes are somebody else's (S16)."""
        first = self.world.agent
        self.world.release(first)
        self._start_agent(first._reachable.sessions)
        self.a_cycle_passes(during)
        with suppress(ControlPlaneUnreachable, ControlPlaneRefuses, LeaseLost):
            first.run_once()
        self.hanging.carry_out_late()
        first.close()

    @precondition(lambda self: not self.world.shared)  # this world copies files
    @rule()
    def a_backup_is_made(self) -> None:
        self.world.backup()
        self.has_backup = True

    @precondition(lambda self: self.has_backup)
    @rule()
    def the_backup_is_restored(self) -> None:
        """What it remembers is confirmed by people, or deployed again; nothing is written before (C9)."""
        sessions = self.world.agent._reachable.sessions
        self.world.restore()
        self.world.agent._reachable.sessions.update(sessions)
        assert self.world.api.post("/recovery").status_code == 202
        with suppress(LeaseLost), pytest.raises(ControlPlaneRefuses, match="confirm-tokens"):
            self.world.cycle()
        self.world.confirm_tokens()
        since = len(self.world.cloud.calls)
        self.was_restored = True
        self._cycle_of_a_new_agent()
        written = [c for c in self.world.cloud.calls.all()[since:] if c.is_write and c.actor == "agent"]
        assert not written, f"a restored backup was believed: {written}"
        for live_system in self.world.api.get("/livesystems?include=components").json()["items"]:
            self._confirm(live_system)

    def _confirm(self, live_system: dict[str, Any]) -> None:
        """Deploy it again as it stands, or say that its deletion is meant after having been shown what that does."""
        path = f"/livesystems/{live_system['id']}"
        names = ("id", "environment", "readoption", "components")
        if self.world.api.put(path, json={name: live_system[name] for name in names}).status_code == 202:
            return
        shown = answered_by_agent(
            lambda: self.world.api.post(f"/recovery{path}/plan", params={"timeout": 30}), self._cycle_of_a_new_agent
        ).json()
        answer = self.world.api.post(f"/recovery{path}/confirm", json={"fingerprint": shown["fingerprint"]})
        assert answer.status_code == 204, f"{answer.text}: {shown}"

    def _cycle_of_a_new_agent(self) -> None:
        """Run the agent as its own loop does: it registers anew where it is refused."""
        with suppress(ControlPlaneRefuses, LeaseLost):
            self.world.cycle()
            return
        self.world.agent._registered = False
        self.world.cycle()

    def _interrupt(self, during: list[Interruption]) -> None:
        """Do actions right before calls of the agent in the coming cycle: it has listed, and has not written yet."""
        self._forget_interruptions()
        counts: Counter[str] = Counter()

        def act(call: Call) -> None:
            kinds = {"call", "write" if call.is_write else "look" if call.resource_ids else "call"}
            counts.update(kinds)
            for one in during:
                if one.before not in kinds or counts[one.before] != one.nth:
                    continue
                if not one.aimed:
                    self.people.do(one.action)
                elif call.resource_ids:
                    self.people.do_to(one.action, call.resource_ids[0])

        if during:
            self.knobs.before_call(act, actor="agent")

    def _forget_interruptions(self) -> None:
        self.knobs._before_hooks.clear()

    # --- the moods of the cloud

    @rule(mood=st.sampled_from(MOODS), nth=st.integers(1, 3))
    def the_cloud_has_a_mood(self, mood: str, nth: int) -> None:
        match mood:
            case "well":
                self.hanging.release()
            case "slow":
                self.knobs.slow_creation(reads=2)
            case "late":
                self.knobs.late_visibility(reads=HIDDEN_READS)
            case "lost and late":
                self.knobs.late_visibility(reads=HIDDEN_READS)
                self.knobs.fail(when="after", cut=True, nth=nth, actor="agent", operation="Create*")
            case "throttled":
                self.knobs.throttle(next_calls=1, actor="agent", writes_only=True)
            case "enforcing":
                aws_rights.limit(self.sandbox)
            case "no answer of AWS":
                page = "<html><body>Please log in</body></html>"
                self.knobs.answer(page, content_type="text/html", operation="Describe*", actor="agent", times=1)
            case "nothing at all":
                self.knobs.answer("", content_type="text/xml", operation="Describe*", actor="agent", times=1)
            case _ if mood in REFUSALS:
                self.knobs.fail(nth=nth, actor="agent", **REFUSALS[mood])
            case operation:
                self.knobs.fail(code=DENIED, status=403, nth=nth, actor="agent", operation=operation)

    # --- what must hold

    @invariant()
    def nothing_forbidden_was_done(self) -> None:
        self.world.assert_safe()
        self.people.assert_nothing_exists_twice()
        self.people.assert_foreign_tags_survive()

    def teardown(self) -> None:
        """All rests at the end; then the world is closed."""
        try:
            self.hanging.release()
            self.people.do(Action("vacate"))
            come_to_rest(self.world)
            self.nothing_forbidden_was_done()
            assert_truth(self.world)
            if not self.was_restored:  # what a backup does not know was not deleted by anybody
                assert_nothing_is_orphaned(self.world, self.people.reowned)
        finally:
            self.world.close()


HISTORIES = settings(
    settings.get_profile("soak" if SOAK else "default"),
    max_examples=int(os.environ.get("FRACTAL_HISTORIES", "5000" if SOAK else "12")),
    stateful_step_count=25,
    derandomize=not SOAK,
    suppress_health_check=list(HealthCheck),
)


Worlds = Callable[..., World]


@pytest.fixture
def new_world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worlds]:
    """Makes one world after the other on one sandbox; the sessions of the first serve all."""
    numbers = count()
    person = Person(session_sandbox.url)
    sessions: dict[str, Any] = {}
    with ExitStack() as stack:

        def new(**more: Any) -> World:
            stack.pop_all()  # a history closes its world by itself
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            settings = {"concurrency": 1, "call_seconds": CALL_SECONDS, **more}
            made = stack.enter_context(make_world(session_sandbox, folder, monkeypatch, **settings))
            made.person = person
            made.agent._reachable.sessions = sessions
            return made

        yield new
        stack.pop_all()


@pytest.fixture
def shared_database() -> Iterator[Callable[[], str]]:
    """Makes one empty PostgreSQL database after the other, dropping the one before."""
    with postgres.server() as server, ExitStack() as stack:

        def new() -> str:
            stack.close()
            return stack.enter_context(postgres.database(server))

        yield new


@pytest.mark.hypothesis
@pytest.mark.timeout(6 * 3_600 if SOAK else 600)
@pytest.mark.rule("S15", "S16", "S17", "S20", "S24", "T1", "T3", "T4", "O2", "O3")
def test_whatever_people_do_nothing_forbidden_happens_and_all_comes_to_rest(new_world: Worlds) -> None:
    run_state_machine_as_test(lambda: Histories(new_world()), settings=HISTORIES)  # type: ignore[arg-type]


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL server: install Debian's postgresql")
@pytest.mark.timeout(6 * 3_600)
@pytest.mark.rule("S15", "S16", "S17", "S20", "S24", "T1", "T3", "T4", "O2", "O3")
def test_the_same_holds_with_two_control_planes_on_one_database(
    new_world: Worlds, shared_database: Callable[[], str]
) -> None:
    """Deploys, deletions and each request of the agents go through either, whichever the dice say."""
    run_state_machine_as_test(
        lambda: Histories(new_world(shared=shared_database())),  # type: ignore[arg-type]
        settings=HISTORIES,
    )
