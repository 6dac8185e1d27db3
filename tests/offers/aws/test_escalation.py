"""No published way leads from the printed rights to more, with or without those of links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.aws.policy import documents
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox.aws.iam_evaluation import AuthorizationRequest, Policy, decide
from fractal_sandbox.aws.principals import KNOWN_KEYS
from tests.aws_rights import ACCOUNT, PASSED_ROLES
from tests.offers.aws.escalation import AGENT, WAYS, Step, Way

PLAIN = PolicyOptions(pass_roles=PASSED_ROLES)
WITH_LINKS = PolicyOptions(pass_roles=PASSED_ROLES, with_links=True, with_history=True)
PAGE = Path(__file__).parents[3] / "docs" / "security.md"
ROW = re.compile(
    r"^\| (?P<way>[^|]+) \| (?P<source>[^|]+) \| `(?P<plain>[\w:-]+)` \| `(?P<links>[\w:-]+)` \| `[^|]+` \|$",
    re.MULTILINE,
)


def policies(options: PolicyOptions) -> list[Policy]:
    return [Policy(one, KNOWN_KEYS) for one in documents(options)]


def asked(step: Step) -> AuthorizationRequest:
    always: dict[str, str] = {"aws:PrincipalAccount": ACCOUNT, "aws:PrincipalArn": AGENT, "aws:ViaAWSService": "false"}
    context = {key.lower(): (value,) for key, value in {**always, **step.context}.items()}
    return AuthorizationRequest(step.action, step.resource, context)


def stopped_at(way: Way, options: PolicyOptions) -> str | None:
    """The first step that is refused; None where the whole way is open."""
    allowed = policies(options)
    return next((one.action for one in way.steps if not decide(asked(one), allowed).is_allowed), None)


def test_the_lists_are_whole() -> None:
    sources = " ".join(way.source for way in WAYS)
    rhino = {int(number) for number in re.findall(r"\bR(\d+)", sources)}
    assert rhino == set(range(1, 29))
    bishop = set(re.findall(r"\bB(\d+| [\w-]+)", sources))
    assert len(bishop) == 31, "as many as the list has"
    assert len({way.name for way in WAYS}) == len(WAYS)


@pytest.mark.rule("A7")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_no_published_way_leads_to_more_rights(way: Way) -> None:
    assert stopped_at(way, PLAIN) is not None
    assert stopped_at(way, WITH_LINKS) is not None


def _rows() -> Iterator[dict[str, Any]]:
    yield from (found.groupdict() for found in ROW.finditer(PAGE.read_text("utf-8")))


@pytest.mark.rule("A7")
def test_the_page_lists_every_way_and_where_it_ends() -> None:
    shown = [(row["way"], row["source"], row["plain"], row["links"]) for row in _rows()]
    wanted = [(way.name, way.source, stopped_at(way, PLAIN), stopped_at(way, WITH_LINKS)) for way in WAYS]
    assert shown == wanted
