"""In which order components come, over graphs of any shape."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.rules.order import arrange, find_cycle, order

IDS = [f"c{index}" for index in range(8)]
graphs = st.dictionaries(st.sampled_from(IDS), st.lists(st.sampled_from([*IDS, "elsewhere"]), max_size=4))


def test_waves_hold_what_can_be_created_at_the_same_time() -> None:
    assert order({"web": ["net", "rules"], "net": [], "rules": ["net"], "bucket": []}) == [
        ["net", "bucket"],
        ["rules"],
        ["web"],
    ]


def test_a_dependency_outside_the_mapping_orders_nothing() -> None:
    assert order({"web": ["elsewhere"]}) == [["web"]]


@pytest.mark.rule("L2")
def test_a_cycle_is_named_in_the_direction_of_the_dependencies() -> None:
    assert find_cycle({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) == ["a", "b", "c", "a"]
    with pytest.raises(ValueError, match="dependency cycle: a → b → a"):
        order({"a": ["b"], "b": ["a"]})


@pytest.mark.rule("L2")
def test_a_component_that_depends_on_itself_is_a_cycle() -> None:
    assert find_cycle({"a": ["a"]}) == ["a", "a"]


@given(graphs)
def test_every_component_comes_after_all_it_depends_on_or_a_true_cycle_is_named(graph: dict[str, list[str]]) -> None:
    waves, cycle = arrange(graph)
    placed = [name for wave in waves for name in wave]
    assert len(placed) == len(set(placed))
    for index, wave in enumerate(waves):
        earlier = {name for before in waves[:index] for name in before}
        assert all(needed in earlier for name in wave for needed in graph[name] if needed in graph)
    assert cycle == find_cycle(graph)
    if cycle is None:
        assert set(placed) == set(graph)
    else:
        assert cycle[0] == cycle[-1]
        assert all(needed in graph[name] for name, needed in itertools.pairwise(cycle))


@given(graphs)
def test_every_component_stands_in_the_earliest_wave_it_can(graph: dict[str, list[str]]) -> None:
    waves, _ = arrange(graph)
    for before, wave in itertools.pairwise(waves):
        assert all(set(graph[name]) & set(before) for name in wave)


def test_a_chain_of_ten_thousand_is_ordered() -> None:
    chain = {f"c{index}": [f"c{index + 1}"] for index in range(9_999)} | {"c9999": []}
    assert len(order(chain)) == 10_000
