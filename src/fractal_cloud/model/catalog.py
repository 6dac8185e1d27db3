"""What is known of a component type as plain data, so that it can travel: from a package installed here or from an
agent that has one. The control plane validates, scopes and explains components with nothing but this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from fractal_cloud.model.commands import Command
from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.link import LinkContract
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.wording import FACTS, HIDING

GLOBAL_PLACE = "global"
KEY_SEPARATOR = "|"
ONLY_PART = "-"


def as_word(value: object) -> str:
    """A value as a word of a place or a name: a text, or a number such as a port; empty where it is neither."""
    is_word = isinstance(value, (str, int)) and not isinstance(value, bool)
    return str(value) if is_word else ""


def part_name(values: Iterable[object]) -> str:
    """The name of a part that no single parameter names: the values of its key, in the order of the key (S25).

    The only part of its parent has no key, and is called `-`. References stand in it as text, nested values as JSON.
    """
    return KEY_SEPARATOR.join(_as_key(value) for value in values) or ONLY_PART


def _as_key(value: object) -> str:
    if isinstance(value, Mapping) and set(value) == {"$output"}:
        value = f"${{{value['$output']}}}"
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return text.replace("\\", "\\\\").replace(KEY_SEPARATOR, "\\" + KEY_SEPARATOR)


class GlassCommands(Wire):
    """The vendor's own commands, as templates over a component's output fields and scope (G12).

    ``{resourceId}``, ``{region}`` and every other output field may stand in them. One that is more than plain words
    is written as steps.
    """

    break_glass: list[Command] = Field(default_factory=list)
    readopt: list[Command] = Field(default_factory=list)
    caveat: str = ""


class Entry(Wire):
    """How a person gets into what is declared (a cluster), with the vendor's own commands, and what it is called then.

    Templates over the component's output fields and scope, as those of ``GlassCommands``.
    """

    commands: list[Command] = Field(default_factory=list)
    context: str = ""


class TypeFacts(Wire):
    """One component type: its parameters as JSON Schema, and what the protocol must know of it.

    ``place``: the parameters whose values say where a name is unique (``["region"]``); empty means everywhere.
    ``parent``: the parameter naming the component in whose scope the name is unique (a subnet's VPC).
    ``realm``: the parameter naming the account (or the like) it is in, where an agent may reach several (a cluster).
    ``entry``: how people get into it, where others live in it.
    ``wired_by_declarer``: nobody can own it, so every LiveSystem that declares it serves its own links to it (L12).
    ``tags_frozen``: tags travel in the create call, and nobody can change them afterwards: what people do by tags
    elsewhere, the control plane remembers for this type (G13).
    ``owner_moves``: one call replaces the owner tag, so that an operator's transfer can be carried out (O8).
    ``guard``: what closes the window between the guard's read and the write (S16), in words for the docs.
    ``family``: the family that this type belongs to, where no class was written for it. ``vendor_type``: what the
    vendor itself calls a type that a class was written for: declaring one thing by both names is refused.
    ``name_parameter``: the parameter that is the resource's name; empty where the name is no parameter of the vendor's,
    and ``name`` says it. ``nested``: its parameters are the vendor's own nested values, compared by path.
    ``is_part``: it carries no tags, and belongs to the resource that ``parent`` names (S25). ``key``: where no single
    parameter names a part, those whose values together distinguish the parts of one parent; a part with neither is the
    only one of its parent (see ``part_name``). ``in_scope_of_parent``: it is observed in the scope of its parent, also
    where the names of that are unique in another place than its own. ``creates_once``: it carries no tags, and a
    component may say `createOnce` (S1b). ``tag_rules``: which tags people may declare for it.
    """

    type: str
    provider: str
    title: str
    description: str = ""
    parameter_schema: dict[str, Any]
    outputs: dict[str, str] = Field(default_factory=dict)
    place: list[str] = Field(default_factory=list)
    parent: str | None = None
    realm: str | None = None
    taggable: bool = True
    tags_frozen: bool = False
    owner_moves: bool = True
    wired_by_declarer: bool = False
    holds_data: bool = False
    guard: str = ""
    glass: GlassCommands = Field(default_factory=GlassCommands)
    entry: Entry = Field(default_factory=Entry)
    links: list[LinkContract] = Field(default_factory=list)
    family: str = ""
    vendor_type: str = ""
    name_parameter: str = "name"
    nested: bool = False
    is_part: bool = False
    in_scope_of_parent: bool = False
    key: list[str] = Field(default_factory=list)
    creates_once: bool = False
    tag_rules: TagRules = Field(default_factory=TagRules)

    def parameter_facts(self, name: str) -> dict[str, Any]:
        """What the reconciler must know of one parameter (see ``parameter``)."""
        facts: dict[str, Any] = self.parameter_schema.get("properties", {}).get(name, {}).get(FACTS, {})
        return facts

    def linked(self) -> list[str]:
        """Parameters that only links set."""
        properties = self.parameter_schema.get("properties", {})
        return [name for name in properties if self.parameter_facts(name).get("linked")]

    def hidden(self) -> list[str]:
        """Parameters that may hold secrets: whole, as references, or in the entries of a map (A8)."""
        properties = self.parameter_schema.get("properties", {})
        return [name for name in properties if any(self.parameter_facts(name).get(mark) for mark in HIDING)]

    @property
    def named_by(self) -> str:
        """The parameter under which a declaration says the name."""
        return self.name_parameter or "name"

    @property
    def is_keyed(self) -> bool:
        """Whether a name is made of the values of ``key``, empty for the only part of its parent."""
        return bool(self.key) or (self.is_part and not self.name_parameter)

    @property
    def words(self) -> list[str]:
        """The parameters that say where a component is: those of its place, and the one that names its realm."""
        return [*self.place, *([self.realm] if self.realm else [])]

    def default_word(self, name: str) -> str:
        """What such a parameter says where it is neither declared nor inherited: its enforced default, else nothing."""
        given = self.parameter_schema.get("properties", {}).get(name, {}).get("default")
        return as_word(given) if self.parameter_facts(name).get("enforced") else ""

    def hosts(self) -> dict[str, list[str]]:
        """The types of components it may live in, each with the outputs by which such a one is reached."""
        found: dict[str, list[str]] = self.parameter_facts(self.realm).get("hosts", {}) if self.realm else {}
        return found

    def references(self) -> dict[str, tuple[str, str]]:
        """Parameters that name other components: the type they must be of, and the output that stands for them."""
        found = {}
        for name in self.parameter_schema.get("properties", {}):
            reference = self.parameter_facts(name).get("reference")
            if reference:
                found[name] = (reference["type"], reference["output"])
        return found
