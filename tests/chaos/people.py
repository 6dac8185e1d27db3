"""The people: they break glass, edit, hand back, push, deploy and delete while everything around them breaks, and
remember what must come of it.

One action per LiveSystem and fault, so that what must come of it is certain. They reach the cloud and the product by
ways of their own; where the product cannot answer, they ask again, as its own answer asks them to.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import httpx2 as httpx

from tests.chaos.declared import KINDS, Kind, Seen
from tests.chaos.stage import Stage
from tests.world import Person

PATIENCE: Final = 90.0
UNSURE: Final = (502, 503, 504)


@dataclass
class Thing:
    """A declared component, and what people know of its resource.

    ``state``: "managed" must be as declared; "taken" must be as it was left; "asked" may be either, once it is at rest.
    ``untagged``: whether its managed-by was removed, by a person or in a person's name.
    """

    live_system: str
    id: str
    kind: Kind
    region: str
    declared: bool = False
    state: Literal["managed", "taken", "asked"] = "managed"
    untagged: bool = False
    left: bool | None = None
    left_id: str = ""
    foreign: dict[str, str] = field(default_factory=dict)
    foreign_on: str = ""

    def __str__(self) -> str:
        return f"{self.live_system}/{self.id}"


@dataclass
class Owner:
    """A LiveSystem with its things."""

    id: str
    region: str
    things: dict[str, Thing]
    is_deleted: bool = False

    def document(self) -> dict[str, Any]:
        """Its declaration."""
        found = [thing.kind.component(thing.id, thing.region, thing.declared) for thing in self.things.values()]
        return {"id": self.id, "components": found}


GUEST: Final = "ls-guest"


class People:
    """Everybody but the product."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.owners: dict[str, Owner] = {}
        self.history: list[str] = []
        for live_system, region in (("ls-a", "eu-west-1"), ("ls-b", "eu-central-1"), ("ls-c", "us-east-1")):
            things = {name: Thing(live_system, name, kind, region) for name, kind in KINDS.items()}
            self.owners[live_system] = Owner(live_system, region, things)
        regions = {owner.region for owner in self.owners.values()}
        self._persons = {region: Person(stage.cloud_url, region) for region in regions}

    # --- the beginning

    def begin(self) -> None:
        """Deploy everything, and a guest who imports one of the networks."""
        for owner in self.owners.values():
            self._deploy(owner.document())
        first = self.owners["ls-a"].things["net"]
        self._deploy({"id": GUEST, "components": [first.kind.component("net", first.region, first.declared)]})

    # --- one round

    def act(self, dice: random.Random) -> None:
        """Do something to one, two or three LiveSystems."""
        chosen = dice.sample(sorted(self.owners), dice.randint(1, len(self.owners)))
        for live_system in chosen:
            owner = self.owners[live_system]
            if owner.is_deleted:
                self._note("deploy again", live_system)
                self._deploy(owner.document())
                owner.is_deleted = False
                continue
            thing = owner.things[dice.choice(sorted(owner.things))]
            action = dice.choice(self._actions(thing))
            self._note(action, str(thing))
            getattr(self, f"_do_{action}")(thing, dice)

    @staticmethod
    def _actions(thing: Thing) -> list[str]:
        always = ["deploy", "deploy", "tag", "delete"]
        if thing.state == "taken":
            return [*always, "edit", "hand_back", "hand_back", "force_push"]
        destroyable = [] if thing.id == "net" else ["destroy"]
        return [*always, "override", "override", "override", "edit", "edit", "break_glass", *destroyable]

    def _note(self, action: str, about: str) -> None:
        self.history.append(f"{action} {about}")

    # --- with a console

    def console(self, thing: Thing) -> Any:
        """A person's EC2 in the thing's region."""
        return self._persons[thing.region].ec2

    def read(self) -> dict[str, dict[str, Seen]]:
        """Everything that is declared here as a console shows it now, by thing and by id: a few calls per region."""
        found: dict[str, dict[str, Seen]] = {}
        for owner in self.owners.values():
            ec2 = self._persons[owner.region].ec2
            for thing in owner.things.values():
                found[str(thing)] = thing.kind.find(ec2, thing.kind.name(thing.region))
        return found

    def _one(self, thing: Thing) -> str | None:
        return next(iter(thing.kind.find(self.console(thing), thing.kind.name(thing.region))), None)

    def _do_override(self, thing: Thing, dice: random.Random) -> None:
        """What an engineer does at 3 a.m.: remove the tag, and mostly change something."""
        found = self._one(thing)
        if found is None:
            return
        person = self._persons[thing.region]
        person.break_glass(found)
        thing.state, thing.untagged, thing.left_id = "taken", True, found
        thing.left = thing.kind.read(person.ec2, found)
        if dice.random() < 0.7:
            self._do_edit(thing, dice)

    def _do_edit(self, thing: Thing, _: random.Random) -> None:
        found = self._one(thing)
        if found is None:
            return
        value = not thing.kind.read(self.console(thing), found)
        thing.kind.write(self.console(thing), found, value)
        if thing.state == "taken":
            thing.left = value

    def _do_hand_back(self, thing: Thing, _: random.Random) -> None:
        found = self._one(thing)
        if found is not None:
            self._persons[thing.region].hand_back(found)
            thing.state, thing.untagged = "managed", False

    def _do_tag(self, thing: Thing, dice: random.Random) -> None:
        found = self._one(thing)
        if found is not None:
            value = f"équipe «{dice.randrange(1000)}» / a=b"
            self.console(thing).create_tags(Resources=[found], Tags=[{"Key": "Cost Center", "Value": value}])
            thing.foreign, thing.foreign_on = {"Cost Center": value}, found

    def _do_destroy(self, thing: Thing, _: random.Random) -> None:
        found = self._one(thing)
        if found is not None:
            thing.kind.delete(self.console(thing), found)

    # --- through the product

    def _do_deploy(self, thing: Thing, _: random.Random) -> None:
        thing.declared = not thing.declared
        self._deploy(self.owners[thing.live_system].document())

    def _do_delete(self, thing: Thing, _: random.Random) -> None:
        owner = self.owners[thing.live_system]
        self._call("DELETE", f"/livesystems/{owner.id}", fine=(202, 404, 409))
        owner.is_deleted = True

    def _do_force_push(self, thing: Thing, _: random.Random) -> None:
        answer = self._try("POST", self._path(thing, "force-push"))
        if answer is None or answer.status_code != 409:
            thing.state = "asked"

    def _do_break_glass(self, thing: Thing, _: random.Random) -> None:
        answer = self._try("POST", self._path(thing, "glass"), {"action": "break", "reason": "a fault"})
        if answer is None or answer.status_code != 409:
            thing.state = "asked"

    @staticmethod
    def _path(thing: Thing, what: str) -> str:
        return f"/livesystems/{thing.live_system}/components/{thing.id}/{what}"

    def _deploy(self, document: dict[str, Any]) -> None:
        """Deploy until it is taken: sent twice it does no harm. What is being deleted is waited for."""
        self._call("PUT", f"/livesystems/{document['id']}", document, fine=(202,), again=(409,))

    def _call(
        self, method: str, path: str, body: object = None, *, fine: tuple[int, ...], again: tuple[int, ...] = ()
    ) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._try(method, path, body)
            if answer is not None and answer.status_code in fine:
                return
            said = "no answer" if answer is None else f"{answer.status_code}: {answer.text}"
            assert answer is None or answer.status_code in (*UNSURE, *again), f"{method} {path} is answered {said}"
            assert time.monotonic() < deadline, f"{method} {path} is not taken within {PATIENCE:g} s: {said}"
            time.sleep(0.2)

    def _try(self, method: str, path: str, body: object = None) -> httpx.Response | None:
        """Ask once; None where nobody can say what came of it."""
        try:
            answer = self._stage.api.request(method, path, json=body)
        except httpx.TransportError:
            return None
        return None if answer.status_code in UNSURE else answer
