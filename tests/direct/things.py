"""Components, resources and moments for tests of single rules: small, explicit, and without any clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.identity import Identity, Scope
from fractal_cloud.model.observed import Intent, Observed
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tags import OURS, ProtocolTags
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import OperatorRequest, RequestKind
from fractal_cloud.rules.drift import ComparedType
from fractal_cloud.rules.judge import Circumstances
from fractal_cloud.rules.situate import Claims, TypeTraits

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CYCLE = timedelta(seconds=180)
SECOND = timedelta(seconds=1)
TYPE = "Test.Thing"
ME, OTHER = "ls-a", "ls-b"
SCOPE = Scope("aws", "123456789012", "eu-west-1")
IDENTITY = Identity(TYPE, SCOPE, "web")

PROPERTIES: Mapping[str, Any] = {
    "name": {"type": "string"},
    "size": {"type": "integer"},
    "zone": {"type": "string", "x-fractal": {"immutable": True}},
    "policy": {"type": "string", "x-fractal": {"swept": True}},
    "peers": {"type": "array", "x-fractal": {"linked": True}},
}
COMPARED = ComparedType(
    TypeFacts(type=TYPE, provider="aws", title="Thing", parameter_schema={"properties": PROPERTIES}, place=["region"])
)

MINE = ProtocolTags(OURS, owner=ME)
HANDSHAKE = ProtocolTags(OURS, reconcile=True, owner=ME)


def sighting(tags: ProtocolTags = MINE, **more: Any) -> Sighting:
    """A resource that bears the component's name; ours and managed unless said otherwise."""
    return replace(Sighting(TYPE, "web", "id-1", protocol=tags), **more)


def memory(stance: Stance = Stance.MANAGED, **more: Any) -> Observed:
    """What is remembered of it."""
    values: dict[str, Any] = {"resource_id": "id-1", "observed_generation": 3, "established": True, **more}
    return Observed(stance=stance, **values)


def intent(**more: Any) -> Intent:
    """A creation that was begun a minute ago."""
    values: dict[str, Any] = {"id": "i1", "at": NOW - timedelta(minutes=1), **more}
    return Intent(**values)


def request(kind: RequestKind = RequestKind.FORCE_PUSH, **more: Any) -> OperatorRequest:
    """What an operator asked for a minute ago."""
    values: dict[str, Any] = {
        "id": "r1",
        "kind": kind,
        "by": "jo",
        "at": NOW - timedelta(seconds=60),
        "generation": 3,
        "resource_id": "id-1",
        "stance": Stance.OVERRIDE,
        **more,
    }
    return OperatorRequest(**values)


def tracked(remembered: Observed | None = None, **more: Any) -> Tracked:
    """A component of generation 3 that was deployed an hour ago; managed unless said otherwise."""
    values: dict[str, Any] = {
        "uid": "u1",
        "live_system_id": ME,
        "component_id": "web",
        "type": TYPE,
        "parameters": {},
        "dependencies": (),
        "ignore_drift": frozenset(),
        "import_only": False,
        "readoption_by_tag": False,
        "deployed_at": NOW - timedelta(hours=1),
        "generation": 3,
        "identity": IDENTITY,
        "declared_identity": IDENTITY,
        "deleting": False,
        "request": None,
        **more,
    }
    return Tracked(memory=remembered or memory(), **values)


def context(**more: Any) -> Circumstances:
    """What a judgement depends on: declared by one LiveSystem, nothing in the way."""
    values: dict[str, Any] = {
        "compared": COMPARED,
        "traits": TypeTraits(),
        "claims": Claims(frozenset({ME}), ME),
        "now": NOW,
        "cycle": CYCLE,
        **more,
    }
    return Circumstances(**values)
