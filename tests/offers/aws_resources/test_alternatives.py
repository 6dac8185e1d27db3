"""A person changes to another alternative of a schema (`oneOf`, `anyOf`): that is seen, and what corrects it takes away
what the declared alternative excludes, and nothing else: AWS refuses both together.

Over every type whose schema says so. Whether a value fits is asked of a library, not of the code that corrects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import permutations
from typing import Any, NamedTuple

import pytest

from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.facts import Described
from fractal_cloud.rules.drift import ComparedType, find_drift, mutable
from fractal_cloud.rules.nested.correct import corrected
from tests.offers.aws_resources.generating import NoValue, Values, fits

pytestmark = pytest.mark.filterwarnings("ignore:Possible (nested )?set:FutureWarning")
VALUES = 5
FEWEST_TYPES = 50
WORDS = ("oneOf", "anyOf")


class Change(NamedTuple):
    """A property that somebody changed to another alternative, so that both together are refused."""

    name: str
    declared: Any
    actual: Any


def has_alternatives(document: Mapping[str, Any], node: Any, seen: tuple[str, ...] = ()) -> bool:
    """Whether a schema says anywhere that one of several is to be chosen."""
    if isinstance(node, list):
        return any(has_alternatives(document, one, seen) for one in node)
    if not isinstance(node, Mapping):
        return False
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        target = document["definitions"].get(reference.removeprefix("#/definitions/"), {})
        if has_alternatives(document, target, (*seen, reference)):
            return True
    return any(word in node for word in WORDS) or any(has_alternatives(document, one, seen) for one in node.values())


def changes(name: str) -> Iterator[Change]:
    """Of each property of a type at most one change, and the same one in the other direction."""
    document = types.document(name)
    for one, schema in document["properties"].items():
        if f"/properties/{one}" in document.get("readOnlyProperties", ()) or not has_alternatives(document, schema):
            continue
        made = []
        for seed in range(VALUES):
            try:
                made.append(Values(name, seed, full=0.4).another(one, None))
            except NoValue:
                break
        pairs = (Change(one, *pair) for pair in permutations(made, 2))
        change = next((pair for pair in pairs if not fits(name, one, laid_over(pair.declared, pair.actual))), None)
        if change is not None:
            yield change
            yield Change(one, change.actual, change.declared)


def laid_over(declared: Any, actual: Any) -> Any:
    """What is declared over what is actual, with nothing taken away."""
    if isinstance(declared, dict) and isinstance(actual, dict):
        return {**actual, **{key: laid_over(one, actual.get(key)) for key, one in declared.items()}}
    return declared


def taken_away(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The entries of objects that are no more."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, one in before.items():
            if key in after:
                yield from taken_away(one, after[key], (*path, key))
            else:
                yield (*path, key)


def put_back(path: tuple[str, ...], before: Any, after: Any) -> Any:
    """A value with one entry as it was before."""
    found = deepcopy(after)
    inner = found
    for key in path[:-1]:
        before, inner = before[key], inner[key]
    inner[path[-1]] = before[path[-1]]
    return found


def problem_of(name: str, change: Change) -> str:
    """What is wrong with how a change is corrected; empty where nothing is."""
    found = types.find(name)
    assert found is not None
    facts = Described(found).facts()
    compared = ComparedType(facts)
    declared, actual = {change.name: change.declared}, {change.name: change.actual}
    drift = find_drift(compared, declared, actual)
    if not drift:
        return f"nobody sees it: {change}"
    written = {path for path in mutable(compared, drift) if not compared.is_write_only(path)}
    if len(written) < len(drift) or any(compared.is_immutable(f"{change.name}.{one}") for one in change.actual):
        return ""  # AWS changes it in nobody's update, or it is written by itself
    whole = corrected(actual, declared, facts.parameter_schema, sorted(written))
    after = whole.get(change.name)
    if not fits(name, change.name, after):
        return f"AWS refuses its correction: {after}"
    if left := [path for path in find_drift(compared, declared, whole) if path in written]:
        return f"{left} differ still"
    surplus = {path for path, one in drift.items() if one.declared is None}
    for path in taken_away(change.actual, after):
        is_needed = not fits(name, change.name, put_back(path, change.actual, after))
        if not is_needed and ".".join((change.name, *path)) not in surplus:
            return f"{path} was taken away for nothing: {change.actual} became {after}"
    return ""


@pytest.mark.rule("G3", "S12")
def test_another_alternative_is_corrected_and_nothing_more_is_taken_away() -> None:
    tried, wrong = 0, {}
    for name in types.names():
        found = list(changes(name))
        tried += bool(found)
        for change in found:
            if problem := problem_of(name, change):
                wrong[f"{name}.{change.name}"] = (problem, change)
    assert wrong == {}
    assert tried >= FEWEST_TYPES
