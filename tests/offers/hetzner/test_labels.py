"""Labels, of which every write replaces all: when they are written, and who wins when two write at once (T10, S16)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.errors import Overtaken
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags, stamp
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.hetzner.cloud import Hetzner
from fractal_cloud.offers.hetzner.firewall import HetznerFirewall, HetznerFirewallOffer
from fractal_cloud.offers.hetzner.tags import relabelled
from fractal_sandbox import Sandbox
from tests.offers.hetzner.examples import EXAMPLES, allow
from tests.offers.hetzner.person import HetznerPerson
from tests.offers.hetzner.worlds import HetznerWorld

WALL = EXAMPLES[HetznerFirewall].components[-1]
OTHER_RULES = [{"direction": "in", "protocol": "tcp", "port": "80", "source_ips": ["0.0.0.0/0"]}]


def wall(world: HetznerWorld) -> str:
    """A firewall of ls-a, settled; its id."""
    world.deploy("ls-a", WALL)
    world.settle()
    return str(world.output("ls-a", "wall", "firewallId"))


def operations(world: HetznerWorld, since: int) -> list[str]:
    return [write.operation for write in world.writes()[since:]]


@pytest.mark.rule("T1", "T8")
def test_only_our_own_labels_change_and_only_while_they_say_what_was_seen() -> None:
    labels = {"team": "a", "fractal-cloud": "reconcile", "managed-by": "fractal-cloud"}
    assert relabelled(labels, NO_TAGS, ProtocolTags(reconcile=True)) == {"team": "a", "managed-by": "fractal-cloud"}
    assert relabelled(labels, stamp("ls-a"), NO_TAGS) == {**labels, "fractal-cloud-owner": "ls-a"}
    assert relabelled({"managed-by": "terraform"}, NO_TAGS, stamp("ls-a")) == {"managed-by": "terraform"}
    assert ProtocolTags.from_mapping({"Managed-By": "fractal-cloud", "fractal-cloud": "later"}) == NO_TAGS


@pytest.mark.rule("T10")
def test_an_ordinary_change_never_sends_labels(world: HetznerWorld) -> None:
    number = wall(world)
    before = len(world.writes())
    world.hetzner.act("firewalls", number, "set_rules", rules=OTHER_RULES)
    world.settle()
    world.deploy("ls-a", {**WALL, "parameters": {"rules": [allow("25", "::/0")]}})
    world.settle()
    assert operations(world, before) == ["firewalls:set_rules"] * 2


@pytest.mark.rule("T10", "S16")
def test_labels_that_somebody_changes_within_the_one_call_are_lost_and_that_is_no_violation(
    world: HetznerWorld,
) -> None:
    """What the fact sheets say cannot be closed at Hetzner: the monitor, who sees inside, counts it as a lost race."""
    number = wall(world)
    world.hetzner.relabel("firewalls", number, fractal_cloud="reconcile")

    def act(_: Any) -> None:
        world.hetzner.relabel("firewalls", number, managed_by=None)

    world.cloud.knobs.before_call(act, times=1, operation="update", actor="agent")
    world.settle()
    assert world.hetzner.labels("firewalls", number)["managed-by"] == "fractal-cloud"
    monitor = world.cloud.monitor
    assert not monitor.violations
    assert [finding.rule for finding in monitor.lost_races] == ["T3"]


@pytest.mark.rule("S16")
def test_a_race_lost_over_a_change_is_reported(world: HetznerWorld) -> None:
    number = wall(world)

    def act(_: Any) -> None:
        world.hetzner.relabel("firewalls", number, managed_by=None)

    world.hetzner.act("firewalls", number, "set_rules", rules=OTHER_RULES)
    world.cloud.knobs.before_call(act, times=1, operation="set_rules", actor="agent")
    world.cycle()
    assert "RaceLost" in {event["kind"] for event in world.events("ls-a")}
    world.settle()
    assert world.status("ls-a", "wall") == "ManualOverride"
    assert not world.cloud.monitor.violations
    assert [finding.rule for finding in world.cloud.monitor.lost_races] == ["S7"]


@pytest.mark.rule("S16", "O10")
def test_labels_that_change_between_the_reads_before_a_deletion_stop_it(
    cloud: Hetzner, project: Sandbox, person: HetznerPerson
) -> None:
    made = person.create("firewalls", "wall", labels=stamp("ls-a").to_mapping())
    offer = HetznerFirewallOffer()
    with cloud.calling_as(CallContext("ls-a", "wall", "delete")):
        seen = offer.read(cloud, str(made["id"]))
        assert seen is not None
        person.relabel("firewalls", made["id"], managed_by=None)
        with pytest.raises(Overtaken):
            offer.delete(cloud, seen)
    assert person.named("firewalls", "wall")
    assert not project.hetzner.monitor.violations
