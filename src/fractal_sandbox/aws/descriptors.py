"""What the sandbox knows of AWS, service by service: read from ``services.json``, which `make docs` writes.

Facts about AWS alone: which operation creates, changes, deletes, tags or lists what. They are the descriptors of the
offers, as data, so that a new type needs no second table here; the code of the offers is not read. What no descriptor
says is unknown, and a write that is unknown is a violation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

__all__ = ["RESOURCES", "SERVICES", "Ref", "Resource", "Service", "ref_from_arn", "ref_from_id"]

_FILE: Final = Path(__file__).with_name("services.json")
_ARN: Final = re.compile(r"arn:[^:]+:(?P<service>[^:]+):(?P<region>[^:]*):[^:]*:(?P<rest>.+)")


@dataclass(frozen=True)
class Ref:
    """One resource: its kind, its id (an ECS service's is `cluster/name`), and its region (a bucket has none)."""

    kind: str
    id: str
    region: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


@dataclass(frozen=True)
class Resource:
    """One kind of resource. The names of its facts are those of the descriptor beside its offer."""

    service: str
    is_regional: bool
    facts: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.facts["kind"])

    @property
    def is_named_by_tag(self) -> bool:
        """Return whether AWS lets several of one name exist."""
        return not self.facts["name_key"]

    @cached_property
    def _in_arn(self) -> re.Pattern[str]:
        before, _, after = str(self.facts["arn"]).partition("{id}")
        inside = "(.+)" if before else "([^/:]+)"
        return re.compile(re.escape(before) + inside + re.escape(after) + r"\Z")

    def id_in_arn(self, rest: str) -> str | None:
        """Return the id that stands in the last part of an ARN; None where that is of another kind."""
        found = self._in_arn.match(rest)
        return found[1] if found else None

    def arn(self, resource_id: str, region: str, account: str) -> str:
        where = f"{region}:{account}" if self.is_regional else ":"
        return f"arn:aws:{self.service}:{where}:{self.facts['arn'].format(id=resource_id)}"

    def ref(self, resource_id: str, region: str) -> Ref:
        return Ref(self.kind, resource_id, region if self.is_regional else "")

    def named(self, value: str, region: str) -> Ref | None:
        """Return the resource that a parameter names, by its id or its ARN."""
        if value.startswith("arn:"):
            return ref_from_arn(value)
        return self.ref(value.lower() if self.facts["is_lower_case"] else value, region)


@dataclass(frozen=True)
class Service:
    """One service with its resources."""

    name: str
    facts: Mapping[str, Any]
    resources: tuple[Resource, ...]

    @property
    def tagging(self) -> Mapping[str, Any]:
        """Return how single tags are written; empty where they are not."""
        return self.facts["tagging"] or {}


def _loaded(name: str, facts: Mapping[str, Any]) -> Service:
    is_regional = "{region}" in facts["arn"]
    return Service(name, facts, tuple(Resource(name, is_regional, one) for one in facts["resources"]))


SERVICES: Final[Mapping[str, Service]] = {
    name: _loaded(name, facts) for name, facts in json.loads(_FILE.read_text("utf-8")).items()
}
RESOURCES: Final[Mapping[str, Resource]] = {one.kind: one for service in SERVICES.values() for one in service.resources}


def ref_from_arn(arn: str) -> Ref | None:
    """Return the resource that an ARN names; None for kinds that no offer is about."""
    match = _ARN.match(arn)
    service = SERVICES.get(match["service"]) if match else None
    if match is None or service is None:
        return None
    for resource in service.resources:
        found = resource.id_in_arn(match["rest"])
        if found is not None:
            return resource.named(found, match["region"])
    return None


def ref_from_id(service: str, resource_id: str, region: str) -> Ref | None:
    """Return the resource with an id that says by its beginning what it is; None for other kinds, such as volumes."""
    for resource in SERVICES[service].resources:
        prefix = resource.facts["id_prefix"]
        if prefix and resource_id.startswith(prefix):
            return resource.ref(resource_id, region)
    return None
