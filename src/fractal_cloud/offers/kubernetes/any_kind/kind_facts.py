"""What is known of one kind: how it is addressed, and the published schema of its objects. Pure.

Type names are written and read here. Where the facts come from (the packaged catalogue, a cluster, a declared
definition) and what becomes of them does not belong here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fractal_cloud.offers.kubernetes.kinds import ObjectKind

Schema = dict[str, Any]
NEEDED: Final = frozenset({"create", "delete", "get", "list", "patch"})
"""The verbs without which the protocol cannot be kept."""
DEFINED: Final = "its CustomResourceDefinition"
_VERSION: Final = r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?"
_TYPE: Final = re.compile(
    rf"(?:(?P<group>[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*)/)?"
    rf"(?P<version>{_VERSION})/(?P<kind>[A-Z][A-Za-z0-9]*)"
)


@dataclass(frozen=True, slots=True)
class TypeName:
    """The parts of a type's name; the core group is empty."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """As it stands in an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def unversioned(self) -> str:
        """The kind in whichever version: ``batch/CronJob``, ``ConfigMap``."""
        return f"{self.group}/{self.kind}" if self.group else self.kind

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


def type_name(text: str) -> TypeName | None:
    """The parts of ``group/version/Kind`` or ``v1/Kind``; None where a text has not this form."""
    found = _TYPE.fullmatch(text)
    return None if found is None else TypeName(found["group"] or "", found["version"], found["kind"])


@dataclass(frozen=True, eq=False)
class KindFacts:
    """One kind. ``schema``: the published schema of its objects, whose references lead into ``definitions``.

    ``is_known``: whether there is a schema at all; without one, the server's dry run checks what is declared.
    """

    name: TypeName
    plural: str
    is_namespaced: bool
    verbs: frozenset[str]
    schema: Schema
    definitions: Mapping[str, Schema] = field(default_factory=dict)
    description: str = ""
    is_custom: bool = False

    @property
    def is_known(self) -> bool:
        """Whether its fields are known."""
        return bool(self.schema.get("properties"))

    @property
    def lacks(self) -> list[str]:
        """The verbs that it lacks and the protocol needs."""
        return sorted(NEEDED - self.verbs)

    def object_kind(self) -> ObjectKind:
        """How its objects are addressed."""
        product = DEFINED if self.is_custom else ""
        name = self.name
        return ObjectKind(name.group, name.version, name.kind, self.plural, product, self.is_namespaced)
