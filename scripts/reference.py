"""Writes docs/reference: a page for every component type of the registry, and an index. `--check` only compares.

What a page says comes from the offer and its component class, so it cannot differ from what the SDK, the API and the
agent do. Its example is the one that the contract suite creates, changes and deletes in the sandbox.
"""

from __future__ import annotations

import inspect
import json
import keyword
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the examples are those of the tests

from fractal_cloud.model.catalog import TypeFacts  # noqa: E402
from fractal_cloud.model.commands import template_text  # noqa: E402
from fractal_cloud.model.link import ANY_TYPE, LinkContract  # noqa: E402
from fractal_cloud.model.wording import FACTS, describe, resolve  # noqa: E402
from fractal_cloud.offers.link_types import WorkloadSource  # noqa: E402
from fractal_cloud.offers.link_validation import DIRECTIONS  # noqa: E402
from fractal_cloud.offers.offer import AnyOffer, Recognition  # noqa: E402
from fractal_cloud.offers.registry import installed  # noqa: E402
from fractal_cloud.offers.short_names import categories  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
WIDTH = 100
LIVE_SYSTEM = "example"

RECOGNITION: Mapping[Recognition, str] = {
    Recognition.UNIQUE_NAME: "by its name, of which the cloud allows only one",
    Recognition.TOKEN: "by a client token that is the same for every try",
    Recognition.WINDOW: (
        "by its name; as the cloud allows several of one name, a creation whose answer was lost is tried again only "
        "after two reads that did not show it, and two cycles or 10 s, whichever is longer"
    ),
}
MARKED: Mapping[str, str] = {
    "secret": "A secret: only a reference may stand here (A8).",
    "sensitive": "May hold secrets: a reference may stand here, and clear text is hidden from readers (A8).",
    "holdsSecrets": "Its values may be references to secrets; those that seem to be secrets are hidden (A8).",
    "writeOnly": "The cloud never returns it: it is compared with what was last written, by a keyed digest (A8).",
}
COMPARED: Mapping[str, str] = {
    "unordered": "Compared without regard to order.",
    "arn": "An ARN is compared as the name it ends with.",
    "caseless": "Compared without regard to case.",
    "cidr": "Compared as a network, not as text.",
    "cidrs": "Compared as networks, without regard to order.",
    "quantity": "Compared by its value: `500m` is `0.5`, `1Gi` is `1024Mi`.",
    "entries": "Only the entries that are declared are compared.",
    "identified": "The order does not count, and an `id` only where it is declared.",
}
INSTALLED = """\
Every type that is installed with this package. `GET /offers` returns the same for a running control plane, with the
types its agents brought along."""
NOTES = """\
Parameters that are not declared are not compared: what the cloud or a person sets there is left alone. A default acts
at creation and is not enforced afterwards, unless the remarks say so."""
OUTPUTS = """\
Beside these, `outputFields` holds the actual value of every declared parameter, and `drift` while there is any."""
LINKS = """\
The halves of links that are written for this type; a half for the very pair comes before one for any type (L15).
[How links work](../../links.md)."""
MATRIX = """\
Each row is a target, each column a source; in between stands the type of the link. The settings of each are on the page
of the target. [How links work](../links.md).

◐: only the target's half is written. It opens the way (a rule, a network policy) or makes an identity, but nothing on
the source's side takes a secret over: a package of your own may bring that half."""
BLOCKED = """\
What blocks it is named in the message, and it is tried again until it goes: the component stays `Deleting`, or `Failed`
where the resource is protected from deletion (O6, O15)."""
HELD_DATA = """\
It holds data. What keeps it from being deleted is never forced: the component is `Failed`, names it, and tries again
later (O15). If it vanishes behind the agent's back, the component is `Missing`, and nothing is created in its place
until the LiveSystem is deployed again (S4a)."""
GUARDS = """\
Right before every write the agent reads the resource again and decides again. A write that this read already forbade
would be a *violation*: there is none, whatever the type. A *lost race* is a tag removed after that read and before the
write arrives; it is read again afterwards, and reported as the event `RaceLost`. What closes that window:"""

