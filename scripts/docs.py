"""Checks that every relative link in the documentation leads to a file; addresses elsewhere are not tried."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def pages() -> Iterator[Path]:
    """Yield the pages at the root and below docs, deploy, examples and benchmarks."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in ("docs", "deploy", "examples", "benchmarks"):
        yield from sorted((ROOT / folder).rglob("*.md"))


def broken_links(page: Path) -> Iterator[str]:
    """Yield the relative targets on the page that lead nowhere; what stands in code is no link."""
    for match in LINK.finditer(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = match["target"].partition("#")[0]
        if target and "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists():
            yield match["target"]


def main() -> int:
    """Print every broken link; return 1 if there is any."""
    broken = [
        f"{page.relative_to(ROOT)}: '{target}' leads nowhere" for page in pages() for target in broken_links(page)
    ]
    for line in broken:
        print(f"error: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
