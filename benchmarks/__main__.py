"""Runs every benchmark, prints one table, stores it, and says by the exit code whether all bars are kept.

``python -m benchmarks`` runs all jobs; ``python -m benchmarks NAME …`` only those; ``--list`` says which there are.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import boto3
import structlog

from benchmarks import report
from benchmarks.jobs import Job, Stage, all_jobs
from benchmarks.result import Bar, Result
from benchmarks.table import table

RESULTS: Final = report.RESULTS
LONGEST_JOB: Final = 720.0
LONGEST_RUN: Final = 1740.0
"""Seconds after which a job, and all of them together, are given up: what is left then is reported as not run."""


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "boto3": boto3.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _chosen(jobs: list[Job], names: Sequence[str]) -> list[Job]:
    unknown = sorted(set(names) - {job.name for job in jobs})
    if unknown:
        raise SystemExit(f"no such job: {', '.join(unknown)}; `python -m benchmarks --list` says which there are")
    return [job for job in jobs if job.name in names or not names]


class Overdue(Exception):
    """A job that takes longer than it may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``Overdue`` in the block once the time is over, whatever it waits for."""

    def give_up(*_: object) -> None:
        raise Overdue(f"given up after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(job: Job, stage: Stage, started: float) -> list[Result]:
    """What a job shows. One that fails or hangs is reported as a missed bar, and the others begin on an empty stage."""
    results = []
    try:
        with limited(min(LONGEST_JOB, started + LONGEST_RUN - time.monotonic())):
            for result in job.run(stage):
                results.append(result)
                _print_result(result, started)
    except Exception as error:  # noqa: BLE001  # whatever it is: the other jobs are run, and the exit code says it
        traceback.print_exc()
        stage.clear()
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        results.append(Result(job.name, "the job itself", 0, bars=(Bar("run to its end", 0, 1, exact=True),), note=why))
        _print_result(results[-1], started)
    return results


def _print_result(result: Result, started: float) -> None:
    verdict = "" if not result.bars else "kept" if result.is_kept else "MISSED"
    line = f"{result.job}: {result.subject}, {result.count:,} {verdict}".rstrip()
    print(f"[{time.monotonic() - started:5.0f} s] {line}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; 1 if a bar is missed or a job did not come to its end."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    jobs = all_jobs()
    if "--list" in arguments:
        print("\n".join(f"{job.name:12} {job.title}" for job in jobs))
        return 0
    started, machine, results = time.monotonic(), _machine(), list[Result]()
    RESULTS.mkdir(exist_ok=True)
    with Stage() as stage:
        for job in _chosen(jobs, arguments):
            begun = time.monotonic()
            found = run(job, stage, started)
            stored = {
                "job": job.name,
                "title": job.title,
                "machine": machine,
                "seconds": round(time.monotonic() - begun, 1),
                "results": [result.to_json() for result in found],
            }
            (RESULTS / f"{job.name}.json").write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n")
            results.extend(found)
    report.write([job.name for job in jobs])
    missed = [bar for result in results for bar in result.bars if not bar.is_kept]
    described = ", ".join(f"{name} {value}" for name, value in machine.items())
    print(f"\n{described}; took {time.monotonic() - started:.0f} s\n\n{table(results)}\n")
    print(f"{len(missed)} bars missed" if missed else "all bars kept")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
