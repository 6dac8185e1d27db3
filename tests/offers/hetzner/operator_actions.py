"""What a person does to every Hetzner type, and the cases of the contract.

The contract's tags of others may hold any text. Labels may not: what is not allowed in them is written in hexadecimal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.hetzner.firewall import HetznerFirewall
from fractal_cloud.offers.hetzner.load_balancer import HetznerLoadBalancer
from fractal_cloud.offers.hetzner.network import HetznerNetwork
from fractal_cloud.offers.hetzner.server import HetznerServer
from fractal_cloud.offers.hetzner.volume import HetznerVolume
from fractal_cloud.testing import Found, Hazard, Obstacle, OfferExample
from tests.offers.hetzner.editing import EDITS, Edit
from tests.offers.hetzner.examples import EXAMPLES
from tests.offers.hetzner.person import HetznerPerson

_ALLOWED = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?\Z")
_HEX = "hex-"


def _label(text: str) -> str:
    return text if _ALLOWED.match(text) else f"{_HEX}{text.encode().hex()}"


def _text(label: str) -> str:
    return bytes.fromhex(label.removeprefix(_HEX)).decode() if label.startswith(_HEX) else label


class HetznerActions:
    """What a person does to resources of one kind."""

    def __init__(self, person: HetznerPerson, plural: str, edit: Edit) -> None:
        self._person = person
        self._plural = plural
        self._edit = edit

    def find(self, name: str) -> list[Found]:
        return [
            Found(str(item["id"]), {_text(key): _text(value) for key, value in item["labels"].items()}, str(item["id"]))
            for item in self._person.named(self._plural, name)
        ]

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        self._edit(self._person, resource_id, parameter, value)

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._write(found, {_label(key): _label(value) for key, value in tags.items()}, ())

    def untag(self, found: Found, *keys: str) -> None:
        self._write(found, {}, keys)

    def _write(self, found: Found, add: Mapping[str, str], remove: tuple[str, ...]) -> None:
        gone = {_label(key) for key in remove}
        before = self._person.labels(self._plural, found.handle)
        kept = {key: value for key, value in before.items() if key not in gone}
        self._person.call("PUT", f"/{self._plural}/{found.handle}", {"labels": {**kept, **add}})

    def delete(self, found: Found) -> None:
        if self._plural == "volumes" and self._person.get("volumes", found.handle)["server"] is not None:
            self._person.act("volumes", found.handle, "detach")
        self._person.delete(self._plural, found.handle)


Arrange = Callable[[HetznerPerson, Found], Obstacle]


@dataclass(frozen=True)
class Case:
    """What the suite must know of one type beside its example; ``effects``: how many its life has at least."""

    is_slow: bool = False
    only_up: frozenset[str] = frozenset()
    hazards: dict[str, tuple[str, Arrange]] = field(default_factory=dict)
    effects: int = 23


def _protected(plural: str) -> tuple[str, Arrange]:
    both = ("delete", "rebuild") if plural == "servers" else ("delete",)

    def arrange(person: HetznerPerson, found: Found) -> Obstacle:
        person.act(plural, found.handle, "change_protection", **dict.fromkeys(both, True))
        return Obstacle(
            ("deleteProtection",),
            lambda: person.act(plural, found.handle, "change_protection", **dict.fromkeys(both, False)),
        )

    return "Failed", arrange


def _server_in_network(person: HetznerPerson, found: Found) -> Obstacle:
    server = person.server("guest", networks=[int(found.handle)])
    return Obstacle(("server 'guest'",), lambda: person.delete("servers", server["id"]))


def _server_behind(person: HetznerPerson, found: Found) -> Obstacle:
    server = person.server("guarded", firewalls=[{"firewall": int(found.handle)}])
    return Obstacle(("server 'guarded'",), lambda: person.delete("servers", server["id"]))


def _volume_on(person: HetznerPerson, found: Found) -> Obstacle:
    volume = person.create("volumes", "precious", size=10, server=int(found.handle))
    return Obstacle(("volume 'precious'",), lambda: person.act("volumes", volume["id"], "detach"))


def _attached_elsewhere(person: HetznerPerson, found: Found) -> Obstacle:
    server = person.server("borrower")
    person.act("volumes", found.handle, "detach")
    person.act("volumes", found.handle, "attach", server=server["id"])
    return Obstacle(("server 'borrower'",), lambda: person.act("volumes", found.handle, "detach"))


CASES: dict[type[Component], Case] = {
    HetznerNetwork: Case(
        only_up=frozenset({"ipRange"}),
        hazards={"a server in it": ("Deleting", _server_in_network), "protection": _protected("networks")},
        effects=40,
    ),
    HetznerFirewall: Case(hazards={"a server behind it": ("Deleting", _server_behind)}),
    HetznerServer: Case(
        is_slow=True,
        only_up=frozenset({"backups"}),
        hazards={"a volume on it": ("Deleting", _volume_on), "protection": _protected("servers")},
        effects=35,
    ),
    HetznerVolume: Case(
        is_slow=True,
        only_up=frozenset({"size"}),
        hazards={
            "attached to somebody else's server": ("Failed", _attached_elsewhere),
            "protection": _protected("volumes"),
        },
        effects=32,
    ),
    HetznerLoadBalancer: Case(hazards={"protection": _protected("load_balancers")}, effects=25),
}


def example_of(kind: type[Component], person: HetznerPerson) -> OfferExample:
    """The example of one type, with the actions of a person on it."""
    example, case = EXAMPLES[kind], CASES[kind]

    def hazard(title: str, status: str, arrange: Arrange) -> Hazard:
        return Hazard(title, status, lambda found: arrange(person, found))

    return OfferExample(
        components=example.components,
        changes=example.changes,
        immutable_changes=example.immutable_changes,
        operator=HetznerActions(person, *EDITS[kind]),
        only_up=case.only_up,
        is_slow=case.is_slow,
        hazards=[hazard(title, status, arrange) for title, (status, arrange) in case.hazards.items()],
    )
