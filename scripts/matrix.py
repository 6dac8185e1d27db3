"""Writes the matrix of docs/providers.md from what a run of the tests proved.

FRACTAL_PROOFS=proofs.json make test
.venv/bin/python scripts/matrix.py proofs.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fractal_cloud.offers.registry import installed
from scripts.rules import read_rules

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- the matrix: scripts/matrix.py writes it -->", "<!-- the end of the matrix -->"
LETTERS: Final = "TSGO"
Counts = Mapping[str, Mapping[str, int]]


def table(proven: Counts) -> str:
    """Every rule that says what happens to a resource against every provider: how many tests passed."""
    registry = installed()
    names = [name for name in registry.providers() if name in proven]
    titles = [registry.provider(name).title for name in names]
    rules, _ = read_rules((DOCS / "protocol.md").read_text(encoding="utf-8"))
    lines = [f"| rule | {' | '.join(titles)} |", f"|---{'|---' * len(names)}|"]
    for rule in rules:
        counts = [proven[name].get(rule, 0) for name in names]
        if rule[0] in LETTERS and any(counts):
            lines.append(f"| {rule} | {' | '.join(str(count or '–') for count in counts)} |")
    return "\n".join(lines)


def command_lines(found: Counts) -> str:
    """The vendors' own command lines with which the glass was broken."""
    rows = []
    for name, clis in sorted(found.items()):
        cells = [f"{cli.replace('_', ' ')} ({count})" for cli, count in clis.items()]
        rows.append(f"| {name} | {', '.join(cells)} |")
    return "\n".join(["| provider | command line (tests) |", "|---|---|", *rows])


def main() -> int:
    """Put the tables into the page."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    run = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    page = DOCS / "providers.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    body = "\n\n".join([BEGIN, table(run["rules"]), command_lines(run["commandLines"]), END])
    page.write_text(before + body + after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
