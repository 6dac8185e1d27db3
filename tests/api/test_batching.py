"""Work that comes at the same time goes together, and nobody suffers from whom it goes with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fractal_cloud.control.api import batching
from fractal_cloud.control.api.batching import Batcher, RunIndividually


@dataclass
class Worker:
    """Answers a word with itself; the first time it is asked, it waits until it may go on."""

    done: list[list[str]] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)
    may_go_on: threading.Event = field(default_factory=threading.Event)
    failure: Callable[[Sequence[str]], Exception | None] = lambda words: None

    def __call__(self, words: Sequence[str]) -> list[str | Exception]:
        is_first = not self.done
        self.done.append(list(words))
        if is_first:
            self.begun.set()
            assert self.may_go_on.wait(10)
        error = self.failure(words)
        if error is not None:
            raise error
        return [ValueError(word) if word.startswith("refuse") else word for word in words]


def _batcher(worker: Worker) -> Batcher[str, str]:
    return Batcher(worker, lambda word: {word.partition(":")[2] or word})


def _run(worker: Worker, play: Callable[[Batcher[str, str]], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(play(_batcher(worker)), 30))


async def _behind(worker: Worker, batcher: Batcher[str, str], *words: str) -> list[str | BaseException]:
    """Let a first word be under way, have others come, and let it end; what became of all."""
    first = asyncio.create_task(batcher.run("first"))
    await asyncio.to_thread(worker.begun.wait, 10)
    others = [asyncio.create_task(batcher.run(word)) for word in words]
    await asyncio.sleep(0)
    worker.may_go_on.set()
    return await asyncio.gather(first, *others, return_exceptions=True)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "PATIENCE", 10.0)


def test_what_waits_is_the_next_batch() -> None:
    worker = Worker()

    async def play(batcher: Batcher[str, str]) -> None:
        assert await _behind(worker, batcher, "a", "b", "c") == ["first", "a", "b", "c"]

    _run(worker, play)
    assert worker.done == [["first"], ["a", "b", "c"]]


def test_what_is_about_the_same_goes_one_after_the_other_and_in_its_order() -> None:
    worker = Worker()

    async def play(batcher: Batcher[str, str]) -> None:
        await _behind(worker, batcher, "1:x", "2:x", "a", "3:x")

    _run(worker, play)
    assert worker.done == [["first"], ["1:x", "a"], ["2:x"], ["3:x"]]


def test_a_batch_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MOST_SUBJECTS", 2)
    worker = Worker()

    async def play(batcher: Batcher[str, str]) -> None:
        await _behind(worker, batcher, "a", "b", "c")

    _run(worker, play)
    assert worker.done == [["first"], ["a", "b"], ["c"]]


def test_one_that_is_refused_keeps_nobody_back() -> None:
    worker = Worker()

    async def play(batcher: Batcher[str, str]) -> None:
        first, a, refused, b = await _behind(worker, batcher, "a", "refuse", "b")
        assert (first, a, b) == ("first", "a", "b")
        assert isinstance(refused, ValueError)

    _run(worker, play)


def test_what_fails_as_a_batch_runs_alone_and_only_the_guilty_fails() -> None:
    def failure(words: Sequence[str]) -> Exception | None:
        if "bad" not in words:
            return None
        return RunIndividually() if len(words) > 1 else KeyError("bad")

    worker = Worker(failure=failure)

    async def play(batcher: Batcher[str, str]) -> None:
        _, a, bad, b = await _behind(worker, batcher, "a", "bad", "b")
        assert (a, b) == ("a", "b")
        assert isinstance(bad, KeyError)

    _run(worker, play)
    assert sorted(worker.done[2:]) == [["a"], ["b"], ["bad"]]


def test_what_may_have_been_done_is_not_done_again() -> None:
    worker = Worker(failure=lambda words: OSError("cut") if len(words) > 1 else None)

    async def play(batcher: Batcher[str, str]) -> None:
        _, *others = await _behind(worker, batcher, "a", "b")
        assert [type(other) for other in others] == [OSError, OSError]

    _run(worker, play)
    assert worker.done == [["first"], ["a", "b"]]


def test_what_is_held_up_keeps_nobody_else_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "PATIENCE", 0.05)
    worker = Worker()

    async def play(batcher: Batcher[str, str]) -> None:
        first = asyncio.create_task(batcher.run("first"))
        await asyncio.to_thread(worker.begun.wait, 10)
        assert await batcher.run("a") == "a"
        assert not first.done()
        worker.may_go_on.set()
        assert await first == "first"
        assert await batcher.run("b") == "b"

    _run(worker, play)


def test_somebody_who_goes_away_cancels_nothing() -> None:
    worker = Worker()

    async def play(batcher: Batcher[str, str]) -> None:
        first = asyncio.create_task(batcher.run("first"))
        await asyncio.to_thread(worker.begun.wait, 10)
        gone = asyncio.create_task(batcher.run("gone"))
        stays = asyncio.create_task(batcher.run("stays"))
        await asyncio.sleep(0)
        gone.cancel()
        worker.may_go_on.set()
        assert (await first, await stays) == ("first", "stays")

    _run(worker, play)
    assert worker.done == [["first"], ["gone", "stays"]]
