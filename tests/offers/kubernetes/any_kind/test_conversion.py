"""Kinds in two versions, the one declared and the other kept: converted by a webhook, and by nothing but the name.

Where ``KUBECONFIG_REAL`` names a server, that calls the webhook.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.offers.history import Asked
from fractal_cloud.offers.kubernetes.any_kind.offer import AnyKindOffer
from fractal_cloud.offers.kubernetes.calls import APPLY, Call
from tests.offers.kubernetes.any_kind.cases import KindCase
from tests.offers.kubernetes.any_kind.test_every_kind import lead_a_life, offer_of, served, world
from tests.offers.kubernetes.any_kind.webhook import SHELVES, Webhook, definition, serving
from tests.offers.kubernetes.any_kind.world import KindWorld

__all__ = ["world"]

OTHER = {"v1": "v2", "v2": "v1"}
MERGE = "application/merge-patch+json"


@dataclass
class Shelves:
    """One version declared, the other one kept."""

    world: KindWorld
    webhook: Webhook
    declared: str

    @property
    def case(self) -> KindCase:
        """What is declared."""
        return SHELVES[self.declared]

    def offer(self) -> AnyKindOffer:
        """Its offer."""
        return served(self.world, self.case.type)

    def path(self, version: str) -> str:
        """Where the object is in a version."""
        return f"/apis/shop.example/{version}/namespaces/default/shelves/{self.case.name}"

    def get(self, version: str) -> dict[str, Any]:
        """The object in a version."""
        found: dict[str, Any] = self.world.person.call("GET", self.path(version))
        return found

    def patch(self, version: str, manager: str = "somebody", **spec: Any) -> None:
        """Somebody changes fields in a version."""
        path = self.path(version)
        call = Call("PATCH", path, {"fieldManager": manager}, {"spec": spec}, MERGE)
        self.as_somebody(call)

    def apply(self, version: str, manager: str, **spec: Any) -> None:
        """Somebody applies fields in a version."""
        metadata = {"name": self.case.name, "namespace": "default"}
        item = {"apiVersion": f"shop.example/{version}", "kind": "Shelf", "metadata": metadata, "spec": spec}
        query = {"fieldManager": manager, "force": "true"}
        self.as_somebody(Call("PATCH", self.path(version), query, json.dumps(item), APPLY))

    def as_somebody(self, call: Call) -> None:
        """Through the same session as the agent, whose writes are watched on the sandbox: so as a person there."""
        path = call.path + "?" + "&".join(f"{name}={value}" for name, value in call.query.items())
        body = json.loads(call.body) if isinstance(call.body, str) else call.body
        self.world.person.call(call.method, path, body, call.content_type)


@pytest.fixture(params=["v1", "v2"])
def shelves(request: pytest.FixtureRequest, world: KindWorld, tmp_path: Path) -> Iterator[Shelves]:
    """A cluster with the definition, kept in the version that is not declared."""
    with serving(tmp_path) as webhook:
        meant = definition(webhook, OTHER[request.param])
        made, _ = world.make(offer_of(world, meant.type), meant)
        yield Shelves(world, webhook, request.param)
        webhook.refuses = False
        del made
        world.person.call("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shelves.shop.example")


@pytest.mark.rule("S12", "S14", "T1")
def test_what_is_declared_in_one_version_and_kept_in_the_other_has_no_phantom_drift(shelves: Shelves) -> None:
    shelves.offer()
    before = shelves.webhook.asked
    lead_a_life(shelves.world, shelves.case)
    assert shelves.webhook.asked > before, "nothing was converted"


@pytest.mark.rule("S12", "S27")
def test_an_edit_in_the_other_version_is_drift_in_the_declared_one_and_is_brought_back_there(shelves: Shelves) -> None:
    world, case, offer = shelves.world, shelves.case, shelves.offer()
    made, wanted = world.make(offer, case)
    field = {"v1": ("spec.shade", "color"), "v2": ("spec.color", "shade")}[shelves.declared]
    shelves.patch(OTHER[shelves.declared], note="left alone", **{field[1]: "ash"})
    sighting = world.read(offer, made)
    assert world.drift(offer, case, sighting) == {field[0]: ("oak", "ash")}
    offer.update(world.cloud(offer), sighting, wanted, [field[0]])
    assert world.drift(offer, case, world.read(offer, made)) == {}
    found = shelves.get(shelves.declared)
    assert found["spec"]["note"] == "left alone", "a field that is not declared"
    assert found["apiVersion"] == f"shop.example/{shelves.declared}"
    assert found["metadata"]["uid"] == made.resource_id.partition("/")[2]


@pytest.mark.rule("S12", "T1")
def test_what_another_manager_applies_in_the_other_version_stays_his(shelves: Shelves) -> None:
    world, case, offer = shelves.world, shelves.case, shelves.offer()
    made, wanted = world.make(offer, case)
    other = OTHER[shelves.declared]
    mine, theirs = {"v1": ("spec.shade", "color"), "v2": ("spec.color", "shade")}[shelves.declared]
    for tree in ("ash", "elm"):  # the second apply says again what the first one made ours
        shelves.apply(other, "joiner", note="of the joiner", **{theirs: tree})
        offer.update(world.cloud(offer), world.read(offer, made), wanted, [mine])
        spec = shelves.get(other)["spec"]
        assert (spec[theirs], spec["note"]) == ("oak", "of the joiner")
    entries = shelves.get(shelves.declared)["metadata"]["managedFields"]
    owners = {
        (one["manager"], one["operation"], one["apiVersion"].rpartition("/")[2]): one["fieldsV1"] for one in entries
    }
    assert "f:note" in owners["joiner", "Apply", other]["f:spec"]
    assert f"f:{theirs}" not in owners["joiner", "Apply", other]["f:spec"], "taken from him, by force"
    assert f"f:{mine.partition('.')[2]}" in owners["fractal-cloud", "Apply", shelves.declared]["f:spec"]


@pytest.mark.rule("S12")
def test_a_declaration_that_moves_to_the_other_version_removes_nothing(shelves: Shelves) -> None:
    """A server takes away what a manager applied and no longer names, and converts what it applied to know that."""
    world, case, offer = shelves.world, shelves.case, shelves.offer()
    made, wanted = world.make(offer, case)
    mine, _ = {"v1": ("spec.shade", "color"), "v2": ("spec.color", "shade")}[shelves.declared]
    shelves.patch(shelves.declared, **{mine.partition(".")[2]: "ash"})
    width = {"v1": "spec.width", "v2": "spec.dimensions.width"}[shelves.declared]
    shelves.patch(shelves.declared, **({"width": 1} if shelves.declared == "v1" else {"dimensions": {"width": 1}}))
    offer.update(world.cloud(offer), world.read(offer, made), wanted, [mine, width])  # ours by an apply from now on
    other = SHELVES[OTHER[shelves.declared]]
    moved = KindCase(other.type, {**other.parameters, "name": case.name})
    later = served(world, moved.type)
    assert world.drift(later, moved, world.read(later, made)) == {}, "the same object in the other version"
    theirs = {"v1": "color", "v2": "shade"}[shelves.declared]
    shelves.patch(OTHER[shelves.declared], **{theirs: "elm"})
    wanted_later = type(wanted)(later.component.from_parameters("it", moved.resolved()), "ls-kinds")
    later.update(world.cloud(later), world.read(later, made), wanted_later, [f"spec.{theirs}"])
    assert world.drift(later, moved, world.read(later, made)) == {}


@pytest.mark.rule("S0", "S27")
def test_who_wrote_in_the_other_version_is_not_mistaken_for_somebody_else(shelves: Shelves) -> None:
    world, case, offer = shelves.world, shelves.case, shelves.offer()
    made, wanted = world.make(offer, case)
    field = {"v1": ("spec.shade", "color"), "v2": ("spec.color", "shade")}[shelves.declared]
    shelves.patch(OTHER[shelves.declared], "joiner", **{field[1]: "ash"})
    asked = [Asked(field[0], datetime.now(UTC), "ash", None)]
    found = offer.changed_by(world.cloud(offer), world.read(offer, made), wanted, asked)
    assert all(one.by == "joiner" for one in found.values()), found


@pytest.mark.rule("S0")
def test_while_the_webhook_does_not_answer_nothing_is_known_and_nothing_is_written(shelves: Shelves) -> None:
    world, case, offer = shelves.world, shelves.case, shelves.offer()
    made, wanted = world.make(offer, case)
    cloud = world.cloud(offer)
    shelves.webhook.refuses = True
    with pytest.raises(Unreadable, match=r"conversion webhook for shop\.example/"):
        world.listed(offer, case.name)
    with pytest.raises(Unreadable, match="converts nothing today"):
        offer.read(cloud, made.resource_id)
    with pytest.raises(Unreadable):
        offer.update(cloud, made, wanted, ["spec.note"])
    with pytest.raises(CloudError):
        world.make(offer, KindCase(case.type, {**case.parameters, "name": "another"}))
    shelves.webhook.refuses = False
    assert [one.name for one in world.listed(offer, case.name)] == [case.name]
    assert world.drift(offer, case, world.read(offer, made)) == {}
