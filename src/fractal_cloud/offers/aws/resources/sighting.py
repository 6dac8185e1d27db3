"""One resource as Cloud Control shows it, as a sighting: its name, its tags, its values, and whether AWS is at work.

Which resources are looked for belongs in `reading`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.catalog import KEY_SEPARATOR
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.resources import calls, tags
from fractal_cloud.offers.aws.resources.adapters import Adapted
from fractal_cloud.offers.aws.resources.calls import Progress, Properties
from fractal_cloud.offers.aws.resources.facts import ARN, NAME, REGION, Described
from fractal_cloud.offers.aws.resources.known import Known, KnownOfType, Memory
from fractal_cloud.offers.aws.resources.tables.arns import ARNS
from fractal_cloud.offers.aws.tags import interned

_CONDITIONS: Final[Mapping[str, Condition]] = {
    calls.CREATE: Condition.CREATING,
    calls.UPDATE: Condition.CHANGING,
    calls.DELETE: Condition.DYING,
}
_IDENTIFIER: Final = "|"


class Shown:
    """The resources of one type in one account and region: read one at a time, and as they are remembered."""

    def __init__(self, described: Described, cloud: Aws) -> None:
        self.described = described
        self.cloud = cloud
        self.memory = Memory.of(cloud)

    @property
    def known(self) -> KnownOfType:
        """What is remembered of the type."""
        return self.memory.types[self.described.type.name]

    def read(self, identifier: str) -> Sighting | None:
        """One resource, whole and fresh; None where it does not exist, and AWS is not at work on making it."""
        properties = calls.get(self.cloud, self.described.type.name, identifier)
        progress = self.memory.requests.of(self.cloud, self.described.type.name, identifier)
        if properties is not None:
            return self._whole(identifier, properties, progress)
        if progress is not None and progress.operation == calls.CREATE:
            return self.beginning(identifier, progress)
        self.known.forget(identifier)
        return None

    def beginning(self, identifier: str, progress: Progress) -> Sighting:
        """A resource that AWS has begun to make, and does not show yet."""
        name, parent_id = self.known.assigned.get(identifier, ("", None))
        return Sighting(
            type=self.described.type.name,
            name=name or self._name_in(identifier),
            resource_id=identifier,
            parent_id=parent_id,
            outputs={REGION: interned(self.cloud.region)},
            condition=Condition.CREATING,
            detail=progress.message,
            is_hidden=True,
        )

    def _name_in(self, identifier: str) -> str:
        """The name in an identifier that its declarer chose."""
        kind = self.described.type
        parts = dict(zip(kind.identifier, identifier.split(_IDENTIFIER), strict=False))
        return self.described.name_of(parts, {})

    def _whole(self, identifier: str, properties: Properties, progress: Progress | None) -> Sighting:
        described = self.described
        kind = described.type
        values = {**dict(zip(kind.identifier, identifier.split(_IDENTIFIER), strict=False)), **properties}
        found, raw = self._tags(values)
        name, parent_id = self._assigned(identifier, values, found)
        known = Known(
            identifier=identifier,
            name=name,
            parent_id=parent_id,
            arn=without_stars(self.arn(values)),
            outputs=self._outputs(values),
            incarnation=str(values.get(described.incarnation) or "") if described.incarnation else "",
        )
        self.known.note(known)
        actual = {one: properties.get(one) for one in described.declarable}
        if kind.part is not None and actual.get(kind.part.property) is None:
            actual[kind.part.property] = parent_id
        return self.sighting(
            known,
            found,
            actual,
            condition=_CONDITIONS.get(progress.operation, Condition.CHANGING) if progress else Condition.SETTLED,
            detail=progress.message if progress else "",
            revision=None if kind.tags is None else json.dumps(raw),
        )

    def sighting(
        self,
        known: Known,
        found: Mapping[str, str],
        actual: Mapping[str, Any],
        *,
        condition: Condition = Condition.SETTLED,
        detail: str = "",
        revision: str | None = None,
    ) -> Sighting:
        """What is known of a resource, with its tags and what of its values was read."""
        described = self.described
        name = described.tagged_name(found) if described.is_named_by_tag else known.name
        here = {REGION: interned(self.cloud.region)} if described.type.place else {}
        named = {NAME: name} if described.is_named_by_tag else {}
        if described.name_parameter:
            named = {described.name_parameter: name}
        return Sighting(
            type=described.type.name,
            name=name,
            resource_id=known.identifier,
            parent_id=known.parent_id,
            protocol=tags.protocol(described.tag_rules, found),
            tags=found,
            actual={**here, **actual, **named},
            outputs=known.outputs,
            condition=condition,
            detail=detail,
            revision=revision,
            incarnation=known.incarnation,
        )

    def _tags(self, values: Mapping[str, Any]) -> tuple[Mapping[str, str], Any]:
        """The tags of a resource, and the property that they were read from; None where it has none."""
        kind = self.described.type
        if kind.tags is not None:
            raw = values.get(kind.tags.property)
            return tags.read(kind.tags, raw), raw
        if kind.adapter is not None:
            return Adapted(kind.adapter).read(self.cloud, values), None
        return tags.NOTHING, None

    def _assigned(self, identifier: str, values: Mapping[str, Any], found: Mapping[str, str]) -> tuple[str, str | None]:
        """The name and the parent under which it is declared, as long as these are still its own; else what it says."""
        described = self.described
        part = described.type.part
        name = described.name_of(values, found)
        parent_id = str(values.get(part.property) or "") if part is not None else None
        given = self.known.assigned.get(identifier)
        if given is None:
            return name, parent_id
        is_named = same_name(given[0], name, described.key)
        is_there = parent_id is None or not parent_id or same(given[1], parent_id)
        return given[0] if is_named else name, given[1] if is_there else parent_id

    def arn(self, values: Mapping[str, Any]) -> str:
        """The ARN of a resource; empty where nobody knows it."""
        described = self.described
        if described.arn:
            return str(values.get(described.arn) or "")
        known = ARNS.get(described.type.name)
        if known is None:
            return ""
        service, rest = known
        names = {"region": self.cloud.region, "account": self.cloud.account}
        return f"arn:{self.cloud.partition}:{service}:{rest.format(**{**values, **names})}"

    def _outputs(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        described = self.described
        found = {one: values[one] for one in described.names if described.is_filled_in(one) and one in values}
        if described.arn_output == ARN and ARN not in found:
            found[ARN] = self.arn(values)
        return {**found, REGION: interned(self.cloud.region)}


def same(one: Any, other: Any) -> bool:
    """Whether two values mean the same: equal, a number and its text, a name and the ARN that ends with it."""
    if one == other:
        return True
    if one is None or other is None:
        return False
    first, second = str(one), str(other)
    return first == second or last_word(first) == second or last_word(second) == first


def last_word(arn: str) -> str:
    """What an ARN ends with: the name or the id of its resource; anything else as it is."""
    if not arn.startswith("arn:"):
        return arn
    resource = arn.split(":", 5)[-1]
    return resource.rpartition("/")[2] if "/" in resource else resource.rpartition(":")[2]


def without_stars(arn: str) -> str:
    """An ARN as the tagging API has it: the logs' own end with ``:*``."""
    return arn.removesuffix(":*")


def same_name(declared: str, actual: str, key: Sequence[str]) -> bool:
    """Whether a resource is called as a component declares it."""
    if not key:
        return declared.casefold() == actual.casefold()
    ours, theirs = declared.split(KEY_SEPARATOR), actual.split(KEY_SEPARATOR)
    return len(ours) == len(theirs) and all(map(same, ours, theirs))
