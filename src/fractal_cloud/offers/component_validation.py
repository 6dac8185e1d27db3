"""Whether each component of a declaration makes sense by itself and among the others it names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import ComponentDeclaration, LinkDeclaration
from fractal_cloud.model.identity import ID_RULE, ID_TWICE, is_id
from fractal_cloud.model.reference import output_reference
from fractal_cloud.model.wording import Path, shown, unknown
from fractal_cloud.offers.family import Declared
from fractal_cloud.offers.family_validation import (
    identity_errors,
    in_others_words,
    in_settings,
    is_path,
    parent_errors,
    read_only_errors,
    why_not_once,
)
from fractal_cloud.offers.input_errors import InputErrors
from fractal_cloud.offers.installed_types import declared_in, family_of
from fractal_cloud.offers.link_validation import LinkChecks
from fractal_cloud.offers.output_validation import OutputChecks, is_of
from fractal_cloud.offers.parameter_validation import ParameterCheck
from fractal_cloud.offers.plain_data import MAX_DEPTH, MAX_VENDORS_DEPTH, plain_data_errors
from fractal_cloud.offers.reference_validation import reference_errors
from fractal_cloud.offers.tag_validation import check_for_type, check_tags, ignorable
from fractal_cloud.rules.identify import referenced

MAX_ENTRIES: Final = 1_000

_KEYS: Final = (
    *("id", "type", "provider", "parameters", "dependencies", "links"),
    *("ignoreDrift", "importOnly", "createOnce", "linksFrom", "tags"),
)
_LINK_KEYS: Final = ("target", "settings")


def check_id(given: Mapping[Any, Any], base: str, errors: InputErrors) -> None:
    """Note what is wrong with the id of a LiveSystem or a component (T9)."""
    path = f"{base}.id".removeprefix(".")
    value = given.get("id")
    if value is None:
        errors.add(path, f"is missing: give an id, {ID_RULE}")
    elif not isinstance(value, str) or not is_id(value):
        errors.add(path, f"is {shown(value)}: must be {ID_RULE}")


def labels_of(given: Sequence[object]) -> list[str]:
    """How each component is named in paths: by its id, or by its index where that would name none or two."""
    labels: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(given):
        name = item.get("id") if isinstance(item, Mapping) else None
        if isinstance(name, str) and is_id(name) and name not in seen:
            seen.add(name)
            labels.append(f"components[{name}]")
        else:
            labels.append(f"components[{index}]")
    return labels


class Components:
    """Checks components one by one, each with all others in view."""

    def __init__(
        self, given: Sequence[object], labels: Sequence[str], catalog: Mapping[str, TypeFacts], errors: InputErrors
    ) -> None:
        self._given = given
        self._labels = labels
        self._catalog = catalog
        self._errors = errors
        self._checks: dict[str, ParameterCheck] = {}
        ids = [item["id"] for item in given if isinstance(item, Mapping) and isinstance(item.get("id"), str)]
        self._twice = {one for one, many in Counter(ids).items() if many > 1}
        self._types = {
            item["id"]: item.get("type")
            for item in given
            if isinstance(item, Mapping) and isinstance(item.get("id"), str)
        }
        self._every = list(declared_in({"components": list(given)}))
        self._link_checks = LinkChecks(catalog)
        self._output_checks = OutputChecks(self._types, catalog)

    def check(self, index: int) -> ComponentDeclaration | None:
        """The component as it will be stored, or None where so much is wrong that nothing can be said of it."""
        base, item = self._labels[index], self._given[index]
        if not isinstance(item, Mapping):
            self._errors.add(base, f"is {shown(item)}: must be an object with id and type")
            return None
        self._errors.extend(base, plain_data_errors({key: item[key] for key in item if key != "parameters"}))
        self._errors.unknown_keys(base, item, _KEYS)
        check_id(item, base, self._errors)
        if not self._errors.has(f"{base}.id") and base != f"components[{item['id']}]":
            self._errors.add(
                f"{base}.id",
                f"is {item['id']!r}, {ID_TWICE}",
            )
        facts = self._type_of(item, base)
        parameters = self._parameters(item, base, facts)
        dependencies = self._dependencies(item, base, parameters, facts)
        links = self._links(item, base)
        if links and facts is not None:
            self._source(item, base, parameters, facts)
        self._flags(item, base, facts)
        tags = check_tags(item.get("tags", {}), base, self._errors)
        if facts is not None:
            check_for_type(tags, facts, base, self._errors)
        if facts is None or self._errors.has(f"{base}.id"):
            return None
        return _declared(item, facts, parameters, dependencies, links)

    def _type_of(self, item: Mapping[Any, Any], base: str) -> TypeFacts | None:
        given = item.get("type")
        if not isinstance(given, str):
            what = "is missing" if given is None else f"is {shown(given)}"
            self._errors.add(f"{base}.type", f"{what}: give the component's type, as GET /offers lists them")
            return None
        facts = self._catalog.get(given)
        if facts is None:
            self._errors.add(f"{base}.type", f"is {shown(given)}, {self._unknown_type(given)}")
            return None
        if item.get("provider", "") not in ("", facts.provider):
            self._errors.add(
                f"{base}.provider",
                f"is {shown(item['provider'])}, but {facts.type} belongs to {facts.provider!r}: leave it out",
            )
        return facts

    def _unknown_type(self, given: str) -> str:
        family = family_of(self._catalog, given)
        if family is not None:
            return f"which {family.refusal(given)}"
        guess = self._errors.guess(given, self._catalog)
        otherwise = ": install its package at the control plane, or start an agent that has it"
        return f"a type nobody here knows{guess or otherwise}"

    def _parameters(self, item: Mapping[Any, Any], base: str, facts: TypeFacts | None) -> dict[str, Any]:
        given = item.get("parameters", {})
        base = f"{base}.parameters"
        if not isinstance(given, Mapping):
            self._errors.add(base, f"is {shown(given)}: must be an object")
            return {}
        parameters = dict(given)
        self._errors.extend(base, _plain_parameter_errors(parameters, facts))
        if facts is None or self._errors.has(base):
            return parameters
        known = self._checks.get(facts.type) or self._checks.setdefault(facts.type, ParameterCheck(facts))
        misused: dict[Path, str] = {}
        for path, text in (*reference_errors(parameters, facts), *self._references(item, parameters, facts)):
            misused.setdefault(path, text)
        self._errors.extend(base, misused.items())
        identifier = item["id"] if isinstance(item.get("id"), str) and is_id(item["id"]) else "x"
        found = known.errors(identifier, parameters)
        found = [one for one in found if not any(one[0][: len(path)] == path for path in misused)]
        self._errors.extend(base, in_others_words(found, parameters, facts, self._types))
        for name in facts.linked():
            if name in parameters:
                self._errors.add(f"{base}.{name}", "is set by links alone: take it out, and declare a link")
        return {name: self._by_id(name, value, facts) for name, value in parameters.items() if value is not None}

    def _references(
        self, item: Mapping[Any, Any], parameters: Mapping[str, Any], facts: TypeFacts
    ) -> Iterator[tuple[Path, str]]:
        yield from self._output_checks.errors(item.get("id"), parameters, facts)
        yield from identity_errors(parameters, facts)
        yield from read_only_errors(parameters, str(item.get("id")), facts)
        yield from parent_errors(parameters, facts, self._types, self._catalog)

    def _by_id(self, name: str, value: Any, facts: TypeFacts) -> Any:
        """A reference parameter with ids in the place of the very outputs that it stands for: both say the same."""
        wanted, output = facts.references().get(name, ("", ""))
        if not wanted or facts.nested:
            return value
        if isinstance(value, list):
            return [self._by_id(name, one, facts) for one in value]
        found = output_reference(value)
        is_same = found is not None and found.field == output and self._types.get(found.component) == wanted
        return found.component if found is not None and is_same else value

    def _dependencies(
        self, item: Mapping[Any, Any], base: str, parameters: Mapping[str, Any], facts: TypeFacts | None
    ) -> list[str]:
        declared = self._texts(item, base, "dependencies")
        for index, name in declared:
            self._component_named(name, item, f"{base}.dependencies[{index}]")
        needed = [name for _, name in declared]
        for parameter, (wanted, _) in (facts.references() if facts and not facts.nested else {}).items():
            value = parameters.get(parameter)
            for index, one in enumerate(value if isinstance(value, list) else [value]):
                path = f"{base}.parameters.{parameter}" + (f"[{index}]" if isinstance(value, list) else "")
                for name in referenced(one):
                    if self._component_named(name, item, path):
                        self._reference_type(name, wanted, path)
                    needed.append(name)
        needed += self._output_checks.needed(parameters)
        needed += self._host(item, f"{base}.parameters", parameters, facts)
        needed += self._of_family(item, parameters, facts)
        return list(dict.fromkeys(needed))

    def _of_family(
        self, item: Mapping[Any, Any], parameters: Mapping[str, Any], facts: TypeFacts | None
    ) -> Iterator[str]:
        """What a family knows to come first, though nothing refers to it."""
        family = family_of(self._catalog, facts.type) if facts is not None and facts.family else None
        if family is not None and facts is not None and isinstance(item.get("id"), str):
            own = Declared(item["id"], facts.type, parameters)
            yield from (name for name in family.dependencies(own, self._every) if name in self._types)

    def _host(
        self, item: Mapping[Any, Any], base: str, parameters: Mapping[str, Any], facts: TypeFacts | None
    ) -> list[str]:
        """The component it lives in, where it names one: that goes before whatever an agent calls by the same name."""
        if facts is None:
            return []
        hosts, name = facts.hosts(), parameters.get(facts.realm or "")
        if not hosts or not isinstance(name, str) or name not in self._types:
            return []
        actual = self._types[name]
        if actual in hosts and name != item.get("id"):
            return [name]
        if not isinstance(actual, str) or actual not in self._catalog:
            return []  # said of that component already
        what = "the component itself" if name == item.get("id") else f"a component of type {actual}"
        self._errors.add(
            f"{base}.{facts.realm}",
            f"is {name!r}, {what}: name a component of type {', '.join(sorted(hosts))}; a {facts.realm} that an agent "
            "reaches by itself must have a name that is no component's id here",
        )
        return []

    def _component_named(self, name: str, item: Mapping[Any, Any], path: str) -> bool:
        if name in self._twice:
            return False  # which of them is meant is known once each has its own id, and that is said already
        if name == item.get("id"):
            self._errors.add(path, f"is {name!r}, the component itself: name another one")
        elif name not in self._types:
            guess = self._errors.guess(name, self._types)
            self._errors.add(
                path, f"is {shown(name)}, which is no component of this LiveSystem{guess or ': declare it'}"
            )
        else:
            return True
        return False

    def _reference_type(self, name: str, wanted: str, path: str) -> None:
        actual = self._types[name]
        if isinstance(actual, str) and actual in self._catalog and not is_of(actual, wanted, self._catalog):
            self._errors.add(path, f"is {name!r}, a component of type {actual}: must name one of type {wanted}")

    def _links(self, item: Mapping[Any, Any], base: str) -> list[LinkDeclaration]:
        links: list[LinkDeclaration] = []
        for index, link in self._entries(item, base, "links"):
            path = f"{base}.links[{index}]"
            if not isinstance(link, Mapping):
                self._errors.add(path, f"is {shown(link)}: must be an object with target and settings")
                continue
            self._errors.unknown_keys(path, link, _LINK_KEYS)
            target = link.get("target")
            settings = link.get("settings", {})
            if not isinstance(target, str):
                self._errors.add(f"{path}.target", "is missing: give the id of the component it leads to")
            elif any(other.target == target for other in links):
                self._errors.add(f"{path}.target", f"is {shown(target)}, to which another link leads: keep one of them")
            elif self._component_named(target, item, f"{path}.target"):
                ends = (item.get("type"), self._types[target])
                self._errors.extend(path, self._link_checks.errors(str(item.get("id")), target, ends, settings))
                self._errors.extend(path, in_settings(settings))
            if not self._errors.has(path):
                links.append(LinkDeclaration(target=str(target), settings=settings))
        return links

    def _source(self, item: Mapping[Any, Any], base: str, parameters: Mapping[str, Any], facts: TypeFacts) -> None:
        """What a family asks of a component from which links lead."""
        family = family_of(self._catalog, facts.type) if facts.family else None
        if family is not None and isinstance(item.get("id"), str):
            own = Declared(item["id"], facts.type, parameters)
            for name, text in family.source_errors(own, self._every):
                self._errors.add(f"{base}.parameters.{name}", text)

    def _flags(self, item: Mapping[Any, Any], base: str, facts: TypeFacts | None) -> None:
        for index, name in self._texts(item, base, "ignoreDrift"):
            known = facts.parameter_schema.get("properties", {}) if facts else {name: None}
            if name not in known and not (facts and (ignorable(name, facts) or is_path(name, facts))):
                self._errors.add(
                    f"{base}.ignoreDrift[{index}]", f"is {name!r}, and {unknown('parameter of this type', name, known)}"
                )
        for index, name in self._texts(item, base, "linksFrom"):
            if not is_id(name):
                self._errors.add(
                    f"{base}.linksFrom[{index}]", f"is {shown(name)}: must be a LiveSystem's id, {ID_RULE}"
                )
        for key in ("importOnly", "createOnce"):
            if not isinstance(item.get(key, False), bool):
                self._errors.add(f"{base}.{key}", f"is {shown(item[key])}: must be true or false")
        if item.get("createOnce") is True and facts is not None:
            why = why_not_once(facts, import_only=item.get("importOnly") is True)
            if why:
                self._errors.add(f"{base}.createOnce", why)

    def _entries(self, item: Mapping[Any, Any], base: str, key: str) -> list[tuple[int, object]]:
        given = item.get(key, [])
        if not isinstance(given, list):
            self._errors.add(f"{base}.{key}", f"is {shown(given)}: must be a list")
            return []
        if len(given) > MAX_ENTRIES:
            self._errors.add(f"{base}.{key}", f"has {len(given)} entries: {MAX_ENTRIES} are allowed")
            return []
        return list(enumerate(given))

    def _texts(self, item: Mapping[Any, Any], base: str, key: str) -> list[tuple[int, str]]:
        texts = []
        for index, entry in self._entries(item, base, key):
            if isinstance(entry, str):
                texts.append((index, entry))
            else:
                self._errors.add(f"{base}.{key}[{index}]", f"is {shown(entry)}: must be text")
        return texts


def _plain_parameter_errors(parameters: Mapping[str, Any], facts: TypeFacts | None) -> Iterator[tuple[Path, str]]:
    words = frozenset(facts.words) | {facts.named_by} if facts is not None else frozenset()
    for name, value in parameters.items():
        # The vendor's own values hold documents and scripts as they please; names and places never do.
        is_vendors = facts is not None and facts.nested and name not in words
        lines = is_vendors or (facts is not None and bool(facts.parameter_facts(name).get("lines")))
        deepest = MAX_VENDORS_DEPTH if is_vendors else MAX_DEPTH
        yield from plain_data_errors({name: value}, lines=lines, deepest=deepest)


def _declared(
    item: Mapping[Any, Any],
    facts: TypeFacts,
    parameters: dict[str, Any],
    dependencies: list[str],
    links: list[LinkDeclaration],
) -> ComponentDeclaration:
    # Unchecked, because other parts of the declaration may be wrong; it is stored only if nothing is.
    return ComponentDeclaration.model_construct(
        id=item["id"],
        type=facts.type,
        provider=facts.provider,
        parameters=parameters,
        dependencies=dependencies,
        links=links,
        ignore_drift=item.get("ignoreDrift", []),
        import_only=item.get("importOnly", False),
        create_once=item.get("createOnce", False),
        links_from=item.get("linksFrom", []),
        tags=item.get("tags", {}),
    )
