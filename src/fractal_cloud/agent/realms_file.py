"""The file of realms: everything that one agent reaches, on all clouds, each realm by its own way.

    aws:
      - {name: shop, role: "arn:aws:iam::123456789012:role/fractal-cloud-agent", callsPerSecond: 20}
    gcp:
      - {project: shop-prod}

Whether a realm is really the one that is meant is asked of the cloud; which ones the token is bound to is checked by
the control plane (A1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.offers.offer import Provider

Realms = Mapping[str, tuple[RealmEntry, ...]]
"""The entries of a file, by provider."""


def parse_realms(document: object, providers: Mapping[str, Provider]) -> Realms:
    """The entries of a file. Raises ``DeclarationError`` with everything that is wrong in it."""
    if not isinstance(document, dict) or not document:
        raise DeclarationError([InputError("", "is no file of realms: name clouds, each with a list of realms")])
    errors: list[InputError] = []
    found: dict[str, tuple[RealmEntry, ...]] = {}
    for name, entries in document.items():
        provider = providers.get(str(name))
        if provider is None or provider.realms is None:
            known = ", ".join(sorted(one.name for one in providers.values() if one.realms is not None))
            errors.append(InputError(str(name), f"is no cloud with realms of its own: these are {known}"))
        elif not isinstance(entries, list) or not entries:
            errors.append(InputError(str(name), "is no list of realms: name at least one, or leave the cloud out"))
        else:
            parsed = [
                _parsed(f"{name}[{at}]", entry, provider.realms.entry(), errors) for at, entry in enumerate(entries)
            ]
            found[str(name)] = tuple(one for one in parsed if one is not None)
            errors.extend(_doubles(str(name), found[str(name)]))
    if errors:
        raise DeclarationError(errors)
    return found


def _parsed(path: str, entry: Any, model: type[RealmEntry], errors: list[InputError]) -> RealmEntry | None:
    try:
        return model.model_validate(entry)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_input=False):
            where = ".".join(map(str, one["loc"]))
            said = str(one["msg"]).removeprefix("Value error, ")
            errors.append(InputError(f"{path}.{where}" if where else path, said))
        return None


def _doubles(name: str, entries: Iterable[RealmEntry]) -> Iterator[InputError]:
    """What stands in two entries and can mean one realm only."""
    said = [entry.model_dump(exclude={"default", "name"}, exclude_defaults=True) for entry in entries]
    names = Counter(entry.name for entry in entries if entry.name is not None)
    for double in sorted(one for one, count in names.items() if count > 1):
        yield InputError(name, f"names {double!r} twice: give each realm a name of its own")
    if any(said.count(one) > 1 for one in said):
        yield InputError(name, "has the same realm twice: leave one of them out")
    if sum(entry.default for entry in entries) > 1:
        yield InputError(name, "has several defaults: one realm is meant where a declaration names none")
