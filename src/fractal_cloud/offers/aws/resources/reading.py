"""Finding the resources of one type: by what is known of each that is declared, and all that is tagged in bulk.

Nothing of AWS lists a type with its tags and values. So tags and existence come from the tagging API, a hundred a call,
for every resource that was read whole before; what is not in it, or does not look managed, is read by itself. One is
found by its last identifier, by the identifier that its declarer chose, by its name (the tag, or a list of all of the
type), and in its parent. How it is shown belongs in `sighting`, the tagging API's list in `bulk`.
"""

from __future__ import annotations

import contextvars
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final

from fractal_cloud.model.catalog import part_name
from fractal_cloud.model.errors import CloudError, Throttled, Unreadable
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.resources import calls
from fractal_cloud.offers.aws.resources.bulk import Bulk
from fractal_cloud.offers.aws.resources.facts import Described
from fractal_cloud.offers.aws.resources.sighting import Shown, same, same_name
from fractal_cloud.offers.offer import DeclaredResource, Query

_AT_ONCE: Final = 8
_SEARCHED: Final = 200
"""How many resources whose name no list shows are read in one reading; the next one goes on."""

Found = Sighting | UnreadItem


class Search:
    """One reading of one type in one account and region."""

    def __init__(self, described: Described, cloud: Aws, query: Query) -> None:
        self._described = described
        self._cloud = cloud
        self._query = query
        self._shown = Shown(described, cloud)
        self._bulk = Bulk(self._shown, query) if described.is_listed_by_tags else None
        self._read: dict[str, Sighting | None] = {}
        self._unread: dict[str, UnreadItem] = {}
        self._left = _SEARCHED
        self._lists: dict[tuple[tuple[str, str], ...], list[tuple[str, calls.Properties]]] = {}

    def run(self) -> Iterator[Found]:
        """Everything that is declared, and everything else that LiveSystems of this scope own."""
        self._shown.memory.requests.load(self._cloud)
        declared = self._declared()
        if not declared:
            if not self._query.names and not self._query.declared:
                yield from self._everything()
            elif self._bulk is not None:
                yield from self._rest()
            return
        candidates = self._candidates(declared)
        known = self._shown.known.by_id if self._bulk is not None else {}
        yield from self._each({one for ids in candidates for one in ids if one not in known})
        listed = self._bulk.listed() if self._bulk is not None else {}
        doubtful = {one for ids in candidates for one in ids if self._bulk is None or not self._bulk.is_calm(one)}
        yield from self._each(doubtful)
        for item in declared:
            if not self._is_found(item, listed):
                yield from self._searched(item)
        yield from self._rest()

    def _rest(self) -> Iterator[Found]:
        """What the tagging API shows and was not read by itself; what of it is not known yet is read now."""
        if self._bulk is None:
            return
        for identifier, sighting in self._bulk.listed().items():
            if identifier not in self._read and identifier not in self._unread:
                yield sighting
        for identifier in self._bulk.unknown():
            yield from self._each({identifier})
            self._bulk.conclude(identifier)

    def _everything(self) -> Iterator[Found]:
        """All of the type, for whoever declares nothing of it yet; of parts those of the parents that are given."""
        models: list[dict[str, str]] = [{}] if self._described.is_listed_whole else []
        if self._described.type.part is not None:
            models = self._described.models_within(sorted(self._query.parent_ids))
        for model in models:
            found = [identifier for identifier, _ in self._list(model)]
            for start in range(0, len(found), _SEARCHED):
                yield from self._each(set(found[start : start + _SEARCHED]))

    # --- what is declared

    def _declared(self) -> list[DeclaredResource]:
        """The components as they are known to be called; where only names are given, by these."""
        items = [replace(item, name=self._name_of(item)) for item in self._query.declared]
        if items or self._described.key or self._described.is_only_part:
            return [item for item in items if self._described.type.part is None or item.parent_id is not None]
        own = self._described.name_parameter
        return [DeclaredResource(name, None, None, {own: name} if own else {}) for name in sorted(self._query.names)]

    def _name_of(self, item: DeclaredResource) -> str:
        described = self._described
        if not described.key and not described.is_only_part:
            return item.name
        return part_name(item.parameters.get(one) for one in described.key)

    def _candidates(self, declared: Iterable[DeclaredResource]) -> list[list[str]]:
        """The identifiers that each may have: those it had, and the one that follows from what it declares."""
        assigned: dict[tuple[str, str | None], list[str]] = defaultdict(list)
        for identifier, place in self._shown.known.assigned.items():
            assigned[place].append(identifier)
        found = []
        for item in declared:
            place = item.name, item.parent_id
            ids = dict.fromkeys(one for one in (item.resource_id, self._chosen(item)) if one)
            for one in ids:
                self._shown.known.assigned.setdefault(one, place)
            found.append(list(dict.fromkeys([*ids, *assigned.get(place, ())])))
        return found

    def _chosen(self, item: DeclaredResource) -> str:
        """The identifier of a component's resource, where it follows from what is declared; else nothing."""
        kind = self._described.type
        values = [self._identifying(item, one) for one in kind.identifier]
        return "|".join(values) if all(values) else ""

    def _identifying(self, item: DeclaredResource, name: str) -> str:
        kind, part = self._described.type, self._described.type.part
        if part is not None and name == part.property:
            return item.parent_id or ""
        if part is not None:
            for identifying, declared, constant in part.derived:
                if identifying == name and item.parameters.get(declared) is not None:
                    return constant or str(item.parameters[declared])
        if name in kind.read_only:
            return ""
        if name == self._described.name_parameter:
            return item.name
        value = item.parameters.get(name)
        return str(value) if isinstance(value, (str, int)) else ""

    # --- one by one

    def _each(self, identifiers: Iterable[str]) -> Iterator[Found]:
        """Read these by themselves, several at once; each once in this reading."""
        wanted = sorted({one for one in identifiers if one not in self._read and one not in self._unread})
        if len(wanted) == 1:
            yield from self._note(wanted[0], self._one(wanted[0]))
            return
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="resources") as pool:
            for start in range(0, len(wanted), _AT_ONCE):
                some = wanted[start : start + _AT_ONCE]
                runs = [partial(contextvars.copy_context().run, self._one, one) for one in some]
                for identifier, found in zip(some, pool.map(lambda run: run(), runs), strict=True):
                    yield from self._note(identifier, found)

    def _one(self, identifier: str) -> Sighting | CloudError | None:
        try:
            return self._shown.read(identifier)
        except CloudError as error:
            return error

    def _note(self, identifier: str, found: Sighting | CloudError | None) -> Iterator[Found]:
        if isinstance(found, Throttled):
            raise found
        if isinstance(found, CloudError):
            name = self._shown.known.assigned.get(identifier, (None, None))[0]
            self._unread[identifier] = UnreadItem(found, identifier, name)
            yield self._unread[identifier]
            return
        self._read[identifier] = found
        if found is not None:
            yield found

    def _is_found(self, item: DeclaredResource, listed: Mapping[str, Sighting]) -> bool:
        """Whether something fits a component; where it is the tag that says so, only if a LiveSystem here owns it."""
        if any(one.name == item.name for one in self._unread.values()):
            return True
        fitting = [
            one
            for one in {**listed, **self._read}.values()
            if one is not None and one.name == item.name and same(one.parent_id, item.parent_id)
        ]
        if not self._described.is_named_by_tag:
            return bool(fitting)
        return any(one.protocol.owner in self._query.live_systems for one in fitting)

    # --- by name, and in a parent

    def _searched(self, item: DeclaredResource) -> Iterator[Found]:
        """What bears a component's name, as far as its identifier does not follow from it."""
        described, kind = self._described, self._described.type
        if self._bulk is not None and described.is_named_by_tag:
            yield from self._each(self._bulk.named(item.name))
            return
        if kind.named_by == "identifier" and kind.part is None:
            return
        model = self._model(item)
        if model is None or "list" not in kind.handlers:
            return
        for identifier, properties in self._list(model):
            if self._may_be(item, identifier, properties):
                yield from self._read_to_see(item, identifier)
        if self._left <= 0 and not self._is_found(item, {}):
            yield UnreadItem(_unfinished(kind.name), None, item.name)

    def _model(self, item: DeclaredResource) -> dict[str, Any] | None:
        """What a list of the type wants to know; None where that is not known."""
        model = {one: self._identifying(item, one) for one in self._described.type.list_parents}
        return model if all(model.values()) else None

    def _list(self, model: dict[str, Any]) -> list[tuple[str, calls.Properties]]:
        key = tuple(sorted((name, str(value)) for name, value in model.items()))
        if key not in self._lists:
            self._lists[key] = list(calls.listed(self._cloud, self._described.type.name, model))
        return self._lists[key]

    def _may_be(self, item: DeclaredResource, identifier: str, properties: Mapping[str, Any]) -> bool:
        """Whether a listed resource may be a component's: it says so, or nothing is known of its name yet."""
        described = self._described
        wanted = described.key or ((described.name_parameter,) if described.name_parameter else ())
        if wanted and all(one in properties for one in wanted):
            return same_name(item.name, described.name_of(properties, {}), described.key)
        known = self._shown.known.named.get(identifier)
        return known is None or same_name(item.name, known, described.key)

    def _read_to_see(self, item: DeclaredResource, identifier: str) -> Iterator[Found]:
        """One that may be a component's, read to see; within the bounds of one reading."""
        known = self._shown.known
        if identifier not in self._read:
            if identifier not in known.named:
                self._left -= 1
            if self._left < 0:
                return
            found = self._one(identifier)
            if isinstance(found, Sighting):
                known.named[identifier] = found.name
                if same_name(item.name, found.name, self._described.key) and same(found.parent_id, item.parent_id):
                    known.assigned[identifier] = item.name, item.parent_id
                    found = replace(found, name=item.name, parent_id=item.parent_id)
            yield from self._note(identifier, found)


def _unfinished(name: str) -> Unreadable:
    return Unreadable(
        f"there are more resources of {name} than one cycle reads, and their names are not listed: the next one goes on"
    )
