"""An unchanged page is not parsed again, who is not affected is not judged again, and nothing is missed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fractal_cloud.agent.evaluator import Evaluator
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.seen_pages import SeenPages, fingerprint
from fractal_cloud.rules.judge import Judgement
from fractal_cloud.rules.situate import View
from tests.world import World, subnet, vpc

VPC = "NetworkAndCompute.IaaS.AwsVpc"
NAMES = tuple(f"net-{number}" for number in range(5))


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The components that are judged, as they are."""
    found: list[str] = []
    judge = Evaluator.judge

    def noted(evaluator: Evaluator, tracked: Tracked, view: View | None = None) -> Judgement:
        found.append(tracked.component_id)
        return judge(evaluator, tracked, view)

    monkeypatch.setattr(Evaluator, "judge", noted)
    return found


def held(world: World) -> HeldScope:
    """The one scope the agent holds."""
    [leased] = world.agent._leases.scopes.values()
    return leased.held


def at_rest(world: World, *more: dict[str, object]) -> dict[str, str]:
    """Five VPCs, two on a page, all at rest; their ids by name."""
    world.cloud.knobs.page_size = 2
    world.deploy("ls-a", *(vpc(name, cidrBlock=f"10.{n}.0.0/16") for n, name in enumerate(NAMES)), *more)
    world.settle()
    world.cycle()
    return {name: world.output("ls-a", name, "vpcId") for name in NAMES}


def pages(world: World) -> dict[bytes, tuple[Sighting | UnreadItem, ...]]:
    """The pages of VPCs of the last read."""
    return dict(held(world).observed.pages[VPC])


@pytest.mark.rule("S20", "O4")
def test_every_page_is_asked_for_and_none_is_parsed_again_while_nothing_changes(world: World) -> None:
    at_rest(world)
    before = pages(world)
    world.sandbox.aws.calls.clear()
    world.cycle()
    after = pages(world)
    assert len(before) >= 3
    assert after.keys() == before.keys()
    assert all(after[key] is before[key] for key in before)
    assert world.sandbox.aws.calls.count(operation="DescribeVpcs") == len(before)


@pytest.mark.rule("G1", "S7")
@pytest.mark.parametrize("name", NAMES)
def test_a_tag_that_changes_on_any_page_is_seen_in_the_next_cycle(world: World, name: str) -> None:
    ids = at_rest(world)
    before = pages(world)
    world.person.break_glass(ids[name])
    world.cycle()
    assert world.status("ls-a", name) == "ManualOverride"
    assert {world.status("ls-a", other) for other in NAMES if other != name} == {"Active"}
    assert len(pages(world).keys() - before.keys()) == 1, "only its page is read anew"
    world.assert_safe()


@pytest.mark.rule("S20")
def test_things_that_move_between_pages_are_still_seen(world: World) -> None:
    at_rest(world)
    world.cloud.knobs.page_size = 3
    [result] = world.cycle()
    assert (result.changes, result.writes) == (0, 0)
    assert held(world).work.is_quiet


@pytest.mark.rule("S2", "S12a", "G1")
def test_what_moves_and_changes_at_once_is_seen(world: World) -> None:
    ids = at_rest(world)
    world.person.break_glass(ids[NAMES[4]])
    world.person.ec2.delete_vpc(VpcId=ids[NAMES[0]])  # all others move up by one
    world.settle()
    assert world.status("ls-a", NAMES[4]) == "ManualOverride"
    assert world.status("ls-a", NAMES[0]) == "Active", "it was created again"
    assert world.output("ls-a", NAMES[0], "vpcId") != ids[NAMES[0]]
    world.assert_safe()


@pytest.mark.rule("S0")
def test_a_list_that_is_not_read_to_its_end_stands_for_nothing(world: World) -> None:
    ids = at_rest(world)
    world.cloud.knobs.fail_page(2, operation="DescribeVpcs", times=None)
    world.cycle()
    assert VPC not in held(world).observed.pages
    assert {world.status("ls-a", name) for name in NAMES} == {"Active"}
    assert "cannot be read" in world.component("ls-a", NAMES[0])["message"]
    world.cloud.knobs.reset()
    world.person.break_glass(ids[NAMES[0]])  # on the page that had been read
    world.cycle()
    assert world.status("ls-a", NAMES[0]) == "ManualOverride"
    assert world.status("ls-a", NAMES[1]) == "Active"


