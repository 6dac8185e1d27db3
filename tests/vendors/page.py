"""Writes the table of docs/providers.md from the figures of a run: ``scripts/vendors run`` calls it at its end."""

from __future__ import annotations

import json
from pathlib import Path

from fractal_cloud.offers.registry import installed
from tests.vendors.clouds import CLOUDS, RECORDINGS
from tests.vendors.deviations import DEVIATIONS

PAGE = Path(__file__).parents[2] / "docs/providers.md"
BEGIN, END = "<!-- the vendors' contracts: make test-vendors writes it -->", "<!-- the end of the contracts -->"
COLUMNS = ("requests", "answers", "generated resources", "examples")


def table() -> str:
    """Every cloud with what of it was held against its vendor's contract."""
    lines = [f"| cloud | {' | '.join(COLUMNS)} | known deviations |", "|---" * (len(COLUMNS) + 2) + "|"]
    for cloud in CLOUDS:
        known = sum(one.cloud == cloud for one in DEVIATIONS)
        figures = [_figure(cloud, column) for column in COLUMNS]
        lines.append(f"| {installed().provider(cloud).title} | {' | '.join(figures)} | {known or '–'} |")
    return "\n".join(lines)


def _figure(cloud: str, column: str) -> str:
    found = [json.loads(path.read_text()) for path in (RECORDINGS / "figures").glob(f"{cloud}.{column}*.json")]
    return f"{sum(found):,}" if found else "–"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text("\n\n".join([before + BEGIN, table(), END]) + rest.partition(END)[2], encoding="utf-8")
