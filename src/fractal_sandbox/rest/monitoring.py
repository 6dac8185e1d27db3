"""Between a draft and the safety monitor: what a call would do to tags and to the rest of each resource.

What is forbidden is decided in the sandbox's own `monitor_rules.py`; here a change of a resource is only put into its
words.
"""

from __future__ import annotations

from collections.abc import Mapping

from fractal_sandbox.calls import Call
from fractal_sandbox.monitor import Creation, Finding, Monitor, Touch
from fractal_sandbox.monitor_rules import LINK
from fractal_sandbox.monitor_rules import Change as TagChange
from fractal_sandbox.rest.kinds import Body, Kind
from fractal_sandbox.rest.store import Change, Draft, Store

__all__ = ["Watching", "reference"]


def reference(kind: Kind, resource_id: str) -> str:
    """The monitor's name of a resource."""
    return f"{kind.name}/{resource_id}"


class Watching:
    """Reports the agent's calls to the monitor. Runs under the cloud's lock."""

    def __init__(self, monitor: Monitor, store: Store) -> None:
        self._monitor = monitor
        self._store = store

    def check(self, call: Call, changes: list[Change]) -> list[Finding]:
        """Have a write checked right before it is carried out; return the races it would lose."""
        if call.actor != "agent" or not call.is_write:
            return []
        monitored = [change for change in changes if not change.kind.unmonitored]
        monitored = [change for change in monitored if not _goes_along(change, changes)]
        parts = [change for change in monitored if change.kind.speakers is not None]
        wholes = [change for change in monitored if change.kind.speakers is None]
        touches = [touch for change in wholes if change.before is not None for touch in self._touches(call, change)]
        touches += [touch for change in parts for touch in self._spoken_for(change, changes)]
        creations = [self._creation(call, change) for change in wholes if change.before is None]
        lost = self._monitor.check(call, touches, creations[0] if creations else None)
        for creation in creations[1:]:
            lost += self._monitor.check(call, [], creation)
        return lost

    def check_if_refused(self, call: Call, draft: Draft) -> None:
        """Have a write checked that a precondition is about to stop: it was wrong to send it, if it was (S16)."""
        if draft.refused is not None:
            self.check(call, draft.changes())

    def note(self, call: Call, draft: Draft) -> None:
        """Remember what an answer showed the agent."""
        if call.actor != "agent":
            return
        for (name, resource_id), body in draft.shown.items():
            kind = self._store.kind(name)
            if not kind.unmonitored:
                self._monitor.saw(call, reference(kind, resource_id), _tags(kind, body))
        for name in draft.listed:
            kind = self._store.kind(name)
            if not kind.unmonitored:
                names = {reference(kind, one): tuple(kind.place(body)) for one, body in draft.everything(name)}
                self._monitor.listed(call, name, {key: (place[0], place[1]) for key, place in names.items()})

    def _touches(self, call: Call, change: Change) -> list[Touch]:
        assert change.before is not None
        named = reference(change.kind, change.id)
        before = _tags(change.kind, change.before)
        by_link = change.kind.mark is not None
        if change.after is None:
            return [Touch(named, TagChange("delete"), before, is_link_resource=by_link)]
        after = _tags(change.kind, change.after)
        found = []
        if before != after:
            seen = self._monitor.last_seen(call, named)
            intended = _intended_change(change.kind, seen, before, after)
            found.append(Touch(named, _tagging(before, after), before, intended, is_link_resource=by_link))
        if _rest(change.kind, change.before) != _rest(change.kind, change.after) or not found:
            found.append(Touch(named, TagChange("modify"), before, is_link_resource=by_link))
        return found

    def _spoken_for(self, change: Change, changes: list[Change]) -> list[Touch]:
        """A part is checked as a change of everything that speaks for it; where nothing does, as nobody's."""
        assert change.kind.speakers is not None
        made = {(one.kind.name, one.id) for one in changes if one.before is None}
        keys = list(change.kind.speakers(change.before, change.after))
        if not keys:
            return [Touch(reference(change.kind, change.id), TagChange("modify"), {})]
        found = []
        for name, resource_id in keys:
            kind, body = self._store.kind(name), self._store.find(name, resource_id)
            if (name, resource_id) not in made:
                tags = {} if body is None else _tags(kind, body)
                by_link = kind.mark is not None
                found.append(Touch(reference(kind, resource_id), TagChange("modify"), tags, is_link_resource=by_link))
        return found

    def _creation(self, call: Call, change: Change) -> Creation:
        assert change.after is not None
        place = change.kind.place(change.after)
        twins = tuple(
            reference(change.kind, other)
            for other, body in self._store.items(change.kind.name)
            if change.kind.place(body) == place and self._store.phase(change.kind.name, other) != "deleting"
        )
        return Creation(
            change.kind.name,
            call.region,
            (place.name, place.scope),
            _tags(change.kind, change.after),
            twins,
            is_bare=change.kind.is_made_once,
            is_link_resource=change.kind.mark is not None,
        )


def _goes_along(change: Change, changes: list[Change]) -> bool:
    """Whether the cloud writes something only because of what it belongs to, which the same call is about."""
    body = change.before or change.after
    if change.kind.goes_with is None or body is None:
        return False
    return bool({other.id for other in changes if other is not change} & set(change.kind.goes_with(body)))


def _intended_change(
    kind: Kind, seen: Mapping[str, str] | None, before: Mapping[str, str], after: Mapping[str, str]
) -> TagChange | None:
    """What a change of tags was at the agent's last read, where that may be another one by now."""
    if seen is None or not (kind.replaces_tags or kind.carries_tags):
        return None
    if kind.replaces_tags:
        return _tagging(seen, after)
    now = _tagging(before, after)
    added = {key: value for key, value in now.added.items() if seen.get(key) != value}
    removed = {key: value for key, value in now.removed.items() if key in seen}
    return TagChange("tag", added, removed)


def _tagging(before: Mapping[str, str], after: Mapping[str, str]) -> TagChange:
    added = {key: value for key, value in after.items() if before.get(key) != value}
    removed: dict[str, str | None] = {key: value for key, value in before.items() if key not in after}
    return TagChange("tag", added, removed)


def _tags(kind: Kind, body: Body) -> dict[str, str]:
    """What speaks for a resource: its tags, or the mark of the link that made it; {} where nothing does."""
    if kind.mark is not None:
        mark = kind.mark(body)
        return {LINK: mark} if mark else {}
    return dict(kind.tags(body)) if kind.tags is not None and kind.offered and kind.goes_with is None else {}


def _rest(kind: Kind, body: Body) -> Body:
    return {name: value for name, value in body.items() if name not in kind.passing | kind.tag_fields}
