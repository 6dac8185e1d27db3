"""A draft as a file: Python or YAML, with comments that say which resource each component is, and whose."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import yaml

from fractal_cloud.cli.discovery.drafting import Draft, Drafted
from fractal_cloud.cli.yaml_loader import Loader
from fractal_cloud.model.component import COMPONENT_FIELDS
from fractal_cloud.model.generic_component import GenericComponent
from fractal_cloud.model.reference import has_reference, output_reference, secret_name
from fractal_cloud.model.visible_text import is_hidden

WIDTH = 100
SHORT = {"network_and_compute": "nc"}


def _header(draft: Draft) -> Iterator[str]:
    yield "Existing resources, as `fractal discover` found them. A deploy of this changes nothing in the cloud:"
    yield "what has no owner shows as ManualOverride until you hand it over, what has one is imported."
    if draft.left_out:
        yield ""
        yield "Left out:"
        yield from (f"- {reason}" for reason in draft.left_out)


def _comments(lines: Sequence[str] | Iterator[str], indent: str = "") -> str:
    return "".join(f"{indent}# {_one_line(line)}".rstrip() + "\n" for line in lines)


def _one_line(text: str) -> str:
    """Text from a cloud as it may stand in a comment: it cannot end it."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


# --- YAML


class _Dumper(yaml.SafeDumper):
    """Writes text such that ours and other people's YAML read it as text."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key."""
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    tag = "tag:yaml.org,2002:str"
    read = Loader("").resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return dumper.represent_scalar(tag, text, style=None if read == tag else "'")


_Dumper.add_representer(str, _text)


def to_yaml(draft: Draft) -> str:
    """The draft as a YAML declaration."""
    lines = [_comments(_header(draft)), f"id: {draft.live_system_id}\n"]
    lines.append("components:\n" if draft.components else "components: []\n")
    for one in draft.components:
        component = {"id": one.id, "type": one.seen.offer.type, "parameters": dict(one.parameters)}
        text = yaml.dump([component], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
        if any(is_hidden(char) for char in text if not char.isprintable() and char != "\n"):
            text = yaml.dump([component], Dumper=_Dumper, sort_keys=False, width=WIDTH)
        lines.append(_comments(one.notes, "  "))
        lines += [f"  {line}\n" for line in text.rstrip("\n").split("\n")]
    return "".join(lines)


# --- Python


def to_python(draft: Draft) -> str:
    """The draft as a Python declaration: a name for each component, and one for the LiveSystem."""
    makers = {one.seen.offer.type: _constructor(one) for one in draft.components}
    names = _names(draft, {name for module, name, _ in makers.values()} | {"LiveSystem", "live_system", "secret"})
    has_secrets = any(has_reference(dict(one.parameters)) for one in draft.components)
    parts = [_comments(_header(draft)), "\n", _imports(list(makers.values()), has_secrets=has_secrets), "\n"]
    for one in draft.components:
        own = [("", json.dumps(one.seen.offer.type))] if issubclass(one.seen.offer.component, GenericComponent) else []
        arguments = [*own, ("id", json.dumps(one.id)), *_arguments(one, names)]
        call = _call(f"{names[one.id]} = {makers[one.seen.offer.type][2]}", arguments)
        parts.append(f"{_comments(one.notes)}{call}\n")
    components = _list([names[one.id] for one in draft.components], "")
    called = [("id", json.dumps(draft.live_system_id)), ("components", components)]
    parts.append(_call("live_system = LiveSystem", called))
    return "".join(parts)


def _constructor(one: Drafted) -> tuple[str, str, str]:
    """What to import (module, name) and what to call for a component: the SDK's short name, else the class itself."""
    component, provider = one.seen.offer.component, one.seen.offer.provider
    if issubclass(component, GenericComponent):
        return provider, provider, f"{provider}.resource"
    category = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", component.type.partition(".")[0]).lower()
    try:
        module: ModuleType | None = import_module(f"fractal_cloud.{category}.{component.provider}")
    except ModuleNotFoundError:
        module = None
    for short, value in vars(module).items() if module is not None else ():
        if value is component:
            alias = SHORT.get(category, category)
            return (
                f"{category} as {alias}" if alias != category else category,
                alias,
                f"{alias}.{component.provider}.{short}",
            )
    return component.__module__, component.__name__, component.__name__


def _imports(makers: Sequence[tuple[str, str, str]], *, has_secrets: bool) -> str:
    ours = sorted({module for module, name, call in makers if call != name})
    others = sorted({f"from {module} import {name}\n" for module, name, call in makers if call == name})
    names = ["LiveSystem", *ours, *(["secret"] if has_secrets else [])]
    return f"from fractal_cloud import {', '.join(names)}\n{''.join(others)}"


def _names(draft: Draft, taken: set[str]) -> dict[str, str]:
    """A Python name for every component, by id."""
    names: dict[str, str] = {}
    for one in draft.components:
        name = one.id.replace("-", "_")
        if not name.isidentifier() or keyword.iskeyword(name):
            name = f"c_{name}"
        while name in taken:
            name += "_"
        taken.add(name)
        names[one.id] = name
    return names


def _arguments(one: Drafted, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    fields = one.seen.offer.component.parameter_fields()
    others: dict[str, Any] = {}
    for name, value in one.parameters.items():
        if _is_no_keyword(one, fields[name]):
            others[name] = value
        elif name not in one.references:
            yield fields[name], _value(value, "    ", names)
        elif isinstance(value, list):
            yield fields[name], _list([names[item] for item in value], "    ")
        else:
            yield fields[name], names[value]
    if others:
        yield "parameters", _value(others, "    ", names)


def _is_no_keyword(one: Drafted, name: str) -> bool:
    """Whether a vendor's name cannot stand as a keyword of ``resource``: it is no word, or taken."""
    if not issubclass(one.seen.offer.component, GenericComponent):
        return False
    return not name.isidentifier() or keyword.iskeyword(name) or name in COMPONENT_FIELDS | {"parameters"}


def _call(head: str, arguments: Sequence[tuple[str, str]]) -> str:
    written = [f"{name}={value}" if name else value for name, value in arguments]
    line = f"{head}({', '.join(written)})\n"
    if len(line) <= WIDTH and "\n" not in line[:-1]:
        return line
    return f"{head}(\n{''.join(f'    {one},' + chr(10) for one in written)})\n"


def _value(value: Any, indent: str, names: Mapping[str, str]) -> str:
    """A plain value as a Python literal, and a reference as it is written in Python."""
    if isinstance(value, str) and (output := output_reference(value)) is not None and output.component in names:
        return f"{names[output.component]}.output({json.dumps(output.field)})"
    if (name := secret_name(value)) is not None:
        return f"secret({json.dumps(name)})"
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_value(key, '', names)}: {_value(item, '', names)}" for key, item in value.items()) + "}"
        )
    if isinstance(value, (list, tuple)):
        return _list([_value(item, "", names) for item in value], indent)
    if isinstance(value, str) and value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _list(items: Sequence[str], indent: str) -> str:
    line = f"[{', '.join(items)}]"
    if len(line) + len(indent) <= WIDTH - 30:
        return line
    return "[\n" + "".join(f"{indent}    {item},\n" for item in items) + f"{indent}]"
