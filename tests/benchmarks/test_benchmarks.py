"""The benchmarks themselves: that the canned cloud is understood, and that a missed bar is seen."""

from __future__ import annotations

import pytest

from benchmarks.calls import floor, steady_calls
from benchmarks.rig import canned_cloud
from benchmarks.stock import SERVICE, SUBNET, VPC, Declared
from benchmarks.table import Row, table


def test_a_steady_cycle_of_a_few_things_makes_the_fewest_calls_there_are() -> None:
    with canned_cloud() as canned:
        for kind in (VPC, SUBNET, SERVICE):
            declared = Declared(kind, 120)
            assert steady_calls(canned, declared) == floor(declared)


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        (Row("1", "fewer calls than the floor cannot be right", 9, 10, exact=True), False),
        (Row("3", "nothing was published", 0, 0, exact=True), True),
        (Row("3", "something was published", 1, 0, exact=True), False),
        (Row("4", "below the bar", 1.4, 1.0, most=1.5), True),
        (Row("4", "above the bar", 1.6, 1.0, most=1.5), False),
        (Row("4", "above, but only told", 1.6, 1.0, most=None), True),
    ],
    ids=lambda value: value.what if isinstance(value, Row) else "",
)
def test_a_bar_is_kept_or_missed_as_its_row_says(row: Row, *, kept: bool) -> None:
    assert row.is_kept is kept
    assert ("MISSED" in table([row])) is not kept
