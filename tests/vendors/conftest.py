"""What tests against the vendors' contracts share: they are selected by ``make test-vendors``, which prepares them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.vendors.clouds import RECORDINGS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.vendors)


@pytest.fixture
def count() -> Callable[[str, str, int], None]:
    """Note a figure for the table of docs/providers.md: cloud, column, number."""

    def noted(cloud: str, column: str, number: int) -> None:
        folder = RECORDINGS / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{cloud}.{quote(column, safe=' ')}.json").write_text(json.dumps(number))

    return noted
