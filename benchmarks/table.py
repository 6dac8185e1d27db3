"""What a measurement says, and how all of them are printed: one table of ratios."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One measured value beside what it is held against. ``most`` None: printed as information, no bar.

    ``exact``: the ratio must be one, neither more nor less. A reference of nothing allows nothing.
    """

    bar: str
    what: str
    measured: float
    reference: float
    unit: str = ""
    most: float | None = 1.0
    exact: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Measured by reference, where that can be said."""
        return self.measured / self.reference if self.reference else None

    @property
    def is_kept(self) -> bool:
        """Whether the bar is kept; information always is."""
        if self.most is None:
            return True
        if self.exact or self.ratio is None:
            return self.measured == self.reference
        return self.ratio <= self.most

    @property
    def allowed(self) -> str:
        """The bar in one word."""
        if self.most is None:
            return ""
        return "= 1" if self.exact and self.reference else "= 0" if self.ratio is None else f"≤ {self.most:g}"

    @property
    def verdict(self) -> str:
        """What the last column says."""
        if self.most is None:
            return "info"
        return "ok" if self.is_kept else "MISSED"

    def to_json(self) -> dict[str, Any]:
        """The row as it is stored."""
        return {**asdict(self), "ratio": self.ratio, "kept": self.is_kept}


_HEAD = ("bar", "what", "measured", "held against", "ratio", "allowed", "", "")


def _number(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{text} {unit}".strip()


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.bar,
        row.what,
        _number(row.measured, row.unit),
        _number(row.reference, row.unit),
        "–" if row.ratio is None else f"{row.ratio:.2f}",
        row.allowed,
        row.verdict,
        row.note,
    )


def table(rows: Iterable[Row]) -> str:
    """All rows, aligned; numbers to the right."""
    lines: Sequence[tuple[str, ...]] = [_HEAD, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    rule = ["-" * width for width in widths]
    to_the_right = {2, 3, 4, 5}

    def line(cells: Sequence[str]) -> str:
        shown = (
            cell.rjust(width) if index in to_the_right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(shown).rstrip()

    return "\n".join([line(lines[0]), line(rule).replace(" ", "-"), *map(line, lines[1:])])
