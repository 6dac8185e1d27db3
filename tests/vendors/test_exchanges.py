"""All that the contract tests sent and got is as the vendors say, but for what ``deviations.py`` explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.vendors.clouds import CLOUDS, contract, exchanges, why_not
from tests.vendors.contract import Problem
from tests.vendors.deviations import DEVIATIONS

Count = Callable[[str, str, int], None]
pytestmark = pytest.mark.timeout(600)


def request_problems(cloud: str) -> Iterator[tuple[int, list[Problem]]]:
    """Each request with what is wrong with it; a person's that was refused was meant to be wrong."""
    for one in exchanges(cloud):
        if one.actor == "agent" or one.status < 400:
            yield one.times, list(contract(cloud).request_problems(one))


def answer_problems(cloud: str) -> Iterator[tuple[int, list[Problem]]]:
    """Each answer with what is wrong with it."""
    for one in exchanges(cloud):
        yield one.times, list(contract(cloud).answer_problems(one))


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("side", ["request", "answer"])
def test_what_was_exchanged_is_as_the_vendor_says(cloud: str, side: str, count: Count) -> None:
    """A new difference fails, and so does a known one that is no longer there."""
    if reason := why_not(cloud):
        pytest.skip(reason)
    found = list((request_problems if side == "request" else answer_problems)(cloud))
    count(cloud, f"{side}s", sum(times for times, _ in found))
    problems = {problem for _, some in found for problem in some}
    known = [one for one in DEVIATIONS if (one.cloud, one.side) == (cloud, side)]
    count(cloud, f"deviations.{side}", len(known))
    new = sorted(str(one) for one in problems if not any(deviation.covers(one) for deviation in known))
    gone = [f"no longer seen: {one}" for one in known if not any(one.covers(problem) for problem in problems)]
    assert found, f"nothing of {cloud} was recorded"
    assert not [*new, *gone], "\n".join([*new, *gone])
