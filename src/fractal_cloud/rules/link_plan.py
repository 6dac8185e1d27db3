"""What a deploy would do with links: laid beside what stands, and nothing asked of anybody (C6). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fractal_cloud.model.wire import PlannedLink, PlannedLinkAction
from fractal_cloud.rules.drift import Difference

Settings = Mapping[str, Any]


def plan_links(
    existing: Mapping[str, Settings], declared: Mapping[str, Settings], waits: Mapping[str, str]
) -> Iterator[PlannedLink]:
    """The links of one source, by target: those that stand, and those that would.

    ``waits``: why a link that would stand is not carried out, or not yet: consent, an override, nobody who can.
    """
    for target in dict.fromkeys((*declared, *existing)):
        changes = _changes(existing.get(target, {}), declared.get(target, {}))
        if target not in declared:
            action = PlannedLinkAction.REMOVE
        elif target not in existing:
            action = PlannedLinkAction.ADD
        else:
            action = PlannedLinkAction.CHANGE if changes else PlannedLinkAction.NOTHING
        yield PlannedLink(target=target, action=action, changes=changes, waits=waits.get(target, ""))


def _changes(existing: Settings, declared: Settings) -> dict[str, Any]:
    names = sorted({*existing, *declared})
    pairs = ((name, declared.get(name), existing.get(name)) for name in names)
    return {name: Difference(new, old).to_json() for name, new, old in pairs if new != old}
