"""What deleting a LiveSystem would do, computed beforehand from what is remembered (O7, O14). Pure.

It predicts what the agent's own decision (O10) will be if nothing changes in the cloud until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fractal_cloud.model.status import Stance


class Ending(StrEnum):
    """What becomes of one component's resource."""

    DELETED = "deleted"
    LEFT = "left"
    DROPPED = "dropped"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Deletable:
    """One component before the deletion.

    ``was_observed``: an agent has read it, and found it or found nothing. ``untouchable``: its type cannot carry tags,
    or it is ``importOnly``. ``created_once``: it says `createOnce` (S1b). ``part_of``: the component that it is a part
    of (S25). ``importers``: other LiveSystems that declare the same resource. ``links``: components
    elsewhere whose links lead to it (``ls-team-b/producer``).
    """

    component_id: str
    type: str
    stance: Stance
    owner: str | None = None
    resource_id: str | None = None
    is_absent: bool = False
    was_observed: bool = True
    untouchable: bool = False
    holds_data: bool = False
    dependencies: tuple[str, ...] = ()
    importers: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    created_once: bool = False
    part_of: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """What becomes of one component, and why."""

    component: Deletable
    ending: Ending
    message: str


_ABSENT: Final = "its name finds nothing: it ends once a read of {} proves it gone; if it was renamed, it is left"


def preview(live_system_id: str, declared: Iterable[Deletable]) -> list[Ended]:
    """What becomes of every component; what something left behind depends on is left too."""
    components = {item.component_id: item for item in declared}
    endings = {name: _ending(live_system_id, item) for name, item in components.items()}
    for name, item in components.items():
        if item.part_of in components and endings[name][0] in (Ending.DELETED, Ending.LEFT, Ending.DROPPED):
            endings[name] = _with_parent(item.part_of, endings[item.part_of][0])
    _leave_what_is_needed(components, endings)
    return [Ended(item, *endings[name]) for name, item in components.items()]


def _with_parent(parent: str, ending: Ending) -> tuple[Ending, str]:
    """What becomes of a part whose parent is deleted too (S25)."""
    match ending:
        case Ending.LEFT:
            return Ending.LEFT, f"{parent!r}, which it is a part of, is left in the cloud"
        case Ending.DROPPED:
            return (
                Ending.DROPPED,
                f"{parent!r}, which it is a part of, is not owned here: the reference is dropped",
            )
        case Ending.UNKNOWN:
            return Ending.UNKNOWN, f"it goes as {parent!r} does, which no agent has read yet"
        case _:
            return Ending.DELETED, f"deleted with {parent!r}, which it is a part of"


def _ending(live_system_id: str, item: Deletable) -> tuple[Ending, str]:
    if item.is_absent and (item.resource_id is None or item.untouchable):
        return Ending.ABSENT, "there is nothing in the cloud to delete"
    if item.is_absent:
        return Ending.ABSENT, _ABSENT.format(item.resource_id)
    if not item.was_observed or item.resource_id is None:
        return Ending.UNKNOWN, "no agent has read it yet: what becomes of it is decided when one does"
    if item.created_once:
        return Ending.LEFT, "it cannot carry tags: it was created once, and stays in the cloud"
    if item.untouchable:
        return Ending.DROPPED, "it is only ever read: the reference is dropped"
    if item.owner is not None and item.owner != live_system_id:
        return Ending.DROPPED, f"{item.owner!r} owns it: the reference is dropped"
    if item.stance is Stance.IMPORTED:
        return Ending.DROPPED, "it is imported: the reference is dropped"
    if item.stance is Stance.OVERRIDE:
        return Ending.LEFT, "it is in manual override: it stays in the cloud, with its tags"
    if item.part_of and item.stance is not Stance.MANAGED:
        return Ending.LEFT, "nobody knows that it was made here: it stays in the cloud"
    if item.owner is None and not item.part_of:
        return Ending.LEFT, "it bears no owner tag: it stays in the cloud"
    return Ending.DELETED, "deleted, if nobody takes it over before"


def _leave_what_is_needed(components: Mapping[str, Deletable], endings: dict[str, tuple[Ending, str]]) -> None:
    reached = [name for name, (ending, _) in endings.items() if ending is Ending.LEFT]
    while reached:
        name = reached.pop()
        for needed in components[name].dependencies:
            if needed in endings and endings[needed][0] is Ending.DELETED:
                endings[needed] = (Ending.LEFT, f"{name!r} is left in the cloud and depends on it")
                reached.append(needed)


def missed(endings: Iterable[Ended]) -> list[Ended]:
    """Those of which importers lose something."""
    return [end for end in endings if end.ending is Ending.DELETED and end.component.importers]


def warning(endings: Iterable[Ended]) -> str | None:
    """The warning of O7 with the true numbers, or None where no importer loses anything."""
    shared = missed(endings)
    others = {importer for end in shared for importer in end.component.importers}
    if not shared:
        return None
    owned = "1 resource that is" if len(shared) == 1 else f"{len(shared)} resources that are"
    by, those = ("1 other LiveSystem", "that LiveSystem")
    if len(others) > 1:
        by, those = (f"{len(others)} other LiveSystems", "those LiveSystems")
    references = "that reference" if len(shared) == 1 else "those references"
    return (
        f"This LiveSystem owns {owned} imported by {by}. Deleting will cause {those} to report Missing on {references}."
    )
