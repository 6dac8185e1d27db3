"""Bars as SVG: a few subjects side by side on a logarithmic scale, readable in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Final

WIDTH: Final = 900
LABEL: Final = 330
RIGHT: Final = 110
HEIGHT: Final = 26
TOP: Final = 48


@dataclass(frozen=True, slots=True)
class Mark:
    """One bar; ours differ by their colour."""

    label: str
    value: float
    is_ours: bool = False


def bars(title: str, unit: str, marks: Sequence[Mark]) -> str:
    """A chart of positive values, each with its number."""
    shown = [mark for mark in marks if mark.value > 0]
    low = floor(log10(min(mark.value for mark in shown)))
    high = max(ceil(log10(max(mark.value for mark in shown))), low + 1)
    space = WIDTH - LABEL - RIGHT
    bottom = TOP + HEIGHT * len(shown)

    def place(value: float) -> float:
        return LABEL + space * (log10(value) - low) / (high - low)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 34}" font-size="13">',
        "<style>text { font-family: system-ui, sans-serif }</style>",
        f'<rect width="{WIDTH}" height="{bottom + 34}" fill="#ffffff"/>',
        f'<text x="12" y="26" font-size="16" font-weight="600" fill="#1f2328">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        x = place(10.0**power)
        lines.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="#d0d7de"/>')
        lines.append(
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#59636e">{_tick(power)} {unit}</text>'
        )
    for number, mark in enumerate(shown):
        y = TOP + HEIGHT * number
        width = max(place(mark.value) - LABEL, 2)
        colour = "#1a7f64" if mark.is_ours else "#8c959f"
        lines += [
            f'<text x="{LABEL - 10}" y="{y + 17}" text-anchor="end" fill="#1f2328">{escape(mark.label)}</text>',
            f'<rect x="{LABEL}" y="{y + 4}" width="{width:.1f}" height="{HEIGHT - 8}" fill="{colour}"/>',
            f'<text x="{LABEL + width + 6:.1f}" y="{y + 17}" fill="#1f2328">{mark.value:,.3g} {unit}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def _tick(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
