"""Examines a page of a real browser for what keeps people from using it, with axe-core."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import pytest
from playwright.sync_api import Page


@cache
def _source() -> str:
    pytest.importorskip("axe_playwright_python", reason="axe-core is not installed: make setup installs it")
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text()


def violations(page: Page) -> list[str]:
    """What axe finds wrong: the rule, and the elements. It runs beside the page, which its policy still holds for."""
    page.evaluate(f"{_source()}; undefined")
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {', '.join(str(node['target'][0]) for node in one['nodes'][:5])}"
        for one in found["violations"]
    ]
