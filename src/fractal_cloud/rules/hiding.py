"""What is said of parameters that may hold secrets: the reference, or that there is a value, and never the value (A8).

Declared and actual values are hidden side by side, so that what is left still shows whether they differ: all that is
decided, published, journalled or shown of a component is made of these. Pure; values of secrets are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from hmac import compare_digest
from typing import Any, Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.reference import SecretReference, has_reference, references, secret_name
from fractal_cloud.model.secret_detection import apparent_secret
from fractal_cloud.model.wording import Path, path_text
from fractal_cloud.rules.drift import ComparedType, places_marked
from fractal_cloud.rules.nested.path import ANY, of_name, written
from fractal_cloud.rules.nested.path import Path as Place

SENSITIVE: Final = "(sensitive)"
"""Stands for a clear text that is hidden."""
OTHER_SENSITIVE: Final = "(sensitive: differs)"
"""Stands for an actual text that is hidden, and is not the declared one."""
OTHER_SECRET: Final = "(secret: differs)"
"""Stands for an actual text where a secret is declared, and which is not the secret's value."""
DRIFT: Final = "drift"
"""The output field in which declared and actual values stand side by side (G3)."""
STAND_INS: Final = frozenset({SENSITIVE, OTHER_SENSITIVE, OTHER_SECRET})

_NOTHING: Final[Mapping[str, Any]] = {}
_ABSENT: Final = object()


def holds_hidden(value: object) -> bool:
    """Whether something in a value was hidden."""
    if isinstance(value, Mapping):
        return any(map(holds_hidden, value.values()))
    if isinstance(value, list | tuple):
        return any(map(holds_hidden, value))
    return isinstance(value, str) and value in STAND_INS


@dataclass(frozen=True, slots=True)
class Marks:
    """Which parameters may hold secrets, by name, or by path in nested values; ``ComparedType`` says it of one type."""

    secret: frozenset[str]
    sensitive: frozenset[str]
    holds_secrets: frozenset[str]

    @classmethod
    def of_any(cls, types: Iterable[TypeFacts]) -> Marks:
        """What any of these types hides."""
        every = list(types)
        marks = ("secret", "sensitive", "holdsSecrets")
        return cls(*(frozenset(name for facts in every for name in places_marked(facts, mark)) for mark in marks))

    def to_json(self) -> dict[str, list[str]]:
        """As it is stored; empty where nothing may hold a secret."""
        return {item.name: sorted(getattr(self, item.name)) for item in fields(self) if getattr(self, item.name)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Iterable[str]] | None) -> Marks:
        """What was stored."""
        return cls(*(frozenset((stored or {}).get(item.name, ())) for item in fields(cls)))


@dataclass(frozen=True, slots=True)
class _Places:
    """The places that are hidden whole, those in which only what seems to be a secret is, and where both begin."""

    whole: tuple[Place, ...]
    holding: tuple[Place, ...]
    roots: frozenset[object]


@lru_cache(maxsize=1024)
def _places(whole: frozenset[str], holding: frozenset[str]) -> _Places:
    every, some = (tuple(map(of_name, sorted(names))) for names in (whole, holding))
    return _Places(every, some, frozenset(place[0] for place in (*every, *some)))


def _covers(places: tuple[Place, ...], path: Path) -> bool:
    return any(
        len(place) <= len(path) and all(step in (ANY, at) for step, at in zip(place, path, strict=False))
        for place in places
    )


