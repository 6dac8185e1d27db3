"""What a component says of itself: cause first, values quoted, one line, and what to do next. The same problem has the
same words everywhere. Nothing here decides.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.host import called
from fractal_cloud.model.observed import Setback
from fractal_cloud.model.reference import OutputReference
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.situation import Hold
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.visible_text import visible
from fractal_cloud.model.wire import JournalEntry, OperatorRequest
from fractal_cloud.rules.diff_words import written
from fractal_cloud.rules.drift import Difference, Drift
from fractal_cloud.rules.situate import Claims, View

HANDSHAKE = (
    "add managed-by: fractal-cloud and fractal-cloud: reconcile; "
    "`fractal glass` prints the commands, as its cloud spells them"
)
IN_OVERRIDE = "In manual override"
ONLY_READ = "the agent reads it and changes nothing"
NEVER_OURS = "it was not created for this LiveSystem, and its tags are frozen: it can never be adopted"


def in_step() -> str:
    """Declared and actual agree."""
    return "as declared"


def left_tags(names: Collection[str]) -> str:
    """Tags differ that are not corrected (T10)."""
    return (
        f"{', '.join(names)} differ{'s' if len(names) == 1 else ''}, and {'is' if len(names) == 1 else 'are'} only "
        "reported: this provider replaces all tags at once or takes none after the creation, so that ours are written "
        "at creation and in re-adoption alone"
    )


def readopted() -> str:
    """The handshake is being completed."""
    return "as declared: handing back to the agent"


def unreadable(error: CloudError) -> str:
    """A read failed (S0)."""
    return f"cannot be read, so nothing is decided: {error.message}"


def deletion_unreadable(tracked: Tracked, error: CloudError) -> str:
    """A deletion waits because a read failed; where that does not pass by itself, with the way out (O20)."""
    if not error.needs_person:
        return unreadable(error)
    return f"{unreadable(error)}; {forget(tracked.live_system_id, tracked.component_id)}"


def forget(live_system_id: str, component_id: str) -> str:
    """How a deletion is ended that waits for what will not come back (O20)."""
    return (
        f"to end the deletion without it: `fractal delete {live_system_id} --forget {component_id} --reason …`, "
        "which leaves it, not confirmed"
    )


def ways_out(tracked: Tracked, *, frozen: bool, is_part: bool = False) -> str:
    """What an operator may do about a deletion that something blocks (O20); a part has its parent's tags (S25)."""
    if is_part:
        return (
            "remove what blocks it; or remove the managed-by tag of what it is a part of, to leave both in the cloud; "
            f"or {_forget_command(tracked)}"
        )
    let_go = _command(tracked, "--break") if frozen else "remove its managed-by tag"
    move = "" if frozen else "or give it away by its fractal-cloud-owner tag, "
    return f"remove what blocks it; or {let_go} to leave it in the cloud, {move}or {_forget_command(tracked)}"


def _forget_command(tracked: Tracked) -> str:
    return f"`fractal delete {tracked.live_system_id} --forget {tracked.component_id} --reason …`"


@dataclass(frozen=True, slots=True)
class Realm:
    """How a realm is named to people: its provider, what declarations call it (empty: the usual one), and for whom."""

    provider: str
    name: str
    environment: str

    @property
    def title(self) -> str:
        """Where it is looked for."""
        return f"{self.provider} {self.name!r}" if self.name else self.provider

    def accept(self, realm: str) -> str:
        """The command that accepts another one in its place."""
        name = shlex.quote(visible(self.name or realm))
        options = f"--provider {shlex.quote(self.provider)} --environment {shlex.quote(self.environment)} --reason …"
        # What an agent or a cloud calls a realm does not become an option of the command.
        words = f"{options} -- {name}" if name.startswith(("-", "'-")) else f"{name} {options}"
        return f"`fractal realm accept {words}`"


def other_realm(realm: Realm, before: str, now: str) -> str:
    """Another realm answers where the one meant was (S26)."""
    return (
        f"{realm.title} is now {now!r}, it was {before!r}: nothing is created, changed or deleted there, and nothing "
        f"counts as gone; lead it back to {before!r}, or, if it was replaced for good, run {realm.accept(now)}"
    )


