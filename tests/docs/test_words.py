"""The words of the code, its messages and its documentation are those of the field: a private language stays out."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from scripts.words import ROOT, Place, places

# Folders and files without a private word. One that gets there is added, and never leaves the list.
CLEAN = [
    "CONTRIBUTING.md",
    "README.md",
    "Makefile",
    "CHANGELOG.md",
    "benchmarks",
    "deploy",
    "docs/decisions",
    "docs/providers",
    "scripts",
    "src/fractal_cloud/api_management",
    "src/fractal_cloud/cli",
    "src/fractal_cloud/custom_workloads",
    "src/fractal_cloud/network_and_compute",
    "src/fractal_cloud/storage",
    *(f"src/fractal_cloud/offers/{name}" for name in ("aruba", "azure", "gcp", "hetzner")),
    *(f"src/fractal_cloud/offers/{name}" for name in ("kubernetes", "oci", "postgres", "vsphere")),
    *(f"src/fractal_cloud/offers/{path.name}" for path in sorted((ROOT / "src/fractal_cloud/offers").glob("*.py"))),
    "src/fractal_sandbox",
    "tests/benchmarks",
    "tests/cli",
    "tests/clusters",
    "tests/deploying",
    "tests/docs",
    "tests/everywhere",
    "tests/glass",
    "tests/linking",
    "tests/links",
    *(f"tests/offers/{name}" for name in ("aruba", "azure", "gcp", "hetzner")),
    *(f"tests/offers/{name}" for name in ("kubernetes", "oci", "postgres", "vsphere")),
    *(f"tests/offers/{path.name}" for path in sorted((ROOT / "tests/offers").glob("*.py"))),
    "tests/realms",
    "tests/sandbox",
    "tests/sharing",
    *(f"tests/{path.name}" for path in sorted(Path(__file__).parents[1].glob("*.py"))),
]


@cache
def everywhere() -> tuple[Place, ...]:
    """Every private word of the tree, found once."""
    return tuple(places(["."]))


@pytest.mark.parametrize("folder", CLEAN)
def test_names_messages_and_pages_say_what_the_field_says(folder: str) -> None:
    found = [
        f"{place.path}:{place.line}: {place.word!r}: say {place.instead}"
        for place in everywhere()
        if place.path == folder or place.path.startswith(f"{folder}/")
    ]
    assert not found, "\n".join(found)
