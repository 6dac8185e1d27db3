"""A type that only an account knows is asked of it: by whoever deploys it, and by each agent that serves it (A4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.control.api import learning
from fractal_cloud.control.store import offers
from fractal_cloud.model.errors import Denied
from tests.families import toys
from tests.families.world import World, declared, running, world


@pytest.fixture
def toy_world(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


ENGINE = declared(toys.PRIVATE, "engine", Power=3)


@pytest.mark.rule("A4")
def test_a_type_that_only_the_account_knows_is_learned_and_lives(toy_world: World) -> None:
    with running(toy_world):
        toy_world.deploy(ENGINE)
    toy_world.settle()
    assert toy_world.status("shop", "engine") == "Active"
    assert toy_world.cloud.named("engine").actual == {"Power": 3}
    with toy_world.app.state.store.read() as tx:
        assert offers.owners(tx)[toys.PRIVATE] == "toys-agent"


@pytest.mark.rule("A4")
def test_an_agent_that_starts_anew_learns_it_again_before_it_serves_it(toy_world: World) -> None:
    with running(toy_world):
        toy_world.deploy(ENGINE)
    toy_world.settle()
    toy_world.restart_agent()
    toy_world.cycle(2)
    toy_world.cloud.named("engine").actual["Power"] = 9
    toy_world.settle()
    assert toy_world.cloud.named("engine").actual == {"Power": 3}
    assert toy_world.cloud.calls["create"] == 1


def test_what_the_account_does_not_know_is_refused_with_what_was_asked(toy_world: World) -> None:
    with running(toy_world):
        refused = toy_world.put("shop", declared("Toy::Own::Nothing", "engine", Power=3))
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["path"] == "components[engine].type"
    assert "a running agent asked its cloud, which has no such type either" in error["message"]


def test_an_account_that_does_not_say_is_named(toy_world: World) -> None:
    toy_world.cloud.failing[f"describe {toys.PRIVATE}"] = Denied("you may not")
    with running(toy_world):
        refused = toy_world.put("shop", ENGINE)
    assert refused.status_code == 422
    assert "which does not say: you may not" in refused.text


def test_without_an_agent_or_an_answer_it_says_what_to_do(toy_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning.learn, "__defaults__", (0.1,))
    refused = toy_world.put("shop", ENGINE)
    assert refused.status_code == 422
    assert "was asked what it is and did not answer within 0.1 s: deploy again" in refused.text
    refused = toy_world.put("other", ENGINE, environment="elsewhere")
    assert refused.status_code == 422
    assert "no running agent of 'toys' in environment 'elsewhere' could be asked" in refused.text
