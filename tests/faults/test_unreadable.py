"""What cannot be read is neither absent nor present: nothing is decided from it, and nothing written (S0).

Every operation by which a type is looked for is denied, throttled, cut off, or ends before its last page, while people
give the agent every reason to write: something has drifted, something is to be made, something is to go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from fractal_cloud.model.component import Component
from fractal_cloud.offers.aws import cloud
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.registry import installed
from fractal_cloud.testing import OfferExample
from fractal_sandbox import Sandbox
from tests.conftest import SOAK
from tests.faults.effects import Fault
from tests.faults.worlds import FaultyWorld, faulty_world
from tests.offers.aws.cases import example_of, prepare
from tests.offers.aws.examples import EXAMPLES

LIVE_SYSTEM = "ls-a"
KINDS = {kind.__name__: kind for kind in EXAMPLES}
CYCLE = 0.1  # long enough that waiting is mostly sleeping
HIDDEN, WINDOW = 1.0, 2.5
# By which the account that is really reached is confirmed (S26).
ACCOUNT = ("sts:GetCallerIdentity",)


def _listings(kind: type[Component]) -> dict[str, bool]:
    """The operations by which a type, and what its name is unique in, is looked for; whether each has pages."""
    offer = installed()[kind.type]
    assert isinstance(offer, AwsOffer)
    service, listings = offer.resource.service.name, offer.resource.listings
    found = {f"{service}:{one.operation}": not one.is_by_name for one in listings}
    if offer.parent is not None:
        parent, _ = offer.facts().references()[offer.parent]
        found |= _listings(installed()[parent].component)
    return found | {name: "ListTags" not in name for name in EXAMPLES[kind].also_listed_by}


READS = {name: tuple(_listings(kind)) for name, kind in KINDS.items()}
READS["AwsVpc"] += ACCOUNT
# These have no pages, or one only.
UNPAGED = {
    "*-sts:*",
    "AwsEcsService-ecs:ListClusters",
    *(f"*-{name}" for kind in EXAMPLES for name, has_pages in _listings(kind).items() if not has_pages),
}
# Of parameters alone (S23): existence and tags do not hang on them. Volumes are read in bulk, beside the instances.
SWEPT = ("ec2:Describe*Attribute", "ec2:DescribeVolumes", "s3:GetBucket*", "s3:GetPublicAccessBlock")
READ_OPERATIONS = [
    pytest.param(kind, operation, id=f"{kind}-{operation}", marks=pytest.mark.xdist_group(f"unreadable {kind}"))
    for kind, operations in READS.items()
    for operation in operations
]


class Outage:
    """A settled world with one resource under test, and a second one that comes and goes."""

    def __init__(self, kind: str, world: FaultyWorld) -> None:
        self.kind = kind
        self.world = world
        self.example: OfferExample = example_of(KINDS[kind], world.person.client)
        prepare(KINDS[kind], world.person.client)
        name = str(self.example.declaration["id"])
        self.subject = self.example.under_name(f"{name}-1")
        parameters = {**self.example.declaration["parameters"], **EXAMPLES[KINDS[kind]].twin}
        self.twin = self.example.under_name(f"{name}-2", parameters=parameters)
        self._references = {name for name, value in self.example.changes.items() if _names(value, self.example)}

    @property
    def id(self) -> str:
        return str(self.subject["id"])

    def deploy(self, *more: dict[str, Any]) -> None:
        self.world.deploy(LIVE_SYSTEM, *self.example.parents, self.subject, *more)

    def drift(self) -> None:
        """A person edits something, for which there is a reason to write."""
        name = next(name for name in self.example.editable() if name not in self._references)
        self.example.operator.edit(self.shown["resourceId"], name, self.example.changes[name])

    @property
    def shown(self) -> dict[str, Any]:
        return self.world.component(LIVE_SYSTEM, self.id)

    def count(self, component: dict[str, Any]) -> int:
        return len(self.example.operator.find(str(component["id"])))

    def recovers(self) -> None:
        """Once everything can be read again, everything comes to what was declared."""
        self.world.survive(at_most=80)
        assert self.shown["status"] == "Active", self.shown
        assert "drift" not in self.shown["outputFields"]
        assert self.count(self.subject) == 1
        self.world.assert_safe()


def _names(value: Any, example: OfferExample) -> bool:
    ids = {parent["id"] for parent in example.parents}
    return bool(ids & set(value)) if isinstance(value, list) and all(isinstance(one, str) for one in value) else False


@pytest.fixture(scope="module")
def outage(
    request: pytest.FixtureRequest, session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outage]:
    """One attempt per read: how often the SDK tries before it gives up is not what is tested here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cloud, "READ_ATTEMPTS", 1)
        folder = tmp_path_factory.mktemp("unreadable")
        with faulty_world(session_sandbox, folder, FaultyWorld, cycle_seconds=CYCLE) as world:
            made = Outage(request.param, world)
            made.deploy()
            world.survive()
            yield made


@pytest.mark.parametrize("outage", list(READS), indirect=True, scope="module")
def test_every_operation_that_reads_is_known_here(outage: Outage, request: pytest.FixtureRequest) -> None:
    known = {operation for operations in READS.values() for operation in operations}
    outage.world.sandbox.aws.calls.clear()
    outage.world.cycle()
    asked = {f"{one.service}:{one.operation}" for one in outage.world.sandbox.aws.calls.find(actor="agent")}
    unknown = [one for one in asked - known if not any(fnmatchcase(one, pattern) for pattern in SWEPT)]
    assert not unknown, f"{unknown} can fail as well: add them to READS"


