"""What distinguishes one resource from a later one of the same name, for every offer of the registry (O17, O19, S19).

Ids and incarnations are those that the agent itself gets: its reads of the cloud are listened to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.family import FamilyOffer
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import AnyOffer, Query
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.suites import Stage, kinds

LIVE_SYSTEM = "ls-identity"
EVERY_KIND = [
    pytest.param(name, id=name, marks=[pytest.mark.xdist_group(f"identity {suite.provider}"), *suite.marks()])
    for name, (suite, _) in kinds().items()
]


@dataclass
class Reads:
    """The last list that an agent asked an offer for, to be asked again."""

    offer: AnyOffer
    asked: list[tuple[Any, Query]] = field(default_factory=list)

    def named(self, name: str) -> Sighting:
        """The one resource of that name, in a list made anew and in a direct read, which must say the same of it."""
        cloud, query = self.asked[-1]
        [listed] = [
            one
            for one in all_sightings(self.offer.sightings(cloud, Query(query.names, query.parent_ids)))
            if one.name == name
        ]
        read = self.offer.read(cloud, listed.resource_id)
        assert read is not None
        assert pair(listed) == pair(read), "a list and a direct read disagree"
        return read

    def is_gone(self, resource_id: str) -> bool:
        """Whether a direct read says that it does not exist."""
        return self.offer.read(self.asked[-1][0], resource_id) is None


def pair(sighting: Sighting) -> tuple[str, str]:
    """What identifies a resource for ever."""
    return sighting.resource_id, sighting.incarnation


@contextmanager
def reads_of(offer: AnyOffer, patch: pytest.MonkeyPatch) -> Iterator[Reads]:
    """Listen to the lists that are asked for."""
    # Every registry makes classes of its own for the types of families; what they have in common is below.
    reads = Reads(offer)
    kind: Any = type(offer).__mro__[1] if isinstance(offer, FamilyOffer) else type(offer)
    real = kind.sightings

    def sightings(self: AnyOffer, cloud: Any, query: Query) -> Any:
        if self.type == offer.type:
            reads.asked.append((cloud, query))
        return real(self, cloud, query)

    patch.setattr(kind, "sightings", sightings)
    yield reads


@pytest.fixture
def stage(request: pytest.FixtureRequest, session_sandbox: Sandbox, tmp_path: Path) -> Iterator[Stage]:
    suite, kind = kinds()[request.param]
    with suite.stage(session_sandbox, tmp_path, kind) as made:
        yield made


def next_second(began: float) -> None:
    """Some clouds report the time of a creation in whole seconds, and never make two of one name in one of them."""
    time.sleep(max(0.0, int(began) + 1 - time.time()))


@pytest.mark.rule("O19", "O17", "S19")
@pytest.mark.parametrize("stage", EVERY_KIND, indirect=True)
def test_what_is_created_anew_under_a_name_is_distinguished_from_what_was_deleted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, example = stage.world, stage.example
    declaration = example.under_name(f"{example.declaration['id']}-again")
    offer = installed()[declaration["type"]]
    name = declaration["id"]
    with reads_of(offer, monkeypatch) as reads:
        world.deploy(LIVE_SYSTEM, *example.parents, declaration)
        world.settle()
        first, began = reads.named(name), time.time()

        [found] = example.operator.find(name)
        for parameter in example.editable()[:2]:
            if parameter not in offer.facts().references():
                example.operator.edit(found.resource_id, parameter, example.changes[parameter])
        if not offer.tags_frozen:
            example.operator.tag(found, {"team": "blue"})
        world.settle()
        assert pair(reads.named(name)) == pair(first), "an update or another tag made it look like another resource"

        world.deploy(LIVE_SYSTEM, *example.parents)
        world.settle()
        assert not example.operator.find(name)
        assert reads.is_gone(first.resource_id)

        next_second(began)
        world.deploy(LIVE_SYSTEM, *example.parents, declaration)
        world.settle()
        second = reads.named(name)
        if offer.ids_return:
            assert pair(second) == pair(first) == (first.resource_id, ""), "ids_return is said of ids that do not"
        else:
            assert pair(second) != pair(first), "nothing distinguishes it from the one that was deleted: say ids_return"


@pytest.mark.rule("O17")
def test_every_offer_that_is_read_inside_its_parent_has_one() -> None:
    assert [offer.type for offer in installed() if offer.read_needs_parent and offer.parent is None] == []
