"""The words in what agents send: bounded, and with nothing in them that a terminal acts upon (A6).

Words are what people read: messages, errors, names and ids. Values that were read from a cloud may hold any character
(a start-up script has lines); only their size is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fractal_cloud.control.store.errors import ReportRefused
from fractal_cloud.model.observed import Setback
from fractal_cloud.model.visible_text import hidden_character
from fractal_cloud.model.wire import ComponentChange, JournalEntry, PlannedComponent, Registration, Report, ScopeReport

Word = tuple[str, str]
"""What a text is, and the text."""
MOST_WORDS: Final = 20_000
"""The longest message, in characters: a few links that wait and why take some hundred."""
MOST_NAME: Final = 2_048
"""The longest id or name, in characters: the longest of all vendors is an ARN."""
MOST_VALUE: Final = 1_000_000
"""The most characters in the values of one document, such as all output fields of a component."""
MOST_DEPTH: Final = 32
MOST_CHANGES: Final = 10
"""The most changes of one component that agents name."""
MOST_ITEMS: Final = 200_000
"""The most components, resources, entries and events in one report."""


def check_report(report: Report) -> None:
    """Raise ``ReportRefused`` where a text of a report is too long, or has a control character in it."""
    items = sum(len(s.changes) + len(s.resources) + len(s.journal) + len(s.events) for s in report.scopes)
    if items > MOST_ITEMS:
        raise ReportRefused(f"the report has {items:,} items, and no more than {MOST_ITEMS:,} are taken: send several")
    for scope in report.scopes:
        _check_scope(scope)


def _check_scope(scope: ScopeReport) -> None:
    for change in scope.changes:
        if len(change.changed_by) > MOST_CHANGES:
            raise ReportRefused(f"component {change.uid[:MOST_NAME]!r} names more than {MOST_CHANGES} changes")
        _check(f"component {change.uid[:MOST_NAME]!r}", _names_of(change), _messages_of(change))
        _check_document(f"an output field of component {change.uid!r}", change.output_fields)
        for half in (change.links.inbound, change.links.outbound):
            for other, state in half.items():
                where = f"a link of component {change.uid!r}"
                names = [("its other end", other), ("its type", state.link_type), ("a type", state.other_type)]
                names += [("a key", key) for key in (*(state.sealed_to or ()), *(state.seen_keys or ()))]
                _check(where, names, [("why it waits", state.waits)])
                _check_document(where, state.fields)
    for entry in scope.journal:
        _check(f"journal entry {entry.id[:MOST_NAME]!r}", _names_in(entry), [("its error", entry.error)])
        for document in (entry.before, entry.after, entry.tags):
            _check_document(f"journal entry {entry.id!r}", document)
    for event in scope.events:
        where = f"an event of component {event.uid[:MOST_NAME]!r}"
        _check(where, [("its uid", event.uid)], [("its message", event.message)])
        _check_document(where, [event.before, event.after])
    for known in scope.resources:
        of_it = (known.identity, known.owner or "", known.resource_id or "", known.left_by or "")
        _check(f"resource {known.identity[:MOST_NAME]!r}", [("a name", name) for name in of_it], ())


def check_plan(components: Iterable[PlannedComponent], why: str = "") -> None:
    """The same of an agent's answer to a plan."""
    check_texts("an answer", (), (why,))
    for one in components:
        where = f"component {one.uid[:MOST_NAME]!r} of a plan"
        names = (one.uid, one.component_id, one.type, one.rule, one.resource_id or "")
        check_texts(where, names, (one.message, *one.warnings))
        _check_document(where, one.changes)
        _check_document(where, one.found)


def check_registration(registration: Registration) -> None:
    """The same of what an agent says of itself; its types are checked where types are."""
    names = [("its name", registration.agent_id), ("its version", registration.version)]
    names += [("its environment", registration.environment), ("its key", registration.public_key)]
    for reach in registration.reaches:
        names += [("a provider", reach.provider), ("a realm", reach.realm), ("the name of a realm", reach.name)]
    _check(f"agent {registration.agent_id[:MOST_NAME]!r}", names, ())


def check_texts(where: str, names: Iterable[str], texts: Iterable[str]) -> None:
    """The same of other names and texts that an agent sends."""
    _check(where, [("a name", name) for name in names], [("a text", text) for text in texts])


def _names_of(change: ComponentChange) -> Iterator[Word]:
    yield "its uid", change.uid
    yield "its resource id", change.resource_id or ""
    yield "its owner", change.owner or ""
    yield "its incarnation", change.incarnation
    yield "who took it over", change.override_by or ""
    yield "who handed it back", change.readopted_by or ""
    yield "the request", change.used_request or ""
    for name in change.waits_for:
        yield "what it waits for", name
    for name in change.output_fields:
        yield "the name of an output field", name
    for setback in change.setbacks:
        yield from _setback_names(setback)
    for one in change.changed_by:
        for text in (one.parameter, one.value, one.by, one.identity, one.how, one.address, one.source):
            yield "who changed it", text
    if change.intent is not None:
        yield "its intent", change.intent.id
        yield "its intent", change.intent.resource_id or ""
    if change.refusal is not None:
        yield "its refusal", change.refusal.verb
        yield "its refusal", change.refusal.entry


def _setback_names(setback: Setback) -> Iterator[Word]:
    yield "a parameter", setback.parameter
    yield "a digest", setback.value
    yield "who set a value back", setback.by or ""


def _messages_of(change: ComponentChange) -> Iterator[Word]:
    yield "its message", change.message
    yield "why it was taken over", change.override_reason or ""
    if change.refusal is not None:
        yield "why a write was refused", change.refusal.message


def _names_in(entry: JournalEntry) -> Iterator[Word]:
    for name in (entry.id, entry.uid, entry.reason, entry.resource_id or "", entry.repeats, *entry.request_ids):
        yield "a name", name


def _check(where: str, names: Iterable[Word], messages: Iterable[Word]) -> None:
    for words, most in ((names, MOST_NAME), (messages, MOST_WORDS)):
        for what, text in words:
            if text and (len(text) > most or hidden_character(text) is not None):
                raise ReportRefused(_why(where, what, text, most))


def _why(where: str, what: str, text: str, most: int) -> str:
    if len(text) > most:
        return f"{where}: {what} has {len(text):,} characters, and no more than {most:,} are taken"
    return f"{where}: {what} has the control character {hidden_character(text)!r} in it"


def _check_document(where: str, document: object) -> None:
    size = _size(document, MOST_DEPTH)
    if size > MOST_VALUE:
        raise ReportRefused(f"{where}: its values have more than {MOST_VALUE:,} characters, or too many levels")


def _size(value: object, depth: int) -> int:
    """The characters in all texts of a document; too many where it has more levels than anybody needs."""
    if isinstance(value, str):
        return len(value)
    if not isinstance(value, (Mapping, list, tuple)):
        return 1
    if depth == 0:
        return MOST_VALUE + 1
    if isinstance(value, Mapping):
        return sum(len(str(name)) + _size(item, depth - 1) for name, item in value.items())
    return sum(_size(item, depth - 1) for item in value)