_SPELLED = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MARKDOWN = re.compile(r"([*_|\[\]<>])")


class Sdk:
    """The short names under which component types and the parts of their parameters are declared in Python."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, str, str]] = {}
        for category in categories().values():
            package = import_module(f"fractal_cloud.{category}")
            for provider in package.__all__:
                module = getattr(package, provider)
                for name in module.__all__:
                    self._names[getattr(module, name).__name__] = (category, provider, name)

    def call(self, class_name: str) -> str:
        """How the class is called: ``network_and_compute.aws.vpc``."""
        return ".".join(self._names[class_name])

    def category(self, class_name: str) -> str:
        """What to import from ``fractal_cloud`` for it."""
        return self._names[class_name][0]

    def slug(self, offer: AnyOffer) -> str:
        """The name of the offer's page."""
        return self._names[offer.component.__name__][2].replace("_", "-")


class Page:
    """The page of one offer."""

    def __init__(self, offer: AnyOffer, sdk: Sdk) -> None:
        self._offer = offer
        self._facts: TypeFacts = offer.facts()
        self._contracts = sorted(
            installed().catalog()[offer.type].links, key=lambda one: (one.link_type, one.half, one.source, one.target)
        )
        self._sdk = sdk
        self._example = Example(offer, sdk)
        self._python = offer.component.parameter_fields()
        self._schema = self._facts.parameter_schema

    def text(self) -> str:
        """The whole page."""
        parts = [
            _warning(),
            f"# {self._facts.title}",
            f"`{self._facts.type}`. In Python: `{self._sdk.call(self._offer.component.__name__)}(...)`.",
            self._facts.description,
            table(("", ""), self._traits()),
            "## Parameters",
            NOTES,
            table(("parameter", "in Python", "value", "default", "remarks"), self._parameters()),
            *self._parts(),
            *self._links(),
            "## Outputs",
            table(("output field", "what it is"), [(f"`{name}`", said) for name, said in self._facts.outputs.items()]),
            OUTPUTS,
            "## Break the glass",
            *self._glass(),
            "## Deleting",
            *self._deleting(),
            "## Example",
            "In Python:",
            _code("python", self._example.python()),
            "The same as YAML:",
            _code("yaml", self._example.yaml()),
        ]
        return "\n\n".join(parts) + "\n"

    def _traits(self) -> Iterator[tuple[str, str]]:
        yield "found by", identity(self._offer, self._facts)
        yield "tags", _carried(self._facts)
        yield "data", "holds data" if self._facts.holds_data else "holds none"
        if self._facts.taggable:
            yield "a creation whose answer was lost is recognised", self._recognised()
        yield "distinguished from a later one of the same name", _distinguished_by(self._offer)
        yield "its absence is proven by", _proof(self._offer)
        yield "guard of a write", self._facts.guard

    def _recognised(self) -> str:
        known = RECOGNITION[self._offer.recognition]
        return (
            known if self._offer.predicted_id("") is None else f"{known}, and by a mark that travels in the create call"
        )

    def _parameters(self) -> Iterator[tuple[str, ...]]:
        required = self._schema.get("required", [])
        for name, schema in self._schema["properties"].items():
            default = "**required**" if name in required else _default(name, schema)
            facts = self._facts.parameter_facts(name)
            remarks = " ".join([str(schema.get("description", "")), *self._remarks(name, facts)])
            yield f"`{name}`", f"`{self._python[name]}`", self._value(schema), default, remarks.strip()

    def _value(self, schema: Mapping[str, Any]) -> str:
        reference = schema.get(FACTS, {}).get("reference")
        if reference:
            many = any(option.get("type") == "array" for option in (schema, *schema.get("anyOf", ())))
            other = installed()[reference["type"]]
            link = f"[{other.title}]({self._sdk.slug(other)}.md)"
            return f"{'a list of ids' if many else 'the id'} of a component of type {link}"
        return escaped(describe(schema, self._schema))

    def _remarks(self, name: str, facts: Mapping[str, Any]) -> Iterator[str]:
        if name == "name" and not self._facts.default_word("name"):
            yield "Another name is no renaming (S18)."
        if facts.get("linked"):
            yield "Set by links alone: it is not declared."
        if facts.get("immutable"):
            yield "Cannot change in place (S18)."
        if facts.get("enforced"):
            yield "Its default is enforced as if it were declared."
        if facts.get("swept"):
            yield "The cloud returns it only one by one, so it is read in turns (S23)."
        yield from (said for mark, said in MARKED.items() if facts.get(mark))
        if "compare" in facts:
            yield COMPARED[facts["compare"]]
        if "growsWhile" in facts:
            yield f"More than declared is as declared while `{facts['growsWhile']}` is on."
        for field, switch in facts.get("setByCloud", {}).items():
            yield f"`{field}` of an entry is not compared while its `{switch}` is on."
        if "reference" in facts:
            yield f"Makes a dependency; what is compared and sent is its `{facts['reference']['output']}`."
        for said in self._offer.warnings([name]):
            yield f"A plan warns: {said}."

    def _parts(self) -> Iterator[str]:
        """What the entries of a list of objects hold."""
        users = defaultdict(list)
        for name, schema in self._schema["properties"].items():
            for found in re.findall(r"#/\$defs/(\w+)", json.dumps(schema)):
                users[found].append(f"`{name}`")
        for part, names in users.items():
            schema = resolve({"$ref": f"#/$defs/{part}"}, self._schema)
            if "properties" not in schema:
                continue
            yield f"### Each entry of {' and '.join(dict.fromkeys(names))}"
            yield f"{_sentence(schema.get('description', ''))} In Python: `{self._sdk.call(part)}(...)`."
            rows = []
            for name, one in schema["properties"].items():
                default = "**required**" if name in schema.get("required", []) else _default("", one)
                value = escaped(describe(one, self._schema))
                rows.append((f"`{name}`", f"`{snake(name)}`", value, default, str(one.get("description", ""))))
            yield table(("key", "in Python", "value", "default", "remarks"), rows)

    def _links(self) -> Iterator[str]:
        """The halves that are written for this type: a row per pair, and a row per setting (L7)."""
        if not self._contracts:
            return
        yield "## Links"
        yield LINKS
        pairs = [
            (f"`{found.link_type}`", _type(found.source), _type(found.target), found.half, *_said_of(found))
            for found in self._contracts
        ]
        yield table(("link type", "from", "to", "half", "what it does", "if nothing is published yet"), pairs)
        for title, schema in self._settings().items():
            yield title
            yield _sentence(str(schema.get("description", "")))
            settings = list(self._rows_of(schema))
            yield (
                table(("setting", "in Python", "value", "default", "meaning"), settings) if settings else "No settings."
            )

    def _settings(self) -> dict[str, Mapping[str, Any]]:
        """The contracts by their headings: halves that ask for the same share one."""
        titles: dict[str, list[str]] = defaultdict(list)
        schemas: dict[str, Mapping[str, Any]] = {}
        for found in self._contracts:
            key = json.dumps(found.settings_schema, sort_keys=True)
            schemas[key] = found.settings_schema
            titles[key] += [name for name in [f"`{found.link_type}`"] if name not in titles[key]]
        return {f"### Settings of {' and '.join(titles[key])}": schema for key, schema in schemas.items()}

    def _rows_of(self, schema: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
        for name, one in schema.get("properties", {}).items():
            default = "**required**" if name in schema.get("required", []) else _default("", one)
            value = escaped(describe(one, schema))
            yield f"`{name}`", f"`{snake(name)}`", value, default, escaped(str(one.get("description", "")))

    def _glass(self) -> Iterator[str]:
        glass = self._facts.glass
        if not glass.break_glass:
            yield f"{glass.caveat[:1].upper()}{glass.caveat[1:]}."
            return
        yield (
            "`fractal glass LS COMPONENT` prints these with the values of the resource filled in. "
            "[What happens then](../../glass.md)."
        )
        break_glass, readopt = map(template_text, glass.break_glass), map(template_text, glass.readopt)
        yield _code("sh", "\n".join([*break_glass, "# and to hand it back:", *readopt]))
        if glass.caveat:
            yield f"Note: {glass.caveat}."

    def _deleting(self) -> Iterator[str]:
        said = _sentence(inspect.getdoc(type(self._offer).delete) or "")
        yield f"What the agent does: {said[:1].lower()}{said[1:]}"
        if self._facts.taggable:
            yield HELD_DATA if self._facts.holds_data else BLOCKED


class Lines(yaml.SafeDumper):
    """Writes text of several lines as people write it."""


def _block(dumper: Lines, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Lines.add_representer(str, _block)


def _needed(components: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The last component and what it refers to; what an example has beside that, only the tests need."""
    wanted = {components[-1]["id"]}
    for one in reversed(components):
        if one["id"] in wanted:
            for name in installed()[one["type"]].facts().references():
                value = one["parameters"].get(name, [])
                wanted.update(value if isinstance(value, list) else [value])
    return [one for one in components if one["id"] in wanted]


class Example:
    """The example of an offer, as Python and as YAML."""

    def __init__(self, offer: AnyOffer, sdk: Sdk) -> None:
        examples = import_module(f"tests.offers.{offer.provider}.examples").EXAMPLES
        self._components = _needed(examples[offer.component].components)
        self._sdk = sdk

    def yaml(self) -> str:
        """A file that can be deployed."""
        components = [{key: one[key] for key in ("id", "type", "parameters")} for one in self._components]
        document = {"id": LIVE_SYSTEM, "components": components}
        return yaml.dump(document, Dumper=Lines, sort_keys=False, allow_unicode=True, width=WIDTH).rstrip()

    def python(self) -> str:
        """The same file in Python."""
        classes = [installed()[one["type"]].component for one in self._components]
        categories = sorted({self._sdk.category(cls.__name__) for cls in classes})
        lines = [f"from fractal_cloud import {', '.join(['LiveSystem', *categories])}", ""]
        lines += [self._component(one) for one in self._components]
        names = ", ".join(_variable(one["id"]) for one in self._components)
        whole = [("id", json.dumps(LIVE_SYSTEM)), ("components", f"[{names}]")]
        return "\n".join([*lines, "", f"{LIVE_SYSTEM} = " + call("LiveSystem", whole, 0)])

    def _component(self, one: Mapping[str, Any]) -> str:
        offer = installed()[one["type"]]
        facts, python = offer.facts(), offer.component.parameter_fields()
        pairs = [("id", json.dumps(one["id"]))]
        for name, value in one["parameters"].items():
            reference = name in facts.references()
            schema = facts.parameter_schema["properties"][name]
            text = self._reference(value) if reference else self._value(value, schema, facts.parameter_schema, 4)
            pairs.append((python[name], text))
        return f"{_variable(one['id'])} = " + call(self._sdk.call(offer.component.__name__), pairs, 0)

    @staticmethod
    def _reference(value: Any) -> str:
        return f"[{', '.join(map(_variable, value))}]" if isinstance(value, list) else _variable(value)

    def _value(
        self, value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], indent: int, before: int = 0
    ) -> str:
        """A value as Python spells it, with the classes of what has some. ``before``: how much stands before it."""
        found, part = _chosen(value, schema, root)
        if isinstance(value, Mapping) and part:
            given = [
                (name, self._value(one, found["properties"][key], root, indent + 4, len(name) + 2))
                for key, one in value.items()
                for name in [snake(key)]
            ]
            return call(self._sdk.call(part), given, indent, before)
        inner = next(iter(found.get("patternProperties", {}).values()), found.get("additionalProperties"))
        if isinstance(value, Mapping) and isinstance(inner, Mapping):
            entries = [f"{written(key)}: {self._value(one, inner, root, indent + 4)}" for key, one in value.items()]
            return bracketed("{", entries, "}", indent)
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            entries = [self._value(one, found.get("items", {}), root, indent + 4) for one in value]
            return "[\n" + "".join(f"{' ' * (indent + 4)}{one},\n" for one in entries) + " " * indent + "]"
        return written(value)


def _chosen(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Of a schema the option that a value is of, and the class it belongs to; empty where it has none."""
    options = [one for nest in ("anyOf", "oneOf") for one in schema.get(nest, ())] or [schema]
    kinds = {"object": Mapping, "array": list, "string": str, "boolean": bool, "integer": int, "number": float}
    for option in options:
        found = resolve(option, root)
        names = re.findall(r"#/\$defs/(\w+)", str(option.get("$ref", "")))
        kind = kinds.get(str(found.get("type", "")))
        if kind is None or isinstance(value, kind):
            return found, names[0] if names and "properties" in found else ""
    return {}, ""


def call(name: str, pairs: Sequence[tuple[str, str]], indent: int, before: int = 0) -> str:
    """A call on one line where it fits, else with one argument a line."""
    line = f"{name}({', '.join(f'{key}={value}' for key, value in pairs)})"
    if len(line) + indent + before <= WIDTH and "\n" not in line:
        return line
    margin = " " * indent
    return f"{name}(\n" + "".join(f"{margin}    {key}={value},\n" for key, value in pairs) + f"{margin})"


def bracketed(opening: str, entries: Sequence[str], closing: str, indent: int) -> str:
    """A list or map on one line where it fits, else with one entry a line."""
    line = opening + ", ".join(entries) + closing
    if len(line) + indent <= WIDTH and "\n" not in line:
        return line
    margin = " " * indent
    return f"{opening}\n" + "".join(f"{margin}    {one},\n" for one in entries) + margin + closing


def written(value: Any) -> str:
    """A plain value as Python spells it, with double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(written(one) for one in value)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{written(key)}: {written(one)}" for key, one in value.items()) + "}"
    return repr(value)


def snake(name: str) -> str:
    """The Python spelling of a declared name."""
    return _SPELLED.sub("_", name).lower()


def _variable(component_id: str) -> str:
    name = component_id.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) or not name.isidentifier() else name


def identity(offer: AnyOffer, facts: TypeFacts) -> str:
    """What finds a resource of this type, and what else says where that is looked for."""
    if facts.parent:
        return f"its `name` in its `{facts.parent}`"
    if facts.default_word("name"):
        return f"its {' and '.join(f'`{word}`' for word in facts.words)}"
    if facts.words:
        return f"its `name` in its {' and '.join(f'`{word}`' for word in facts.words)}"
    return f"its `name`, unique in {offer.unique_in}"


def _distinguished_by(offer: AnyOffer) -> str:
    """What a deletion is bound to (O19)."""
    if offer.ids_return:
        return "by nothing: its id returns with its name, and the cloud reports nothing else; deletions are bound to it"
    return "yes: by its id, or by the uid or the time of creation that is remembered with it"


def _proof(offer: AnyOffer) -> str:
    """What must be known before it counts as gone (O17)."""
    needed = ["a direct read by its id"]
    if offer.read_needs_parent:
        needed[0] += ", or its parent being gone"
    if offer.not_found_may_mean_denied:
        needed.append("a complete list in the same cycle, because «not found» may mean «not authorised»")
    if offer.rename_changes_id:
        needed.append("a list without an unknown resource of the same owner, because renaming or moving changes its id")
    return "; and ".join(needed)


def _carried(facts: TypeFacts) -> str:
    if not facts.taggable:
        return "cannot carry tags: it is only ever imported"
    if facts.tags_frozen:
        return "carries the three tags, frozen after creation: people take it over through the product (G13)"
    return "carries the three tags"


def _default(name: str, schema: Mapping[str, Any]) -> str:
    value = schema.get("default")
    if name == "name" and not value:
        return "the component's `id`"
    return "–" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def escaped(text: str) -> str:
    """Text for a cell; a pattern is shown as code, everything else as it is."""
    said, matches, pattern = text.partition(" that matches ")
    plain = _MARKDOWN.sub(r"\\\1", said)
    return f"{plain} that matches `{pattern.replace('|', chr(92) + '|')}`" if matches else plain


def table(head: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> str:
    """A table; every cell is Markdown."""
    lines = [" | ".join(head), "|".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)


def _type(name: str) -> str:
    return "any type" if name == ANY_TYPE else f"`{name}`"


def _said_of(found: LinkContract) -> tuple[str, str]:
    """What a half does, by the first paragraph of its docstring, and what it makes of a target that is not as far."""
    waits = "the source is `Failed`" if found.if_missing == "fail" else "it waits"
    return escaped(_sentence(found.description.partition("\n\n")[0])), "–" if found.half == "inbound" else waits


def _sentence(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _warning() -> str:
    return "<!-- Written by `make docs` from the offer's class: change it there. -->"


def index(offers: Sequence[AnyOffer], sdk: Sdk) -> str:
    """The page that leads to all others."""
    parts = [
        _warning(),
        "# Component types",
        INSTALLED,
    ]
    by_guard: dict[str, list[str]] = defaultdict(list)
    for provider in installed().providers():
        rows = []
        for offer in (one for one in offers if one.provider == provider):
            facts, page = offer.facts(), f"{provider}/{sdk.slug(offer)}.md"
            by_guard[facts.guard].append(f"[{offer.title}]({page})")
            spelled = sdk.call(offer.component.__name__)
            data = "yes" if facts.holds_data else ""
            rows.append((f"[{offer.title}]({page})", f"`{offer.type}`", f"`{spelled}`", identity(offer, facts), data))
        parts.append(f"## {installed().provider(provider).title}")
        parts.append(table(("", "type", "in Python", "found by", "holds data"), rows))
    parts += ["## What closes the window of a write (S16)", GUARDS]
    parts.append(table(("guard", "types"), [(guard, ", ".join(names)) for guard, names in by_guard.items()]))
    return "\n\n".join(parts) + "\n"


def matrix(offers: Sequence[AnyOffer], sdk: Sdk) -> str:
    """The page of all pairs that can be linked: what the registry finds for each, and nothing else."""
    handlers = installed().handlers
    named = {handler.source for handler in handlers if handler.source != ANY_TYPE}
    sources = [one for one in offers if one.type in named or issubclass(one.component, WorkloadSource)]
    targets = [one for one in offers if any(handlers.find("inbound", source.type, one.type) for source in sources)]

    def linked(offer: AnyOffer) -> str:
        return f"[{offer.title}]({offer.provider}/{sdk.slug(offer)}.md)"

    def cell(source: AnyOffer, target: AnyOffer) -> str:
        inbound, outbound = (handlers.find(half, source.type, target.type) for half in DIRECTIONS)
        found = inbound or outbound
        if found is None:
            return ""
        return f"`{found.link_type}`" + ("" if inbound and outbound else " ◐")

    def at(offer: AnyOffer) -> str:
        return installed().provider(offer.provider).title

    head = ("at", "to", *(f"from {linked(source)}" for source in sources))
    rows = [(at(target), linked(target), *(cell(source, target) for source in sources)) for target in targets]
    return "\n\n".join([_warning(), "# What can be linked", MATRIX, table(head, rows)]) + "\n"


def pages() -> dict[Path, str]:
    """Every page by its path, as it should be."""
    sdk = Sdk()
    offers = [offer for provider in installed().providers() for offer in installed().of_provider(provider)]
    found = {FOLDER / offer.provider / f"{sdk.slug(offer)}.md": Page(offer, sdk).text() for offer in offers}
    return {FOLDER / "README.md": index(offers, sdk), FOLDER / "links.md": matrix(offers, sdk), **found}


def stale(wanted: Mapping[Path, str]) -> list[Path]:
    """The pages that are not as they should be, and those that should not be there."""
    there = {path: path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.md")}
    return sorted(path for path in {*there, *wanted} if there.get(path) != wanted.get(path))


def main(arguments: Sequence[str]) -> int:
    """Write every page; with ``--check``, print those that are stale, and return 1 if there is any."""
    wanted = pages()
    found = stale(wanted)
    for path in found:
        if "--check" in arguments:
            print(f"error: {path.relative_to(ROOT)} is stale: run make docs", file=sys.stderr)
        elif path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 1 if found and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
