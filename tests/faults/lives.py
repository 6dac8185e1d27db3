"""The life of one resource, in phases, each of which an agent may not survive.

A phase is: somebody does something, an agent carries it out, and what it must have come to. ``live`` has one fault
happen in every phase of a life, at the effect of the same number: as many lives as the longest phase has effects
strike every effect of every phase. Phases that have no effect of that number are left out where that can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.reference import filled
from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE, RECONCILE_VALUE, stamp
from fractal_cloud.offers.offer import AnyOffer
from fractal_cloud.rules import words
from fractal_cloud.rules.drift import ComparedType, find_drift
from fractal_cloud.rules.hiding import Hiding
from fractal_cloud.testing import Found, OfferExample
from tests.faults.effects import Fault
from tests.faults.worlds import FaultyWorld
from tests.orphans import assert_nothing_is_orphaned

LIVE_SYSTEM = "ls-a"
OTHERS = {"cost center": "a=b/c", "note": ""}


@dataclass(frozen=True)
class Phase:
    """``provoke``: what people do before the agent comes. ``verify``: what it must have come to."""

    title: str
    provoke: Callable[[], None]
    verify: Callable[[], None]
    can_be_left_out: bool = True


class Life:
    """One resource under test from its creation to its deletion."""

    def __init__(self, offer: AnyOffer, example: OfferExample, world: FaultyWorld, number: int) -> None:
        self._compared = ComparedType(offer.facts())
        self._frozen = offer.tags_frozen
        self._references = offer.facts().references()
        self._example = example
        self._world = world
        self._declaration = example.under_name(f"{example.declaration['id']}-{number}")
        self._resource_id = ""
        self._tags: dict[str, str] = {}

    @property
    def id(self) -> str:
        return str(self._declaration["id"])

    def phases(self) -> list[Phase]:
        """All phases, in the order in which they are lived."""
        return [
            Phase("create", self._deploy, self._is_born, can_be_left_out=False),
            Phase("update", self._declare_changes, self._is_as_declared),
            *([Phase("break", self._ask_for_glass, self._is_broken)] if self._frozen else []),
            Phase("re-adopt", self._break_and_hand_back, self._is_as_declared),
            Phase("force push", self._break_and_push, self._is_pushed),
            Phase("delete", self._remove, self._is_gone, can_be_left_out=False),
        ]

    # --- what people do

    def bring_parents(self) -> None:
        """Have everything made that it needs."""
        self._remove()
        self._world.survive()

    def let_parents_show(self, world: FaultyWorld) -> None:
        """Let a read pass that shows what its coming or going changed about its parents, where it does."""
        if self._example.touches_parents:
            world.cycle()

    def _deploy(self) -> None:
        self._world.deploy(LIVE_SYSTEM, *self._example.parents, self._declaration)

    def _declare_changes(self) -> None:
        """Declare some of what can change anew: enough for several calls one after the other."""
        grown = [name for name in self._example.changes if name in self._example.only_up]
        names = [*self._changeable(), *grown[:1]]
        changes = {name: self._example.changes[name] for name in names}
        self._declaration = {**self._declaration, "parameters": {**self._declaration["parameters"], **changes}}
        self._deploy()

    def _changeable(self) -> list[str]:
        """Two parameters that can change and come back; none that protects it, for its life ends with a deletion."""
        return [name for name in self._example.editable() if not name.lower().endswith("protection")][:2]

    def _edit(self) -> None:
        """Edit a parameter away from what is declared, if one can be brought back."""
        if not self._changeable():
            return
        name = self._changeable()[-1]
        one, other = self._example.declaration["parameters"][name], self._example.changes[name]
        value = one if self._declaration["parameters"][name] == other else other
        self._example.operator.edit(self._resource_id, name, self._resolved(name, value))

    def _break_and_hand_back(self) -> None:
        """Break the glass, lose even the owner tag (where one can), change something, and hand it back."""
        self._break(MANAGED_BY, OWNER)
        if self._frozen:
            self._ask_for_glass("readopt")
            return
        [found] = self._example.operator.find(self.id)
        self._example.operator.tag(found, {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE})

    def _break(self, *tags: str) -> None:
        if self._frozen:
            self._ask_for_glass()
            self._world.cycle()
        else:
            [found] = self._example.operator.find(self.id)
            self._example.operator.untag(found, *tags)
        self._edit()
        self._world.cycle()
        assert self._world.status(LIVE_SYSTEM, self.id) == "ManualOverride"

    def _ask_for_glass(self, action: str = "break") -> None:
        answer = self._world.glass(LIVE_SYSTEM, self.id, action)
        assert answer.status_code == 202, answer.text

    def _break_and_push(self) -> None:
        self._break(MANAGED_BY)
        self._push()

    def _push(self) -> None:
        answer = self._world.force_push(LIVE_SYSTEM, self.id)
        assert answer.status_code == 202, answer.text

    def _remove(self) -> None:
        self._world.deploy(LIVE_SYSTEM, *self._example.parents)

    # --- what it must have come to

    def _is_born(self) -> None:
        [found] = self._example.operator.find(self.id)
        if self._world.tags_follow and self._world.status(LIVE_SYSTEM, self.id) == "ManualOverride":
            found = self._hand_back_unfinished(found)
        named = {self._example.name_tag: self.id} if self._example.name_tag else {}
        assert dict(found.tags) == {**named, **stamp(LIVE_SYSTEM).to_mapping()}
        self._resource_id = found.resource_id
        others = {} if self._frozen else OTHERS
        if others:
            self._example.operator.tag(found, others)
        self._tags = {**found.tags, **others}
        self._is_as_declared()

    def _hand_back_unfinished(self, found: Found) -> Found:
        """Nobody can know whether its tags were ever on it: it is left bare, and says so, until it is handed over."""
        message = self._world.component(LIVE_SYSTEM, self.id)["message"]
        assert message.startswith((words.tagging_lost(), words.creation_lost())), message
        assert not found.tags, f"let go, yet tagged: {found.tags}"
        self._example.operator.tag(found, {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE})
        self._world.survive()
        [again] = self._example.operator.find(self.id)
        return again

    def _is_as_declared(self) -> None:
        shown = self._world.component(LIVE_SYSTEM, self.id)
        assert shown["status"] == "Active", f"{shown['status']}: {shown['message']}"
        declared = {name: self._resolved(name, value) for name, value in self._declaration["parameters"].items()}
        drift = find_drift(self._compared, Hiding(self._compared).declared(declared), shown["outputFields"])
        assert not drift, drift
        assert "drift" not in shown["outputFields"], shown["outputFields"]["drift"]
        found = self._example.operator.find(self.id)
        assert [one.resource_id for one in found] == [self._resource_id], f"not one and the same: {found}"
        assert dict(found[0].tags) == self._tags, f"tags are {dict(found[0].tags)}, not {self._tags}"

    def _is_broken(self) -> None:
        """The glass is broken, whatever happened to the agent, and stays so until it is handed back (S17, G13)."""
        shown = self._world.component(LIVE_SYSTEM, self.id)
        assert (shown["status"], shown["stance"], shown["request"]) == ("ManualOverride", "override", None), shown
        assert shown["override"]["by"], "who broke the glass is forgotten"
        self._ask_for_glass("readopt")
        self._world.survive()
        self._is_as_declared()

    def _is_pushed(self) -> None:
        """What a crash swallowed is in override still, untouched, and comes back when it is asked for again (S17)."""
        if self._world.status(LIVE_SYSTEM, self.id) == "ManualOverride":
            [found] = self._example.operator.find(self.id)
            assert self._frozen or MANAGED_BY not in found.tags, "a push that was swallowed left managed-by behind"
            self._push()
            self._world.survive()
        self._is_as_declared()

    def _is_gone(self) -> None:
        assert not self._example.operator.find(self.id), "it is still there"
        assert self._world.find_component(LIVE_SYSTEM, self.id) is None
        for parent in self._example.parents:
            shown = self._world.component(LIVE_SYSTEM, parent["id"])
            assert shown["status"] in ("Active", "ExternallyManaged"), (
                f"{parent['id']}: {shown['status']}: {shown['message']}"
            )

    def _resolved(self, name: str, value: Any) -> Any:
        if name not in self._references:
            return filled(value, lambda one: self._world.output(LIVE_SYSTEM, one.component, one.field))
        output = self._references[name][1]
        if isinstance(value, list):
            return [self._world.output(LIVE_SYSTEM, one, output) for one in value]
        return self._world.output(LIVE_SYSTEM, value, output)


Effects = Mapping[str, Sequence[str]]
"""The effects of a life, by phase."""


def live(
    life: Life, world: FaultyWorld, at: int | None = None, fault: Fault | None = None, known: Effects | None = None
) -> Effects:
    """Live one life with a fault at the effect of that number in every phase; its effects.

    ``known``: the effects of an untroubled life, which say which phases can be left out.
    """
    occurred: dict[str, list[str]] = {}
    for phase in life.phases():
        if at is not None and known is not None and phase.can_be_left_out and at >= len(known[phase.title]):
            continue
        phase.provoke()
        world.effects.arm(at, fault)
        try:
            world.survive()
            occurred[phase.title] = list(world.effects.occurred)
            world.effects.arm()
            phase.verify()
            world.assert_safe()
            assert_nothing_is_orphaned(world)
            races = world.cloud.monitor.lost_races
            assert not races, "\n".join(map(str, races))
            if not phase.can_be_left_out:
                life.let_parents_show(world)
                world.assert_silent()
        except AssertionError as error:
            effects = occurred.get(phase.title) or world.effects.occurred
            where = f"{phase.title} of {life.id}, effect {at} of {effects}" if at is not None else phase.title
            raise AssertionError(f"{where}, {fault}: {error}") from error
    return occurred


def strike_all(make: Callable[[int], Life], world: FaultyWorld, faults: Sequence[Fault]) -> Effects:
    """Have a fault happen at every effect of every phase, one life after the other; the faults take turns."""
    first = make(0)
    first.bring_parents()
    known = live(first, world)
    if faults == [Fault.KILLED_AFTER]:
        # Whoever dies right after one effect dies right before the next: only before the first is left.
        live(make(1), world, 0, Fault.KILLED_BEFORE, known)
    for at in range(max(map(len, known.values()))):
        live(make(at + 2), world, at, faults[at % len(faults)], known)
    return known


def strike_whole(example: OfferExample, world: FaultyWorld, faults: Sequence[Fault]) -> Effects:
    """Create and delete a whole LiveSystem, with a fault at every effect, several of which happen side by side."""

    def come_and_go(number: int, at: int | None = None, fault: Fault | None = None) -> dict[str, list[str]]:
        occurred: dict[str, list[str]] = {}
        live_system = f"ls-{number}"
        for title, act in (
            ("create", lambda: world.deploy(live_system, *example.components)),
            ("delete", lambda: world.delete(live_system)),
        ):
            act()
            world.effects.arm(at, fault)
            world.survive()
            occurred[title] = list(world.effects.occurred)
            world.effects.arm()
            statuses = [(world.find_component(live_system, c["id"]) or {}).get("status") for c in example.components]
            expected = "Active" if title == "create" else None
            assert set(statuses) == {expected}, f"{title}, effect {at} of {occurred[title]}, {fault}: {statuses}"
            world.assert_safe()
            assert_nothing_is_orphaned(world)
            assert not world.cloud.monitor.lost_races, f"{title}, effect {at}, {fault}"
            assert len(example.operator.find(example.declaration["id"])) == (1 if title == "create" else 0)
        return occurred

    known = come_and_go(0)
    for at in range(max(map(len, known.values()))):
        come_and_go(at + 1, at, faults[at % len(faults)])
    return known
