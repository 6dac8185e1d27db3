"""Many creations at once: the first begin while the intents of the next are published, and none before its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.agent.client import ControlPlane, ControlPlaneUnreachable
from fractal_cloud.model.wire import Report, Reported
from fractal_sandbox import Sandbox
from tests.world import World, vpc
from tests.world import world as make_world

COUNT = 12
"""With one call at a time: two intents are published first, then eight, then the last two."""


@pytest.fixture
def many(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose agent makes one call at a time, with many VPCs to create."""
    with make_world(session_sandbox, tmp_path, monkeypatch, concurrency=1) as made:
        made.deploy("ls-a", *(vpc(f"net-{number}", cidrBlock=f"10.{number}.0.0/16") for number in range(COUNT)))
        made.agent.close()
        yield made


class Listening(ControlPlane):
    """The way to the control plane: how many intents each report had, and how many calls had been made by then."""

    def __init__(self, plane: ControlPlane, world: World, at_most: int = 100) -> None:
        self.__dict__ = plane.__dict__
        self.world = world
        self.left = at_most
        self.intents: list[int] = []
        self.made: list[int] = []

    def report(self, report: Report) -> Reported:
        """Publish, as long as the control plane is there."""
        if self.left == 0:
            raise ControlPlaneUnreachable("gone meanwhile")
        self.left -= 1
        self.made.append(_created(self.world))
        answer = super().report(report)
        self.intents.append(sum(entry.outcome is None for scope in report.scopes for entry in scope.journal))
        return answer


def _created(world: World) -> int:
    return int(world.sandbox.aws.calls.count(operation="CreateVpc", actor="agent"))


@pytest.mark.rule("S17", "C7")
def test_no_creation_is_called_for_before_its_intent_is_published(many: World) -> None:
    heard: list[Listening] = []

    def listening(plane: ControlPlane) -> ControlPlane:
        heard.append(Listening(plane, many))
        return heard[0]

    many.start_agent(listening)
    many.cycle()
    assert heard[0].intents[:3] == [2, 8, 2]
    assert all(made <= sum(heard[0].intents[:number]) for number, made in enumerate(heard[0].made))
    many.settle()
    assert _created(many) == COUNT
    many.assert_safe()


@pytest.mark.rule("S17", "C7")
def test_a_control_plane_that_goes_away_meanwhile_ends_the_writing_and_nothing_is_made_twice(many: World) -> None:
    many.start_agent(lambda plane: Listening(plane, many, at_most=1))
    many.cycle()
    assert _created(many) <= 2
    many.restart_agent()
    many.settle()
    found = many.person.ec2.describe_vpcs(Filters=[{"Name": "tag:Name", "Values": ["net-*"]}])["Vpcs"]
    assert len(found) == COUNT
    many.assert_safe()
