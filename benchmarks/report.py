"""Writes the results into docs/benchmarks.md, as tables, and as plots beside it: ``python -m benchmarks.report``.

Everything comes from the JSON of the last run; between its two marks, nothing of the page is written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.plot import Mark, bars
from benchmarks.table import number

RESULTS: Final = Path(__file__).parent / "results"
DOCS: Final = Path(__file__).parent.parent / "docs"
BEGIN: Final = "<!-- written by `python -m benchmarks.report` -->"
END: Final = "<!-- end of what is written -->"

Stored = Mapping[str, Any]


def stored(names: Iterable[str]) -> list[Stored]:
    """The last results of these jobs, of those that were run."""
    files = [RESULTS / f"{name}.json" for name in names]
    return [json.loads(file.read_text()) for file in files if file.exists()]


def section(job: Stored) -> Iterator[str]:
    """One job as a heading and a table."""
    columns: list[str] = []
    for result in job["results"]:
        columns += [name for name in result["figures"] if name not in columns]
    machine = job["machine"]
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", "boto3", "system", "cores", "load", "at"))
    yield f"### {job['title'][0].upper()}{job['title'][1:]}\n\n`{job['job']}`, {job['seconds']:.0f} s; {versions}.\n"
    yield f"| subject | N | {' | '.join([*columns, 'bars', 'note'])} |"
    yield f"|---|---:|{'---:|' * len(columns)}---|---|"
    for result in job["results"]:
        figures = [number(result["figures"][name]) if name in result["figures"] else "" for name in columns]
        cells = [result["subject"], f"{result['count']:,}", *figures, _rows(result["bars"]), result["note"]]
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
    yield ""


def _rows(found: Iterable[Stored]) -> str:
    return "; ".join(_one(bar) for bar in found)


def _one(bar: Stored) -> str:
    ratio = "" if bar["ratio"] is None else f": {bar['ratio']:.3g}"
    verdict = {"ok": "kept", "MISSED": "**missed**", "info": "reported"}[bar["verdict"]]
    allowed = f" ({bar['allowed']})" if bar["allowed"] else ""
    return f"{bar['what']}{ratio}{allowed} {verdict}"


def plots(jobs: Mapping[str, Stored]) -> Iterator[tuple[str, str, str]]:
    """The plots there are: name, what it shows, and the SVG."""
    if "check" in jobs:
        found = [r for r in jobs["check"]["results"] if r["figures"].get("CPU s")]
        marks = [_mark(r, r["figures"]["CPU s"] / r["count"] * 1e6) for r in found]
        title = "CPU per resource to check that nothing is to do (less is better, logarithmic)"
        yield "check-cpu", title, bars(title, "µs", sorted(marks, key=lambda mark: mark.value))
    for name, title in (
        ("deploying", "Wall time per resource to create many at 50 ms a call (less is better, logarithmic)"),
        ("agents", "Wall time per component of a round over 100,000 (less is better, logarithmic)"),
    ):
        found = [r for r in jobs.get(name, {"results": []})["results"] if r["figures"].get("wall s")]
        if found:
            marks = [_mark(r, r["figures"]["wall s"] / r["count"] * 1e6) for r in found]
            yield name, title, bars(title, "µs", sorted(marks, key=lambda mark: mark.value))


def _mark(result: Stored, value: float) -> Mark:
    return Mark(f"{result['subject']}, {result['count']:,}", value, "agent" in result["subject"])


def write(names: list[str]) -> None:
    """Write the tables and the plots of these jobs, in their order."""
    jobs = {str(job["job"]): job for job in stored(names)}
    folder = DOCS / "benchmarks"
    folder.mkdir(exist_ok=True)
    lines: list[str] = []
    for name, title, drawing in plots(jobs):
        (folder / f"{name}.svg").write_text(drawing)
        lines.append(f"![{title}](benchmarks/{name}.svg)\n")
    lines += [line for job in jobs.values() for line in section(job)]
    page = DOCS / "benchmarks.md"
    head, begin, rest = page.read_text().partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert all((begin, end)), f"{page} has lost the marks between which results are written"
    page.write_text(f"{head}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{tail}")


if __name__ == "__main__":
    from benchmarks.jobs import all_jobs

    write([job.name for job in all_jobs()])
