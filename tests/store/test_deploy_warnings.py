"""What a deploy warns of, as far as the control plane knows (C10)."""

from __future__ import annotations

import pytest

from fractal_cloud.control.store.deploy_warnings import surprises
from fractal_cloud.control.store.records import records_of
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import KnownResource
from tests.store.playing import CATALOG, Player, World, component, net

pytestmark = pytest.mark.rule("C10")
PARTS = (net("one"), net("two"))


def _said(world: World, live_system_id: str) -> list[str]:
    with world.store.read() as tx:
        return surprises(tx, live_system_id, records_of(tx, live_system_id), CATALOG)


def _known(name: str, owner: str) -> KnownResource:
    return KnownResource(identity=f"Test.Net:test/acct/north:{name}", owner=owner, resource_id=f"id-{name}")


def _owned(world: World) -> Player:
    """An agent that has made both for ls-a."""
    world.deploy("ls-a", *PARTS)
    agent = world.agent(cycle=60)
    agent.claim()
    changes = [agent.says("ls-a", str(part["id"])) for part in PARTS]
    agent.report(*changes, resources=[_known("one", "ls-a"), _known("two", "ls-a")])
    return agent


def test_what_is_ones_own_is_no_surprise(world: World) -> None:
    _owned(world)
    assert _said(world, "ls-a") == []


@pytest.mark.rule("O1")
def test_what_another_owns_is_named_in_one_warning(world: World) -> None:
    _owned(world)
    world.deploy("ls-b", *PARTS, net("three"))
    assert _said(world, "ls-b") == ["'one', 'two' are owned by 'ls-a': they are imported, nothing is created"]


@pytest.mark.rule("S3")
def test_what_only_its_owner_creates_again_is_said_to_be_missing_until_then(world: World) -> None:
    agent = _owned(world)
    gone = {"stance": Stance.MANAGED, "status": Status.INSTANTIATING, "absent": True}
    agent.report(agent.says("ls-a", "one", **gone))
    world.deploy("ls-b", PARTS[0])
    assert _said(world, "ls-b") == [
        "'one' is absent, and only 'ls-a', which owns it, creates it again: Missing until then"
    ]


@pytest.mark.rule("S4")
def test_what_is_absent_and_no_longer_its_owners_is_created_and_no_surprise(world: World) -> None:
    agent = _owned(world)
    world.deploy("ls-b", PARTS[0])
    world.delete("ls-a")
    agent.claim()
    imported = {"stance": Stance.IMPORTED, "status": Status.MISSING, "owner": "ls-a", "absent": True}
    agent.report(
        *(agent.says("ls-a", str(part["id"]), absent=True, finished=True) for part in PARTS),
        agent.says("ls-b", "one", **imported),
    )
    assert _said(world, "ls-b") == []


@pytest.mark.rule("O7")
def test_two_that_are_taken_out_are_counted(world: World) -> None:
    agent = _owned(world)
    world.deploy("ls-b", *PARTS)
    agent.claim()
    imported = {"stance": Stance.IMPORTED, "status": Status.EXTERNALLY_MANAGED, "owner": "ls-a"}
    agent.report(*(agent.says("ls-b", str(part["id"]), **imported) for part in PARTS))
    world.deploy("ls-a", net("three"))
    assert _said(world, "ls-a") == [
        (
            "'one', 'two' are taken out of the declaration. This LiveSystem owns 2 resources that are imported by "
            "1 other LiveSystem. Deleting will cause that LiveSystem to report Missing on those references."
        )
    ]


@pytest.mark.rule("O12", "S5")
def test_what_is_only_read_is_named_with_the_reason(world: World) -> None:
    mute = component("mute", "Test.Mute", {"region": "north"})
    world.deploy("ls-a", mute, net("seen", importOnly=True), net("own"))
    assert _said(world, "ls-a") == [
        "'seen' is read only (importOnly): nothing is created or changed",
        "'mute' is read only (its type cannot carry tags): nothing is created or changed",
    ]
