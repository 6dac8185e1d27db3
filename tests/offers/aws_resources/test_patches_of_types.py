"""Over the types of AWS: the patch that corrects what somebody changed, inserted or reordered touches nothing else.

The values are made of the schemas, and come back in the shapes of public reports. Patches are applied by the sandbox's
own reading of them (RFC 6902).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.patch import patch
from fractal_cloud.offers.aws.resources.spellings import as_declared
from fractal_cloud.rules.nested.correct import corrected
from fractal_cloud.rules.nested.path import of_name
from fractal_sandbox.aws.cloudcontrol.patching import patched
from tests.offers.aws_resources.test_no_phantom_drift import Type

pytestmark = pytest.mark.filterwarnings("ignore:Possible (nested )?set:FutureWarning")
SOAK = bool(os.environ.get("FRACTAL_SOAK"))
NAMES = types.names() if SOAK else types.names()[::12]
FEWEST_INSERTED = 0.15


def corrections(one: Type, actual: dict[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """What drifts, and the patch that corrects it."""
    before = dict(as_declared(one.name, actual, one.declared))
    drift = sorted(one.drift(before))
    after = corrected(before, one.declared, one.facts.parameter_schema, drift)
    operations = patch(before, after)
    assert patched(deepcopy(before), operations) == after
    return drift, operations


def text(value: Any) -> str:
    """A value by which equal ones are found."""
    return json.dumps(value, sort_keys=True)


def is_within(operation: dict[str, Any], drift: list[str]) -> bool:
    """Whether an operation is in what drifted, or brings what holds it."""
    steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:])
    for name in drift:
        path = of_name(name)
        if all(not isinstance(want, str) or want == step for want, step in zip(path, steps, strict=False)):
            return True
    return False


def says_something(declared: Any) -> bool:
    """Whether it is a list in which every element says which one it is: an empty one is as good as any other."""
    return isinstance(declared, list) and all(one not in ({}, []) for one in declared)


def inserted(one: Type) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """What AWS returns after somebody inserted an element into a list: into which one, and where."""
    for name, other, _ in one.changes():
        ours, there = one.declared[name], one.returned.get(name)
        if not (says_something(ours) and isinstance(there, list) and isinstance(other, list) and len(there) > 1):
            continue
        foreign = next((value for value in other if one.drift({**one.returned, name: [value] * len(there)})), None)
        if foreign is not None and one.drift({**one.returned, name: [*there, foreign]}):
            at = len(there) // 2
            yield name, at, {**one.returned, name: [*there[:at], foreign, *there[at:]]}


@pytest.mark.rule("G3", "S12")
def test_a_patch_is_in_what_drifted_alone() -> None:
    wrong = {}
    for name in NAMES:
        one = Type(name, 1)
        for edited, actual in one.edits():
            drift, operations = corrections(one, actual)
            outside = [each for each in operations if each["op"] != "remove" and not is_within(each, drift)]
            if outside or any(each["path"].split("/")[1] != edited for each in operations):
                wrong[f"{name}.{edited}"] = (drift, operations)
    assert wrong == {}


@pytest.mark.rule("G3", "S12")
def test_an_element_that_somebody_inserted_is_removed_and_no_other_is_touched() -> None:
    tried, wrong = 0, {}
    for name in NAMES:
        one = Type(name, 0)
        for edited, at, actual in inserted(one):
            tried += 1
            _, operations = corrections(one, actual)
            if operations != [{"op": "remove", "path": f"/{edited}/{at}"}]:
                wrong[f"{name}.{edited}"] = (operations, one.declared[edited], actual[edited])
    assert wrong == {}
    assert tried >= FEWEST_INSERTED * len(NAMES)


@pytest.mark.rule("G3", "S12")
def test_what_somebody_reordered_is_put_in_order_and_nothing_in_it_is_changed() -> None:
    wrong = {}
    for name in NAMES:
        one = Type(name, 0)
        for edited, value in one.returned.items():
            if not isinstance(value, list) or not says_something(one.declared.get(edited)):
                continue
            actual = {**one.returned, edited: list(reversed(value))}
            if not one.drift(actual):
                continue
            _, operations = corrections(one, actual)
            made = patched(deepcopy(actual), operations)[edited]
            if sorted(map(text, made)) != sorted(map(text, value)):
                wrong[f"{name}.{edited}"] = (operations, one.declared[edited], value)
    assert wrong == {}
