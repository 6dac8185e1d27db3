"""Over every type of AWS: what comes back in another shape is no drift, and what somebody changed is exactly that.

The values are made of AWS's schemas (`generating`), the shapes of public reports of what AWS returns
(`docs/aws-shapes.md`), both apart from the code that compares. One value per type here, many in `make soak`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator
from copy import deepcopy
from itertools import islice
from typing import Any

import pytest

from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.facts import Described
from fractal_cloud.offers.aws.resources.spellings import as_declared
from fractal_cloud.rules.drift import ComparedType, find_drift
from fractal_cloud.rules.nested.correct import corrected
from fractal_cloud.rules.nested.path import root
from fractal_sandbox.aws.cloudcontrol.schemas import catalog
from fractal_sandbox.aws.cloudcontrol.shapes.applying import reshaped
from tests.offers.aws_resources.generating import NoValue, Values

# Python warns of what may be sets of sets one day; these are AWS's patterns, and mean what they say.
pytestmark = pytest.mark.filterwarnings("ignore:Possible (nested )?set:FutureWarning")
SOAK = bool(os.environ.get("FRACTAL_SOAK"))
SEEDS = range(40 if SOAK else 1)
PARTS_OF_ALL = 8
CHANGES_OF_A_TYPE = 3
CHANGEABLE = 0.9
Path = tuple[str, ...]


class Type:
    """One type: a value, what AWS returns of it, and how the product compares the two."""

    def __init__(self, name: str, seed: int) -> None:
        found = types.find(name)
        assert found is not None
        self.name = name
        self.facts = Described(found).facts()
        self.compared = ComparedType(self.facts)
        self.values = Values(name, seed, full=0.5 if seed % 2 else 0.8)
        made = self.values.properties()
        known = self.facts.parameter_schema["properties"]
        self.declared = {one: value for one, value in made.items() if one in known}
        self.returned = self.shaped(self.declared, seed + 1)
        said = types.document(name)
        pointers = [*said.get("writeOnlyProperties", ()), *said.get("readOnlyProperties", ())]
        self.hidden = frozenset(tuple(one.removeprefix("/properties/").split("/")) for one in pointers)

    def shaped(self, value: dict[str, Any], seed: int) -> dict[str, Any]:
        """The value as AWS may return it; what it leaves out is not there."""
        schema = catalog().find(self.name)
        assert schema is not None
        found = reshaped(schema, "an-identifier", deepcopy(value), "eu-central-1", seed)
        return {one: found.get(one) for one in {*self.declared, *found}}

    def drift(self, actual: dict[str, Any]) -> dict[str, Any]:
        """What differs, but for what AWS never returns: that is compared by digests."""
        found = find_drift(self.compared, self.declared, as_declared(self.name, actual, self.declared))
        return {name: one for name, one in found.items() if not self.compared.is_write_only(name)}

    def edits(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What AWS returns after somebody changed one property, and which one it was."""
        for name, _, actual in self.changes():
            yield name, actual

    def changes(self) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        """A property that somebody changed, its value then, and what AWS returns of all."""
        for name in self.values.shuffled(self.declared):
            if name in self.compared.never_compared or self.compared.is_write_only(name):
                continue
            try:
                other = self.values.another(name, self.declared[name])
            except NoValue:
                continue
            yield name, other, {**self.returned, name: self.shaped({**self.declared, name: other}, 99).get(name)}


@pytest.mark.rule("G3", "G15")
@pytest.mark.parametrize("part", range(PARTS_OF_ALL))
def test_other_shapes_are_no_drift_and_a_change_is_the_one_that_is_corrected(part: int) -> None:
    found: dict[str, Any] = {}
    for name in types.names()[part::PARTS_OF_ALL]:
        for seed in SEEDS:
            one = Type(name, seed)
            drift = one.drift(one.returned)
            if drift:
                found[f"{name} ({seed})"] = {path: (d.declared, d.actual) for path, d in drift.items()}
                continue
            every = list(one.edits()) if SOAK else list(islice(one.edits(), 1))
            wrong = {edited: what for edited, actual in every if (what := _wrong_correction(one, edited, actual))}
            if wrong:
                found[f"{name} ({seed})"] = wrong
    assert found == {}


def _wrong_correction(one: Type, edited: str, actual: dict[str, Any]) -> str:
    """What is wrong with how a change of one property is seen and corrected; empty where nothing is."""
    drift = one.drift(actual)
    if others := sorted(path for path in drift if root(path) != edited):
        return f"{others} drifted too"
    whole = corrected(actual, one.declared, one.facts.parameter_schema, list(drift))
    if {key for key in {*whole, *actual} if whole.get(key) != actual.get(key)} - {edited}:
        return "something else was touched by its correction"
    left = one.drift(whole)
    return f"it differs still after its correction: {left}" if left else ""


def test_a_change_of_what_is_declared_is_seen_in_every_type() -> None:
    names = types.names() if SOAK else types.names()[::5]
    seen: Counter[str] = Counter()
    unseen: dict[str, Any] = {}
    for name in names:
        one = Type(name, 0)
        for edited, other, actual in one.changes():
            if not _is_other(one.declared[edited], other, one.hidden, (edited,)):
                continue
            seen[name] += 1
            if not one.drift(actual):
                unseen[f"{name}.{edited}"] = (one.declared[edited], actual[edited])
    assert unseen == {}
    assert seen.total() >= CHANGES_OF_A_TYPE * len(names)
    assert len(seen) >= CHANGEABLE * len(names), "of the others everything is its name, its place, or never returned"


def _is_other(declared: Any, other: Any, hidden: Collection[Path], path: Path) -> bool:
    """Whether a declared value itself was changed, to what no shape makes of it: what only was added is nobody's.

    Of lists that is an element that none of the others may be.
    """
    if path in hidden or declared is None or other is None:
        return False  # never returned, or left out
    if isinstance(declared, dict):
        return isinstance(other, dict) and any(
            _is_other(one, other.get(key), hidden, (*path, key)) for key, one in declared.items()
        )
    if isinstance(declared, list):
        below = (*path, "*")
        return isinstance(other, list) and any(
            bool(other) and all(_is_other(one, another, hidden, below) for another in other) for one in declared
        )
    ours, theirs = str(declared).casefold(), str(other).casefold()
    return not ours.endswith(theirs) and not theirs.endswith(ours)  # a name for an ARN
