"""What carries no tags and is no part is created once where that is declared, and only read from then on (S1b)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import Denied
from tests.families import toys
from tests.families.world import Declaration, World, declared, world
from tests.links.clouds import Thing

pytestmark = pytest.mark.rule("S1b")


@pytest.fixture
def toy_world(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def net(**values: Any) -> Declaration:
    return declared(toys.NET, "net", NetName="back", **{"Size": 1, "createOnce": True, **values})


def nets(world: World) -> list[Thing]:
    return [thing for thing in world.cloud.things.values() if thing.type == toys.NET]


def test_it_is_created_and_only_read_from_then_on(toy_world: World) -> None:
    toy_world.deploy(net())
    toy_world.settle()
    [made] = nets(toy_world)
    assert (made.tags, made.actual["Size"]) == ({}, 1)
    assert toy_world.status("shop", "net") == "ExternallyManaged"
    made.actual["Size"] = 2
    toy_world.deploy(net(Size=3))
    toy_world.settle()
    assert (toy_world.cloud.calls["create"], toy_world.cloud.calls["update"]) == (1, 0)
    assert toy_world.fields("net")["drift"] == {"Size": {"declared": 3, "actual": 2}}


@pytest.mark.rule("S1")
def test_without_the_word_it_is_missing(toy_world: World) -> None:
    toy_world.deploy(net(createOnce=False))
    toy_world.settle()
    assert toy_world.status("shop", "net") == "Missing"
    assert nets(toy_world) == []


def test_what_was_created_here_and_is_gone_is_created_again_by_a_deploy_alone(toy_world: World) -> None:
    toy_world.deploy(net())
    toy_world.settle()
    toy_world.cloud.things.clear()
    toy_world.settle()
    assert toy_world.status("shop", "net") == "Missing"
    assert "deploy the LiveSystem" in toy_world.message("net")
    toy_world.deploy(net(Size=2))
    toy_world.settle()
    assert len(nets(toy_world)) == 1


@pytest.mark.rule("O2")
def test_of_several_the_first_deployed_creates_and_the_others_import(toy_world: World) -> None:
    toy_world.deploy(net())
    toy_world.deploy(net(Size=2), live_system="guest")
    toy_world.settle()
    assert [one.actual["Size"] for one in nets(toy_world)] == [1]
    assert toy_world.status("shop", "net") == toy_world.status("guest", "net") == "ExternallyManaged"


@pytest.mark.rule("S21")
def test_what_the_cloud_refuses_is_failed(toy_world: World) -> None:
    toy_world.cloud.failing["create"] = Denied("no nets here")
    toy_world.deploy(net())
    toy_world.cycle(2)
    assert toy_world.status("shop", "net") == "Failed"
    toy_world.cloud.failing.clear()
    toy_world.deploy(net(Size=2))
    toy_world.settle()
    assert len(nets(toy_world)) == 1


@pytest.mark.rule("S17")
@pytest.mark.parametrize("is_lost", [True, False])
def test_it_is_created_once_though_the_agent_died(toy_world: World, is_lost: bool) -> None:
    class Died(BaseException):
        pass

    def die(call: str) -> None:
        if call == "create":
            toy_world.cloud.before.clear()
            if not is_lost:
                toy_world.cloud.things["toys-9"] = Thing("toys-9", toys.NET, "back", {}, {"Size": 1})
            raise Died

    toy_world.cloud.before.append(die)
    toy_world.deploy(net())
    with pytest.raises(Died):
        toy_world.cycle()
    toy_world.restart_agent()
    toy_world.settle()
    assert len(nets(toy_world)) == 1
    assert toy_world.status("shop", "net") == "ExternallyManaged"


@pytest.mark.rule("O10", "O14", "O19")
def test_it_is_left_when_its_live_system_is_deleted(toy_world: World) -> None:
    toy_world.deploy(net())
    toy_world.settle()
    found = toy_world.api.delete("/livesystems/shop", params={"dryRun": "true"}).json()
    assert [one["ending"] for one in found["preview"]["components"]] == ["left"]
    toy_world.delete()
    toy_world.settle()
    assert len(nets(toy_world)) == 1
    assert toy_world.cloud.calls["delete"] == 0
