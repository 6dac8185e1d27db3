"""What the example of an AWS type says: a valid declaration with its parents, other values, a person's actions on it.

Plain data for suites that run over the whole registry. A person's actions are plain boto3: no line is shared with the
offers. The examples themselves stand in ``examples``, one file for each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.testing import Declaration, Found, Obstacle, OperatorActions

REGION = "eu-west-1"

Clients = Callable[[str], Any]
"""A person's boto3 client of a service, in the example's region."""

ForeignEdit = Callable[[Clients, str, str, Any], None]
"""Edit one parameter of a resource as a person would: clients, resource id, parameter, value (cloud ids in it)."""

Arrange = Callable[[Clients, Found], Obstacle]
"""Put something in the way of a deletion."""


def _nothing(clients: Clients) -> None:
    """Nothing has to be there before."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test.

    ``changes`` and ``immutable_changes``: another valid value for each parameter, component ids where it is a
    reference. A person can only raise the parameters in ``only_up``: there the declared value is the other.
    ``prepare``: makes what the declaration takes for granted. ``name_tag``: the tag that is its name, where that is
    one. ``more_parents``: components that only its immutable changes need. ``hazards``: what blocks its deletion, with
    the status that follows. ``effects``: how many effects its life has at least, so that what is struck by faults must
    not shrink unnoticed. ``twin``: what a second one of its kind must differ in. ``also_listed_by``: operations that
    list it, beside the listings of its descriptor.
    """

    kind: type[Component]
    components: list[dict[str, Any]]
    changes: dict[str, Any]
    immutable_changes: dict[str, Any]
    foreign_edit: ForeignEdit
    operator: Callable[[Clients, ForeignEdit], OperatorActions]
    effects: int
    prepare: Callable[[Clients], None] = field(default=_nothing)
    name_tag: str | None = None
    is_slow: bool = True
    only_up: frozenset[str] = frozenset()
    more_parents: tuple[Declaration, ...] = ()
    hazards: Mapping[str, tuple[str, Arrange]] = field(default_factory=dict)
    twin: Mapping[str, Any] = field(default_factory=dict)
    also_listed_by: tuple[str, ...] = ()


def component(kind: type[Component], component_id: str, **parameters: Any) -> dict[str, Any]:
    """A declaration as it is sent."""
    return {"id": component_id, "type": kind.type, "provider": kind.provider, "parameters": parameters}


def tag_map(pairs: list[dict[str, str]] | None, key: str = "Key", value: str = "Value") -> dict[str, str]:
    """Tags from the list of pairs that most services answer."""
    return {pair[key]: pair[value] for pair in pairs or []}


def pairs(tags: Mapping[str, str], key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    """Tags as the list of pairs that most services ask for."""
    return [{key: one, value: text} for one, text in tags.items()]


class AwsActions:
    """What is the same for all types; each subclass knows one service."""

    def __init__(self, clients: Clients, edit: ForeignEdit) -> None:
        self._clients = clients
        self._edit = edit

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        self._edit(self._clients, resource_id, parameter, value)


class Ec2Actions(AwsActions):
    """Everything EC2 holds is tagged by its id."""

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("ec2").create_tags(Resources=[found.handle], Tags=pairs(tags))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("ec2").delete_tags(Resources=[found.handle], Tags=[{"Key": key} for key in keys])

    def _found(self, items: list[dict[str, Any]], id_key: str) -> list[Found]:
        return [Found(item[id_key], tag_map(item.get("Tags")), item[id_key]) for item in items]


class EcsActions(AwsActions):
    """ECS tags by ARN, with its own spelling of the pairs."""

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("ecs").tag_resource(resourceArn=found.handle, tags=pairs(tags, "key", "value"))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("ecs").untag_resource(resourceArn=found.handle, tagKeys=list(keys))
