"""Messages that other packages recognise or complete: rewording one of them must not go unnoticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fractal_cloud.control.store.requests import _OTHER_MANAGER, _SEVERAL
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.rules.situate import Claims, View
from fractal_cloud.rules.words import explain, with_since
from tests.deciding.test_requests import FREE, asked


@pytest.mark.rule("G10", "S14", "T7")
def test_the_control_plane_recognises_why_a_force_push_would_be_refused() -> None:
    several = explain("S14", asked(), View(fitting=(FREE, FREE)), Claims(), frozen=False)
    assert _SEVERAL.match(several)
    foreign = replace(FREE, protocol=ProtocolTags("terraform"))
    found = _OTHER_MANAGER.match(explain("S7", asked(), View(sighting=foreign), Claims(), frozen=False))
    assert found is not None
    assert found[1] == "'terraform'"


@pytest.mark.rule("G1", "G7")
@pytest.mark.parametrize(
    ("rule", "frozen", "how"),
    [
        ("S7", False, "add managed-by: fractal-cloud and fractal-cloud: reconcile; "),
        ("S10", False, "add fractal-cloud: reconcile; the agent then stamps fractal-cloud-owner"),
        ("S11", False, "add fractal-cloud: reconcile"),
        ("S11", True, "run `fractal glass ls-a web --readopt`"),
    ],
)
def test_what_is_in_manual_override_says_since_when_what_that_means_and_how_it_ends(
    rule: str, how: str, *, frozen: bool
) -> None:
    message = explain(rule, asked(), View(sighting=FREE), Claims(), frozen=frozen)
    shown = with_since(message, {"since": "2026-11-15T02:14:05Z"})
    assert shown.startswith("In manual override since 2026-11-15 02:14 UTC")
    assert f": the agent reads it and changes nothing. To hand it back, {how}" in shown
    assert with_since(message, None) == message, "what is only imported has no such time"


@pytest.mark.rule("S1")
def test_what_is_only_read_and_absent_says_why_and_what_to_do() -> None:
    bare = asked()
    bare.import_only = False
    assert explain("S1", bare, View(), Claims(), frozen=False) == (
        f"{bare.type} cannot carry tags, so Fractal only reads it. Create {bare.identity.name!r} first"
    )
    bare.import_only = True
    assert explain("S1", bare, View(), Claims(), frozen=False) == (
        f"the component is importOnly, so Fractal only reads it. Create {bare.identity.name!r} first, "
        "or take importOnly out of its declaration"
    )
