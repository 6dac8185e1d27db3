"""Sends a request that waits for an agent's answer, such as a plan, and runs cycles of the agent until it has it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")


def answered_by_agent(ask: Callable[[], T], cycle: Callable[[], object]) -> T:
    """Return what ``ask`` returns, or raise what it raises; ``cycle`` is called again and again until then."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        while not asked.done():
            cycle()
            wait([asked], timeout=0.02)
    return asked.result()
