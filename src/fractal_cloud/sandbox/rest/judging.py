"""Between a draft and the safety monitor: what a call would do to tags and to the rest of each resource.

What is forbidden is decided in the sandbox's own `judging.py`; here a change of a resource is only put into its words.
"""

from __future__ import annotations

from collections.abc import Mapping

from fractal_cloud.sandbox.calls import Call
from fractal_cloud.sandbox.judging import Change as Judged
from fractal_cloud.sandbox.monitor import Creation, Finding, Monitor, Touch
from fractal_cloud.sandbox.rest.kinds import Body, Kind
from fractal_cloud.sandbox.rest.store import Change, Draft, Store

__all__ = ["Watching", "reference"]


def reference(kind: Kind, resource_id: str) -> str:
    """The monitor's name of a resource."""
    return f"{kind.name}/{resource_id}"


class Watching:
    """Tells the monitor about the agent's calls. Runs under the cloud's lock."""

    def __init__(self, monitor: Monitor, store: Store) -> None:
        self._monitor = monitor
        self._store = store

    def judge(self, call: Call, changes: list[Change]) -> list[Finding]:
        """Have a write judged right before it is carried out; return the races it would lose."""
        if call.actor != "agent" or not call.is_write:
            return []
        judged = [change for change in changes if change.kind.judged]
        touches = [touch for change in judged if change.before is not None for touch in self._touches(call, change)]
        creations = [self._creation(call, change) for change in judged if change.before is None]
        lost = self._monitor.judge(call, touches, creations[0] if creations else None)
        for creation in creations[1:]:
            lost += self._monitor.judge(call, [], creation)
        return lost

    def judge_if_refused(self, call: Call, draft: Draft) -> None:
        """Have a write judged that a precondition is about to stop: it was wrong to send it, if it was (S16)."""
        if draft.refused is not None:
            self.judge(call, draft.changes())

    def note(self, call: Call, draft: Draft) -> None:
        """Remember what an answer showed the agent."""
        if call.actor != "agent":
            return
        for (name, resource_id), body in draft.shown.items():
            kind = self._store.kind(name)
            if kind.judged:
                self._monitor.saw(call, reference(kind, resource_id), _tags(kind, body))
        for name in draft.listed:
            kind = self._store.kind(name)
            if kind.judged:
                names = {reference(kind, one): tuple(kind.place(body)) for one, body in draft.everything(name)}
                self._monitor.listed(call, name, {key: (place[0], place[1]) for key, place in names.items()})

    def _touches(self, call: Call, change: Change) -> list[Touch]:
        assert change.before is not None
        named = reference(change.kind, change.id)
        before = _tags(change.kind, change.before)
        if change.after is None:
            return [Touch(named, Judged("delete"), before)]
        after = _tags(change.kind, change.after)
        found = []
        if before != after:
            seen = self._monitor.last_seen(call, named)
            found.append(Touch(named, _tagging(before, after), before, _meant(change.kind, seen, before, after)))
        if _rest(change.kind, change.before) != _rest(change.kind, change.after) or not found:
            found.append(Touch(named, Judged("modify"), before))
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
            change.kind.name, call.region, (place.name, place.scope), _tags(change.kind, change.after), twins
        )


def _meant(
    kind: Kind, seen: Mapping[str, str] | None, before: Mapping[str, str], after: Mapping[str, str]
) -> Judged | None:
    """What a change of tags was at the agent's last read, where that may be another one by now."""
    if seen is None or not (kind.replaces_tags or kind.carries_tags):
        return None
    if kind.replaces_tags:
        return _tagging(seen, after)
    now = _tagging(before, after)
    added = {key: value for key, value in now.added.items() if seen.get(key) != value}
    removed = {key: value for key, value in now.removed.items() if key in seen}
    return Judged("tag", added, removed)


def _tagging(before: Mapping[str, str], after: Mapping[str, str]) -> Judged:
    added = {key: value for key, value in after.items() if before.get(key) != value}
    removed: dict[str, str | None] = {key: value for key, value in before.items() if key not in after}
    return Judged("tag", added, removed)


def _tags(kind: Kind, body: Body) -> dict[str, str]:
    """The tags of a resource; what cannot carry any counts as nobody's, so that every write of it is a violation."""
    return dict(kind.tags(body)) if kind.tags is not None else {}


def _rest(kind: Kind, body: Body) -> Body:
    return {name: value for name, value in body.items() if name not in kind.passing | kind.tag_fields}
