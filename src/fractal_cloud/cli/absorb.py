"""`fractal absorb`: writing what stands in the cloud back into the declaration, for a person to review (G14)."""

from __future__ import annotations

import difflib
import os
import shlex
import tempfile
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.cli.absorbing.within import Within, place_within
from fractal_cloud.cli.errors import CommandError
from fractal_cloud.cli.options import DEFAULT_URL, LiveSystemId, Token, Url
from fractal_cloud.model.reference import needs_filling
from fractal_cloud.model.wording import FACTS
from fractal_cloud.rules.absorb import absorbed

if TYPE_CHECKING:
    from fractal_cloud.cli.absorbing.nodes import Language
    from fractal_cloud.cli.client import ControlPlane

_OVERRIDE = "ManualOverride"
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class _Change:
    """One parameter of a component: what the declaration says, what is true, and what of that may be printed."""

    component: str
    parameter: str
    declared: Any
    actual: Any
    shown: Any


def absorb(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The declaration to change: .py, .yaml, .yml or .json.")],
    live_system: LiveSystemId,
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="One component; without it, all in override.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Write the actual values of what is in manual override into its declaration file.

    Comments and layout stay as they are, and nothing is deployed: review the change, deploy it, and hand it back.
    """
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.files import load
    from fractal_cloud.cli.output import say, warn

    path = Path(file)
    [declared] = load(file, [live_system])
    with connect(url, token) as control:
        found = list(control.every(f"{path_of(live_system)}/components"))
        offers = _facts_of({one["type"] for one in found}, control)
    drifted = _drifted(live_system, component, found)
    if not drifted:
        say(f"{live_system}: nothing in override differs from what is declared.")
        return
    changes, left = _changes(declared.document, drifted, offers)
    before = path.read_text(encoding="utf-8")
    after, made, more = _edit_text(path, before, live_system, changes)
    for line in [*left, *more]:
        warn(line)
    if not made:
        raise CommandError(f"{file}: nothing could be written", advice="Change it by hand, as listed above.")
    _check(path, after, declared.document, made)
    _show(file, before, after)
    if dry_run:
        return
    _write(path, after)
    command = f"fractal deploy {shlex.quote(str(file))}"
    say(f"{file} is changed, and nothing is deployed: review it, and deploy it with `{command}`.")
    if left or more:
        raise CommandError("not everything could be written", advice="Change the rest by hand, as listed above.")


def _drifted(live_system: str, component: str, found: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The components in override that differ, of those that were asked for."""
    if not component:
        return [one for one in found if one["status"] == _OVERRIDE and _drift(one)]
    named = [one for one in found if one["componentId"] == component]
    if not named:
        raise CommandError(
            f"{live_system} has no component {component!r}", advice=f"`fractal status {live_system}` lists them."
        )
    [one] = named
    if one["status"] != _OVERRIDE:
        raise CommandError(
            f"{component} is {one['status']}, not in override: the agent itself brings it to its declaration",
            advice=f"`fractal glass {live_system} {component}` prints how to take it over first.",
        )
    return [one] if _drift(one) else []


def _drift(component: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = (component.get("outputFields") or {}).get("drift") or {}
    return found


def _changes(
    document: Mapping[str, Any], drifted: list[Mapping[str, Any]], offers: Mapping[str, Mapping[str, Any]]
) -> tuple[list[_Change], list[str]]:
    """What is to be written, and what is left to a person because it names another component."""
    changes, left = [], []
    given = {one["id"]: one.get("parameters") or {} for one in document.get("components") or []}
    for one in drifted:
        name, properties = one["componentId"], _properties(offers.get(one["type"]) or {})
        if (offers.get(one["type"]) or {}).get("nested") and name in given:
            more, by_hand = _within(name, given[name], _drift(one), properties)
            changes += more
            left += by_hand
            continue
        for parameter, values in _drift(one).items():
            declared = (given.get(name) or {}).get(parameter)
            if name not in given:
                left.append(f"{name} is not declared in this file: its {parameter} is {values.get('actual')!r}")
                continue
            found = absorbed(parameter, declared, values.get("actual"), (properties.get(parameter) or {}).get(FACTS))
            left += [f"{name}: {line}" for line in found.left]
            if found.is_written:
                changes.append(_Change(name, parameter, declared, found.value, values.get("actual")))
    return changes, left


def _within(
    component: str, given: Mapping[str, Any], drift: Mapping[str, Mapping[str, Any]], properties: Mapping[str, Any]
) -> tuple[list[_Change], list[str]]:
    """The same for a component of nested parameters, whose differences are named by paths."""
    new: dict[str, Any] = {}
    left: list[str] = []
    for path, values in drift.items():
        place = Within(path, (), given.get(path)) if path in properties else place_within(path, {**given, **new})
        if place is None or needs_filling(place.declared):
            left.append(f"{component}: {path} is {values.get('actual')!r}: write it by hand")
            continue
        marks = (properties.get(place.parameter) or {}).get(FACTS)
        found = absorbed(path, place.declared, values.get("actual"), marks)
        left += [f"{component}: {line}" for line in found.left]
        if found.is_written:
            whole = new.get(place.parameter, given.get(place.parameter))
            new[place.parameter] = place.replaced(whole, found.value) if place.names else found.value
    return [_Change(component, name, given.get(name), value, value) for name, value in new.items()], left


def _facts_of(types: Collection[str], control: ControlPlane) -> dict[str, Mapping[str, Any]]:
    """What is known of types, by type: those of families are asked for by name."""
    facts: dict[str, Mapping[str, Any]] = {}
    every = sorted(types)
    for first in range(0, len(every), _AT_ONCE):
        facts |= {one["type"]: one for one in control.every("/offers", type=every[first : first + _AT_ONCE])}
    return facts


def _properties(offer: Mapping[str, Any]) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = offer.get("parameterSchema") or {}
    return schema.get("properties") or {}


def _edit_text(path: Path, text: str, live_system: str, changes: list[_Change]) -> tuple[str, list[_Change], list[str]]:
    """The text with every change that can be made without guessing, which those are, and the others in words."""
    from fractal_cloud.cli.absorbing.editing import Editor
    from fractal_cloud.cli.absorbing.nodes import ByHand

    language = _language(path)
    made, left = [], []
    for one in changes:
        try:
            places = language.places(text, live_system, one.component, [one.parameter])
            if one.parameter not in places:
                raise ByHand("it is not written out there")
            editor = Editor(text, language)
            editor.change(places[one.parameter], one.declared, one.actual)
            text = editor.result()
            made.append(one)
        except ByHand as why:
            left.append(f"{one.component}: {one.parameter} is {one.shown!r} and must be changed by hand: {why}")
    return text, made, left


def _language(path: Path) -> Language:
    from fractal_cloud.cli.absorbing.python import Json, Python
    from fractal_cloud.cli.absorbing.yaml_source import Yaml

    by_suffix: dict[str, type[Language]] = {".py": Python, ".json": Json}
    return by_suffix.get(path.suffix.lower(), Yaml)()


def _check(path: Path, after: str, document: Mapping[str, Any], changes: list[_Change]) -> None:
    """Read the changed file as `fractal deploy` would: it must say what it said, but for the changes (else nothing is
    written). It stands beside the file while it is read, so that it finds what lies there."""
    from fractal_cloud.cli.files import load

    wanted = deepcopy(dict(document))
    for one in wanted["components"]:
        for change in changes:
            if change.component == one["id"]:
                one["parameters"][change.parameter] = change.actual
    handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=f".{path.stem}-", dir=path.parent)
    trial = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(after)
        [found] = load(str(trial), [str(document["id"])])
    except CommandError as error:
        raise _left_as_it_is(path, error.cause) from None
    finally:
        trial.unlink(missing_ok=True)
    if _plain(found.document) != _plain(wanted):
        raise _left_as_it_is(
            path, "the changed file would declare more than these changes (a value is used twice, it seems)"
        )


def _plain(document: Any) -> Any:
    """A document for comparison: parts that are not set say nothing."""
    if isinstance(document, Mapping):
        return {key: _plain(one) for key, one in document.items() if one is not None}
    return [_plain(one) for one in document] if isinstance(document, list) else document


def _left_as_it_is(path: Path, cause: str) -> CommandError:
    return CommandError(
        f"{path} is left as it is: {cause}", advice="Change it by hand: `fractal drift` shows what differs."
    )


def _show(file: str, before: str, after: str) -> None:
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), file, file)
    for line in lines:
        typer.echo(line.removesuffix("\n"))


def _write(path: Path, text: str) -> None:
    """Put the file in its place as a whole, with the rights it had."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    trial = Path(name)
    trial.chmod(path.stat().st_mode & 0o7777)
    trial.replace(path.resolve())