@pytest.mark.timeout(300)
@pytest.mark.rule("S0", "O10")
@pytest.mark.parametrize(("outage", "operation"), READ_OPERATIONS, indirect=["outage"], scope="module")
def test_what_cannot_be_read_is_left_as_it_is(outage: Outage, operation: str) -> None:
    service, _, name = operation.partition(":")
    where: dict[str, Any] = {"service": service, "operation": name, "actor": "agent"}
    world = outage.world
    is_twin_wanted = False
    # The twin is there in every second one, so that there is a second page.
    modes = ["denied", "page 2", "throttled", "cut"]
    if any(fnmatchcase(f"{outage.kind}-{operation}", pattern) for pattern in UNPAGED):
        modes[1] = "failing"
    if not SOAK:  # two of the four, the others with the next operation
        half = 2 * (list(READS[outage.kind]).index(operation) % 2)
        modes = modes[half : half + 2]
    for mode in modes:
        outage.drift()
        before, written = outage.shown, len(world.writes())
        with Unreadable(world, mode, where):
            is_twin_wanted = not is_twin_wanted
            outage.deploy(*([outage.twin] if is_twin_wanted else []))
            world.cycle()
            world.cycle()
            after = outage.shown
            kept = ("status", "stance", "resourceId", "outputFields")
            assert {key: after[key] for key in kept} == {key: before[key] for key in kept}, f"{mode}: {after}"
            assert "cannot be read" in after["message"], f"{mode}: {after['message']}"
            assert after["observedGeneration"] == before["observedGeneration"], f"{mode}: S22"
            assert len(world.writes()) == written, f"{mode}: {world.writes()[written:]}"
            assert outage.count(outage.twin) == (0 if is_twin_wanted else 1), mode
            twin = world.find_component(LIVE_SYSTEM, str(outage.twin["id"]))
            assert twin is not None, f"{mode}: the twin was given up unread"
            assert "cannot be read" in twin["message"], f"{mode}: {twin['message']}"
        outage.recovers()
        assert outage.count(outage.twin) == (1 if is_twin_wanted else 0), f"after {mode}"


class Unreadable:
    """While inside: reading ends badly in one way."""

    def __init__(self, world: FaultyWorld, mode: str, where: dict[str, Any]) -> None:
        self._knobs = world.sandbox.aws.knobs
        self._mode = mode
        self._where = where

    def __enter__(self) -> None:
        always = {"times": None, **self._where}
        match self._mode:
            case "denied":
                self._rule: Any = self._knobs.fail(code="AccessDenied", status=403, message="not yours", **always)
            case "failing":
                self._rule = self._knobs.fail(code="InternalError", status=500, **always)
            case "cut":
                self._rule = self._knobs.fail(cut=True, **always)
            case "throttled":
                self._rule = self._knobs.throttle(next_calls=1_000, **self._where)
            case _:
                self._knobs.page_size = 1
                self._rule = self._knobs.fail_page(2, code="InternalError", status=500, **always)

    def __exit__(self, *_: object) -> None:
        self._knobs.remove(self._rule)
        self._knobs.page_size = None


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "S15")
@pytest.mark.parametrize(
    "is_answer_lost",
    [pytest.param(True, id="answer lost"), pytest.param(False, id="answer received", marks=pytest.mark.soak)],
)
@pytest.mark.parametrize("kind", list(READS))
def test_what_is_created_and_shows_late_is_made_once(
    kind: str, is_answer_lost: bool, session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("late")
    with faulty_world(session_sandbox, folder, FaultyWorld, cycle_seconds=CYCLE, visibility_seconds=WINDOW) as world:
        outage = Outage(kind, world)
        world.deploy(LIVE_SYSTEM, *outage.example.parents)
        world.survive()
        world.sandbox.aws.knobs.late_visibility(seconds=HIDDEN)
        world.effects.arm(1, Fault.ANSWER_LOST if is_answer_lost else None)
        outage.deploy()
        world.cycle()
        assert outage.shown["status"] == "Instantiating", outage.shown
        outage.recovers()
        races = world.sandbox.aws.monitor.lost_races
        assert not races, races


@pytest.mark.rule("S17")
def test_a_creation_that_never_arrived_is_tried_again_after_the_window(
    session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("window")
    with faulty_world(session_sandbox, folder, FaultyWorld, cycle_seconds=CYCLE, visibility_seconds=WINDOW) as world:
        outage = Outage("AwsVpc", world)
        world.effects.arm(1, Fault.CALL_LOST)
        outage.deploy()
        started = time.monotonic()
        while time.monotonic() < started + WINDOW / 2:
            world.cycle()
            is_too_early = time.monotonic() < started + WINDOW
            assert not (is_too_early and outage.count(outage.subject)), "tried again before it could have shown"
        outage.recovers()


@pytest.mark.rule("S17")
def test_the_window_of_a_lost_creation_does_not_pass_while_the_call_is_under_way(
    session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("slow")
    with faulty_world(session_sandbox, folder, FaultyWorld, cycle_seconds=CYCLE, visibility_seconds=HIDDEN) as world:
        outage = Outage("AwsVpc", world)
        world.sandbox.aws.knobs.latency(HIDDEN, operation="CreateVpc")
        world.sandbox.aws.knobs.late_visibility(seconds=HIDDEN / 2)
        world.effects.arm(1, Fault.ANSWER_LOST)
        outage.deploy()
        outage.recovers()
        assert world.sandbox.aws.calls.count(operation="CreateVpc") == 1