def realm_not_confirmed(provider: str, name: str, why: str) -> str:
    """The cloud does not say which realm is reached (S26)."""
    title = Realm(provider, name, "").title
    return f"which realm is reached as {title} could not be confirmed: {why}"


def in_recovery(live_system_id: str, error: CloudError | None = None) -> str:
    """The control plane was restored from a backup, and nobody has confirmed the LiveSystem yet (C9)."""
    why = (
        "this control plane was restored from a backup; nothing is written until the LiveSystem is deployed again or "
        f"confirmed: run `fractal restored confirm {live_system_id}`"
    )
    return why if error is None else f"{why}; it cannot be read now: {error.message}"


def generation_applied(generation: int, observed: int, status: str) -> str:
    """A component's generation, and how far it got. Only what is Active was applied: the outcome of a generation may
    also be that nothing is written (S22).
    """
    if observed >= generation:
        return f"{generation}, {'applied' if status == Status.ACTIVE else 'observed'}"
    return f"{generation}, not applied yet" + (f" (observed: {observed})" if observed else "")


def unjudged(reason: str) -> str:
    """Something went wrong while one component was judged, in a way nobody expected (S24)."""
    return f"it cannot be judged, and nothing is written to it: {reason}; report this to whoever maintains its offer"


def given_up(entry: JournalEntry) -> str:
    """A write that did not return may still take effect: nothing else is written meanwhile (S24)."""
    return f"{entry.verb} was given up: {entry.error}; nothing is written to it until that would have shown"


def unswept(names: Iterable[str], error: CloudError, *, seen_before: bool) -> str:
    """Parameters that are read one by one could not be read this time (S23)."""
    shown = "shown as last seen" if seen_before else "not compared until it can be read"
    return f"{', '.join(sorted(names))} could not be read: {error.message}; {shown}"


def creating(tracked: Tracked) -> str:
    """A creation is under way."""
    intent = tracked.memory.intent
    if intent is None:
        return "creating"
    if intent.resource_id is not None:
        return "creating: the cloud accepted the last call, but it does not show: finishing it"
    return "creating: the answer to the last try was lost, finishing it"


def tagging() -> str:
    """The second half of a creation whose call could not carry tags."""
    return "created: putting its tags on"


def tagging_lost() -> str:
    """Why something that was created here is in override from its first hour on (S17)."""
    return (
        "it was created and its tags were being put on when the agent ended or the answer was lost; it carries none, "
        "and they may have been taken off since"
    )


def creation_lost() -> str:
    """Why what bears the name of an open creation is in override, where no tags could travel in the call (S17)."""
    return (
        "its creation was begun and how that ended is not known; what bears its name carries no tags of ours, so that "
        "it may be somebody else's"
    )


def waits_for(
    component_ids: Iterable[str], unfilled: Iterable[OutputReference] = (), unfound: Iterable[str] = ()
) -> str:
    """Dependencies come first, and what is referred to; empty where nothing is missing."""
    fields: dict[str, list[str]] = {component_id: [] for component_id in component_ids}
    for reference in unfilled:
        fields.setdefault(reference.component, []).append(reference.field)
    named = [f"{name} ({', '.join(fields)})" if fields else name for name, fields in fields.items()]
    return "; ".join(f"waits for {what}" for what in (", ".join(named), *unfound) if what)


def waits_for_missing(error: CloudError) -> str:
    """A write refers to something that is not there, and that nobody declares: it is tried again until it is."""
    return f"waits for something that it refers to and that is not there: {error.message}"


def waits_for_renamed(found: Mapping[str, Sighting]) -> str:
    """What it needs bears another name in the cloud, so nothing is made in it until a person settles that (S19)."""
    named = ", ".join(f"{name} ({one.resource_id} is named {one.name!r})" for name, one in sorted(found.items()))
    return f"waits for {named}: name it back, or declare a new component"


def rival(live_system_id: str) -> str:
    """Another LiveSystem is creating the same resource right now (O2)."""
    return f"{live_system_id!r} is creating it: it will be imported"


def tried_again(message: str) -> str:
    """A creation that was refused is asked for again, and is not over yet (S21)."""
    return f"{message}; it is being tried again"


