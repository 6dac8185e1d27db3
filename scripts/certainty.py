"""Writes the table «How sure are we» at the end of every provider's page. `--check` only compares.

What it says comes from `fractal_cloud.verifying.assumptions`, the one table of what we assume of the clouds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fractal_cloud.verifying.assumptions import ASSUMPTIONS, EXPLAINED, Assumption
from fractal_cloud.verifying.examples import PROVIDERS

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "docs" / "providers"
BEGIN: Final = "<!-- how sure we are: `make docs` writes it from fractal_cloud.verifying.assumptions -->"
HEADING: Final = "## How sure are we"
INTRODUCTION: Final = """\
What the offers assume of this cloud, and where we know it from. What has no date was not tried on a real account yet:
[`fractal verify`](../verifying.md) does it on yours for all that it names here."""
WITHOUT_EXAMPLES: Final = """\
What the offers assume of this cloud, and where we know it from. What has no date was not tried on a real account yet;
[`fractal verify`](../verifying.md) has no examples for this cloud so far."""


def section(provider: str) -> str:
    """The end of a provider's page."""
    own = [one for one in ASSUMPTIONS if provider in one.sources]
    lines = ["| assumption | source | tried by `fractal verify` | verified on a real account |", "|---|---|---|---|"]
    lines += [_row(one, provider) for one in own]
    used = [source for source in EXPLAINED if any(source in one.sources[provider] for one in own)]
    sources = "; ".join(f"*{source}*: {EXPLAINED[source]}" for source in used)
    introduction = INTRODUCTION if provider in PROVIDERS else WITHOUT_EXAMPLES
    return "\n\n".join([BEGIN, HEADING, introduction, "\n".join(lines), f"Sources: {sources}."]) + "\n"


def _row(one: Assumption, provider: str) -> str:
    sources = ", ".join(one.sources[provider])
    tried = f"`{one.id}`" if one.is_tried and provider in PROVIDERS else "–"
    return f"| {one.text} | {sources} | {tried} | {one.verified.get(provider, 'not yet')} |"


def pages() -> Mapping[Path, str]:
    """Every provider's page, as it should be."""
    found = {}
    for provider in sorted({name for one in ASSUMPTIONS for name in one.sources}):
        path = FOLDER / f"{provider}.md"
        written = path.read_text(encoding="utf-8").partition(BEGIN)[0].rstrip()
        found[path] = f"{written}\n\n{section(provider)}"
    return found


def main(arguments: Sequence[str]) -> int:
    """Write every page; with ``--check``, print those that are stale, and return 1 if there is any."""
    stale = {path: text for path, text in pages().items() if path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        if "--check" in arguments:
            print(f"error: {path.relative_to(ROOT)} is stale: run make docs", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
