"""A person removes managed-by right before each call that a write is made of: no read ignores it (S16).

What an offer reads on its way to a write counts like the guard's read. Whoever broke the glass before it has won;
whoever comes later has lost a race at most, and only where the cloud knows no precondition.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from fractal_cloud.model.tags import MANAGED_BY
from fractal_cloud.offers.registry import installed
from fractal_cloud.testing.trial import HANDSHAKE, LIVE_SYSTEM, Subject, Trial
from fractal_sandbox import Sandbox
from fractal_sandbox.calls import Call
from tests.faults.worlds import FaultyWorld
from tests.offers.suites import Suite, kinds

MOST_CALLS = 40
GUARD_AND_WRITE = 2
"""So many calls a write has at least: one that reads, one that writes."""


def _every(is_quick: Callable[[Suite, str], bool]) -> pytest.MarkDecorator:
    """One test for each type; the quick run leaves those out whose lives are long."""
    params = []
    for name, (suite, _) in kinds().items():
        marks = [pytest.mark.xdist_group(f"moments {name}"), *suite.marks()]
        if suite.has_long_lives or not is_quick(suite, name):
            marks.append(pytest.mark.soak)
        params.append(pytest.param(name, id=name, marks=marks))
    return pytest.mark.parametrize("moments", params, indirect=True, scope="module")


EVERY_TYPE = _every(lambda suite, name: True)
CHOSEN_TYPES = _every(lambda suite, name: suite.is_quick(name))


class EveryMoment(Trial):
    """The trials: again and again, with the person one call later each time, until all is written undisturbed."""

    env: FaultyWorld

    def before_an_update(self) -> None:
        """An edit is to be corrected."""
        for name in self.example.editable()[:1]:
            with self._subject() as subject:
                for nth in range(1, MOST_CALLS):
                    self._edit(subject, name)
                    if not self._is_broken_before(nth, subject):
                        self.env.settle()
                        break
                    self._is_left_alone(subject)
                    self._hand_back(subject)
                assert nth > GUARD_AND_WRITE, "the hook saw no call: nobody was ever in the way"

    def before_a_hand_back(self) -> None:
        """Both tags have handed back what was edited meanwhile."""
        if self.offer.tags_frozen:
            return
        with self._subject() as subject:
            for nth in range(1, MOST_CALLS):
                self._break(subject)
                self._edit(subject, *self.example.editable()[:1])
                self.env.cycle()
                self._tag(subject, HANDSHAKE)
                is_broken = self._is_broken_before(nth, subject)
                if is_broken:
                    self._is_left_alone(subject)
                self._hand_back(subject)
                if not is_broken:
                    break
            assert nth > GUARD_AND_WRITE, "the hook saw no call: nobody was ever in the way"

    def before_a_deletion(self) -> None:
        """It is no longer declared."""
        with self._subject() as subject:
            for nth in range(1, MOST_CALLS):
                self.env.deploy(LIVE_SYSTEM, *self.example.parents)
                self._is_broken_before(nth, subject)
                self.env.settle()
                if not self.example.operator.find(subject.id):
                    break
                self._stands(subject)
                self.env.deploy(LIVE_SYSTEM, *self.example.parents, subject.declaration)
                self.env.cycle()
                self._hand_back(subject)
            assert nth >= GUARD_AND_WRITE, "the hook saw no call: nobody was ever in the way"

    def _is_broken_before(self, nth: int, subject: Subject) -> bool:
        """Let a cycle pass, and the glass be broken before the nth call in it that is made for the subject."""
        made, broken = itertools.count(1), threading.Event()

        def break_before(call: Call) -> None:
            if call.origin.component == subject.id and next(made) == nth:
                broken.set()
                if self.example.operator.find(subject.id):
                    self._break(subject)

        hook = self.env.cloud.knobs.before_call(break_before, actor="agent")
        self.env.cycle()
        self.env.cloud.knobs.remove(hook)
        self.env.assert_safe()
        return broken.is_set()

    def _is_left_alone(self, subject: Subject) -> None:
        """Unless the one call itself carried the tags, which is a lost race, and reported as one."""
        self.env.cycle()
        [found] = self.example.operator.find(subject.id)
        if MANAGED_BY in found.tags and not self.offer.tags_frozen:
            assert self.env.cloud.monitor.lost_races, "managed-by came back, and no lost race is reported"
        else:
            self._shows(subject, "ManualOverride")


@pytest.fixture(scope="module")
def moments(
    request: pytest.FixtureRequest, session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EveryMoment]:
    """The trials of one offer, in a world of its own."""
    suite, kind = kinds()[request.param]
    with suite.stage(session_sandbox, tmp_path_factory.mktemp("moments"), kind) as stage:
        yield EveryMoment(installed()[kind.type], stage.example, stage.world)


@pytest.mark.rule("S16")
@EVERY_TYPE
def test_whoever_removes_managed_by_before_any_call_of_an_update_is_respected(moments: EveryMoment) -> None:
    moments.before_an_update()


@pytest.mark.rule("S16", "S9", "S17")
@CHOSEN_TYPES
def test_whoever_removes_managed_by_before_any_call_of_a_hand_back_is_respected(moments: EveryMoment) -> None:
    moments.before_a_hand_back()


@pytest.mark.rule("S16", "O10")
@EVERY_TYPE
def test_whoever_removes_managed_by_before_any_call_of_a_deletion_is_respected(moments: EveryMoment) -> None:
    moments.before_a_deletion()
