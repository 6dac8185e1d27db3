"""Whether what links made is still there, asked where nothing is known to differ (L14). Reading changes nothing.

Most of it is asked in bulk, for all links in every cycle. What a cloud returns only one by one is asked in turns,
within the budget of calls that swept parameters have too (S23).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import Executor

import structlog

from fractal_cloud.agent.link_handlers import LinkHandlers, Task
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.model.errors import CloudError, LinkError
from fractal_cloud.model.link import Half
from fractal_cloud.offers.link import Handler
from fractal_cloud.offers.secret import without_secrets

log = structlog.get_logger()


class Checks:
    """Checks of the links of one scope in one cycle.

    ``budget``: calls per half for what is asked one by one; a turn is taken once, however often the cycle asks.
    """

    def __init__(self, held: HeldScope, link_handlers: LinkHandlers, pool: Executor, budget: int) -> None:
        self._held = held
        self._link_handlers = link_handlers
        self._pool = pool
        self._budget = budget
        self._broken: dict[str, set[tuple[str, Half, str]]] = {}

    def damaged(self, settled: Iterable[Task]) -> list[Task]:
        """Of links in which nothing is known to differ, those whose thing is not there as it was made."""
        by_handler: dict[Handler, list[Task]] = defaultdict(list)
        for task in settled:
            if task.handler.verify is not None:
                by_handler[task.handler].append(task)
        found: list[Task] = []
        for handler, tasks in by_handler.items():
            gone = self._verify(handler, tasks)
            found += gone
            if handler.inspect is not None:
                known = {id(task) for task in gone}
                whole = [task for task in tasks if id(task) not in known]
                if handler.claim not in self._broken:
                    self._broken[handler.claim] = self._inspect_some(handler, whole)
                found += [task for task in whole if task.key in self._broken[handler.claim]]
        return found

    def _verify(self, handler: Handler, tasks: list[Task]) -> list[Task]:
        assert handler.verify is not None, "only handlers that can verify are asked"
        try:
            links = [self._link_handlers.link_of(task) for task in tasks]
            verify = handler.verify
            intact = {id(link) for link in self._link_handlers.check(handler, lambda: list(verify(links)))}
        except LinkError:
            return tasks  # the contract is another one than it was: the half itself says what is wrong
        except Exception as error:  # noqa: BLE001  # somebody else's code: its errors must not end the scope's cycle
            _log_failure(handler, tasks, error)  # what could not be read is not gone (S0)
            return []
        return [task for task in tasks if id(task.link) not in intact]

    def _inspect_some(self, handler: Handler, tasks: list[Task]) -> set[tuple[str, Half, str]]:
        """The broken ones of those whose turn it is; after a number of cycles, all of them had theirs."""
        turns = self._held.observed.sweep_turn
        many = max(1, self._budget // handler.inspect_calls)
        start = turns.get(handler.claim, 0) if len(tasks) > many else 0
        start %= max(len(tasks), 1)
        chosen = [*tasks[start:], *tasks[:start]][:many]
        turns[handler.claim] = start + len(chosen)
        intact = self._pool.map(lambda task: self._is_intact(handler, task), chosen)
        return {task.key for task, is_intact in zip(chosen, intact, strict=True) if not is_intact}

    def _is_intact(self, handler: Handler, task: Task) -> bool:
        assert handler.inspect is not None, "only handlers that can inspect are asked"
        try:
            inspect, link = handler.inspect, self._link_handlers.link_of(task)
            return self._link_handlers.check(handler, lambda: inspect(link))
        except Exception as error:  # noqa: BLE001  # as above
            _log_failure(handler, [task], error)
            return True


def _log_failure(handler: Handler, tasks: list[Task], error: Exception) -> None:
    seen = [secret for task in tasks if task.link is not None for secret in task.link.watch.seen]
    text = error.message if isinstance(error, CloudError) else f"an error of the handler: {error!r}"
    log.warning("links cannot be checked", handler=handler.where, error=without_secrets(text, seen))
