"""Runs every benchmark, prints one table, stores it, and says by the exit code whether all bars are kept.

``python -m benchmarks`` runs all jobs; ``python -m benchmarks NAME …`` only those; ``--list`` says which there are.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import structlog

from benchmarks.jobs import Job, Stage, all_jobs
from benchmarks.result import Result
from benchmarks.table import table

RESULTS = Path(__file__).parent / "results"


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


def _run(job: Job, stage: Stage, started: float) -> list[Result]:
    results = []
    for result in job.run(stage):
        results.append(result)
        verdict = "" if not result.bars else "kept" if result.is_kept else "MISSED"
        told = f"{job.name}: {result.subject}, {result.count:,} {verdict}".rstrip()
        print(f"[{time.monotonic() - started:5.0f} s] {told}", file=sys.stderr, flush=True)
    return results


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; 1 if a bar is missed."""
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
            found = _run(job, stage, started)
            stored = {
                "job": job.name,
                "title": job.title,
                "machine": machine,
                "seconds": round(time.monotonic() - begun, 1),
                "results": [result.to_json() for result in found],
            }
            (RESULTS / f"{job.name}.json").write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n")
            results.extend(found)
    missed = [bar for result in results for bar in result.bars if not bar.is_kept]
    told = ", ".join(f"{name} {value}" for name, value in machine.items())
    print(f"\n{told}; took {time.monotonic() - started:.0f} s\n\n{table(results)}\n")
    print(f"{len(missed)} bars missed" if missed else "all bars kept")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
