"""Calls that never return are given up by the clock that the watchdog is given, and never called beside themselves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any

import pytest

from fractal_cloud.agent.watchdog import Beat, DaemonPool, NoReturn, StillOut, Watchdog

LIMIT = 120.0
NOTHING: dict[str, str] = {}
LONG = 60  # of real seconds, for what happens at once on any machine that is not broken


class Clock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """A watchdog, and calls to it from threads of their own."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.watchdog = Watchdog(LIMIT, self.clock)
        self.released = threading.Event()
        self.begun = threading.Event()

    def hang(self, key: str = "type", **more: Any) -> Future[str]:
        """A call that returns only when it is released."""

        def run(beat: Beat) -> str:
            del beat
            self.begun.set()
            assert self.released.wait(LONG)
            return "late"

        return self.ask(key, run, **more)

    def ask(self, key: str, run: Any, **more: Any) -> Future[str]:
        asked: Future[str] = Future()

        def go() -> None:
            try:
                asked.set_result(self.watchdog.call(key, run, **more))
            except BaseException as error:  # noqa: BLE001  # the test checks it
                asked.set_exception(error)

        threading.Thread(target=go, daemon=True).start()
        return asked

    def pass_by(self, seconds: float) -> None:
        self.clock.now += seconds
        self.watchdog.recheck()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.released.set()
    made.watchdog.close()


@pytest.mark.rule("S24")
def test_a_call_that_returns_is_as_if_it_had_been_made_here(scene: Scene) -> None:
    purpose: ContextVar[str] = ContextVar("purpose", default="none")
    purpose.set("this one")
    assert scene.watchdog.call("type", lambda _: purpose.get()) == "this one"
    with pytest.raises(KeyError, match="what it raised"):
        scene.watchdog.call("type", lambda _: NOTHING["what it raised"])


@pytest.mark.rule("S24")
def test_a_call_is_given_up_when_its_time_is_over_and_not_before(scene: Scene) -> None:
    asked = scene.hang()
    assert scene.begun.wait(LONG)
    scene.pass_by(LIMIT - 1)
    assert not scene.watchdog.is_out("type")
    assert not asked.done()
    scene.pass_by(1)
    with pytest.raises(NoReturn, match="120 s"):
        asked.result(LONG)


@pytest.mark.rule("S24")
def test_what_is_out_is_not_called_again_until_it_returns_and_others_are(scene: Scene) -> None:
    late: list[str] = []
    returned = threading.Event()

    def note(result: str) -> None:
        late.append(result)
        returned.set()

    asked = scene.hang(late=note)
    assert scene.begun.wait(LONG)
    scene.pass_by(LIMIT)
    with pytest.raises(NoReturn):
        asked.result(LONG)
    called: list[str] = []
    with pytest.raises(StillOut):
        scene.watchdog.call("type", lambda _: called.append("type"))
    scene.watchdog.call("other type", lambda _: called.append("other type"))
    assert called == ["other type"]
    scene.released.set()
    assert returned.wait(LONG)
    scene.watchdog.call("type", lambda _: called.append("type"))
    assert (called, late) == (["other type", "type"], ["late"])


@pytest.mark.rule("S24")
def test_a_list_of_many_pages_has_the_whole_time_for_each_of_them(scene: Scene) -> None:
    pages = [threading.Semaphore(0) for _ in range(5)]
    read = [threading.Event() for _ in pages]

    def run(beat: Beat) -> str:
        for page, is_read in zip(pages, read, strict=True):
            assert page.acquire(timeout=LONG)
            beat()
            is_read.set()
        return "all pages"

    asked = scene.ask("type", run)
    for page, is_read in zip(pages, read, strict=True):
        scene.pass_by(LIMIT - 1)
        page.release()
        assert is_read.wait(LONG)
    assert asked.result(LONG) == "all pages"


@pytest.mark.rule("S24")
def test_whoever_is_about_to_end_waits_for_a_shorter_time(scene: Scene) -> None:
    asked = scene.hang()
    assert scene.begun.wait(LONG)
    scene.pass_by(5)
    scene.watchdog.hurry(5)
    with pytest.raises(NoReturn, match="5 s"):
        asked.result(LONG)


@pytest.mark.rule("S24")
def test_a_call_may_have_a_shorter_limit_of_its_own_and_no_longer_one(scene: Scene) -> None:
    short, long = scene.hang("short", seconds=2), scene.hang("long", seconds=10 * LIMIT)
    assert scene.begun.wait(LONG)
    scene.pass_by(2)
    with pytest.raises(NoReturn, match="2 s"):
        short.result(LONG)
    scene.pass_by(LIMIT - 2)
    with pytest.raises(NoReturn, match="120 s"):
        long.result(LONG)


def test_a_pool_runs_as_many_at_once_as_it_has_threads_and_raises_what_they_raise() -> None:
    crew = DaemonPool(3, "crew")
    barrier = threading.Barrier(3)
    assert sorted(crew.map(lambda one: (barrier.wait(LONG), one)[1], range(3))) == [0, 1, 2]
    with pytest.raises(KeyError):
        crew.submit(lambda: NOTHING["absent"]).result(LONG)
    assert list(crew.map(str, range(50))) == [str(one) for one in range(50)]
    crew.shutdown()
    with pytest.raises(RuntimeError, match="let go"):
        crew.submit(str)


def test_a_crew_that_is_shut_down_cancels_what_has_not_begun() -> None:
    crew = DaemonPool(1, "crew")
    begun, released = threading.Event(), threading.Event()

    def hang() -> bool:
        begun.set()
        return released.wait(LONG)

    first = crew.submit(hang)
    assert begun.wait(LONG)
    second = crew.submit(str)
    crew.shutdown(wait=False, cancel_futures=True)
    released.set()
    assert first.result(LONG)
    assert second.cancelled()


def test_a_crew_can_be_shut_down_again_and_again() -> None:
    for _ in range(200):
        crew = DaemonPool(4, "crew")
        list(crew.map(str, range(8)))
        crew.shutdown(wait=False, cancel_futures=True)
        crew.shutdown(wait=True, cancel_futures=True)


HANGS = """
import threading
from fractal_cloud.agent.watchdog import DaemonPool, Watchdog
begun = [threading.Event(), threading.Event()]
pool, watchdog = DaemonPool(2, "pool"), Watchdog(600)
pool.submit(lambda: (begun[0].set(), threading.Event().wait()))
pool.submit(lambda: watchdog.call("type", lambda beat: (begun[1].set(), threading.Event().wait())))
for one in begun:
    one.wait()
"""


@pytest.mark.rule("S24")
def test_a_thread_that_hangs_keeps_no_program_alive() -> None:
    ended = subprocess.run([sys.executable, "-c", HANGS], timeout=LONG, check=False)
    assert ended.returncode == 0
