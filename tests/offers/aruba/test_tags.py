"""Tags that are strings in a list, in either spelling, and what happens when two people write them at once."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.tags import NO_TAGS, ProtocolTags
from fractal_cloud.offers.aruba.tags import owner_tag, protocol_of, rewritten
from tests.offers.aruba.declaring import disk
from tests.offers.aruba.worlds import ArubaWorld

OURS = ["managed-by:fractal-cloud", "fractal-cloud-owner:ls-a"]
PLAIN = ["managed-by-fractal-cloud", owner_tag("ls-a")]


@pytest.mark.rule("T7", "T8")
@pytest.mark.parametrize(
    ("tags", "says"),
    [
        (OURS, ProtocolTags("fractal-cloud", False, "ls-a")),
        (PLAIN, ProtocolTags("fractal-cloud", False, "ls-a")),
        ([*OURS, "fractal-cloud:reconcile"], ProtocolTags("fractal-cloud", True, "ls-a")),
        ([*PLAIN, "fractal-cloud-reconcile"], ProtocolTags("fractal-cloud", True, "ls-a")),
        (["managed-by:terraform", *OURS], ProtocolTags("terraform", False, "ls-a")),
        (["Managed-By:fractal-cloud", "fractal-cloud:soon"], NO_TAGS),
        ([*OURS, "fractal-cloud-owner:ls-b"], ProtocolTags("fractal-cloud", False, "ls-a and ls-b")),
        ([owner_tag("ls-unknown")], ProtocolTags(owner=owner_tag("ls-unknown"))),
    ],
)
def test_both_spellings_are_understood_and_what_is_said_twice_is_nobodys(tags: list[str], says: ProtocolTags) -> None:
    assert protocol_of(tags, {owner_tag("ls-a"): "ls-a"}) == says


@pytest.mark.rule("T1")
def test_a_removal_accepts_either_spelling_and_leaves_the_rest_in_order() -> None:
    tags = ["zone-b", "managed-by-fractal-cloud", "managed-by:terraform", "managed-by:fractal-cloud", "aaaa"]
    after = rewritten(tags, NO_TAGS, ProtocolTags(managed_by="fractal-cloud"))
    assert after == ["zone-b", "managed-by:terraform", "aaaa"]


@pytest.mark.rule("T8")
@pytest.mark.parametrize("owner", ["a", "ls-" + "x" * 60])
def test_a_plain_owner_is_always_a_legal_tag(owner: str) -> None:
    tag = owner_tag(owner)
    assert len(tag) == 29
    assert tag.replace("-", "").isalnum()


@pytest.mark.rule("T2", "T8", "G1", "G7", "S9", "S12")
def test_where_the_colon_is_refused_the_plain_spelling_does_all_of_it(plain_world: ArubaWorld) -> None:
    world, person = plain_world, plain_world.aruba
    world.deploy("ls-a", disk(project="strict"))
    world.survive()
    assert world.status("ls-a", "disk") == "Active"
    uri = world.component("ls-a", "disk")["resourceId"]
    assert person.tags(uri) == PLAIN

    person.put(uri, billingPeriod="Month")
    world.survive()
    assert world.drift("ls-a", "disk") is None
    person.put(uri, tags=PLAIN[1:])
    world.cycle()
    assert world.status("ls-a", "disk") == "ManualOverride"
    person.put(uri, tags=["managed-by-fractal-cloud", "fractal-cloud-reconcile", "team-pay"])
    world.survive()
    assert world.status("ls-a", "disk") == "Active"
    assert sorted(person.tags(uri)) == sorted(["team-pay", *PLAIN]), "the owner came back, and the handshake is over"
    world.assert_safe()


@pytest.mark.rule("T8", "S6")
def test_what_a_hash_of_somebody_unknown_owns_is_theirs(plain_world: ArubaWorld) -> None:
    world, person = plain_world, plain_world.aruba
    theirs = ("managed-by-fractal-cloud", owner_tag("ls-elsewhere"))
    uri = person.create("Aruba.Storage/blockStorages", "disk", theirs, sizeGb=5, type="Standard", billingPeriod="Hour")
    world.deploy("ls-a", disk(project="strict"))
    world.survive()
    assert world.status("ls-a", "disk") == "ExternallyManaged"
    assert tuple(person.tags(uri)) == theirs
    world.assert_safe()


@pytest.mark.rule("T8")
def test_a_colon_that_is_refused_is_said_with_the_setting_that_helps(world: ArubaWorld) -> None:
    world.deploy("ls-a", disk(project="strict"))
    world.cycle(2)
    assert world.status("ls-a", "disk") == "Failed"
    message = world.component("ls-a", "disk")["message"]
    assert "Tag: 'managed-by:fractal-cloud' must have" in message
    assert "set tagStyle: plain (FRACTAL_ARUBA_TAG_STYLE=plain)" in message
    assert not world.aruba.list("Aruba.Storage/blockStorages"), "nothing is left half made"


@pytest.mark.rule("T10", "S16", "G1")
def test_a_person_who_removes_the_tag_after_the_guards_read_still_wins(world: ArubaWorld) -> None:
    world.deploy("ls-a", disk())
    world.survive()
    uri = world.component("ls-a", "disk")["resourceId"]
    world.aruba.put(uri, billingPeriod="Month")
    reads = 0

    def break_glass(call: Any) -> None:
        nonlocal reads
        reads += 1
        if reads == 2 and call.origin.reason == "drift":  # the guard has read, and the offer is about to
            world.aruba.put(uri, tags=OURS[1:])

    world.cloud.knobs.before_call(break_glass, times=2, operation="getBlockStorage", actor="agent")
    world.cycle(3)
    assert reads == 2
    assert world.status("ls-a", "disk") == "ManualOverride"
    assert world.aruba.tags(uri) == OURS[1:], "nothing put the tag back"
    found = world.aruba.get(uri)
    assert found is not None
    assert found["properties"]["billingPeriod"] == "Month"
    world.assert_safe()
    assert not world.cloud.monitor.lost_races
