"""Paths into nested parameters, as drift, `ignoreDrift` and messages write them: ``spec.containers[name=web].image``.

A key of a map that is no plain word is quoted: ``metadata.labels["app.kubernetes.io/name"]``. Lists whose elements have
keys are entered by the values of these; all other lists are one value. ``*`` stands for any step, as ``[*]`` does.
What a path leads to is not known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_VALUE: Final = re.compile(r"[A-Za-z0-9_./:@+-]+")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


class PathError(ValueError):
    """A text that is no path."""


class _Any(Enum):
    ANY = "*"


ANY: Final = _Any.ANY
"""Stands for every step, in patterns; in the path of an element of a list without keys, for that element."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a list, by the values of its keys as text: ``[containerPort=80,protocol=TCP]``."""

    keys: tuple[tuple[str, str], ...]


Step = str | Element | _Any
Path = tuple[Step, ...]


def written(path: Path) -> str:
    """A path as text."""
    parts: list[str] = []
    for step in path:
        text = _written(step)
        parts.append(text if text.startswith("[") or not parts else f".{text}")
    return "".join(parts)


def entry_name(path: Path) -> str:
    """The path of an entry or an element as text that is the same in whatever order its keys are said."""
    return written(tuple(Element(tuple(sorted(one.keys))) if isinstance(one, Element) else one for one in path))


def element_of_set(value: object) -> Element | None:
    """A single value as the element of a set that it is; None where it is none."""
    text = key_text(value)
    return None if text is None else Element((("", text),))


def _written(step: Step) -> str:
    if step is ANY:
        return "*"
    if isinstance(step, Element):
        return f"[{','.join(f'{_quoted(name, _PLAIN)}={_quoted(value, _PLAIN_VALUE)}' for name, value in step.keys)}]"
    return step if _PLAIN.fullmatch(step) else f"[{_as_json(step)}]"


def _quoted(text: str, plain: re.Pattern[str]) -> str:
    return text if plain.fullmatch(text) else _as_json(text)


def _as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@lru_cache(maxsize=4096)
def parsed(text: str) -> Path:
    """The path that a text writes. Raises ``PathError`` where it is none."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        if text[at] == "[":
            step, at = _bracket(text, at + 1)
        else:
            if steps:
                if text[at] != ".":
                    raise PathError(f"{text!r} is no path: a dot is missing before {text[at:]!r}")
                at += 1
            step, at = _word(text, at)
        steps.append(step)
    if not steps:
        raise PathError("an empty text is no path: write a parameter's name, such as spec.replicas")
    return tuple(steps)


def _word(text: str, at: int) -> tuple[Step, int]:
    if text.startswith("*", at):
        return ANY, at + 1
    found = _PLAIN.match(text, at)
    if found is None:
        raise PathError(f'{text!r} is no path: quote a name with other letters, like labels["app.kubernetes.io/name"]')
    return found.group(), found.end()


def _bracket(text: str, at: int) -> tuple[Step, int]:
    if text.startswith("*]", at):
        return ANY, at + 2
    first, at = _piece(text, at, _PLAIN)
    if text.startswith("]", at) and text[at - 1] == '"':
        return first, at + 1
    keys: list[tuple[str, str]] = []
    while text.startswith("=", at):
        value, at = _piece(text, at + 1, _PLAIN_VALUE)
        keys.append((first, value))
        if text.startswith("]", at):
            return Element(tuple(keys)), at + 1
        if not text.startswith(",", at):
            break
        first, at = _piece(text, at + 1, _PLAIN)
    raise PathError(f'{text!r} is no path: in brackets stands ["a key"], [name=web] or [*]')


def _piece(text: str, at: int, plain: re.Pattern[str]) -> tuple[str, int]:
    found = _QUOTED.match(text, at) or plain.match(text, at)
    if found is None:
        raise PathError(f'{text!r} is no path: in brackets stands ["a key"], [name=web] or [*]')
    if not found.group().startswith('"'):
        return found.group(), found.end()
    try:
        return str(json.loads(found.group())), found.end()
    except ValueError:
        raise PathError(f"{text!r} is no path: {found.group()} is no JSON string") from None


def of_name(name: str) -> Path:
    """The path that a drift's name writes; a name that writes none is a parameter's own name."""
    try:
        return parsed(name)
    except PathError:
        return (name,)


def root(name: str) -> str:
    """The parameter that a path begins with."""
    first = of_name(name)[0]
    return first if isinstance(first, str) else name


def covers(outer: Path, path: Path) -> bool:
    """Whether a path is another one, or lies in it; ``*`` in the outer one stands for any step."""
    return len(outer) <= len(path) and all(map(_fits, outer, path))


def is_covered(path: Path, outer: Collection[Path]) -> bool:
    """Whether one of these paths covers it."""
    return any(covers(one, path) for one in outer)


def _fits(pattern: Step, step: Step) -> bool:
    if pattern is ANY or pattern == step:
        return True
    if isinstance(pattern, Element) and isinstance(step, Element):
        return set(pattern.keys) <= set(step.keys)  # some of the keys say enough
    return False


def value_at(values: Mapping[str, Any], name: str) -> Any:
    """The value that a drift's name leads to; None where there is none.

    A value that stands under the whole name comes first: so stands what the cloud never returns.
    """
    if name in values:
        return values[name]
    found: Any = values
    for step in of_name(name):
        if isinstance(step, Element) and isinstance(found, list | tuple):
            found = next((one for one in found if _has_keys(one, step)), None)
        elif isinstance(step, str) and isinstance(found, Mapping):
            found = found.get(step)
        else:
            return None
    return found


def with_value(values: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Values with another one where a drift's name leads to; None: nothing. The argument is not changed."""
    found: dict[str, Any] = _with(values, of_name(name), value)
    return found


def _with(before: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, Element):
        items = list(before) if isinstance(before, list | tuple) else []
        at = next((at for at, one in enumerate(items) if _has_keys(one, step)), len(items))
        after = _with(items[at] if at < len(items) else None, rest, value)
        return [*items[:at], *([] if after is None else [after]), *items[at + 1 :]]
    entries = dict(before) if isinstance(before, Mapping) else {}
    after = _with(entries.get(str(step)), rest, value)
    if after is None:
        entries.pop(str(step), None)
        return entries
    return {**entries, str(step): after}


def is_known(values: Mapping[str, Any], name: str) -> bool:
    """Whether these values say what stands at a drift's name, be it nothing."""
    return name in values or root(name) in values


def _has_keys(value: Any, element: Element) -> bool:
    return isinstance(value, Mapping) and all(key_text(value.get(name)) == text for name, text in element.keys)


def key_text(value: Any) -> str | None:
    """A value as the key of an element, or None where it can be none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None
