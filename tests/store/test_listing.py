"""Lists of LiveSystems and components against a plain model: order, filters, totals, and paging in both directions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.control.store import Store, attention, components, livesystems, open_store, summaries
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.listing import (
    NO_FILTERS,
    BadCursor,
    ComponentOrder,
    Filters,
    Order,
    Page,
    Place,
)
from fractal_cloud.control.store.visibility import Environments
from tests.store import fleets
from tests.store.fleets import Model
from tests.store.playing import CATALOG

SHARDS = 8
FLEETS = 125
FEWER = 40
Fetch = Callable[[Place], Page]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Store]:
    """A store on SQLite."""
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}", types_here=CATALOG)
    yield store
    store.close()


def _walked(fetch: Fetch, limit: int) -> list[dict[str, Any]]:
    """Everything, cursor by cursor."""
    found: list[dict[str, Any]] = []
    page = fetch(Place(limit))
    found += page.items
    while page.next is not None:
        page = fetch(Place(limit, page.next))
        assert page.items, "a cursor led to nothing"
        found += page.items
    return found


def _counted_off(fetch: Fetch, limit: int, total: int) -> list[dict[str, Any]]:
    """Everything, page by page from the last one back to the first, as the pages for people go."""
    starts = range(0, total, max(limit, total // 3))
    limit = starts.step
    pages = [fetch(Place(limit, offset=start)).items for start in reversed(starts)]
    return [item for page in reversed(pages) for item in page]


def _examine_live_systems(tx: Tx, model: Model, chance: random.Random) -> None:
    filters, order, limit = fleets.filters_of(chance), chance.choice(list(Order)), chance.randint(2, 8)
    bound: Environments = frozenset({"prod*"}) if chance.random() < 0.2 else None
    environments = fleets.ENVIRONMENTS if bound is None else ("prod", "prod-eu")
    expected = model.live_systems(filters, order, environments)

    def fetch(place: Place) -> Page:
        return livesystems.list_page(tx, place, filters, order, bound)

    case = f"{filters} {order} {limit} {bound}"
    assert fetch(Place(1000)).total == len(expected), case
    walked = _walked(fetch, limit)
    assert [one["id"] for one in walked] == expected, case
    assert [one["id"] for one in _counted_off(fetch, limit, len(expected))] == expected, case
    for one in walked:
        said = model.summary(one["id"])
        assert {name: one[name] for name in said} == said, case


def _examine_components(tx: Tx, model: Model, chance: random.Random) -> None:
    filters, order, limit = fleets.filters_of(chance), chance.choice(list(ComponentOrder)), chance.randint(2, 12)
    if chance.random() < 0.2:
        filters = replace(filters, by=tuple(chance.sample(("anna", "bea", "carl"), 2)))
    bound: Environments = frozenset({"prod*"}) if chance.random() < 0.2 else None
    environments = fleets.ENVIRONMENTS if bound is None else ("prod", "prod-eu")
    expected = model.components(filters, order, environments)

    def fetch(place: Place) -> Page:
        return components.list_all(tx, place, filters, order, bound)

    case = f"{filters} {order} {limit} {bound}"
    assert _names(_walked(fetch, limit)) == expected, case
    assert _names(_counted_off(fetch, limit, len(expected))) == expected, case
    assert fetch(Place(1000)).total in (None, len(expected)), case


def _names(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["liveSystemId"], one["componentId"]) for one in found]


def _examine(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    fleet = fleets.made(chance)
    fleets.write(store, fleet)
    model = Model(fleet)
    with store.read() as tx:
        assert summaries.differences(tx.connection) == [], f"seed {seed}"
        _examine_live_systems(tx, model, chance)
        _examine_components(tx, model, chance)
        needed = attention.needed(tx, few=3)
        for status, page in (("Failed", needed.failed), ("Missing", needed.missing)):
            expected = model.components(Filters(status=(status,)), ComponentOrder.ID)
            assert (_names(page.items), page.total) == (expected[:3], len(expected)), f"seed {seed}"
        held = model.components(NO_FILTERS, ComponentOrder.OVERRIDE)
        assert (_names(needed.overrides.items), needed.overrides.total) == (held[:3], len(held)), f"seed {seed}"
        inside = Counter(one["scope_key"] for one in fleet.components if one["scope_key"] in fleet.stale)
        unread = [(one["key"], one["components"]) for one in needed.stale_scopes.items]
        assert (unread, needed.stale_scopes.total) == (sorted(inside.items())[:3], len(inside)), f"seed {seed}"


@pytest.mark.rule("C1", "G13")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_thousand_random_fleets_are_listed_as_a_plain_model_lists_them(here: Store, shard: int) -> None:
    for seed in range(shard * FLEETS, (shard + 1) * FLEETS):
        _examine(here, seed)


@pytest.mark.rule("C1")
def test_random_fleets_are_listed_alike_on_every_database(database_url: str) -> None:
    store = open_store(database_url, types_here=CATALOG)
    for seed in range(5_000, 5_000 + FEWER):
        _examine(store, seed)
    store.close()


@pytest.mark.soak
def test_many_random_fleets_are_listed_as_a_plain_model_lists_them(database_url: str) -> None:
    store = open_store(database_url, types_here=CATALOG)
    for seed in range(10_000, 13_000):
        _examine(store, seed)
    store.close()


@pytest.mark.parametrize("cursor", ["x", "ls-a", "WzFd", "bnVsbA", "eyJhIjoxfQ", "W251bGwsbnVsbCxudWxsXQ", "ÿ"])
@pytest.mark.parametrize("order", [Order.WORST, Order.LAST_UPDATED])
def test_a_cursor_of_another_order_is_refused(here: Store, cursor: str, order: Order) -> None:
    with here.read() as tx, pytest.raises(BadCursor, match="begin without one"):
        livesystems.list_page(tx, Place(10, cursor), NO_FILTERS, order)
