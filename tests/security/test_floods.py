"""The flood table in its big form: during no attack does an honest user go without an answer (A9)."""

from __future__ import annotations

import pytest

from tests import postgres
from tests.security.flood import FLOODS, Flood, measure

MOST_MEGABYTES = 60.0
STREAMS_OF_ONE_TOKEN = 100


@pytest.mark.soak
@pytest.mark.rule("A9")
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("floods")  # one at a time: they measure
@pytest.mark.parametrize(
    "database",
    [
        "sqlite",
        pytest.param(
            "postgresql",
            marks=pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL: install Debian's postgresql"),
        ),
    ],
)
@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.title)
def test_nobody_goes_without_an_answer_and_nothing_piles_up(flood: Flood, database: str) -> None:
    row = measure(flood, database)
    assert row.failed == 0, "a health check or a deploy was not answered"
    assert row.megabytes < MOST_MEGABYTES
    if flood.stays:
        assert row.open <= STREAMS_OF_ONE_TOKEN
