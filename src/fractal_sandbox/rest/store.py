"""The resources of one cloud, and drafts of what a call is about to do to them.

A draft is carried out as a whole or not at all, so that a call can be checked before it has any effect. All of it runs
under the cloud's lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from fractal_sandbox.fault_injection import Countdown, Knobs
from fractal_sandbox.rest.kinds import Body, Kind, Phase

__all__ = ["Change", "Draft", "Key", "Refused", "Store"]

Key = tuple[str, str]  # the kind's name, and the id


class Refused(Exception):
    """The cloud refuses, in the vendor's own words; nothing of the draft is carried out."""

    def __init__(
        self, status: int, code: str, message: str, *, headers: tuple[tuple[str, str], ...] = (), **details: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers
        self.details = details


@dataclass(frozen=True)
class Change:
    """What a draft does to one resource: `before` is None where it makes it, `after` where it removes it."""

    kind: Kind
    id: str
    before: Body | None
    after: Body | None


@dataclass
class _Work:
    phase: Phase
    countdown: Countdown


class Store:
    """Every resource there is, in the order in which they were made."""

    def __init__(self, kinds: tuple[Kind, ...], knobs: Knobs) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self._knobs = knobs
        self._bodies: dict[Key, Body] = {}
        self._hidden: dict[Key, Countdown] = {}
        self._work: dict[Key, _Work] = {}

    def kind(self, name: str) -> Kind:
        return self._kinds[name]

    def draft(self) -> Draft:
        return Draft(self)

    def settle(self) -> None:
        """Let everything whose time has come be ready, visible, or gone."""
        for key, hidden in list(self._hidden.items()):
            if hidden.is_over:
                del self._hidden[key]
        for key, work in list(self._work.items()):
            if work.countdown.is_over:
                del self._work[key]
                if work.phase == "deleting":
                    self._remove(key)

    def phase(self, kind: str, resource_id: str) -> Phase | None:
        """What the cloud is still doing to a resource; None when it is ready."""
        work = self._work.get((kind, resource_id))
        return work.phase if work is not None else None

    def count_read(self, kind: str, resource_id: str) -> None:
        """Count a read of a resource, or one in which it would have shown were it not hidden."""
        key = (kind, resource_id)
        if key in self._hidden:
            self._hidden[key].count_read()
        elif key in self._work:
            self._work[key].countdown.count_read()

    def carry_out(self, changes: list[Change]) -> None:
        """Carry out what a draft came to; creations, changes and deletions take as long as the knobs say."""
        for change in changes:
            key = (change.kind.name, change.id)
            if change.after is None:
                self._delete(key)
                continue
            self._bodies[key] = deepcopy(change.after)
            if change.before is None:
                hidden = self._knobs.countdown("late_visibility", change.kind.name)
                if hidden is not None:
                    self._hidden[key] = hidden
                self._begin(key, "creating")
            elif _rest(change.kind, change.before) != _rest(change.kind, change.after):
                self._begin(key, "updating")

    def _begin(self, key: Key, phase: Phase) -> None:
        countdown = self._knobs.countdown("slow_creation" if phase == "creating" else "slow_modification", key[0])
        if countdown is not None:
            self._work[key] = _Work(phase, countdown)

    def _delete(self, key: Key) -> None:
        work = self._work.get(key)
        if work is not None and work.phase == "deleting":
            return
        countdown = self._knobs.countdown("slow_deletion", key[0])
        if countdown is None:
            self._remove(key)
        else:
            self._work[key] = _Work("deleting", countdown)

    def _remove(self, key: Key) -> None:
        for memory in (self._bodies, self._hidden, self._work):
            memory.pop(key, None)

    # Reading past every knob: for drafts, and for tests in the sandbox's own process.

    def find(self, kind: str, resource_id: str) -> Body | None:
        found = self._bodies.get((kind, resource_id))
        return deepcopy(found) if found is not None else None

    def items(self, kind: str) -> Iterator[tuple[str, Body]]:
        for (name, resource_id), body in list(self._bodies.items()):
            if name == kind:
                yield resource_id, deepcopy(body)

    def is_hidden(self, kind: str, resource_id: str) -> bool:
        return (kind, resource_id) in self._hidden


class Draft:
    """What one call sees and is about to do. What it returns may be changed freely: only `put` keeps a change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._new: dict[Key, Body | None] = {}
        self.shown: dict[Key, Body] = {}
        self.listed: set[str] = set()
        self.refused: Refused | None = None

    # Reading as a client reads: hidden things do not show, and what it showed the monitor hears of.

    def find(self, kind: str, resource_id: str) -> Body | None:
        """One resource as a client sees it, with its state of the moment; None where there is none, or it is hidden."""
        self._store.count_read(kind, resource_id)
        if self._store.is_hidden(kind, resource_id):
            return None
        body = self.peek(kind, resource_id)
        return None if body is None else self._show(kind, resource_id, body)

    def all(self, kind: str) -> list[tuple[str, Body]]:
        """List every resource of a kind that shows, the oldest first, with its id; call `shows` for those answered."""
        found = []
        for resource_id, _ in self._store.items(kind):
            self._store.count_read(kind, resource_id)
            body = self.peek(kind, resource_id)
            if body is not None and not self._store.is_hidden(kind, resource_id):
                found.append((resource_id, self._in_phase(kind, resource_id, body)))
        self.listed.add(kind)
        return found

    def shows(self, kind: str, resource_id: str) -> None:
        """Note that the answer shows a resource with its tags (an item of a page)."""
        body = self.peek(kind, resource_id)
        if body is not None:
            self.shown[(kind, resource_id)] = body

    # Reading past every knob, to decide what a call may do.

    def peek(self, kind: str, resource_id: str) -> Body | None:
        key = (kind, resource_id)
        if key in self._new:
            return deepcopy(self._new[key])
        return self._store.find(kind, resource_id)

    def everything(self, kind: str) -> list[tuple[str, Body]]:
        """Every resource of a kind, hidden ones too, as this draft leaves it."""
        ids = [resource_id for resource_id, _ in self._store.items(kind)]
        ids += [resource_id for name, resource_id in self._new if name == kind and resource_id not in ids]
        found = ((resource_id, self.peek(kind, resource_id)) for resource_id in ids)
        return [(resource_id, body) for resource_id, body in found if body is not None]

    def phase(self, kind: str, resource_id: str) -> Phase | None:
        return self._store.phase(kind, resource_id)

    # Writing

    def require(self, holds: bool, refused: Refused) -> None:
        """State a precondition of the call. Where it does not hold the call is refused, but only at its end: the
        monitor must see what it would have done."""
        if not holds and self.refused is None:
            self.refused = refused

    def put(self, kind: str, resource_id: str, body: Body) -> Body:
        """Make a resource, or change it; returns how a client sees it."""
        self._new[(kind, resource_id)] = deepcopy(body)
        return self._show(kind, resource_id, body)

    def remove(self, kind: str, resource_id: str) -> None:
        self._new[(kind, resource_id)] = None

    def changes(self) -> list[Change]:
        """What this draft comes to; a write that changed nothing is among them, for the monitor."""
        found = []
        for (kind, resource_id), after in self._new.items():
            before = self._store.find(kind, resource_id)
            if before is not None or after is not None:
                found.append(Change(self._store.kind(kind), resource_id, before, after))
        return found

    def _show(self, kind: str, resource_id: str, body: Body) -> Body:
        self.shown[(kind, resource_id)] = deepcopy(body)
        return self._in_phase(kind, resource_id, body)

    def _in_phase(self, kind: str, resource_id: str, body: Body) -> Body:
        phase = self._store.phase(kind, resource_id)
        return body if phase is None else self._store.kind(kind).in_phase(body, phase)


def _rest(kind: Kind, body: Body) -> Body:
    return {name: value for name, value in body.items() if name not in kind.passing | kind.tag_fields}