def window(tracked: Tracked) -> str:
    """A lost create answer may still become visible (S17)."""
    intent = tracked.memory.intent
    since = f"{intent.at:%H:%M:%S}" if intent is not None else "before"
    if intent is not None and intent.resource_id is not None:
        return f"creating: the cloud accepted the call of {since}, and does not show it yet"
    return f"the answer to the create call of {since} was lost: waiting until it would be visible, then trying again"


def at_work(sighting: Sighting) -> str:
    """The cloud is still at work (S13)."""
    work = {
        Condition.CREATING: "is creating it",
        Condition.CHANGING: "is changing it",
        Condition.DYING: "is deleting it",
    }.get(sighting.condition, "is at work")
    return f"the cloud {work}" + (f": {sighting.detail}" if sighting.detail else "")


def broken(sighting: Sighting) -> str:
    """The cloud itself calls it failed."""
    return f"the cloud reports {sighting.resource_id} as failed: {sighting.detail or 'no reason given'}; look there"


def reconciling(drift: Drift) -> str:
    """What is being brought back."""
    return f"reconciling {differences(drift)}" if drift else "reconciling"


def reading_on() -> str:
    """Not every declared parameter has been read yet."""
    return "reading the rest of its parameters before it is handed back"


def noticed(tracked: Tracked, drift: Drift, cycle: timedelta, *, frozen: bool) -> str:
    """What would change is shown before anything is written (S12a)."""
    how = _command(tracked, "--break") if frozen else "remove managed-by"
    return f"will change {differences(drift)} after one cycle ({cycle.total_seconds():g} s): {how} to stop it"


def _command(tracked: Tracked, option: str) -> str:
    """What people type where no tag can be changed."""
    return f"`fractal glass {tracked.live_system_id} {tracked.component_id} {option}`"


