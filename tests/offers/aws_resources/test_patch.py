"""Patches: what differs and nothing else, lists element by element, tags behind a test of all of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.offers.aws.resources import tags
from fractal_cloud.offers.aws.resources.patch import patch
from fractal_cloud.offers.aws.resources.schema import Tagging
from fractal_cloud.offers.aws.resources.spellings import as_declared
from fractal_cloud.offers.aws.tags import RULES
from fractal_sandbox.aws.cloudcontrol.patching import patched

_SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b", "a/b", "m~n", ""])
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["x", "y", "a/b", "~"]), inner),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(st.sampled_from(["Tags", "Name", "List", "a/b"]), _VALUES, max_size=4)
LIST = Tagging("Tags", "list")
MAP = Tagging("Tags", "map")


@given(_OBJECTS, _OBJECTS)
def test_a_patch_makes_one_value_of_the_other_and_nothing_where_they_are_equal(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert patch(before, copy.deepcopy(before)) == []
    assert patched(copy.deepcopy(before), patch(before, after)) == after


def test_one_element_of_a_list_is_changed_by_itself() -> None:
    before = {"Rules": [{"Id": "a", "Days": 1}, {"Id": "b", "Days": 2}, {"Id": "c", "Days": 3}]}
    after = {"Rules": [{"Id": "a", "Days": 1}, {"Id": "b", "Days": 9}, {"Id": "c", "Days": 3}, {"Id": "d", "Days": 4}]}
    assert patch(before, after) == [
        {"op": "add", "path": "/Rules/3", "value": {"Id": "d", "Days": 4}},
        {"op": "replace", "path": "/Rules/1/Days", "value": 9},
    ]


@pytest.mark.rule("T1", "T10", "S16")
@pytest.mark.parametrize("tagging", [LIST, MAP])
def test_single_tags_change_and_all_others_stay(tagging: Tagging) -> None:
    raw = tags.written(tagging, {"team": "blue", "managed-by": "fractal-cloud", "a/b": "c"})
    guard = tags.guard(tagging, raw)
    assert guard == [{"op": "test", "path": "/Tags", "value": raw}]
    change = tags.changes(tagging, raw, {"fractal-cloud": "reconcile", "team": "red"}, ["managed-by"])
    made = patched({"Tags": copy.deepcopy(raw)}, [*guard, *change])
    assert tags.read(tagging, made["Tags"]) == {"team": "red", "a/b": "c", "fractal-cloud": "reconcile"}


@pytest.mark.rule("T7")
def test_tags_of_a_stack_name_another_manager() -> None:
    found = tags.protocol(RULES, {"managed-by": "fractal-cloud", "aws:cloudformation:stack-name": "billing"})
    assert not found.is_managed
    assert found.other_manager == "the CloudFormation stack billing"


def test_values_that_mean_the_same_are_shown_as_they_are_declared() -> None:
    actual = {"SecurityGroupIngress": [{"IpProtocol": "tcp"}, {"IpProtocol": "udp"}], "GroupName": "a"}
    declared = {"SecurityGroupIngress": [{"IpProtocol": "17"}, {"IpProtocol": "6"}]}
    shown = as_declared("AWS::EC2::SecurityGroup", actual, declared)
    assert shown["SecurityGroupIngress"] == [{"IpProtocol": "6"}, {"IpProtocol": "17"}]
    assert actual["SecurityGroupIngress"] == [{"IpProtocol": "tcp"}, {"IpProtocol": "udp"}], "nothing given is changed"
    assert as_declared("AWS::SQS::Queue", actual, declared) is actual
