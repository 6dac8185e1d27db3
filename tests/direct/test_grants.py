"""What a token is bound to, by itself: patterns cover what they say and nothing else."""

from __future__ import annotations

import pytest

from fractal_cloud.rules.grants import EVERYTHING, NOTHING, Grants

PROD = Grants.of(["aws"], ["prod", "stage-*"], ["123456789012", "ctx-a", "ls-shop/*"])


@pytest.mark.rule("A1")
@pytest.mark.parametrize(
    ("asked", "expected", "reason"),
    [
        (("aws", "prod", "123456789012"), True, "the realm's id is named"),
        (("aws", "stage-eu", "123456789012"), True, "a pattern covers the environment"),
        (("aws", "prod", "999", "ctx-a"), True, "the name under which it is reached is named"),
        (("aws", "prod", "999", "ls-shop/eks"), True, "a pattern covers the declared cluster"),
        (("gcp", "prod", "123456789012"), False, "another provider"),
        (("aws", "Prod", "123456789012"), False, "upper and lower case differ"),
        (("aws", "stage", "123456789012"), False, "a pattern covers whole names"),
        (("aws", "prod", "1234567890123"), False, "a longer id is another realm"),
        (("aws", "prod", "999", "ctx-ab"), False, "a longer name is another one"),
        (("aws", "prod", "999"), False, "neither id nor name"),
        (("aws", "prod", "", ""), False, "no realm at all"),
    ],
)
def test_a_realm_is_served_where_provider_environment_and_realm_are_all_covered(
    asked: tuple[str, ...], expected: bool, reason: str
) -> None:
    assert PROD.may_serve(*asked) is expected, reason


@pytest.mark.rule("A1")
def test_only_a_star_covers_everything_and_an_empty_list_nothing() -> None:
    assert EVERYTHING.may_serve("aws", "prod", "1")
    assert not EVERYTHING.may_serve("aws", "prod", ""), "no realm is called by an empty name"
    assert not NOTHING.may_serve("aws", "prod", "1")
    assert EVERYTHING.is_complete
    for missing in (Grants.of([], "*", "*"), Grants.of("*", [], "*"), Grants.of("*", "*", [])):
        assert not missing.is_complete
        assert not missing.may_serve("aws", "prod", "1")
