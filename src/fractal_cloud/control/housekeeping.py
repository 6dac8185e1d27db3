"""Keeps house from time to time, beside the requests; what is due is the store's business."""

from __future__ import annotations

import asyncio
import time

import structlog
from starlette.concurrency import run_in_threadpool

from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store
from fractal_cloud.control.store.database import DatabaseError
from fractal_cloud.control.store.failures import DatabaseUnavailable
from fractal_cloud.control.store.housekeeping import keep_house

log = structlog.get_logger()


def interval(cycle_seconds: float) -> float:
    """Often enough that what two cycles promise is kept, and never busy."""
    return min(max(cycle_seconds / 4, 0.2), 10.0)


async def keep_house_forever(store: Store, settings: ControlSettings) -> None:
    """Keep house until cancelled; a database that is away for a while is tried again."""
    # After a start, agents first get the time in which they would have been heard. Later, too, they are judged only so
    # often that two cycles are kept: it reads all components.
    judged_next = time.monotonic() + 1.5 * settings.cycle_seconds
    while True:
        await asyncio.sleep(interval(settings.cycle_seconds))
        is_time = time.monotonic() >= judged_next
        if is_time:
            judged_next = time.monotonic() + 0.2 * settings.cycle_seconds
        try:
            await run_in_threadpool(
                keep_house,
                store.database,
                settings.cycle_seconds,
                judge_agents=is_time,
                keep=settings.keep,
                session_endings=settings.session_endings,
            )
        except (DatabaseError, DatabaseUnavailable) as error:
            log.warning("housekeeping failed", error=str(error))
