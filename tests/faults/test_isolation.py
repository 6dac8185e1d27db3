"""One type's errors stay its own: what raises, hangs or lies in one offer changes nothing for the others (S24)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.agent.main import LAST_CALL_SECONDS
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.offers.aws.cloud import AwsSession
from fractal_cloud.offers.aws.subnet import AwsSubnetOffer
from fractal_cloud.offers.aws.vpc import AwsVpcOffer
from fractal_sandbox import Sandbox
from tests.world import World, security_group, subnet, vpc
from tests.world import world as make_world

LS = "ls-a"
PAGE = "<html><body><h1>Please log in to the guest network</h1></body></html>"
LONG = 60.0
NOTHING: dict[str, Any] = {}


def deploy_all(world: World, *more: Any) -> None:
    world.deploy(LS, vpc(), subnet(), security_group(description="before"), *more)


def edit_vpc(world: World) -> None:
    """A person switches something of the VPC, which is drift."""
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id(world), EnableDnsSupport={"Value": False})


def vpc_id(world: World) -> str:
    return str(world.component(LS, "net")["resourceId"])


def break_glass(world: World) -> None:
    world.person.ec2.delete_tags(Resources=[vpc_id(world)], Tags=[{"Key": "managed-by"}])


def said(world: World, kind: str, component: str | None = None) -> list[str]:
    """What events of a kind say, the oldest first."""
    events = [event for event in world.events(LS) if event["kind"] == kind]
    return [event["message"] for event in reversed(events) if component in (None, event["componentId"])]


def written(world: World) -> list[dict[str, Any]]:
    """The journal of the VPC, newest first."""
    found: list[dict[str, Any]] = world.api.get(f"/livesystems/{LS}/components/net/journal").json()["items"]
    return found


def fails_at_once(*_: Any) -> Iterator[Any]:
    raise KeyError("SubnetId")


def fails_on_the_way(offer: Any, cloud: Any, query: Any) -> Iterator[Any]:
    yield from list(sightings_of_subnets(offer, cloud, query))[:0]
    raise AttributeError("'NoneType' object has no attribute 'get'")


def lists_nonsense(*_: Any) -> list[Any]:
    return [42]


sightings_of_subnets = AwsSubnetOffer.sightings


@pytest.mark.rule("S24", "S0", "G1")
@pytest.mark.parametrize("breaks", [fails_at_once, fails_on_the_way, lists_nonsense])
def test_an_offer_that_fails_while_it_lists_makes_its_own_type_unreadable_and_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, breaks: Callable[..., Any]
) -> None:
    world.deploy(LS, vpc(enableDnsSupport=True), subnet(), security_group())
    world.settle()
    before = world.component(LS, "subnet")
    monkeypatch.setattr(AwsSubnetOffer, "sightings", breaks)
    edit_vpc(world)
    world.deploy(LS, vpc(enableDnsSupport=True), subnet(), security_group(), security_group("second"))
    world.cycle()
    found = world.person.ec2.describe_vpc_attribute(VpcId=vpc_id(world), Attribute="enableDnsSupport")
    assert found["EnableDnsSupport"]["Value"], "drift of another type is corrected in the same cycle"
    assert world.status(LS, "second") == "Active", "what is new of another type is made in the same cycle"
    after = world.component(LS, "subnet")
    kept = ("status", "stance", "resourceId", "outputFields", "observedGeneration")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert "cannot be read" in after["message"]
    break_glass(world)
    world.cycle()
    assert world.status(LS, "net") == "ManualOverride", "a broken glass is seen within one cycle"
    world.cycle(3)
    assert len(said(world, "Unreadable", "subnet")) == 1, "an event says it once, and not in every cycle"
    monkeypatch.undo()


@pytest.mark.rule("S24")
def test_what_was_unreadable_is_read_again_and_the_next_time_is_said_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy_all(world)
    world.settle()
    for times in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr(AwsSubnetOffer, "sightings", fails_at_once)
            world.cycle(2)
        assert len(said(world, "Unreadable")) == times
        world.settle()
        assert world.component(LS, "subnet")["message"] == "as declared"


@pytest.mark.rule("S24", "S17")
def test_a_write_that_raises_what_nobody_foresaw_counts_as_sent_and_fails_its_component_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = AwsSubnetOffer.create

    def create(offer: Any, cloud: Any, wanted: Any, tags: Any) -> Any:
        make(offer, cloud, wanted, tags)
        raise KeyError("Subnet")

    with monkeypatch.context() as patch:
        patch.setattr(AwsSubnetOffer, "create", create)
        deploy_all(world)
        world.cycle()
        assert world.status(LS, "group") == "Active"
        failed = world.component(LS, "subnet")
        assert failed["status"] == "Failed"
        assert "KeyError: 'Subnet'" in failed["message"]
        assert said(world, "OfferFailed", "subnet")
    world.settle()
    assert len(world.person.ec2.describe_subnets(Filters=[{"Name": "tag:Name", "Values": ["subnet"]}])["Subnets"]) == 1
    assert world.status(LS, "subnet") == "Active"
    world.assert_safe()


@pytest.mark.rule("S24", "S13")
def test_a_component_that_cannot_be_judged_fails_alone_and_keeps_what_is_known_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy_all(world)
    world.settle()
    before = world.component(LS, "group")
    monkeypatch.setattr("fractal_cloud.agent.evaluator.judge", failing_for("group"))
    edited = subnet(mapPublicIpOnLaunch=True)
    world.deploy(LS, vpc(), edited, security_group(description="before"))
    world.cycle(3)
    after = world.component(LS, "group")
    assert after["status"] == "Failed"
    assert "cannot be judged" in after["message"]
    assert (after["resourceId"], after["outputFields"]) == (before["resourceId"], before["outputFields"])
    assert world.output(LS, "subnet", "mapPublicIpOnLaunch") is True
    assert len(said(world, "OfferFailed", "group")) == 1


def failing_for(component: str) -> Callable[..., Any]:
    from fractal_cloud.rules.judge import judge

    def judged(tracked: Any, view: Any, around: Any) -> Any:
        if tracked.component_id == component:
            raise TypeError("unhashable type: 'dict'")
        return judge(tracked, view, around)

    return judged


@pytest.mark.rule("S24")
def test_a_session_that_cannot_connect_makes_its_scope_unreadable_and_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy_all(world)
    world.settle()
    world.restart_agent()
    with monkeypatch.context() as patch:
        patch.setattr(AwsSession, "at", lambda *_: NOTHING["region"])
        world.cycle(2)
        shown = world.component(LS, "net")
        assert (shown["status"], "KeyError: 'region'" in shown["message"]) == ("Active", True), shown
    world.settle()
    assert world.component(LS, "net")["message"] == "as declared"


# --- an answer that is none of the vendor's


@pytest.mark.rule("S0", "S24")
@pytest.mark.parametrize("body", [PAGE, "", "<Response/>", "<DescribeVpcsResponse>", "{}", "nonsense"])
def test_what_is_no_answer_of_aws_is_no_empty_list(world: World, body: str) -> None:
    """A second VPC was made beside a person's, and one that stood was called deleted."""
    knobs = world.sandbox.aws.knobs
    world.deploy(LS, vpc())
    world.settle()
    world.person.ec2.create_vpc(
        CidrBlock="10.9.0.0/16",
        TagSpecifications=[{"ResourceType": "vpc", "Tags": [{"Key": "Name", "Value": "theirs"}]}],
    )
    vpcs = len(world.person.ec2.describe_vpcs()["Vpcs"])
    knobs.answer(body, content_type="text/html", operation="DescribeVpcs", actor="agent")
    world.deploy(LS, vpc(), vpc("theirs", cidrBlock="10.9.0.0/16"))
    world.cycle(3)
    assert len(world.person.ec2.describe_vpcs()["Vpcs"]) == vpcs, "nothing is made while nothing can be read"
    shown = world.component(LS, "net")
    assert shown["status"] == "Active", shown
    assert "cannot be read" in shown["message"], shown
    world.delete(LS)
    world.cycle(2)
    assert world.component(LS, "net")["status"] != "Deleted"
    world.assert_safe()


