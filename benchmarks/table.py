"""How results are printed: one table, a line for each result, and one more for every further bar it is held to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.result import Bar, Result

_HEAD = ("job", "subject", "N", "figures", "bar", "measured", "held against", "ratio", "allowed", "", "")
_TO_THE_RIGHT = frozenset({2, 5, 6, 7, 8})


def number(value: float, unit: str = "") -> str:
    """A number with as many digits as say something."""
    if float(value).is_integer() or abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:,.1f}" if abs(value) >= 100 else f"{value:,.3f}" if abs(value) >= 0.01 else f"{value:.2g}"
    return f"{text} {unit}".strip()


def figure(name: str, value: float) -> str:
    """A figure with its name, which ends in its unit: ``CPU s`` 0.2 is «CPU 0.200 s»."""
    what, _, unit = name.rpartition(" ")
    return f"{what} {number(value, unit)}" if what and len(unit) <= 2 else f"{name} {number(value)}"


def _bar(bar: Bar) -> tuple[str, ...]:
    ratio = "–" if bar.ratio is None else f"{bar.ratio:.2f}" if bar.ratio >= 0.1 else f"{bar.ratio:.2g}"
    measured, reference = number(bar.measured, bar.unit), number(bar.reference, bar.unit)
    return (bar.what, measured, reference, ratio, bar.allowed, bar.verdict)


def _lines(result: Result) -> Iterator[tuple[str, ...]]:
    figures = ", ".join(figure(name, value) for name, value in result.figures.items()) or "–"
    head = (result.job, result.subject, f"{result.count:,}", figures)
    first, *others = [_bar(bar) for bar in result.bars] or [("", "", "", "", "", "")]
    yield (*head, *first, result.note)
    for bar in others:
        yield ("", "", "", "", *bar, "")


def table(results: Iterable[Result]) -> str:
    """All results, aligned; numbers to the right."""
    lines: Sequence[tuple[str, ...]] = [_HEAD, *(line for result in results for line in _lines(result))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    rule = ["-" * width for width in widths]

    def aligned(cells: Sequence[str]) -> str:
        shown = (
            cell.rjust(width) if index in _TO_THE_RIGHT else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(shown).rstrip()

    return "\n".join([aligned(lines[0]), aligned(rule).replace(" ", "-"), *map(aligned, lines[1:])])
