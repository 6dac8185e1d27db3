"""Words that other rooms recognise: rewording one of them must not go unnoticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fractal_cloud.control.store.requests import _OTHER_MANAGER, _SEVERAL
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.rules.situate import Claims, View
from fractal_cloud.rules.words import explain
from tests.deciding.test_requests import FREE, asked


@pytest.mark.rule("G10", "S14", "T7")
def test_the_control_plane_recognises_why_a_force_push_would_be_refused() -> None:
    several = explain("S14", asked(), View(fitting=(FREE, FREE)), Claims(), frozen=False)
    assert _SEVERAL.match(several)
    foreign = replace(FREE, protocol=ProtocolTags("terraform"))
    found = _OTHER_MANAGER.match(explain("S7", asked(), View(sighting=foreign), Claims(), frozen=False))
    assert found is not None
    assert found[1] == "'terraform'"
