"""Asking running agents about types that a declaration names and nobody here knows, before it is checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from fractal_cloud.control.auth.principal import Principal
from fractal_cloud.control.store import Store, learning, visibility
from fractal_cloud.control.store.failures import again
from fractal_cloud.control.store.learning import Asked, Lacking
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.offers.installed_types import Catalog

LONGEST_SECONDS: Final = 8.0
"""How long, in seconds, a deploy waits for agents to say what a type is."""
_POLL_SECONDS: Final = 0.05


class Learned:
    """What was asked for one declaration. ``why``: by type, why it is still not known."""

    def __init__(self, document: object, why: Mapping[str, str]) -> None:
        self._document = document
        self.why = why

    def explain(self, error: DeclarationError) -> DeclarationError:
        """The same refusal, saying of types what came of asking."""
        given = ((f"components[{one.get('id')}].type", one.get("type")) for one in _components(self._document))
        why = {path: self.why[name] for path, name in given if isinstance(name, str) and name in self.why}
        errors = [
            replace(one, message=f"{one.message}; {why[one.path]}") if one.path in why else one for one in error.errors
        ]
        return DeclarationError(errors) if errors != error.errors else error


def learn(store: Store, who: Principal, document: object, seconds: float = LONGEST_SECONDS) -> Learned:
    """Have agents say what the types are that a declaration names and that only its cloud may know."""
    with store.read() as tx:
        lacking = list(_lacking(document, store.catalog(tx).with_declared(document)))
    environment = document.get("environment", "default") if isinstance(document, Mapping) else None
    if not lacking or not isinstance(environment, str):
        return Learned(document, {})
    visibility.refuse_environment(who.sees, environment)
    asked = again(lambda: _ask(store, environment, lacking))
    until = time.monotonic() + seconds
    while asked.plans and time.monotonic() < until and not again(lambda: _is_answered(store, asked)):
        time.sleep(_POLL_SECONDS)
    return Learned(document, again(lambda: _conclude(store, asked, seconds)))


def _ask(store: Store, environment: str, lacking: list[Lacking]) -> Asked:
    with store.write() as tx:
        return learning.ask(tx, environment, lacking)


def _is_answered(store: Store, asked: Asked) -> bool:
    with store.read() as tx:
        return learning.is_answered(tx, asked)


def _conclude(store: Store, asked: Asked, waited: float) -> dict[str, str]:
    with store.write() as tx:
        return learning.conclude(tx, asked, waited)


def _lacking(document: object, catalog: Catalog) -> Iterator[Lacking]:
    """The types of a family's form that the catalog lacks, each with the first component that declares it."""
    seen: set[str] = set()
    for one in _components(document):
        name, parameters = one.get("type"), one.get("parameters")
        if not isinstance(name, str) or name in seen:
            continue
        seen.add(name)
        family = catalog.family_of(name)
        if family is not None and name not in catalog:
            yield Lacking(name, family, parameters if isinstance(parameters, Mapping) else {})


def _components(document: object) -> Iterator[Mapping[str, Any]]:
    given = document.get("components") if isinstance(document, Mapping) else None
    for one in given if isinstance(given, list) else ():
        if isinstance(one, Mapping):
            yield one
