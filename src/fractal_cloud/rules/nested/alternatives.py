"""Which entries of an object those that are declared exclude, by its schema: those of another alternative. Pure.

Not everything may stand together: ``oneOf`` and ``anyOf`` name alternatives, other words say what excludes what.
Whoever writes a declared entry beside one that it excludes is refused. Only what is there or missing is read, and
the values that distinguish alternatives: whether a value is a good one, its owner decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from fractal_cloud.rules.nested.shape import Json, branches, mapping, sequence

_CHOICES: Final = ("oneOf", "anyOf")
_RULES: Final = (*_CHOICES, "maxProperties", "requiredXor", "dependentExcluded", "dependencies")
_DEEPEST: Final = 32
_MOST_VALUES: Final = 5_000
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {"object": (Mapping,), "array": (list, tuple)}


class _TooMuchError(Exception):
    """A schema and a value are too large to be compared: then nothing is known."""


class _Schema:
    """What references lead into, and how much may still be read."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self._left = _MOST_VALUES

    def count(self) -> None:
        """Count one value that is read."""
        self._left -= 1
        if self._left < 0:
            raise _TooMuchError


def excluded(node: Any, root: Json, declared: Json, before: Json, after: Json) -> frozenset[str]:
    """The entries of ``after`` that are not declared and that its declared ones exclude.

    ``before``: what it was made of. None where that was no better, or where it would be no better without them.
    """
    try:
        return _excluded(node, _Schema(root), declared, before, after)
    except _TooMuchError:
        return frozenset()


def _excluded(node: Any, schema: _Schema, declared: Json, before: Json, after: Json) -> frozenset[str]:
    ours, rest = _there(declared), _there(after)
    found: set[str] = set()
    for part in _parts(node, schema):
        for word in _RULES:
            if word not in part:
                continue
            rule = _Rule(word, part[word], schema)
            if rule.holds(rest) or not (rule.holds(ours) and rule.holds(_there(before))):
                continue
            dropped = rule.others(ours, rest.keys() - ours.keys())
            left = {name: one for name, one in rest.items() if name not in dropped}
            if rule.holds(left):
                found |= dropped
                rest = left
    return frozenset(found)


class _Rule:
    """One word of a schema that says what may stand together."""

    def __init__(self, word: str, said: Any, schema: _Schema, depth: int = 0) -> None:
        self._word = word
        self._said = said
        self._schema = schema
        self._depth = depth + 1

    def holds(self, value: Json) -> bool:
        """Whether an object is as the rule wants it."""
        said = self._said
        match self._word:
            case "oneOf":
                return sum(self._fits(one, value) for one in sequence(said)) == 1
            case "anyOf":
                return any(self._fits(one, value) for one in sequence(said))
            case "maxProperties":
                return not isinstance(said, int) or len(value) <= said
            case "requiredXor":
                return sum(name in value for name in sequence(said)) <= 1
            case "dependentExcluded":
                return not any(name in value and value.keys() & {*sequence(others)} for name, others in _items(said))
        return all(name not in value or self._is_met(wanted, value) for name, wanted in _items(said))

    def others(self, declared: Json, names: Collection[str]) -> frozenset[str]:
        """Which of these names the rule excludes beside what is declared."""
        said = self._said
        if self._word in _CHOICES:
            chosen = [one for one in sequence(said) if self._fits(one, declared)]
            kept = {name for one in chosen for name in _named(one, self._schema)}
            return frozenset({name for one in sequence(said) for name in _named(one, self._schema)} & {*names} - kept)
        if self._word == "maxProperties":
            return frozenset(names) if len(declared) == said else frozenset()
        if self._word == "requiredXor":
            return frozenset({*sequence(said)} & {*names})
        pairs = [(name, others) for name, others in _items(said) if name in declared or name in names]
        mine = {other for name, others in pairs if name in declared for other in self._partners(others)}
        theirs = {name for name, others in pairs if {*self._partners(others)} & declared.keys()}
        return frozenset((mine | theirs) & {*names})

    def _partners(self, others: Any) -> Iterator[str]:
        yield from (one for one in sequence(others) if isinstance(one, str))
        if isinstance(others, Mapping):
            yield from _named(others, self._schema)

    def _is_met(self, wanted: Any, value: Json) -> bool:
        if isinstance(wanted, Mapping):
            return self._fits(wanted, value)
        return all(name in value for name in sequence(wanted))

    def _fits(self, node: Any, value: Any) -> bool:
        return _fits(node, value, self._schema, self._depth)


def _fits(node: Any, value: Any, schema: _Schema, depth: int) -> bool:
    """Whether a value may be of a schema, as far as it distinguishes alternatives."""
    schema.count()
    return depth > _DEEPEST or all(_fits_alone(part, value, schema, depth) for part in _parts(node, schema))


def _fits_alone(node: Json, value: Any, schema: _Schema, depth: int) -> bool:
    if not _is_kind(node.get("type"), value):
        return False
    if "const" in node and not _is_said(value, (node["const"],)):
        return False
    if "enum" in node and not _is_said(value, sequence(node["enum"])):
        return False
    if isinstance(value, Mapping):
        return _fits_object(node, _there(value), schema, depth)
    if isinstance(value, list | tuple):
        return all(_fits(node.get("items"), one, schema, depth + 1) for one in value)
    return True


def _fits_object(node: Json, value: Json, schema: _Schema, depth: int) -> bool:
    known = mapping(node.get("properties"))
    if not all(name in value for name in sequence(node.get("required"))):
        return False
    if node.get("additionalProperties") is False and not node.get("patternProperties") and value.keys() - known.keys():
        return False
    if not all(_fits(known[name], one, schema, depth + 1) for name, one in value.items() if name in known):
        return False
    return all(_Rule(word, node[word], schema, depth).holds(value) for word in _RULES if word in node)


def _is_kind(said: Any, value: Any) -> bool:
    """Whether a value is an object, a list or a single one as its schema says; single ones come in any spelling."""
    kinds = {said} if isinstance(said, str) else {*sequence(said)}
    if not kinds or value is None:
        return True
    is_whole = next((kind for kind, types in _KINDS.items() if isinstance(value, types)), "")
    return is_whole in kinds if is_whole else bool(kinds - _KINDS.keys())


def _is_said(value: Any, said: Collection[Any]) -> bool:
    return str(value).casefold() in {str(one).casefold() for one in said}


def _parts(node: Any, schema: _Schema) -> Iterator[Json]:
    """A schema and all that holds beside it: what it refers to, and ``allOf``."""
    return branches(node, schema.root, ("allOf",))


def _named(node: Any, schema: _Schema) -> Iterator[str]:
    """The names that an alternative speaks of."""
    for part in branches(node, schema.root):
        yield from (name for name in sequence(part.get("required")) if isinstance(name, str))
        yield from mapping(part.get("properties"))


def _there(value: Json) -> Json:
    return {name: one for name, one in value.items() if one is not None}


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    yield from mapping(value).items()
