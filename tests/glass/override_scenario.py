"""A whole night on one resource, the same on every cloud: what a person types changes, what must follow does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.tags import MANAGED_BY, OWNER, RECONCILE
from tests.faults.worlds import FaultyWorld
from tests.glass.printed_commands import Run, commands

NAME = "mine"
Lines = Callable[[str], Sequence[str]]
"""What is typed, for the id of the resource."""


@dataclass(frozen=True)
class Night:
    """One type of a cloud, with the vendor's own commands for it.

    ``declare``: the component of an id, the night being about ``mine``; ``parents``: what it lies in. ``parameter`` is
    ``declared`` at first, ``edit`` makes it ``edited``, and ``third`` is one more valid value. ``create`` makes one
    that is named ``legacy``, as ``declare`` says it and without tags. ``label`` puts a tag of somebody else on it, and
    ``others`` tells which there are.
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


def spend(world: FaultyWorld, run: Run, night: Night) -> None:
    """Break the glass, look, keep, revert, push, delete and bring in, in the words that the product prints."""
    told = _Told(world, run, night)
    told.is_running()
    told.is_taken_over()
    told.is_kept()
    told.is_reverted()
    told.is_pushed()
    told.is_deleted()
    told.is_brought_in()
    world.assert_safe()


class _Told:
    """The acts of the night, each with what must follow from it."""

    def __init__(self, world: FaultyWorld, run: Run, night: Night) -> None:
        self.world, self.run, self.night = world, run, night
        self.resource = ""
        self.others: Mapping[str, str] = {}

    def is_running(self) -> None:
        self.deploy(self.night.declared)
        self.world.settle()
        self.resource = self.world.component("ls-a", NAME)["resourceId"]
        self.night.label(self.resource)
        self.others = self.night.others(self.resource)
        assert self.others, "there is a tag of somebody else to be kept"

    def is_taken_over(self) -> None:
        self.edit()
        assert self.world.status("ls-a", "calm") == "Active", "it concerns nobody else (G4)"
        self.deploy(self.night.third)
        assert self.drift() == self.differs(self.night.third), "a deploy changes only the report (G6)"
        assert self.drift(3) == self.differs(self.night.third), "and no time passes that would end it (G5)"

    def is_kept(self) -> None:
        self.deploy(self.night.edited)
        assert self.drift() is None
        before = len(self.world.writes())
        self.hand_back(NAME)
        assert [write.reason for write in self.world.writes()[before:]] == ["handshake"], "only reconcile goes (G8)"

    def is_reverted(self) -> None:
        self.deploy(self.night.declared)
        self.world.settle()
        self.edit()
        self.hand_back(NAME)
        assert self.world.drift("ls-a", NAME) is None, "handed back at once, everything returns (G8)"

    def is_pushed(self) -> None:
        self.edit()
        assert self.world.force_push("ls-a", NAME).status_code == 202
        self.world.settle()
        assert self.world.status("ls-a", NAME) == "Active"
        assert self.world.drift("ls-a", NAME) is None
        assert self.world.component("ls-a", NAME)["resourceId"] == self.resource
        assert self.night.others(self.resource) == self.others, "nobody else's tag is lost (G12)"

    def is_deleted(self) -> None:
        self.take_over()
        self.world.cycle()
        self.type_in(self.night.delete(self.resource))
        self.drift(2)
        self.deploy(self.night.declared)
        self.world.settle()
        assert self.world.status("ls-a", NAME) == "Active", "a deploy after it was said creates it (G9)"

    def is_brought_in(self) -> None:
        self.type_in(self.night.create)
        self.deploy(self.night.declared, self.declared("legacy", self.night.declared))
        self.world.cycle()
        assert self.world.status("ls-a", "legacy") == "ManualOverride"
        self.hand_back("legacy")

    # --- what the acts are made of

    def declared(self, name: str, value: Any) -> dict[str, Any]:
        return self.night.declare(name, **{self.night.parameter: value})

    def deploy(self, value: Any, *more: dict[str, Any]) -> None:
        calm = self.declared("calm", self.night.declared)
        self.world.deploy("ls-a", *self.night.parents, self.declared(NAME, value), calm, *more)

    def type_in(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.run(line)

    def take_over(self) -> None:
        self.type_in(commands(self.world, NAME)[0])

    def hand_back(self, name: str) -> None:
        self.type_in(commands(self.world, name)[1])
        self.world.settle()
        assert self.world.status("ls-a", name) == "Active"

    def edit(self) -> None:
        self.take_over()
        self.type_in(self.night.edit(self.resource))
        assert self.drift() == self.differs(self.night.declared)

    def drift(self, cycles: int = 1) -> Any:
        self.world.cycle(cycles)
        assert self.world.status("ls-a", NAME) == "ManualOverride"
        return self.world.drift("ls-a", NAME)

    def differs(self, declared: Any) -> dict[str, Any]:
        return {self.night.parameter: {"declared": declared, "actual": self.night.edited}}