def test_an_edit_of_one_thing_judges_it_and_what_refers_to_it_alone(world: World, judged: list[str]) -> None:
    ids = at_rest(world, subnet("inner", NAMES[1], cidrBlock="10.1.1.0/24"))
    world.person.tag(ids[NAMES[0]], cost_center="4711")
    judged.clear()
    world.cycle()
    assert set(judged) == {NAMES[0]}
    world.person.tag(ids[NAMES[1]], cost_center="4711")
    judged.clear()
    world.cycle()
    assert set(judged) == {NAMES[1], "inner"}


@pytest.mark.rule("G1", "S11")
def test_edits_in_every_cycle_judge_those_edited_now_and_those_edited_last(world: World, judged: list[str]) -> None:
    ids = at_rest(world)
    world.cycle()
    for now, last in zip(NAMES, (None, *NAMES), strict=False):
        world.person.break_glass(ids[now])
        judged.clear()
        world.cycle()
        assert set(judged) == {now, last} - {None}
        assert world.status("ls-a", now) == "ManualOverride"


@pytest.mark.rule("S16", "S12")
def test_a_write_is_guarded_by_a_read_of_its_own_whatever_is_known(world: World) -> None:
    at_rest(world, subnet("inner", NAMES[1], cidrBlock="10.1.1.0/24", mapPublicIpOnLaunch=False))
    subnet_id = world.output("ls-a", "inner", "subnetId")
    world.person.ec2.modify_subnet_attribute(SubnetId=subnet_id, MapPublicIpOnLaunch={"Value": True})
    world.sandbox.aws.calls.clear()
    world.settle()
    asked = [call.call.operation for call in world.sandbox.aws.calls.find("ec2")]
    written = asked.index("ModifySubnetAttribute")
    assert asked[written - 1] == "DescribeSubnets"
    assert world.drift("ls-a", "inner") is None


@pytest.mark.rule("G3")
def test_a_new_declaration_is_judged_also_where_the_cloud_reports_nothing_new(world: World) -> None:
    ids = at_rest(world)
    world.person.break_glass(ids[NAMES[0]])
    world.settle()
    world.deploy("ls-a", *(vpc(name, cidrBlock=f"10.{n + 9 * (n == 0)}.0.0/16") for n, name in enumerate(NAMES)))
    world.cycle()
    assert world.drift("ls-a", NAMES[0]) == {"cidrBlock": {"declared": "10.9.0.0/16", "actual": "10.0.0.0/16"}}


class TestRecall:
    """The memory of one list by itself."""

    ONE = Sighting(VPC, "net", "vpc-1")

    def test_a_page_shows_what_it_showed_when_it_was_read(self) -> None:
        first = SeenPages()
        assert list(first.sightings(b"page", lambda: [self.ONE])) == [self.ONE]
        second = SeenPages({"vpc-1": self.ONE}, first.pages)
        assert second.has_page(b"page")
        assert list(second.sightings(b"page", _never)) == [self.ONE]

    def test_one_thing_on_two_pages_is_what_each_of_them_says(self) -> None:
        newer = replace(self.ONE, name="renamed")
        first = SeenPages()
        list(first.sightings(b"early", lambda: [self.ONE]))
        list(first.sightings(b"late", lambda: [newer]))
        second = SeenPages({"vpc-1": newer}, first.pages)
        assert list(second.sightings(b"early", _never)) == [self.ONE]

    def test_a_page_without_a_fingerprint_is_always_read(self) -> None:
        reads = _Counted([self.ONE])
        seen_pages = SeenPages()
        for _ in range(2):
            list(seen_pages.sightings(None, reads))
        assert reads.times == 2
        assert seen_pages.pages == {}

    def test_an_equal_thing_is_the_same_object_and_a_page_that_is_gone_is_forgotten(self) -> None:
        seen_pages = SeenPages({"vpc-1": self.ONE}, {b"page": (self.ONE,)})
        [found] = seen_pages.sightings(b"other", lambda: [replace(self.ONE)])
        assert found is self.ONE
        assert seen_pages.pages.keys() == {b"other"}

    def test_pages_of_different_lists_are_never_taken_for_each_other(self) -> None:
        prints = {fingerprint("eu describe", b"x"), fingerprint("us describe", b"x"), fingerprint("eu describe", b"y")}
        assert len(prints) == 3


def _never() -> Iterator[Sighting]:
    raise AssertionError("the page is known: it is not read")


class _Counted:
    """A read that counts how often it is made."""

    def __init__(self, shown: list[Sighting]) -> None:
        self.times = 0
        self._shown = shown

    def __call__(self) -> list[Sighting]:
        self.times += 1
        return self._shown
