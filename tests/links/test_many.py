"""Many links at rest cost a check per kind, and nothing per link; a change gets around in one cycle (L5, L11, L14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.links import SOURCES, count
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.model.link import NO_LINKS
from fractal_cloud.model.observed import Observed
from tests.links.world import World, database, link, workload


@pytest.mark.rule("L5", "L11", "L14", "S20")
def test_settled_links_cost_one_check_per_kind_and_a_change_reaches_all_sources_in_a_cycle(tmp_path: Path) -> None:
    found = count(SOURCES, tmp_path)
    assert (found.handlers, found.reports) == (0, 0)
    assert found.checks == found.kinds
    assert found.calls == found.lists
    assert found.reached == found.sources


@pytest.mark.rule("L5")
def test_components_without_links_carry_nothing_for_them(links: World) -> None:
    links.deploy("ls-a", database(), workload("alone"), workload("app", link("db", database="x")))
    links.settle()
    (held,) = [leased.held for leased in links.agents["west"]._leases.scopes.values()]
    assert isinstance(held, HeldScope)
    alone = next(tracked for tracked in held.work.tracked.values() if tracked.component_id == "alone")
    assert alone.memory.links is NO_LINKS is Observed().links
    empty: tuple[()] = ()
    assert alone.links_in is alone.links_out is empty, "Python has one empty tuple"
    assert not alone.is_wired
