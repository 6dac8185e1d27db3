"""Runs every benchmark, prints one table, stores it, and says by the exit code whether all bars are kept."""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import structlog

from benchmarks import calls, control, cpu, creating, deploying, links, memory
from benchmarks.rig import Canned, canned_cloud, settled_work
from benchmarks.stock import VPC, Declared
from benchmarks.table import Row, table

RESULTS = Path(__file__).parent / "results"
COUNT = 10_000


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "boto3": boto3.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _works(canned: Canned, folder: Path) -> dict[int, Path]:
    """The work of scopes at rest, as files: children take it from there as agents take it from the wire."""
    works = {}
    for count in sorted({*memory.TRACED, 1_000, COUNT}):
        declared = Declared(VPC, count)
        canned.stock(declared.lots)
        works[count] = folder / f"{count}.json"
        works[count].write_text(settled_work(declared).model_dump_json(by_alias=True))
    return works


def _measure() -> Iterator[Row]:
    with canned_cloud() as canned, tempfile.TemporaryDirectory() as folder:
        yield from calls.measure(canned)
        yield from creating.measure()
        yield from control.measure(canned)
        works = _works(canned, Path(folder))
        canned.stock(Declared(VPC, COUNT).lots)
        yield from cpu.measure(works[COUNT], COUNT)
        yield from deploying.measure(canned)
        yield from memory.measure(canned, works)
    yield from links.measure()


def main() -> int:
    """Run all; 1 if a bar is missed."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    started, rows, machine = time.monotonic(), [], _machine()
    for row in _measure():
        rows.append(row)
        print(f"[{time.monotonic() - started:5.0f} s] {row.what.strip()}: {row.verdict}", file=sys.stderr, flush=True)
    missed = [row for row in rows if not row.is_kept]
    told = ", ".join(f"{name} {value}" for name, value in machine.items())
    print(f"\n{told}; took {time.monotonic() - started:.0f} s\n\n{table(rows)}\n")
    print(f"{len(missed)} bars missed" if missed else "all bars kept")
    RESULTS.mkdir(exist_ok=True)
    name = machine["at"].replace(":", "").replace("+0000", "Z")
    result = {"machine": machine, "rows": [row.to_json() for row in rows]}
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
