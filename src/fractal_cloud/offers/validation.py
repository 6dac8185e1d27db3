"""Whether a declaration makes sense, before anything of it is stored: all that is wrong with it, at once.

It is checked against a catalog of types, so that types which only an agent has are checked too. What the cloud will
say to it is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import ComponentDeclaration, LiveSystemDeclaration, Readoption
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.wording import shown
from fractal_cloud.offers.component_validation import Components, check_id, labels_of
from fractal_cloud.offers.input_errors import InputErrors
from fractal_cloud.offers.plain_data import plain_data_errors
from fractal_cloud.offers.tag_validation import check_general, check_inherited, check_tags
from fractal_cloud.rules.identify import DeclaredIdentity, find_identities, named_by
from fractal_cloud.rules.order import find_cycle

MAX_COMPONENTS: Final = 10_000
MAX_ENVIRONMENT: Final = 63

_MAX_CYCLES: Final = 20
_KEYS: Final = ("id", "environment", "description", "readoption", "tags", "components")


def check(
    document: object, catalog: Mapping[str, TypeFacts], *, expected_id: str | None = None
) -> LiveSystemDeclaration:
    """Check a declaration as it was sent, and return it with providers and referenced dependencies filled in.

    Parameters stay as declared: no default is added, because only what is declared is enforced. Raises
    ``DeclarationError`` with every error there is, each with its path and what to do.
    """
    if not isinstance(document, Mapping):
        what = "is missing: give" if document is None else f"is {shown(document)}: must be"
        raise DeclarationError([InputError("declaration", f"{what} an object with id and components")])
    errors = InputErrors()
    _check_live_system(document, expected_id, errors)
    components = _check_components(document.get("components"), catalog, errors)
    tags = check_tags(document.get("tags", {}), "", errors)
    check_general(tags, "", errors)
    check_inherited(tags, components, catalog, errors)
    if errors.found:
        raise DeclarationError(errors.found)
    return LiveSystemDeclaration(
        id=document["id"],
        environment=document.get("environment", "default"),
        description=document.get("description", ""),
        readoption=document.get("readoption", "handshake"),
        tags=tags,
        components=components,
    )


def _check_live_system(document: Mapping[Any, Any], expected_id: str | None, errors: InputErrors) -> None:
    errors.unknown_keys("", document, _KEYS)
    check_id(document, "", errors)
    given = document.get("id")
    if expected_id is not None and isinstance(given, str) and given != expected_id:
        errors.add("id", f"is {shown(given)}, but it is deployed as {expected_id!r}: make both the same")
    environment = document.get("environment", "default")
    if not isinstance(environment, str) or not 0 < len(environment) <= MAX_ENVIRONMENT:
        errors.add("environment", f"is {shown(environment)}: must be text of 1 to {MAX_ENVIRONMENT} characters")
    if not isinstance(document.get("description", ""), str):
        errors.add("description", f"is {shown(document['description'])}: must be text")
    readoption = document.get("readoption", "handshake")
    if readoption not in get_args(Readoption):
        options = " or ".join(repr(option) for option in get_args(Readoption))
        errors.add("readoption", f"is {shown(readoption)}: must be {options}")
    errors.extend("", plain_data_errors(document.get("description"), ("description",), lines=True))
    rest = {key: value for key, value in document.items() if key not in ("components", "description")}
    errors.extend("", plain_data_errors(rest))


def _check_components(
    given: object, catalog: Mapping[str, TypeFacts], errors: InputErrors
) -> list[ComponentDeclaration]:
    if not isinstance(given, list):
        errors.add("components", "is missing: give a list" if given is None else f"is {shown(given)}: must be a list")
        return []
    if len(given) > MAX_COMPONENTS:
        errors.add("components", f"has {len(given)} entries: {MAX_COMPONENTS} are allowed, use several LiveSystems")
        return []
    labels = labels_of(given)
    checks = Components(given, labels, catalog, errors)
    declared = [checks.check(index) for index in range(len(given))]
    usable = {component.id: component for component in declared if component is not None}
    _check_cycles(usable, errors)
    _check_identities(usable, catalog, errors)
    return [component for component in declared if component is not None]


def _check_cycles(components: Mapping[str, ComponentDeclaration], errors: InputErrors) -> None:
    needed = {name: [other for other in found.dependencies if other != name] for name, found in components.items()}
    for _ in range(_MAX_CYCLES):
        cycle = find_cycle(needed)
        if cycle is None:
            return
        way = " → ".join(cycle)
        errors.add(
            f"components[{cycle[0]}].dependencies", f"go in a circle, {way}: take one of these dependencies away"
        )
        needed = {name: found for name, found in needed.items() if name not in cycle}


def _check_identities(
    components: Mapping[str, ComponentDeclaration], catalog: Mapping[str, TypeFacts], errors: InputErrors
) -> None:
    declaration = LiveSystemDeclaration.model_construct(id="", components=list(components.values()))
    found, unplaced = find_identities(declaration, catalog)
    for error in unplaced:
        if not _follows_from_another(error, components, catalog, found, errors):
            errors.add(error.path, error.message)
    first: dict[tuple[str, ...], str] = {}
    for name, identity in found.items():
        key = (components[name].type, identity.realm, identity.place, identity.parent, identity.name)
        other = first.setdefault(key, name)
        if other != name:
            errors.add(
                f"components[{name}]",
                f"speaks of the same resource as components[{other}], {identity.name!r} in {identity.place!r}: "
                "give it another name, or declare it once",
            )
    _check_twins(components, catalog, found, errors)


def _check_twins(
    components: Mapping[str, ComponentDeclaration],
    catalog: Mapping[str, TypeFacts],
    found: Mapping[str, DeclaredIdentity],
    errors: InputErrors,
) -> None:
    """Refuse one thing that is declared by our name of its type and by the vendor's.

    By the vendor's name, names may be unique in a wider scope than by ours: so what it lies in does not count.
    """
    first: dict[tuple[str, ...], dict[str, str]] = {}
    for name, identity in found.items():
        own = components[name].type
        known = first.setdefault((catalog[own].vendor_type or own, identity.realm, identity.place, identity.name), {})
        other = next((one for kind, one in known.items() if kind != own), None)
        known.setdefault(own, name)
        if other is not None:
            errors.add(
                f"components[{name}]",
                f"speaks of the same resource as components[{other}], {identity.name!r} in {identity.place!r}, by "
                f"another name of its type ({own} is {components[other].type}): declare it by one of them",
            )


def _follows_from_another(
    error: InputError,
    components: Mapping[str, ComponentDeclaration],
    catalog: Mapping[str, TypeFacts],
    found: Mapping[str, object],
    errors: InputErrors,
) -> bool:
    """Whether a place is unknown only because the component it would be inherited from has an error of its own."""
    component = components[error.path.removeprefix("components[").partition("]")[0]]
    references = catalog[component.type].references()
    base = f"components[{component.id}].parameters"
    if any(errors.has(f"{base}.{name}") for name in references):
        return True
    facts = catalog[component.type]
    return any(other not in found for name in references for other in named_by(component, facts, name))