@dataclass(frozen=True, slots=True)
class Hiding:
    """How the parameters of one component are hidden.

    ``values``: those of its secrets, by name; what refers to others is not compared. ``is_importer``: the resource is
    another's, whose texts are nobody's business here. ``former``: where values of secrets may still stand that are
    declared in clear by now, as paths.
    """

    compared: Marks | ComparedType
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_importer: bool = False
    former: Collection[str] = ()

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to hide at all."""
        compared = self.compared
        return bool(compared.secret or compared.sensitive or compared.holds_secrets or self._is_nested)

    @property
    def _is_nested(self) -> bool:
        """Whether references to secrets may stand anywhere in the values."""
        return isinstance(self.compared, ComparedType) and self.compared.shape is not None

    @property
    def _hidden(self) -> _Places:
        return _places(self.compared.secret | self.compared.sensitive, self.compared.holds_secrets)

    def declared(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Declared parameters without what nobody may see."""
        if not self.is_needed:
            return parameters
        return {name: self._declared(name, value) for name, value in parameters.items()}

    def actual(self, declared: Mapping[str, Any], actual: Mapping[str, Any]) -> Mapping[str, Any]:
        """Actual values without what nobody may see; left out where the secret that they are compared with is missing.

        ``declared``: the parameters as they are declared, nothing hidden.
        """
        if not self.is_needed:
            return actual
        return {
            name: self._actual(name, declared.get(name, _ABSENT), value)
            for name, value in actual.items()
            if not self._is_unknown(name, declared.get(name))
        }

    def published(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Published values, and a drift among them, without what nobody may see: what was hidden before stays so."""
        found = dict(self.declared(values))
        if isinstance(values.get(DRIFT), Mapping):
            found[DRIFT] = {name: self._both(name, both) for name, both in values[DRIFT].items()}
        return found

    def _both(self, name: str, both: Any) -> Any:
        if not isinstance(both, Mapping):
            return both
        return {side: self._declared(name, value) for side, value in both.items()}

    # --- one parameter

    def _is_marked(self, path: Path, declared: object) -> bool:
        if path[0] in self._hidden.roots:
            return True
        return self._is_nested and has_reference(declared)

    def _is_unknown(self, name: str, declared: object) -> bool:
        """Whether a parameter refers to a secret whose value is not known: nothing can be said of it."""
        is_marked = self._is_marked(_path(name), declared)
        return is_marked and any(one.name not in self.values for _, one in references(declared))

    def _declared(self, name: str, value: Any) -> Any:
        """A declared value; references stay, and what is hidden stands for itself."""
        path = _path(name)
        if not self._is_marked(path, value):
            return value
        return self._leaves(path, value, value, lambda _, one: SecretReference(one).to_json())

    def _actual(self, name: str, declared: Any, actual: Any) -> Any:
        path = _path(name)
        if not self._is_marked(path, declared):
            return actual
        return self._leaves(path, declared, actual, self._beside_secret)

    def _leaves(self, path: Path, declared: Any, value: Any, beside: Callable[[Any, str], Any]) -> Any:
        """A value with each text in it hidden as it must be, beside what is declared in its place."""
        secret = secret_name(declared)
        if secret is not None:
            return beside(value, secret)
        if isinstance(value, Mapping):
            known = declared if isinstance(declared, Mapping) else _NOTHING
            return {key: self._leaves((*path, key), known.get(key, _ABSENT), one, beside) for key, one in value.items()}
        if isinstance(value, list | tuple):
            of_same_length = isinstance(declared, list | tuple) and len(declared) == len(value)
            known_items = declared if of_same_length else [_ABSENT] * len(value)
            return [self._leaves((*path, at), one, value[at], beside) for at, one in enumerate(known_items)]
        return self._text(path, declared, value) if isinstance(value, str) else value

    def _text(self, path: Path, declared: Any, value: str) -> str:
        if value in STAND_INS:
            return value
        hidden, entry = self._hidden, str(path[-1]) if len(path) > 1 else ""
        is_whole = _covers(hidden.whole, path)
        if not (is_whole or _covers(hidden.holding, path)):
            return value
        if value == declared:
            return SENSITIVE if is_whole or apparent_secret(entry, value) else value
        is_others = self.is_importer or path_text(path).removeprefix(".") in self.former
        if not (is_whole or is_others or apparent_secret(entry, value)):
            return value
        return SENSITIVE if declared is _ABSENT else OTHER_SENSITIVE

    def _beside_secret(self, value: Any, secret: str) -> Any:
        """An actual value where a secret is declared: the reference, if it is the secret's value."""
        if value is None:
            return None
        is_same = isinstance(value, str) and compare_digest(_bytes(value), _bytes(self.values[secret]))
        return SecretReference(secret).to_json() if is_same else OTHER_SECRET


def _path(name: str) -> Path:
    """The path that a parameter's name, or that of a drift, writes."""
    return tuple(str(step) if isinstance(step, str) else written((step,)) for step in of_name(name))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
