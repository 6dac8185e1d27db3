"""How a component is doing, in the words of a person on call: who holds it, since when, and what the agent does now.

The status and the tags stand below these words, and the agent's own message beside them. Pure: now is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from fractal_cloud.model.status import Stance, Status

Component = Mapping[str, Any]

READ_ONLY: Final = "The agent reads it and changes nothing."


def clock_time(moment: datetime | str, now: datetime) -> str:
    """A time of today as ``02:14 UTC``; of any other day with its date."""
    found = _moment(moment)
    return f"{found:%H:%M} UTC" if found.date() == now.astimezone(UTC).date() else dated_time(moment)


def dated_time(moment: datetime | str) -> str:
    """A time with its date, for what is kept and read on another day: ``2026-11-19 02:14 UTC``."""
    return f"{_moment(moment):%Y-%m-%d %H:%M} UTC"


def in_words(component: Component, now: datetime) -> str:
    """What a component's status means, as the API shows the component: one to three sentences.

    What only the agent knows (why it failed, what it waits for) is in the component's message and not repeated here.
    """
    sentences = [*_STATUS[Status(component["status"])](component, now)]
    if component.get("stale"):
        sentences.append(_stale(component, now))
    return " ".join(sentences)


def _moment(moment: datetime | str) -> datetime:
    return (datetime.fromisoformat(moment) if isinstance(moment, str) else moment).astimezone(UTC)


def _stale(component: Component, now: datetime) -> str:
    read = component.get("lastRead")
    return (
        f"Not read since {clock_time(read, now)}: this may be old." if read else "Nobody has read it: this may be old."
    )


def _held(component: Component, now: datetime) -> list[str]:
    override = component.get("override")
    if override is None:
        return ["In manual override.", READ_ONLY]
    by, reason, until = override.get("by"), override.get("reason"), override.get("until")
    words = f"Held by hand since {clock_time(override['since'], now)}" + (f" by {by}" if by else "")
    if until:
        overdue = bool(component.get("overdue")) or _moment(until) <= now
        words += f", until {clock_time(until, now)}" + (", which has passed" if overdue else "")
    said = str(reason).strip() if reason else ""
    sentences = [f"{words}: {said}" + ("" if said.endswith((".", "!", "?")) else ".") if said else f"{words}."]
    if not by:
        sentences.append("Who took it over is not known: it was found so in the cloud.")
    if override.get("readoptedBy"):
        return [*sentences, f"Handed back by {override['readoptedBy']}: managed again once it is as declared."]
    return [*sentences, READ_ONLY]


def _active(component: Component, _now: datetime) -> list[str]:
    generation, observed = component["generation"], component["observedGeneration"]
    if observed < generation:
        return [f"As declared in generation {observed}; generation {generation} is not applied yet."]
    if (component.get("outputFields") or {}).get("drift"):
        return ["There, and not yet as declared."]
    return ["As declared.", "The agent keeps it so."]


def _imported(component: Component, _now: datetime) -> list[str]:
    owner = component.get("owner")
    if owner and owner != component["liveSystemId"]:
        return [f"Owned by {owner}: this LiveSystem only reads it."]
    return ["Read only: this LiveSystem never changes it."]


def _missing(component: Component, _now: datetime) -> list[str]:
    if component.get("stance") == Stance.MANAGED.value:
        return ["Gone from the cloud.", "The agent creates nothing in its place until somebody deploys or restores it."]
    return ["Not in the cloud.", "The agent only reads it, so it does not create it."]


def _failed(component: Component, _now: datetime) -> list[str]:
    if component["observedGeneration"] == 0 and not component.get("resourceId"):
        return ["Could not be created."]
    return ["Could not be made as declared."]


def _waiting(component: Component, before: str) -> list[str]:
    names = component.get("waitsFor") or ()
    return [f"Waits for {', '.join(names)} {before}."] if names else []


def _creating(component: Component, _now: datetime) -> list[str]:
    return _waiting(component, "before it is created") or ["Being created."]


def _changing(_component: Component, _now: datetime) -> list[str]:
    return ["Being made as declared."]


def _returning(_component: Component, _now: datetime) -> list[str]:
    return ["Being handed back: the agent makes it as declared, and then manages it again."]


def _deleting(_component: Component, _now: datetime) -> list[str]:
    return ["Being deleted."]


def _deleted(_component: Component, _now: datetime) -> list[str]:
    return ["Deleted."]


_STATUS: Final = {
    Status.MANUAL_OVERRIDE: _held,
    Status.ACTIVE: _active,
    Status.EXTERNALLY_MANAGED: _imported,
    Status.MISSING: _missing,
    Status.FAILED: _failed,
    Status.INSTANTIATING: _creating,
    Status.MUTATING: _changing,
    Status.RECONCILE_REQUESTED: _returning,
    Status.DELETING: _deleting,
    Status.DELETED: _deleted,
}
