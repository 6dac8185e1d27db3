"""Confines a report to its lease (A3): all that it speaks of belongs to the leased scope, or the report is refused.

What was in the scope and left it since is not foreign: it is ignored where it is applied. What an agent reports of its
own scope is believed, except for what only others can know: who asked for something, and what was deployed. Nothing is
read here for a report that speaks of its own components alone; what looks foreign is looked up by one statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, literal_column, select, text, union_all

from fractal_cloud.control.store import links
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import PreparedStatement, among
from fractal_cloud.control.store.errors import LeaseLost, ReportRefused
from fractal_cloud.control.store.journal import Entries
from fractal_cloud.control.store.records import ComponentRecord
from fractal_cloud.control.store.schema import REQUESTED, components, departures, resources, types
from fractal_cloud.control.store.scopes import ScopeRow
from fractal_cloud.model.event import AGENT_EVENTS
from fractal_cloud.model.link import INBOUND_PREFIX, Half
from fractal_cloud.model.wire import ComponentChange, Report, ScopeReport

Link = tuple[Half, str]
"""One half of a link of a component, and the other end as keys name it."""
_SIDES: Final[tuple[Half, Half]] = ("inbound", "outbound")


def check(
    tx: Tx,
    sent: Report,
    known: Mapping[str, ComponentRecord],
    held: Mapping[str, ScopeRow],
    entries: Entries,
) -> None:
    """Raise ``ReportRefused`` if anything in a report is foreign; every scope of it is leased to the reporter.

    ``known``: the components with the uids in it, wherever they are. ``entries``: the journal entries with the ids in
    it. ``LeaseLost`` where it speaks of something that was taken out of the work since.
    """
    for scope in sent.scopes:
        _Checked(tx, scope, known, held[scope.scope].version, entries).check()


@dataclass(frozen=True, slots=True)
class _Checked:
    """The report of one scope; ``version``: the newest of its work that was ever sent."""

    tx: Tx
    scope: ScopeReport
    known: Mapping[str, ComponentRecord]
    version: int
    entries: Entries

    def check(self) -> None:
        """Check every item; the first that is foreign is named."""
        if self.scope.version > self.version:
            raise self._refusal(f"version {self.scope.version} of its work was never sent")
        for event in self.scope.events:
            if event.kind not in AGENT_EVENTS:
                raise self._refusal(f"event {event.kind.value!r} is not an agent's to report")
        self._check_uids()
        self._check_journal()
        self._check_resources()
        changes = [(change, record) for change in self.scope.changes if (record := self._own(change.uid)) is not None]
        for change, record in changes:
            self._check_generation(change, record)
            self._check_people(change, record)
        self._check_requests(changes)
        self._check_links(changes)

    def _refusal(self, why: str) -> ReportRefused:
        return ReportRefused(f"the report of scope {self.scope.scope!r} is refused as a whole: {why}")

    def _own(self, uid: str) -> ComponentRecord | None:
        """The component of that uid, if it is in the scope now."""
        record = self.known.get(uid)
        return record if record is not None and record.scope_key == self.scope.scope else None

    # --- components

    def _check_uids(self) -> None:
        odd = {uid for uid in _uids(self.scope) if self._own(uid) is None}
        if not odd:
            return
        asked = {"scope": self.scope.scope, "uids": odd}
        foreign = odd - {row.uid for row in _DEPARTED.rows(self.tx.connection, asked)}
        if foreign:
            raise self._refusal(f"component {min(foreign)!r} was never in it")

    def _check_generation(self, change: ComponentChange, record: ComponentRecord) -> None:
        if change.observed_generation > record.generation:
            at = f"generation {change.observed_generation} of component {change.uid!r}"
            raise self._refusal(f"{at} was never deployed")
        if change.finished and not record.deleting and record.declared_version <= self.scope.version:
            raise self._refusal(f"component {change.uid!r} is finished, which nobody deletes")

    def _check_people(self, change: ComponentChange, record: ComponentRecord) -> None:
        """Refuse the name of somebody who did not ask for it."""
        override, request = record.override or {}, record.request or {}
        asked = {None, override.get("by"), override.get("readoptedBy"), request.get("by")}
        names = [change.readopted_by]
        if record.override is None or record.declared_version <= self.scope.version:
            names.append(change.override_by)  # else it is not taken from this report: somebody may have handed it over
        for name in names:
            if name not in asked:
                self._refuse_unless_old(record, f"{name!r} asked for nothing at component {change.uid!r}")

    def _check_requests(self, changes: Iterable[tuple[ComponentChange, ComponentRecord]]) -> None:
        """Refuse to use up a request for another component; one that is gone was given up meanwhile."""
        odd = {
            change.used_request
            for change, record in changes
            if change.used_request is not None and change.used_request != (record.request or {}).get("id")
        }
        if odd and any(row.request["id"] in odd for row in _REQUESTED.rows(self.tx.connection, {})):
            raise self._refusal("it uses up an operator's request for another component")

    def _refuse_unless_old(self, record: ComponentRecord, why: str) -> None:
        """Refuse a report; one that was judged from work that has changed since only has to be judged anew."""
        if max(record.declared_version, self.version) > self.scope.version:
            raise LeaseLost(f"component {record.uid!r} has news since version {self.scope.version}: claim again")
        raise self._refusal(why)

    # --- the journal

    def _check_journal(self) -> None:
        for entry in self.scope.journal:
            record = self._own(entry.uid)
            if record is not None and entry.generation > record.generation:
                raise self._refusal(f"generation {entry.generation} of component {entry.uid!r} was never deployed")
            for entry_id in (entry.id, *([entry.repeats] if entry.repeats else ())):
                stored = self.entries.get(entry_id)
                if stored is not None and stored.uid != entry.uid:
                    raise self._refusal(f"journal entry {entry_id!r} is of another component than {entry.uid!r}")

    # --- resources

    def _check_resources(self) -> None:
        odd = {one.identity for one in self.scope.resources} - self._own_identities()
        foreign = odd - self._identities_here(odd) if odd else odd
        if foreign:
            raise self._refusal(f"resource {min(foreign)!r} is of another scope")

    def _own_identities(self) -> set[str | None]:
        """The identities of the components that the report speaks of."""
        return {record.identity_key for uid in _uids(self.scope) if (record := self._own(uid)) is not None}

    def _identities_here(self, odd: Collection[str]) -> set[str]:
        """Those of these identities that are of the scope: declared, remembered or, where nobody has them, named so."""
        types = {identity: identity.partition(f":{self.scope.scope}:")[0] for identity in odd}
        asked = {"identities": odd, "types": set(types.values())}
        places: dict[str, set[str]] = {}
        for row in _IDENTITIES.rows(self.tx.connection, asked):
            places.setdefault(row.key, set()).add(row.place)
        named = {identity for identity, component_type in types.items() if _TYPE in places.get(component_type, ())}
        return {one for one in odd if places.get(one, {self.scope.scope} if one in named else ()) == {self.scope.scope}}

    # --- links

    def _check_links(self, changes: Iterable[tuple[ComponentChange, ComponentRecord]]) -> None:
        """Refuse what is published or remembered of a link that is not declared, and of which nothing stood before."""
        odd: dict[str, set[Link]] = {}
        for change, record in changes:
            spoken = set(_links_of(change.output_fields)) | {
                (half, other) for half in _SIDES for other in getattr(change.links, half)
            }
            new = spoken - _known_links(record) if spoken else set()
            if new:
                odd[record.uid] = new
        if not odd:
            return
        declared = links.of_components(self.tx, [self.known[uid] for uid in odd])
        for uid, new in odd.items():
            leading = {("inbound", link["other"]) for link in declared[uid].inbound} if uid in declared else set()
            for half, other in sorted(new - leading):
                why = f"component {uid!r} has no {half} half of a link with {other!r}"
                self._refuse_unless_old(self.known[uid], why)


def _uids(scope: ScopeReport) -> Iterator[str]:
    for change in scope.changes:
        yield change.uid
    for entry in scope.journal:
        yield entry.uid
    for event in scope.events:
        yield event.uid


def _links_of(output_fields: Collection[str]) -> Iterator[Link]:
    """The halves of links that output fields speak of: no other name has a dot in it (L3)."""
    for name in output_fields:
        first, dot, rest = name.partition(".")
        if dot:
            other = rest.rpartition(".")[0]
            yield ("inbound" if first == INBOUND_PREFIX else "outbound"), other


def _known_links(record: ComponentRecord) -> set[Link]:
    """The links that a component declares itself, and those of which something was published or remembered before."""
    found: set[Link] = {("outbound", link["target"]) for link in record.declaration.get("links", ())}
    found.update((half, other) for half in _SIDES for other in record.links.get(half, ()))
    found.update(_links_of(record.output_fields))
    return found


_TYPE: Final = ""
"""In the place of a scope: a type, of no identity."""
_DEPARTED: Final = PreparedStatement(
    select(departures.c.uid).where(departures.c.scope_key == bindparam("scope"), among(departures.c.uid, "uids"))
)
_REQUESTED: Final = PreparedStatement(select(components.c.request).where(text(REQUESTED)))
_IDENTITIES: Final = PreparedStatement(
    union_all(
        *(
            select(table.c.identity_key.label("key"), table.c.scope_key.label("place")).where(
                among(table.c.identity_key, "identities")
            )
            for table in (components, resources)
        ),
        select(types.c.type, literal_column(f"'{_TYPE}'")).where(among(types.c.type, "types")),
    )
)