@pytest.mark.rule("S0", "S17")
def test_a_write_that_something_else_answers_may_have_been_sent(world: World) -> None:
    knobs = world.sandbox.aws.knobs
    rule = knobs.answer(PAGE, content_type="text/html", when="after", operation="CreateVpc", actor="agent")
    world.deploy(LS, vpc())
    world.cycle()
    knobs.remove(rule)
    world.settle()
    assert len(world.sandbox.aws.calls.find(operation="CreateVpc", actor="agent")) == 1
    assert world.status(LS, "net") == "Active"


@pytest.mark.rule("S24")
def test_one_item_that_cannot_be_understood_says_nothing_of_the_others(world: World) -> None:
    world.deploy(LS, vpc(enableDnsSupport=True), vpc("other", cidrBlock="10.1.0.0/16"))
    world.settle()
    edit_vpc(world)
    world.sandbox.aws.knobs.rewrite(
        lambda body: body.replace(b"<cidrBlock>10.1.0.0/16</cidrBlock>", b""), operation="DescribeVpcs", actor="agent"
    )
    world.deploy(
        LS, vpc(enableDnsSupport=True), vpc("other", cidrBlock="10.1.0.0/16"), vpc("third", cidrBlock="10.2.0.0/16")
    )
    world.cycle(2)
    assert "KeyError: 'CidrBlock'" in world.component(LS, "other")["message"]
    assert world.status(LS, "other") == "Active"
    assert world.status(LS, "third") == "Active", "it is none of the items that cannot be understood"
    found = world.person.ec2.describe_vpc_attribute(VpcId=vpc_id(world), Attribute="enableDnsSupport")
    assert found["EnableDnsSupport"]["Value"]


