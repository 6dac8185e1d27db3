"""Link handlers are not called for what is held, whenever that comes to be (C9, S16)."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from fractal_cloud.agent.link_handlers import Done, LinkHandlers, Task
from fractal_cloud.agent.reading import Snapshot
from fractal_cloud.model.link import LinkSettings, LinkState, LinkWork
from fractal_cloud.offers.link import OutboundHandler, OutboundLink, Published
from fractal_cloud.offers.secret import SealingKey
from tests.direct.shelf import KIND, ShelfScope, component, item
from tests.direct.things import MINE


class Scene:
    """One half of a link of a component that is managed, over a shelf on which it stands."""

    def __init__(self, verb: Literal["provide", "revoke"], *, silent: bool = False, revokes: bool = True) -> None:
        self.called: list[str] = []
        self.scope = ShelfScope()
        self.tracked = component()
        self.scope.add(self.tracked)
        seen = item(MINE)
        self.scope.shelf.items[seen.resource_id] = seen
        self.scope.evaluator.snapshot = Snapshot(sightings={KIND: {seen.resource_id: seen}})
        handler = OutboundHandler(self._provide, KIND, "Test.Db", "db", LinkSettings)
        if revokes:
            handler.revokes(self._revoke)
        state = LinkState(link_type="db", other_type="Test.Db", other_provider="aws", begun=True)
        work = LinkWork(other="db", type="Test.Db", provider="aws") if verb == "provide" else None
        self.task = Task(self.tracked, "outbound", "db", handler, state, verb, work, silent=silent)
        self.may_write = True

    def _provide(self, link: OutboundLink[Any]) -> Published | None:
        del link
        self.called.append("provide")
        return {"user": "web"}

    def _revoke(self, link: OutboundLink[Any]) -> None:
        del link
        self.called.append("revoke")

    def carry_out(self) -> Done:
        scope = self.scope
        offers, sealing = {KIND: scope.facts}, SealingKey(b"\0" * 32)
        link_handlers = LinkHandlers(
            scope.held, scope.evaluator, offers, sealing, lambda: self.may_write, scope.watchdog
        )
        return link_handlers.carry_out(self.task)

    def hold(self) -> None:
        """The control plane says that its LiveSystem is in recovery."""
        self.tracked.in_recovery = True


TASKS: list[tuple[Literal["provide", "revoke"], dict[str, bool]]] = [
    ("provide", {}),
    ("provide", {"silent": True, "revokes": False}),
    ("revoke", {}),
]


@pytest.mark.rule("L17")
@pytest.mark.parametrize(("verb", "how"), TASKS)
def test_a_half_of_what_is_ours_is_run(verb: Literal["provide", "revoke"], how: dict[str, bool]) -> None:
    scene = Scene(verb, **how)
    done = scene.carry_out()
    assert scene.called == [verb]
    assert (done.abandoned, done.problem, done.error) == (False, "", None)


@pytest.mark.rule("C9")
@pytest.mark.parametrize(("verb", "how"), TASKS)
def test_a_half_of_what_is_held_after_it_was_planned_is_not_run(
    verb: Literal["provide", "revoke"], how: dict[str, bool]
) -> None:
    scene = Scene(verb, **how)
    scene.hold()
    done = scene.carry_out()
    assert scene.called == []
    assert (done.abandoned, done.published, done.problem) == (True, None, "")


@pytest.mark.rule("C9", "S16")
@pytest.mark.parametrize("verb", ["provide", "revoke"])
def test_a_half_of_what_is_held_while_the_guard_reads_is_not_run(verb: Literal["provide", "revoke"]) -> None:
    scene = Scene(verb)
    scene.scope.shelf.before["read"] = scene.hold
    assert scene.carry_out().abandoned
    assert scene.scope.shelf.calls == [("read", "id-1", frozenset())], "the guard has read"
    assert scene.called == []


@pytest.mark.rule("S16")
@pytest.mark.parametrize(("verb", "how"), TASKS)
def test_without_the_right_to_write_no_half_is_run(verb: Literal["provide", "revoke"], how: dict[str, bool]) -> None:
    scene = Scene(verb, **how)
    scene.may_write = False
    assert scene.carry_out().abandoned
    assert scene.called == []
