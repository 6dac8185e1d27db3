"""Every AWS type, by its example: created, listed, corrected after drift, tagged, deleted, one writing call a time."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.commands import values_of
from fractal_cloud.model.component import Component
from fractal_cloud.model.sighting import Condition
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags, stamp
from fractal_cloud.offers.registry import installed
from fractal_cloud.rules.drift import ComparedType
from fractal_sandbox import Sandbox
from tests.offers.aws.conftest import LIVE_SYSTEM, World, under_test
from tests.offers.aws.examples import EXAMPLES

# The contract asks the same of every type through the whole product; here, verb by verb, of two in the quick run.
QUICK = ("AwsSecurityGroup", "AwsS3")


def _param(kind: type[Component], *more: str) -> Any:
    marks = () if kind.__name__ in QUICK else pytest.mark.soak
    return pytest.param(kind, *more, id="-".join([kind.__name__, *more]), marks=marks)


KINDS = [_param(kind) for kind in EXAMPLES]
CHANGES = [_param(kind, name) for kind, example in EXAMPLES.items() for name in example.changes]
# A person cannot take these back down: there the example's other value is declared, and the first one is drift.
INSTEAD = {"capacityProviderStrategy"}
"""Declared in the place of another parameter, which the example has; `test_ecs_strategy` holds it to the contract."""
ONLY_UP = {"version", "allocatedStorage", "engineVersion"}


def _writes(sandbox: Sandbox) -> int:
    return int(sandbox.aws.calls.count(actor="agent", writes_only=True))


def test_every_aws_offer_has_an_example() -> None:
    assert {offer.component for offer in installed().of_provider("aws")} == set(EXAMPLES)


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_covers_every_parameter_that_can_change(kind: type[Component]) -> None:
    offer, example, declaration = under_test(kind)
    compared = ComparedType(offer.facts())
    mutable = set(kind.parameter_fields()) - compared.immutable - compared.never_compared - INSTEAD
    assert set(example.changes) == mutable
    assert mutable <= set(declaration["parameters"])


@pytest.mark.rule("T2")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_created_is_listed_with_its_tags(kind: type[Component], world: World) -> None:
    offer, example, declaration = under_test(kind)
    world.bring(example)
    [found] = world.listed(offer, declaration)
    assert found.protocol == stamp(LIVE_SYSTEM)
    assert found.condition is Condition.SETTLED
    assert found.resource_id == world.seen[declaration["id"]].resource_id
    assert found.outputs["region"] == "eu-west-1"
    assert set(found.outputs) <= set(offer.outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_list_and_the_read_show_the_same(kind: type[Component], world: World) -> None:
    offer, example, declaration = under_test(kind)
    seen = world.bring(example)
    [listed] = world.listed(offer, declaration)
    read = offer.read(world.cloud_of(offer), seen.resource_id)
    assert read == listed


@pytest.mark.rule("S17")
@pytest.mark.parametrize("kind", KINDS)
def test_a_creation_is_one_writing_call(kind: type[Component], world: World, sandbox: Sandbox) -> None:
    _, example, declaration = under_test(kind)
    example.prepare(world.person)
    for parent in example.components[:-1]:
        world.create(parent)
    before = _writes(sandbox)
    made = world.create(declaration)
    assert _writes(sandbox) == before + 1
    assert made.protocol == stamp(LIVE_SYSTEM)


@pytest.mark.parametrize(("kind", "name"), CHANGES)
def test_a_new_declaration_is_carried_out_one_call_at_a_time(
    kind: type[Component], name: str, world: World, sandbox: Sandbox
) -> None:
    _, example, declaration = under_test(kind)
    world.bring(example)
    before = _writes(sandbox)
    updates = world.correct(declaration, **{name: example.changes[name]})
    assert updates >= 1
    assert _writes(sandbox) == before + updates


@pytest.mark.rule("S12")
@pytest.mark.parametrize(("kind", "name"), CHANGES)
def test_what_a_person_edited_is_seen_and_comes_back(kind: type[Component], name: str, world: World) -> None:
    offer, example, declaration = under_test(kind)
    seen = world.bring(example)
    edited, declared = example.changes[name], declaration["parameters"][name]
    if name in ONLY_UP:
        world.correct(declaration, **{name: edited})
        return
    value: Any = world.resolved(offer, {name: edited})[name]
    example.foreign_edit(world.person, seen.resource_id, name, value)
    _, drift = world.drift(declaration)
    assert name in drift
    world.correct(declaration)
    after, drift = world.drift(declaration)
    assert drift == {}
    assert after.tags == seen.tags, declared


@pytest.mark.rule("S18")
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_change_shows_as_drift(kind: type[Component], world: World) -> None:
    offer, example, declaration = under_test(kind)
    world.bring(example)
    for name, value in example.immutable_changes.items():
        if name in offer.place:
            continue
        _, drift = world.drift(declaration, **{name: value})
        assert set(drift) == {name}


@pytest.mark.rule("T1", "T6")
@pytest.mark.parametrize("kind", KINDS)
def test_tags_of_others_survive_ours_coming_and_going(kind: type[Component], world: World, sandbox: Sandbox) -> None:
    offer, example, _ = under_test(kind)
    seen = world.bring(example)
    cloud = world.cloud_of(offer)
    operator = example.operator(world.person, example.foreign_edit)
    [found_by_a_person] = operator.find(seen.name)
    operator.tag(found_by_a_person, {"cost center": "a=b/c"})
    for add, remove in (
        (ProtocolTags(reconcile=True), NO_TAGS),
        (NO_TAGS, ProtocolTags(reconcile=True)),
        (NO_TAGS, ProtocolTags(managed_by="fractal-cloud")),
        (ProtocolTags(managed_by="fractal-cloud"), NO_TAGS),
    ):
        before = _writes(sandbox)
        offer.tag(cloud, seen, add, remove)
        assert _writes(sandbox) == before + 1
        found = offer.read(cloud, seen.resource_id)
        assert found is not None
        expected = {**seen.tags, "cost center": "a=b/c", **add.to_mapping()}
        assert found.tags == {key: text for key, text in expected.items() if key not in remove.to_mapping()}


@pytest.mark.parametrize("kind", KINDS)
def test_tags_are_never_added_and_removed_at_once(kind: type[Component], world: World) -> None:
    offer, example, _ = under_test(kind)
    seen = world.bring(example)
    with pytest.raises(ValueError, match="not both"):
        offer.tag(world.cloud_of(offer), seen, ProtocolTags(reconcile=True), ProtocolTags(managed_by="fractal-cloud"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_deleted_is_gone_and_deleting_again_does_no_harm(kind: type[Component], world: World) -> None:
    offer, example, declaration = under_test(kind)
    seen = world.bring(example)
    offer.delete(world.cloud_of(offer), seen)
    offer.delete(world.cloud_of(offer), seen)
    assert offer.read(world.cloud_of(offer), seen.resource_id) is None
    assert world.listed(offer, declaration) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_that_never_was_reads_as_absent(kind: type[Component], world: World) -> None:
    offer, example, _ = under_test(kind)
    seen = world.bring(example)
    for old, new in (("-0", "-1"), (seen.name, f"{seen.name}-other")):
        unknown = seen.resource_id.replace(old, new)
        if unknown != seen.resource_id:
            assert offer.read(world.cloud_of(offer), unknown) is None


@pytest.mark.rule("G12")
@pytest.mark.parametrize("kind", KINDS)
def test_the_glass_commands_need_nothing_but_outputs(kind: type[Component], world: World) -> None:
    offer, example, _ = under_test(kind)
    seen = world.bring(example)
    fields = {**seen.outputs, "resourceId": seen.resource_id}
    for command in [*offer.glass.break_glass, *offer.glass.readopt]:
        assert values_of(command) <= set(fields)