def moment(at: datetime) -> str:
    """A time that may be days ago."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def differences(drift: Drift) -> str:
    """Everything that is written, in one line: lists and maps by their elements."""
    return ", ".join(written(name, d.declared, d.actual) for name, d in sorted(drift.items()))


def not_visible(drift: Drift) -> str:
    """A write was accepted and reads back otherwise; it may only not show yet (S17, S27)."""
    return f"{differences(drift)} was written and reads back otherwise: waiting until it would show"


def set_back(lost: Iterable[Setback]) -> str:
    """Values of ours that somebody sets back each time (S27)."""
    return "; ".join(map(_set_back, lost))


def _set_back(one: Setback) -> str:
    who = one.by or "somebody or something outside Fractal Cloud"
    stands = f"; it has been as declared since {one.since:%H:%M:%S} UTC" if one.since is not None else ""
    return (
        f"{one.parameter} was set back {len(one.at)} times by {who}, the last time at {one.at[-1]:%H:%M:%S} UTC, and "
        f"is no longer corrected{stands}: declare ignoreDrift: [{one.parameter}], stop what sets it back and deploy "
        "again, or break the glass"
    )


def cannot_change(tracked: Tracked, fixed: Drift) -> str:
    """Parameters the cloud cannot change in place, the name, or a word of the scope (S18)."""
    fixed = {**fixed, **_moved(tracked)}
    named = "; ".join(
        f"{name} is {_quoted(d.actual)} and cannot become {_quoted(d.declared)} in place"
        for name, d in sorted(fixed.items())
    )
    return f"{named}: declare a new component, or delete this one and deploy again"


def _moved(tracked: Tracked) -> Drift:
    here, there = tracked.identity, tracked.declared_identity
    pairs: tuple[tuple[str, Any, Any], ...] = (
        ("name", there.name, here.name),
        ("place", there.scope.place, here.scope.place),
        ("parent", there.parent, here.parent),
        ("realm", called(tracked.realm_names[1]), called(tracked.realm_names[0])),
    )
    return {name: Difference(declared, actual) for name, declared, actual in pairs if declared != actual}


def renamed(tracked: Tracked, found: Sighting) -> str:
    """The resource was found by its id under another name, or in another place (S19)."""
    if found.name == tracked.identity.name and found.moved_to:
        return (
            f"{found.resource_id} was moved to {found.moved_to}, and {tracked.identity.scope.place} is declared: "
            "move it back, or declare a new component"
        )
    return (
        f"name is {found.name!r} on {found.resource_id} and {tracked.identity.name!r} in the declaration: "
        "name it back, or declare a new component"
    )


GENERATED_LEFT: Final = "waits until its generated secret is deleted"
ACCEPTED_AND_NOT_DONE: Final = "the cloud accepted it, and a later read does not show it; why is not known"


def orphaned(tracked: Tracked, orphan: Sighting, *, frozen: bool) -> str:
    """A resource of this LiveSystem bears a name nobody declares (S15)."""
    how = "declare it too, or delete it there" if frozen else "name it back, or remove its fractal-cloud-owner tag"
    return (
        f"not creating {tracked.identity.name!r} while {orphan.resource_id} ({orphan.name!r}), "
        f"which this LiveSystem owns, is named by no component: {how}"
    )


def breaking_glass(request: OperatorRequest) -> str:
    """Glass broken through the product (G13)."""
    return f"{request.by} broke the glass: removing managed-by" + (f" ({request.reason})" if request.reason else "")


def force_pushed(request: OperatorRequest) -> str:
    """A Force Push is being carried out (G10)."""
    return f"Force Push by {request.by}: reconciling to the declaration"


def transferring(request: OperatorRequest) -> str:
    """Its owner is being moved (O8)."""
    reason = f" ({request.reason})" if request.reason else ""
    return f"{request.by} moves it to {request.to!r}: writing fractal-cloud-owner{reason}"


def gone(tracked: Tracked) -> str:
    """Proven to be gone, or never there (O17)."""
    if tracked.memory.stance is Stance.IMPORTED:
        return "reference dropped, nothing deleted: the resource is gone"
    return "deleted" if tracked.memory.resource_id is not None else "nothing to delete: it is not there"


def unproven(tracked: Tracked) -> str:
    """Its name finds nothing, and nothing proves yet that it is gone (O17)."""
    return (
        f"deleting: {tracked.memory.resource_id or tracked.identity.name!r} is not listed any more; "
        "waiting until a direct read proves that it is gone"
    )


def deleting() -> str:
    """A deletion is under way."""
    return "deleting"


def deletion_waits(dependents: Iterable[str]) -> str:
    """Dependents are deleted first."""
    return f"deletion waits until {', '.join(dependents)} {'is' if len(tuple(dependents)) == 1 else 'are'} gone"


def deletion_noticed(tracked: Tracked, cycle: timedelta, *, frozen: bool) -> str:
    """What was just taken over is not deleted before a person could see it (S12a)."""
    how = _command(tracked, "--break") if frozen else "remove managed-by"
    return f"will be deleted after one cycle ({cycle.total_seconds():g} s): {how} to keep it"


def dropped(tracked: Tracked, view: View, *, frozen: bool, taggable: bool) -> str:
    """Only a reference was dropped (O3, O10)."""
    if view.fitting:
        return f"reference dropped, nothing deleted: {_named(view)} share the name {tracked.identity.name!r}"
    if tracked.import_only:
        return "reference dropped, nothing deleted: the component is importOnly"
    seen = view.sighting or view.elsewhere
    if seen is None:
        return f"reference dropped, nothing deleted: {tracked.identity.name!r} is not there"
    if not taggable:
        return "reference dropped, nothing deleted: its type cannot carry tags, so it is only ever read"
    owner = seen.protocol.owner
    if frozen and owner in (None, tracked.live_system_id):
        return f"reference dropped, nothing deleted: {NEVER_OURS}"
    if owner is None:
        return f"left in the cloud: {seen.resource_id} has no fractal-cloud-owner tag, so it is nobody's to delete"
    return f"reference dropped, nothing deleted: {owner!r} owns it"


def left(tracked: Tracked, view: View, *, is_bound: bool) -> str:
    """What is in override stays in the cloud (O10); so does what bears another name, or is another resource."""
    sighting = view.sighting or view.elsewhere
    if sighting is None:
        raise AssertionError("only what was found is left")
    if view.elsewhere is not None:
        return f"left in the cloud: {_elsewhere(tracked, sighting)}"
    if not is_bound:
        asked = tracked.bound.resource_id if tracked.bound is not None else tracked.memory.resource_id
        return (
            f"left in the cloud: {sighting.resource_id}: it bears the name {sighting.name!r} now, "
            f"but the deletion was requested for {'an earlier ' if asked == sighting.resource_id else ''}{asked}"
        )
    tags = sighting.protocol
    if tags.other_manager is not None:
        why = f"managed-by is {tags.other_manager!r}"
    elif tags.is_managed:
        why = "it is in manual override, and nobody completed the handshake"
    else:
        why = "managed-by is absent"
    return f"left in the cloud: {sighting.resource_id}: {why}"


def _elsewhere(tracked: Tracked, found: Sighting) -> str:
    """A resource that is not where, or not named as, its component says (O17)."""
    if found.name == tracked.identity.name and found.moved_to:
        return f"{found.resource_id}: it was moved to {found.moved_to} from {tracked.identity.scope.place}"
    return f"{found.resource_id}: it is named {found.name!r} now, and {tracked.identity.name!r} in the declaration"


def left_created_once(sighting: Sighting) -> str:
    """What cannot carry tags is never deleted, also where it was created here (S1b)."""
    return f"left in the cloud: {sighting.resource_id}: it cannot carry tags, so it was created once and is only read"


def left_part(sighting: Sighting, hold: Hold, parent: str) -> str:
    """A part is left with its parent, and where nobody knows that it was made here (S25)."""
    match hold:
        case Hold.OVERRIDE:
            why = f"{parent!r}, which it is a part of, is in manual override"
        case Hold.LEFT:
            why = f"{parent!r}, which it is a part of, is left"
        case _:
            why = f"it was neither created nor taken over here, and {parent!r}, which it is a part of, stays"
    return f"left in the cloud: {sighting.resource_id}: {why}"


def goes_with_parent(parent: str) -> str:
    """A part is deleted with its parent, or right before it (S25)."""
    return f"goes with {parent!r}, which it is a part of"


def creation_noticed(tracked: Tracked, cycle: timedelta) -> str:
    """A part is not created before a person could see that it would be (S12a, S25)."""
    return f"will create {tracked.identity.name!r} after one cycle ({cycle.total_seconds():g} s)"


def held_part(hold: Hold, parent: str, view: View, claims: Claims) -> str:
    """Why a part is only read: what its parent says (S25)."""
    gone = "" if view.sighting is not None else "it is absent; "
    match hold:
        case Hold.OVERRIDE:
            return f"{gone}{parent!r}, which it is a part of, is in manual override: {ONLY_READ}. Hand {parent!r} back"
        case Hold.OTHERS:
            owner = view.sighting.protocol.owner if view.sighting is not None else claims.parent_owner
            whose = f"is owned by {owner!r}" if owner is not None else "is only read here"
            return f"{gone}{parent!r}, which it is a part of, {whose}: read only"
        case _:
            return f"waits for {parent!r}, which it is a part of, and which is not ready to be written to"


def left_for(sighting: Sighting, dependents: Iterable[str]) -> str:
    """What a left resource depends on is left too (O10)."""
    return f"left in the cloud: {sighting.resource_id}: {', '.join(dependents)}, which was left, depends on it"


def _named(view: View) -> str:
    return ", ".join(sighting.resource_id for sighting in view.fitting)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def lost_tagging(tracked: Tracked) -> str:
    """Why nobody can know if its tags were ever there, remembered with the override; empty where that is known."""
    intent, override = tracked.memory.intent, tracked.memory.override
    if intent is not None and intent.tagging:
        return tagging_lost() if intent.tagging == "begun" else creation_lost()
    reason = override.reason if override is not None and override.by is None else ""
    return reason if reason in (tagging_lost(), creation_lost()) else ""


def explain(rule: str, tracked: Tracked, view: View, claims: Claims, *, frozen: bool) -> str:
    """Why a rule leaves a component as it is; ``frozen``: nobody can change a tag of it."""
    if view.sighting is None:
        if frozen and rule == "S14":
            return f"several resources are named {tracked.identity.name!r} ({_named(view)}): delete all but one"
        return _explain_absence(rule, tracked, view, claims)
    if frozen and rule in ("S6", "S6a", "S11", "S11b"):
        return _explain_frozen(rule, tracked, view.sighting)
    moved = f"; {cannot_change(tracked, {})}" if tracked.identity != tracked.declared_identity else ""
    return f"{_explain_presence(rule, tracked, view.sighting, claims)}{moved}"


def _explain_frozen(rule: str, tracked: Tracked, sighting: Sighting) -> str:
    moved = f"; {cannot_change(tracked, {})}" if tracked.identity != tracked.declared_identity else ""
    match rule:
        case "S6":
            return f"owned by {sighting.protocol.owner!r}, for good, because its tags are frozen: read only{moved}"
        case "S6a":
            return f"read only: {NEVER_OURS}; declare another name to have one made{moved}"
        case "S11":
            return _overridden(
                f"run {_command(tracked, '--readopt')}",
                why=", which the control plane remembers because its tags are frozen",
            )
        case _:
            return (
                "its tags are frozen, and nothing is remembered of it, so somebody may have taken it over: "
                f"{ONLY_READ}. To hand it to the agent, run {_command(tracked, '--readopt')}"
            )


def _overridden(how: str, *, why: str = "") -> str:
    """A person has taken the component over, and how it is handed back (G1)."""
    return f"{IN_OVERRIDE}{why}: {ONLY_READ}. To hand it back, {how}"


def with_since(message: str, override: Mapping[str, Any] | None) -> str:
    """Add since when a component is in manual override: the control plane stamps that, so agents cannot say it."""
    if override is None:
        return message
    since = datetime.fromisoformat(override["since"])
    return message.replace(IN_OVERRIDE, f"{IN_OVERRIDE} since {since:%Y-%m-%d %H:%M} UTC", 1)


def _never_created(tracked: Tracked) -> str:
    """It is absent, and Fractal only ever reads it (S1)."""
    name = tracked.identity.name
    if tracked.import_only:
        return (
            f"the component is importOnly, so Fractal only reads it. Create {name!r} first, "
            "or take importOnly out of its declaration"
        )
    if tracked.create_once:
        return f"{name!r} was created once and is gone: deploy the LiveSystem to create it again"
    return f"{tracked.type} cannot carry tags, so Fractal only reads it. Create {name!r} first"


def _explain_absence(rule: str, tracked: Tracked, view: View, claims: Claims) -> str:
    name = tracked.identity.name
    match rule:
        case "S14":
            return f"several resources are named {name!r} ({_named(view)}): rename all but one"
        case "S1":
            return _never_created(tracked)
        case "S3" if claims.heir is not None:
            return f"{name!r} is absent: {claims.heir!r} owns it and has not created it (again)"
        case "S3":
            return f"{name!r} is absent: its owner is gone; deploy the LiveSystem to create it"
        case "S2":
            return "the resource is gone while in manual override: deploy the LiveSystem to create it again"
        case _:
            return (
                f"{tracked.memory.resource_id or name} is gone, and it held data: restore it under the same name, "
                "or deploy the LiveSystem to create an empty one"
            )


def _explain_presence(rule: str, tracked: Tracked, sighting: Sighting, claims: Claims) -> str:
    tags = sighting.protocol
    match rule:
        case "S5":
            why = "importOnly" if tracked.import_only else "this type cannot carry tags"
            return f"read only: {why}"
        case "S6":
            return f"owned by {tags.owner!r}: read only"
        case "S7" if tags.other_manager is not None:
            return f"managed-by is {tags.other_manager!r}: somebody else's, so {ONLY_READ}"
        case "S7" if lost_tagging(tracked):
            return f"{lost_tagging(tracked)}. {_overridden(HANDSHAKE)}"
        case "S7":
            return _overridden(HANDSHAKE)
        case "S8":
            return f"it lost its owner tag and {claims.heir or 'another LiveSystem'!r} has the claim: read only"
        case "S8a":
            return f"{len(claims.declarers)} LiveSystems declare it: stamp fractal-cloud-owner, or Force Push one"
        case "S10":
            return _overridden("add fractal-cloud: reconcile; the agent then stamps fractal-cloud-owner")
        case "S11":
            return _overridden("add fractal-cloud: reconcile")
        case _:
            return in_step()
