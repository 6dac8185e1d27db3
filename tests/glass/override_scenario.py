"""One manual override from begin to end, the same on every cloud: only the commands that a person types differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.tags import MANAGED_BY, OWNER, RECONCILE
from tests.faults.worlds import FaultyWorld
from tests.glass.printed_commands import Run, commands

NAME = "mine"
Lines = Callable[[str], Sequence[str]]
"""The commands to type, for the id of the resource."""


@dataclass(frozen=True)
class OverrideScenario:
    """One type of a cloud, with the vendor's own commands for it.

    ``declare``: the component of an id; the scenario is about ``mine``. ``parents``: what it lies in. ``parameter`` is
    ``declared`` at first, ``edit`` makes it ``edited``, and ``third`` is one more valid value. ``create`` makes one
    that is named ``legacy``, as ``declare`` says it and without tags. ``label`` puts a tag of somebody else on it, and
    ``others`` returns all such tags.
    """

    declare: Callable[..., dict[str, Any]]
    parameter: str
    declared: Any
    edited: Any
    third: Any
    edit: Lines
    delete: Lines
    create: Sequence[str]
    label: Callable[[str], object]
    others: Callable[[str], Mapping[str, str]]
    parents: tuple[dict[str, Any], ...] = ()


def not_ours(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags of others, where the three are spelled alike."""
    return {key: value for key, value in tags.items() if key not in (MANAGED_BY, OWNER, RECONCILE)}


def play(world: FaultyWorld, run: Run, scenario: OverrideScenario) -> None:
    """Break the glass, keep the edit, revert, push, delete and import, with the commands that the product prints."""
    steps = _Steps(world, run, scenario)
    steps.deploy_with_foreign_tag()
    steps.edit_in_override()
    steps.keep_the_edit()
    steps.revert_the_edit()
    steps.force_push()
    steps.delete_in_override()
    steps.import_by_name()
    world.assert_safe()


class _Steps:
    """The steps of the scenario, each with what must follow from it."""

    def __init__(self, world: FaultyWorld, run: Run, scenario: OverrideScenario) -> None:
        self.world, self.run, self.scenario = world, run, scenario
        self.resource = ""
        self.others: Mapping[str, str] = {}

    def deploy_with_foreign_tag(self) -> None:
        self.deploy(self.scenario.declared)
        self.world.settle()
        self.resource = self.world.component("ls-a", NAME)["resourceId"]
        self.scenario.label(self.resource)
        self.others = self.scenario.others(self.resource)
        assert self.others, "there is a tag of somebody else to be kept"

    def edit_in_override(self) -> None:
        self.edit()
        assert self.world.status("ls-a", "calm") == "Active", "it concerns nobody else (G4)"
        self.deploy(self.scenario.third)
        assert self.drift() == self.differs(self.scenario.third), "a deploy changes only the report (G6)"
        assert self.drift(3) == self.differs(self.scenario.third), "and no time passes that would end it (G5)"

    def keep_the_edit(self) -> None:
        self.deploy(self.scenario.edited)
        assert self.drift() is None
        before = len(self.world.writes())
        self.hand_back(NAME)
        assert [write.reason for write in self.world.writes()[before:]] == ["handshake"], "only reconcile goes (G8)"

    def revert_the_edit(self) -> None:
        self.deploy(self.scenario.declared)
        self.world.settle()
        self.edit()
        self.hand_back(NAME)
        assert self.world.drift("ls-a", NAME) is None, "handed back at once, everything returns (G8)"

    def force_push(self) -> None:
        self.edit()
        assert self.world.force_push("ls-a", NAME).status_code == 202
        self.world.settle()
        assert self.world.status("ls-a", NAME) == "Active"
        assert self.world.drift("ls-a", NAME) is None
        assert self.world.component("ls-a", NAME)["resourceId"] == self.resource
        assert self.scenario.others(self.resource) == self.others, "nobody else's tag is lost (G12)"

    def delete_in_override(self) -> None:
        self.break_glass()
        self.world.cycle()
        self.type_in(self.scenario.delete(self.resource))
        self.drift(2)
        self.deploy(self.scenario.declared)
        self.world.settle()
        assert self.world.status("ls-a", NAME) == "Active", "a deploy after it was said creates it (G9)"

    def import_by_name(self) -> None:
        self.type_in(self.scenario.create)
        self.deploy(self.scenario.declared, self.declared("legacy", self.scenario.declared))
        self.world.cycle()
        assert self.world.status("ls-a", "legacy") == "ManualOverride"
        self.hand_back("legacy")

    # --- what the steps are made of

    def declared(self, name: str, value: Any) -> dict[str, Any]:
        return self.scenario.declare(name, **{self.scenario.parameter: value})

    def deploy(self, value: Any, *more: dict[str, Any]) -> None:
        calm = self.declared("calm", self.scenario.declared)
        self.world.deploy("ls-a", *self.scenario.parents, self.declared(NAME, value), calm, *more)

    def type_in(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.run(line)

    def break_glass(self) -> None:
        self.type_in(commands(self.world, NAME)[0])

    def hand_back(self, name: str) -> None:
        self.type_in(commands(self.world, name)[1])
        self.world.settle()
        assert self.world.status("ls-a", name) == "Active"

    def edit(self) -> None:
        self.break_glass()
        self.type_in(self.scenario.edit(self.resource))
        assert self.drift() == self.differs(self.scenario.declared)

    def drift(self, cycles: int = 1) -> Any:
        self.world.cycle(cycles)
        assert self.world.status("ls-a", NAME) == "ManualOverride"
        return self.world.drift("ls-a", NAME)

    def differs(self, declared: Any) -> dict[str, Any]:
        return {self.scenario.parameter: {"declared": declared, "actual": self.scenario.edited}}
