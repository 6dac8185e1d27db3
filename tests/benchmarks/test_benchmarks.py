"""The benchmarks themselves: that the canned cloud is understood, and that a missed bar is seen."""

from __future__ import annotations

import pytest

from benchmarks.calls import floor, steady_calls
from benchmarks.jobs import all_jobs
from benchmarks.result import Bar, Result
from benchmarks.rig import canned_cloud
from benchmarks.stock import SERVICE, SUBNET, VPC, Declared
from benchmarks.table import table


def test_a_steady_cycle_of_a_few_things_makes_the_fewest_calls_there_are() -> None:
    with canned_cloud() as canned:
        for kind in (VPC, SUBNET, SERVICE):
            declared = Declared(kind, 120)
            assert steady_calls(canned, declared) == floor(declared)


@pytest.mark.parametrize(
    ("bar", "kept"),
    [
        (Bar("fewer calls than the floor cannot be right", 9, 10, exact=True), False),
        (Bar("nothing was published", 0, 0, exact=True), True),
        (Bar("something was published", 1, 0, exact=True), False),
        (Bar("below the bar", 1.4, 1.0, most=1.5), True),
        (Bar("above the bar", 1.6, 1.0, most=1.5), False),
        (Bar("as many times as asked for", 1.8, 1.0, least=1.8), True),
        (Bar("fewer times than asked for", 1.7, 1.0, least=1.8), False),
        (Bar("above, but only told", 1.6, 1.0), True),
    ],
    ids=lambda value: value.what if isinstance(value, Bar) else "",
)
def test_a_bar_is_kept_or_missed_as_its_result_says(bar: Bar, *, kept: bool) -> None:
    result = Result("job", "agent", 1, {"CPU s": bar.measured}, (Bar("another one", 1, 1, exact=True), bar))
    assert result.is_kept is kept
    assert ("MISSED" in table([result])) is not kept
    assert result.to_json()["kept"] is kept


def test_every_job_has_a_name_of_its_own() -> None:
    names = [job.name for job in all_jobs()]
    assert len(names) == len(set(names))
    assert {"calls", "cpu", "memory"} <= set(names)