# --- calls that do not return


class Clock:
    """The watchdog's, moved by a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.dogs: list[Watchdog] = []
        begin = Watchdog.__init__

        def made(dog: Watchdog, seconds: float, clock: Any = None) -> None:
            del clock
            begin(dog, seconds, lambda: self.now)
            self.dogs.append(dog)

        monkeypatch.setattr(Watchdog, "__init__", made)

    def wait_for_the_others(self) -> None:
        """Until nothing is under way but the one call that hangs: time passes for all of them."""
        until = time.monotonic() + LONG
        while sum(dog.calls_under_way for dog in self.dogs) > 1 and time.monotonic() < until:
            time.sleep(0.005)

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        for dog in self.dogs:
            dog.recheck()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def timed(clock: Clock, session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose agents give calls up by the test's clock."""
    del clock
    with make_world(session_sandbox, tmp_path, monkeypatch, visibility_seconds=0.5) as made:
        yield made


class Hanging:
    """One verb of an offer that does not return while inside."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, offer: Any, verb: str, *, before: bool = True) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        call = getattr(offer, verb)

        def hang(*args: Any) -> Any:
            if not before:
                call(*args)
            self.begun.set()
            assert self.released.wait(LONG)
            return call(*args) if before else None

        monkeypatch.setattr(offer, verb, hang)

    def during(self, world: World, clock: Clock, seconds: float = 120.0) -> None:
        """One cycle, in which the verb hangs until it is given up."""
        self.begun.clear()
        cycle = threading.Thread(target=world.cycle, daemon=True)
        cycle.start()
        assert self.begun.wait(LONG), "the verb was never called"
        clock.wait_for_the_others()
        clock.pass_by(seconds)
        cycle.join(LONG)
        assert not cycle.is_alive(), "the cycle did not end"


@pytest.mark.rule("S24", "G1")
def test_a_verb_that_hangs_is_given_up_and_the_scope_lives_on(
    timed: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy_all(timed)
    timed.settle()
    break_glass(timed)
    with monkeypatch.context() as patch:
        hanging = Hanging(patch, AwsSubnetOffer, "sightings")
        hanging.during(timed, clock)
        assert timed.status(LS, "net") == "ManualOverride", "in the very cycle in which another type was given up"
        assert "did not return within 120 s" in timed.component(LS, "subnet")["message"]
        timed.cycle(2)  # the verb is not called again, so that no thread is added in every cycle
        assert "is not called again until it does" in timed.component(LS, "subnet")["message"]
        hanging.released.set()
    for _ in range(50):
        timed.cycle()
        if timed.component(LS, "subnet")["message"] == "as declared":
            break
    assert timed.component(LS, "subnet")["message"] == "as declared"


@pytest.mark.rule("S24")
def test_an_agent_with_a_verb_that_hangs_heartbeats_stops_and_leaves_its_scope_to_another(
    timed: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy_all(timed)
    timed.settle()
    first = timed.agent
    with monkeypatch.context() as patch:
        hanging = Hanging(patch, AwsSubnetOffer, "sightings")
        running = threading.Thread(target=first.run, daemon=True)
        running.start()
        assert hanging.begun.wait(LONG)
        beats = _heartbeats(timed)
        until = time.monotonic() + LONG
        while _heartbeats(timed) == beats and time.monotonic() < until:
            time.sleep(0.01)
        assert _heartbeats(timed) > beats, "an agent with a verb that hangs still says that it lives"
        clock.wait_for_the_others()
        first.stop()
        while running.is_alive() and time.monotonic() < until:
            clock.pass_by(LAST_CALL_SECONDS)
            running.join(0.05)
        assert not running.is_alive(), "it did not stop"
        hanging.released.set()
    break_glass(timed)
    timed.start_agent()
    timed.cycle()
    assert timed.status(LS, "net") == "ManualOverride", "another agent has the scope at once"


def _heartbeats(world: World) -> list[Any]:
    found: Any = world.api.get("/agents").json()
    return [one["lastSeen"] for one in (found["items"] if isinstance(found, dict) else found)]


@pytest.mark.rule("S24", "S17")
@pytest.mark.parametrize("successor", [False, True], ids=["the same agent", "another agent"])
def test_an_update_that_was_given_up_holds_back_the_next_write_until_it_would_have_shown(
    timed: World, clock: Clock, monkeypatch: pytest.MonkeyPatch, successor: bool
) -> None:
    timed.deploy(LS, vpc(enableDnsSupport=True))
    timed.settle()
    edit_vpc(timed)
    calls = timed.sandbox.aws.calls
    with monkeypatch.context() as patch:
        hanging = Hanging(patch, AwsVpcOffer, "update")
        hanging.during(timed, clock)
        assert "may still take effect" in timed.component(LS, "net")["message"]
        assert said(timed, "CallGivenUp", "net")
        assert written(timed)[0]["outcome"] == "unknown"
        if successor:
            timed.restart_agent()
        assert not calls.find(operation="ModifyVpcAttribute", actor="agent")
        timed.cycle()
        assert not calls.find(operation="ModifyVpcAttribute", actor="agent"), "written before the window was over"
    hanging.released.set()
    timed.settle(at_most=40)
    found = timed.person.ec2.describe_vpc_attribute(VpcId=vpc_id(timed), Attribute="enableDnsSupport")
    assert found["EnableDnsSupport"]["Value"]
    timed.assert_safe()


@pytest.mark.rule("S24", "S17")
def test_a_creation_that_was_given_up_and_took_effect_is_recognised(
    timed: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed.deploy(LS, vpc())
    with monkeypatch.context() as patch:
        hanging = Hanging(patch, AwsVpcOffer, "create", before=False)
        hanging.during(timed, clock)
        hanging.released.set()
    timed.settle(at_most=40)
    assert len(timed.sandbox.aws.calls.find(operation="CreateVpc", actor="agent")) == 1
    assert timed.status(LS, "net") == "Active"
    timed.assert_safe()
