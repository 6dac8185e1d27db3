"""Every resource type of AWS by its own name: those of the packaged catalogue, and those that an account knows beside.

How one of them is read and changed belongs in `offer`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.model.wording import closest
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.facts import FAMILY, Described, title_of
from fractal_cloud.offers.aws.resources.offer import AwsTypeOffer
from fractal_cloud.offers.aws.resources.schema import VERBS, AwsType, SchemaError, parse
from fractal_cloud.offers.aws.resources.tables.parts import INSTEAD
from fractal_cloud.offers.family import Family, TypeSummary
from fractal_cloud.offers.offer import AnyOffer, Cloud

PREFIX: Final = "AWS::"
_NO_TYPE: Final = frozenset({"TypeNotFoundException", "CFNRegistryException"})
_NEEDED: Final = ("create", "read", "delete")


class AwsResources(Family):
    """``AWS::SQS::Queue`` and all its kin."""

    name = FAMILY
    provider = "aws"
    title = "Every resource type of AWS"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._learned: dict[str, AwsType] = {}

    def covers(self, component_type: str) -> bool:
        """``AWS::…``."""
        return component_type.startswith(PREFIX)

    def offer(self, component_type: str) -> AnyOffer | None:
        """The offer of a type of the catalogue, or of one whose schema an account returned."""
        found = types.find(component_type) or self._learned.get(component_type)
        return None if found is None else AwsTypeOffer.of_type(Described(found))

    def refusal(self, component_type: str) -> str:
        """Why a type cannot be declared, and what can be."""
        why = types.unusable(component_type)
        if why:
            return f"cannot be declared: it {why}"
        if component_type in INSTEAD:
            return f"cannot be declared: declare {INSTEAD[component_type]} instead"
        meant = closest(component_type, types.names())
        return "is no type of AWS that is known here" + (f": did you mean {meant!r}?" if meant else "")

    def types(self) -> Iterator[TypeSummary]:
        """The catalogue."""
        return (TypeSummary(one.name, self.provider, title_of(one.name), one.summary) for one in types.summaries())

    def as_of(self) -> str:
        """The day of the catalogue's schemas."""
        return types.as_of()

    def learn(self, cloud: Cloud, component_type: str) -> TypeFacts | None:
        """Ask the account for the schema of a type that the catalogue lacks: a new one, or one of its own."""
        assert isinstance(cloud, Aws), "asked of AWS alone"
        try:
            answer = cloud.call("cloudformation", "describe_type", Type="RESOURCE", TypeName=component_type)
        except CloudError as error:
            if error.code in _NO_TYPE:
                return None
            raise
        found = _usable(component_type, str(answer.get("Schema") or ""))
        if found is None:
            return None
        with self._lock:
            self._learned[component_type] = found
        return Described(found).facts()


def _usable(name: str, text: str) -> AwsType | None:
    """A type that the protocol can be kept for: it can be made, read and deleted, and it carries tags or is a part."""
    try:
        found = parse(json.loads(text))
    except (ValueError, SchemaError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"the schema that AWS has of {name} cannot be understood ({type(error).__name__})") from error
    verbs = _NEEDED if found.part is not None else VERBS
    has_tags = found.part is not None or found.tags is not None or found.adapter is not None
    return found if has_tags and all(verb in found.handlers for verb in verbs) else None


aws_resources = AwsResources()
