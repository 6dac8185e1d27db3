"""What the protocol must know of a resource type of AWS, from its published schema and the tables beside it.

No name of a type stands here. How values are compared is marked in `marks`; how resources are read and changed does not
belong here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from fractal_cloud.model.catalog import GlassCommands, TypeFacts, part_name
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.wording import FACTS
from fractal_cloud.offers.aws.resources.glass import by_cloud_control
from fractal_cloud.offers.aws.resources.marks import parameters
from fractal_cloud.offers.aws.resources.schema import AwsType, Schema
from fractal_cloud.offers.aws.resources.tables.arns import ARNS, own_arn
from fractal_cloud.offers.aws.resources.tables.tagging import COMMANDS, WITHOUT_TAGGING_API
from fractal_cloud.offers.aws.tags import NAME as NAME_TAG
from fractal_cloud.offers.aws.tags import NAMED_RULES, RULES

FAMILY: Final = "aws-resources"
REALM: Final = "account"
NAME: Final = "name"
ARN: Final = "Arn"
REGION: Final = "region"
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")
_BORN: Final = re.compile(r"(?i)^(?:creat(?:ed|ion)\w*|\w*(?:creat(?:e|ed|ion))(?:time|date|at|timestamp|on)\w*)$")
_GENERATED: Final = re.compile(r"(?:Id|UUID|Uuid|Uid)$")
_AT: Final = "--region={region} --resource-arn-list={ARN}"
_BY_TAGGING_API: Final = GlassCommands(
    break_glass=[f"aws resourcegroupstaggingapi untag-resources {_AT} --tag-keys managed-by"],
    readopt=[
        f"aws resourcegroupstaggingapi tag-resources {_AT} --tags managed-by=fractal-cloud,fractal-cloud=reconcile"
    ],
)
_TEST: Final = (
    "Cloud Control's `test` on the tags: AWS refuses an update whose tags have changed since the read; a deletion "
    "carries none: the window is the one call after a fresh read"
)
_TAGS_ALONE: Final = (
    "tags alone go by the tagging API where no read shows {}, which every patch must bring: they are read again "
    "afterwards, and a lost race is reported"
)
_FRESH_READ: Final = "no precondition: the window is the one call after a fresh read"
_OF_PARENT: Final = "its parent's tags, read right before the one call"
_WHERE: Final = {
    REGION: {
        "type": "string",
        "pattern": r"^[a-z]{2}(-[a-z]+)+-\d+$",
        "description": "AWS region it is in.",
        FACTS: {"immutable": True},
    },
}
_ACCOUNT: Final = {
    "type": "string",
    "description": "Id of the account it is in, or its name in the agent's file of realms; the agent's own account if "
    "not given.",
    FACTS: {"immutable": True},
}


@dataclass(frozen=True, eq=False)
class Described:
    """One type with all that follows from its schema and the tables. ``type``: the schema.

    ``arn``: the property that holds a resource's ARN; empty where it is made of ``ARNS`` or not known.
    """

    type: AwsType

    @cached_property
    def arn(self) -> str:
        """The property that AWS fills in with a resource's ARN; empty where there is none."""
        if self.type.name in ARNS:
            return ""
        return own_arn(self.type.name, [one for one in self.names if self.is_filled_in(one)], self.type.identifier)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all its properties."""
        return tuple(self.type.properties["properties"])

    @cached_property
    def declarable(self) -> tuple[str, ...]:
        """What of its properties can be declared and read back: no tags, nothing of AWS alone, nothing only written."""
        kind = self.type
        hidden = kind.read_only | kind.write_only | ({kind.tags.property} if kind.tags is not None else frozenset())
        return tuple(one for one in self.names if one not in hidden)

    def is_filled_in(self, name: str) -> bool:
        """Whether AWS says this of every resource of the type."""
        return name in self.type.read_only or name in self.type.identifier

    @property
    def arn_output(self) -> str:
        """The output field with its ARN; empty where nobody knows it."""
        return self.arn or (ARN if self.type.name in ARNS else "")

    @property
    def is_listed_by_tags(self) -> bool:
        """Whether the tagging API shows its resources, and which of them is which."""
        return self.type.part is None and bool(self.arn_output) and self.type.service not in WITHOUT_TAGGING_API

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The properties that name it together: of a part beside its parent, of others where no single one does."""
        kind, part = self.type, self.type.part
        if part is not None:
            return part.key or self._own_of_part(part.property)
        if len(kind.identifier) == 1 or kind.named_by == "tag":
            return ()
        chosen = [one for one in kind.identifier if one not in kind.read_only]
        return tuple(dict.fromkeys([*chosen, kind.name_parameter])) if chosen != [kind.name_parameter] else ()

    def _own_of_part(self, parent: str) -> tuple[str, ...]:
        """What distinguishes a part by its schema alone: its declared identifier, else the property that names it."""
        kind = self.type
        if kind.named_by == "identifier":
            return tuple(one for one in kind.identifier if one != parent)
        return (kind.name_parameter,) if kind.named_by == "property" else ()

    @property
    def name_parameter(self) -> str:
        """The one property that is its name; empty where its name is a key, the tag ``Name``, or there is only one."""
        return "" if self.key or self.type.part is not None else self.type.name_parameter

    @property
    def is_only_part(self) -> bool:
        """Whether its parent has at most one of it."""
        return self.type.part is not None and not self.key

    @property
    def is_named_by_tag(self) -> bool:
        """Whether the tag ``Name`` is its name."""
        return self.type.part is None and not self.key and not self.name_parameter

    def name_of(self, properties: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        """What a resource with these properties and tags is called."""
        if self.is_only_part or self.key:
            return part_name(properties.get(one) for one in self.key)
        return self.tagged_name(tags) if self.is_named_by_tag else str(properties.get(self.name_parameter) or "")

    def tagged_name(self, tags: Mapping[str, str]) -> str:
        """What the tag `Name` says; empty where there is none."""
        return self.tag_rules.actual(tags, (NAME_TAG,)).get(NAME_TAG, "")

    @cached_property
    def tag_rules(self) -> TagRules:
        """Which tags people may declare, and how their keys are compared."""
        rules = NAMED_RULES if self.is_named_by_tag else RULES
        is_caseless = self.type.tags is not None and self.type.tags.caseless
        return rules.model_copy(update={"caseless": True}) if is_caseless else rules

    @cached_property
    def incarnation(self) -> str:
        """The property that distinguishes a resource from a later one with its identifier; empty where none does."""
        filled = [one for one in self.names if one in self.type.read_only and one not in self.type.identifier]
        born = [one for one in filled if _BORN.match(one)]
        noun = self.type.name.rpartition("::")[2]
        own = [one for one in filled if one in ("Id", f"{noun}Id", f"{noun}Uid", f"{noun}UUID")]
        return next(iter([*own, *born]), "")

    @property
    def ids_return(self) -> bool:
        """Whether a later resource may have the identifier of an earlier one, and nothing distinguishes the two.

        An identifier that AWS generates never returns; one that its declarer chose, or that is made of a name, does.
        """
        if self.incarnation:
            return False
        generated = (one for one in self.type.identifier if one in self.type.read_only and _GENERATED.search(one))
        is_generated = self.type.named_by != "identifier" and next(generated, None) is not None
        return not is_generated and not self.is_named_by_tag

    @property
    def is_in_several(self) -> bool:
        """Whether its identity holds other resources, so that these are read first."""
        return self.type.part is not None or bool(self.key) or bool(self.type.list_parents)

    @property
    def is_listed_whole(self) -> bool:
        """Whether one list shows all of the type."""
        return "list" in self.type.handlers and not self.type.list_parents

    def models_within(self, parents: Sequence[str]) -> list[dict[str, str]]:
        """What lists are asked with that together show all parts of these parents; none where AWS has no such list."""
        kind, part = self.type, self.type.part
        if part is None or "list" not in kind.handlers or not parents:
            return []
        if not kind.list_parents:
            return [{}]
        return [{part.property: one} for one in parents] if kind.list_parents == (part.property,) else []

    @property
    def unlisted(self) -> str:
        """Why nobody can list all of the type, in words that follow its name; empty where one can."""
        kind = self.type
        if self.is_listed_whole or self.models_within(["-"]):
            return ""
        if "list" not in kind.handlers:
            return "is never listed by AWS"
        return f"is listed by AWS only with {' and '.join(kind.list_parents)} given"

    def facts(self) -> TypeFacts:
        """All of it as plain data."""
        kind, part = self.type, self.type.part
        return TypeFacts(
            type=kind.name,
            provider="aws",
            title=title_of(kind.name),
            description=kind.description,
            parameter_schema=self._parameters(),
            outputs=self._outputs(),
            place=list(kind.place),
            parent=part.property if part is not None else None,
            realm=REALM,
            taggable=part is None,
            tags_frozen=self._is_frozen,
            owner_moves=part is None and not self._is_frozen,
            holds_data=kind.holds_data,
            tag_rules=self.tag_rules,
            guard=self._guard(),
            glass=self._glass(),
            family=FAMILY,
            name_parameter=self.name_parameter,
            nested=True,
            is_part=part is not None,
            in_scope_of_parent=part is not None and part.follows_parent,
            key=list(self.key),
        )

    @property
    def _is_frozen(self) -> bool:
        return self.type.tags is not None and not self.type.tags.updatable

    def _parameters(self) -> Schema:
        made = parameters(self.type)
        properties: Schema = made["properties"]
        part = self.type.part
        own: Schema = {**(_WHERE if self.type.place else {}), REALM: _ACCOUNT}
        if self.is_named_by_tag:
            own[NAME] = {"type": "string", "description": "Its name: the tag `Name`; the component's id if not given."}
        if self.is_listed_by_tags:
            _sweep(properties, kept={self.name_parameter, *self.key})
        if part is not None:
            parent = properties[part.property] = dict(properties.get(part.property, {"type": "string"}))
            reference = {"type": part.parent_type, "output": part.output}
            parent[FACTS] = {**parent.get(FACTS, {}), "reference": reference, "immutable": True}
        where = [REGION] if self.type.place and part is None else []
        made["properties"] = {**own, **properties}
        made["required"] = [*where, *made["required"]]
        return made

    def _outputs(self) -> dict[str, str]:
        kind = self.type
        filled = [one for one in self.names if self.is_filled_in(one)]
        found = {one: kind.property_schema(one).get("description", "") or f"its {one}" for one in filled}
        if self.arn_output:
            found.setdefault(self.arn_output, "its ARN")
        return {**found, REGION: "region in which it is called"}

    @property
    def unguarded(self) -> frozenset[str]:
        """The calls that carry no precondition: what they did is read again, and a lost race is reported (S16)."""
        by_tagging_api = self.type.unread_requirements and self.is_listed_by_tags
        return frozenset({"delete", "tag"}) if by_tagging_api else frozenset({"delete"})

    def _guard(self) -> str:
        if self.type.part is not None:
            return _OF_PARENT
        if self.type.tags is not None and "tag" in self.unguarded:
            return f"{_TEST}; {_TAGS_ALONE.format(', '.join(self.type.unread_requirements))}"
        return _TEST if self.type.tags is not None else _FRESH_READ

    def _glass(self) -> GlassCommands:
        commands = COMMANDS.get(self.type.name)
        if commands is not None:
            return GlassCommands(break_glass=[commands[0]], readopt=[commands[1]])
        if self.type.part is not None or self._is_frozen:
            return GlassCommands()
        if not self.is_listed_by_tags:
            return by_cloud_control(self.type)
        return GlassCommands(
            break_glass=[_with_arn(one, self.arn_output) for one in _BY_TAGGING_API.break_glass],
            readopt=[_with_arn(one, self.arn_output) for one in _BY_TAGGING_API.readopt],
        )


def title_of(name: str) -> str:
    """A type in words: ``SQS queue`` of ``AWS::SQS::Queue``."""
    _, service, noun = name.split("::")
    words = [word if word.isupper() and len(word) > 1 else word.lower() for word in _WORDS.findall(noun)]
    return f"{service} {' '.join(words)}"


def _sweep(properties: Schema, kept: set[str]) -> None:
    """Say of every parameter that it is read one resource at a time; what identifies a resource is always known."""
    for name, one in properties.items():
        if name not in kept and not one.get(FACTS, {}).get("writeOnly"):
            properties[name] = {**one, FACTS: {**one.get(FACTS, {}), "swept": True}}


def _with_arn(command: Any, output: str) -> Any:
    return command.replace("{ARN}", f"{{{output}}}")
