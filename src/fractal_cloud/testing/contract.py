"""The contract every offer keeps, one sentence a method. Each method tries the offer's example in a small world and
raises ``AssertionError`` with what is wrong.

Whatever a method tries, it ends with the same three demands: one resource, all its tags as they must be (those of
others byte for byte: T1), and no write that the protocol forbids (S16).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE, RECONCILE_VALUE, stamp
from fractal_cloud.offers.offer import AnyOffer
from fractal_cloud.rules.drift import ComparedType, Drift, find_drift
from fractal_cloud.testing.environment import Environment, Write
from fractal_cloud.testing.example import Found, Hazard, OfferExample

LIVE_SYSTEM: Final = "ls-contract"
READER: Final = "ls-reader"
OTHERS: Final[Mapping[str, str]] = {"cost center": "a=b/c:d", "Managed-By": "us", "note": ""}
"""Tags of somebody else: with a space, with a key that is nearly ours, with an empty value."""
HANDSHAKE: Final[Mapping[str, str]] = {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE}
SLOW: Final = 0.4
PATIENCE: Final = 30


@dataclass(slots=True)
class Subject:
    """The component under test, alive: its declaration, its resource, and the tags that must be on it."""

    declaration: dict[str, Any]
    found: Found
    tags: dict[str, str]

    @property
    def id(self) -> str:
        """The component's id, which is the resource's name."""
        return str(self.declaration["id"])

    def declared(self, **parameters: Any) -> dict[str, Any]:
        """The declaration with other values for some parameters."""
        return {**self.declaration, "parameters": {**self.declaration["parameters"], **parameters}}


class OfferContract:
    """One offer, held to its contract. Parents are made once; every method brings a resource of its own."""

    def __init__(self, offer: AnyOffer, example: OfferExample, environment: Environment) -> None:
        self.offer = offer
        self.example = example
        self.env = environment
        self._compared = ComparedType(offer.facts())
        self._references = offer.facts().references()
        self._names = 0
        self._is_clean = True

    # --- the contract

    def creates_exactly_one_with_its_tags_in_the_call(self) -> None:
        """T2, S17: one creation, stamped in the call itself; nothing is tagged afterwards."""
        with self.subject() as subject:
            reasons = [write.reason for write in self._writes_for(subject)]
            assert reasons.count("create") == 1, f"created {reasons.count('create')} times: {reasons}"
            assert set(reasons) <= {"create", "deploy"}, f"after the creation only parameters are set: {reasons}"

    def is_silent_once_settled(self) -> None:
        """S20: the cycles after a settled one write nothing, to the cloud or to the control plane."""
        with self.subject():
            before = len(self.env.writes()), self.env.publications()
            for _ in range(3):
                self.env.cycle()
            after = len(self.env.writes()), self.env.publications()
            assert after == before, f"(cloud writes, reports) went from {before} to {after}: {self.env.writes()[-3:]}"

    def brings_every_parameter_back(self) -> None:
        """S12: whatever a person changed returns to its declared value, one parameter after the other."""
        with self.subject() as subject:
            for name in self.example.editable():
                before = len(self._writes_for(subject))
                self._edit(subject, name)
                self.env.settle()
                self._is_active(subject)
                reasons = [write.reason for write in self._writes_for(subject)[before:]]
                assert "drift" in reasons, f"the change of {name} was not corrected: {reasons}"

    def carries_out_every_change(self) -> None:
        """S12: a new declaration reaches the cloud in place, one parameter after the other."""
        with self.subject() as subject:
            for name, value in self.example.changes.items():
                before = len(self._writes_for(subject))
                self._redeploy(subject, **{name: value})
                self._is_active(subject)
                reasons = [write.reason for write in self._writes_for(subject)[before:]]
                assert "deploy" in reasons, f"the new {name} was not carried out: {reasons}"

    def never_takes_back_what_only_grows(self) -> None:
        """S18: what the cloud lets only grow stays grown: `Failed`, naming it and both values, until it is declared."""
        with self.subject() as subject:
            for name in sorted(self.example.only_up):
                self._edit(subject, name)
                self._cycle_until(subject, "Failed")
                self._says(subject, name, self.example.changes[name], subject.declaration["parameters"][name])
                self._redeploy(subject, **{name: self.example.changes[name]})
                self._is_active(subject)

    def refuses_every_change_in_place(self) -> None:
        """S18: what cannot change in place destroys nothing, and the other parameters are still reconciled."""
        with self.subject() as subject:
            for name, wanted in self.example.immutable_changes.items():
                self._redeploy(subject, **{name: wanted})
                self._shows(subject, "Failed")
                self._says(subject, name, self._outputs(subject)[name], self._resolved(name, wanted))
                for other in self.example.editable()[:1]:
                    self._edit(subject, other)
                    self.env.settle()
                    assert set(self._drift(subject)) <= {name}, f"{other} was not reconciled beside a fixed {name}"
                self._shows(subject, "Failed")
                self._stands(subject)
                self._redeploy(subject)
                self._is_active(subject)

    def refuses_another_name(self) -> None:
        """S18: another name is no rename: nothing is destroyed, nothing made, both names are told."""
        with self.subject() as subject:
            other = f"{subject.id}-renamed"
            self._redeploy(subject, name=other)
            self._shows(subject, "Failed")
            self._says(subject, "name", subject.id, other)
            assert not self.example.hands.find(other), "a resource was made under the other name"
            self._redeploy(subject)
            self._is_active(subject)

    def leaves_ignored_parameters_alone(self) -> None:
        """G15: set at creation, never compared, never written afterwards, not even by a handshake or a Force Push."""
        names = self.example.editable()
        with self.subject(ignoreDrift=names) as subject:
            for name in names:
                self._edit(subject, name)
            before = len(self._writes_for(subject))
            self.env.settle()
            self._shows(subject, "Active")
            assert not self._shown(subject)["outputFields"].get("drift"), "what is ignored is no drift"
            self._tag(subject, {RECONCILE: RECONCILE_VALUE})
            self.env.settle()
            self._untag(subject, MANAGED_BY)
            self.env.cycle()
            self._push(subject)
            self.env.settle()
            reasons = {write.reason for write in self._writes_for(subject)[before:]}
            assert reasons <= {"handshake", "force-push"}, f"only tags may have been written: {reasons}"
            assert self._drift(subject, ignoring=False).keys() <= set(names)

    def sets_ignored_parameters_at_creation(self) -> None:
        """G15: a parameter that is not compared later on still has its declared value at creation."""
        with self.subject(ignoreDrift=self.example.editable()) as subject:
            subject.declaration.pop("ignoreDrift")
            before = len(self._writes_for(subject))
            self._redeploy(subject)
            self._is_active(subject)
            late = [write.operation for write in self._writes_for(subject)[before:]]
            assert not late, f"not set at creation: {late} came only when the parameters were compared again"

    def only_imports_what_is_import_only(self) -> None:
        """O12, S1, S5: importOnly never creates, claims, changes or deletes."""
        with self.subject() as subject:
            imported = [{**component, "importOnly": True} for component in [*self.example.parents, subject.declaration]]
            self.env.deploy(READER, *imported)
            self._edit(subject, *self.example.editable()[:1])
            self.env.settle()
            shown = self._component(READER, subject.id)
            assert shown["status"] == "ExternallyManaged", shown
            absent = self.example.under_name(f"{subject.id}-nowhere", importOnly=True)
            self.env.deploy(READER, *imported[:-1], absent)
            self.env.settle()
            shown = self._component(READER, str(absent["id"]))
            assert shown["status"] == "Missing", shown
            self.env.delete(READER)
            self.env.settle()
            written = [write for write in self.env.writes() if write.live_system == READER]
            assert not written, f"importOnly wrote: {written}"
            self._is_active(subject)

    def lets_a_person_win_before_an_update(self) -> None:
        """S16: managed-by removed between the agent's look and its write: the write does not happen."""
        with self.subject() as subject:
            name = self.example.editable()[0]
            self._edit(subject, name)
            before = len(self._writes_for(subject))
            self.env.before_next_write(lambda: self._untag(subject, MANAGED_BY))
            self.env.cycle()
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            assert name in self._drift(subject), f"{name} was written although managed-by was gone"
            assert len(self._writes_for(subject)) == before, self._writes_for(subject)[before:]
            self._hand_back(subject)

    def lets_a_person_win_before_a_deletion(self) -> None:
        """S16, O10: managed-by removed between the agent's look and the deletion: the resource is left."""
        with self.subject() as subject:
            self.env.before_next_write(lambda: self._untag(subject, MANAGED_BY))
            self.env.deploy(LIVE_SYSTEM, *self.example.parents)
            self.env.settle()
            assert self.env.find_component(LIVE_SYSTEM, subject.id) is None
            self._stands(subject)
            self.example.hands.delete(subject.found)
            self.env.settle()

    def breaks_the_glass_and_is_handed_back(self) -> None:
        """G1, G3, G7, S11, T6: hands off within a cycle, drift shown, and back only by both tags."""
        with self.subject() as subject:
            name = self.example.editable()[0]
            self._untag(subject, MANAGED_BY)
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            self._edit(subject, name)
            before = len(self._writes_for(subject))
            self.env.cycle()
            shown = self._shown(subject)
            assert list(shown["outputFields"].get("drift", {})) == [name], shown
            self._tag(subject, {MANAGED_BY: OURS})
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            assert len(self._writes_for(subject)) == before, "written to while hands were off"
            self._hand_back(subject)

    def pushes_by_force(self) -> None:
        """G10: a Force Push tags in the operator's name and brings the declaration back."""
        with self.subject() as subject:
            self._untag(subject, MANAGED_BY)
            for name in self.example.editable()[:1]:
                self._edit(subject, name)
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            self._push(subject)
            self.env.settle()
            self._is_active(subject)

    def stamps_the_owner_where_there_is_none(self) -> None:
        """S9, T4: the handshake of the claimant puts the lost owner tag back."""
        with self.subject() as subject:
            self._untag(subject, MANAGED_BY, OWNER)
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            subject.tags[OWNER] = LIVE_SYSTEM
            self._hand_back(subject)

    def deletes_and_forgets(self) -> None:
        """O10: deleted, and gone from the books; what vanished right before the deletion is success too."""
        for vanishes in (False, True):
            with self.subject() as subject:
                if vanishes:
                    self.env.before_next_write(lambda found=subject.found: self.example.hands.delete(found))  # type: ignore[misc]
                self.env.deploy(LIVE_SYSTEM, *self.example.parents)
                self.env.settle()
                assert not self.example.hands.find(subject.id), "it is still there"
                assert self.env.find_component(LIVE_SYSTEM, subject.id) is None

    def shows_the_cloud_at_work(self) -> None:
        """S13: `Instantiating` while the cloud creates it, then `Active`; nothing is made twice meanwhile."""
        self._settle_parents()
        declaration = self._fresh()
        with self.env.slow_creation(SLOW):
            self.env.deploy(LIVE_SYSTEM, *self.example.parents, declaration)
            self.env.cycle()
            shown = self._component(LIVE_SYSTEM, declaration["id"])
            assert shown["status"] == "Instantiating", shown
            until = time.monotonic() + SLOW
            while time.monotonic() < until:
                self.env.cycle()
        with self._tried(declaration) as subject:
            self._is_active(subject)

    def respects(self, hazard: Hazard) -> None:
        """O6, O15: what blocks a deletion is named, nothing is forced, and it goes once that is out of the way."""
        with self.subject() as subject:
            obstacle = hazard.arrange(subject.found)
            self.env.deploy(LIVE_SYSTEM, *self.example.parents)
            self.env.cycle()
            self.env.cycle()
            shown = self._shown(subject)
            assert shown["status"] == hazard.status, f"{hazard.title}: {shown}"
            unsaid = [word for word in obstacle.words if word not in shown["message"]]
            assert not unsaid, f"{hazard.title}: {unsaid} is not named in {shown['message']!r}"
            assert self.example.hands.find(subject.id), f"{hazard.title}: it was deleted all the same"
            obstacle.clear()
            self.env.settle()
            assert not self.example.hands.find(subject.id), f"{hazard.title}: cleared, and it is still there"

    def tells_commands_that_fill_in(self) -> None:
        """G12: the vendor's commands need nothing but what the component publishes."""
        with self.subject() as subject:
            shown = self._shown(subject)
            fields = {**shown["outputFields"], "resourceId": shown["resourceId"]}
            for command in [*self.offer.glass.break_glass, *self.offer.glass.readopt]:
                unknown = {name for _, name, _, _ in Formatter().parse(command) if name} - set(fields)
                assert not unknown, f"{command!r} needs {sorted(unknown)}, which is not published"
            assert self.offer.glass.break_glass or not self.offer.taggable, "no command breaks the glass"

    # --- a resource to try it on

    @contextmanager
    def subject(self, **more: Any) -> Iterator[Subject]:
        """A resource of its own for one method, with tags of others on it; all demands are checked when it is over."""
        self._settle_parents()
        declaration = self._fresh(**more)
        self.env.deploy(LIVE_SYSTEM, *self.example.parents, declaration)
        self.env.settle()
        with self._tried(declaration) as subject:
            yield subject

    @contextmanager
    def _tried(self, declaration: dict[str, Any]) -> Iterator[Subject]:
        self._is_clean = False
        [found] = self.example.hands.find(declaration["id"])
        named = {self.example.name_tag: declaration["id"]} if self.example.name_tag else {}
        own = {**named, **stamp(LIVE_SYSTEM).to_mapping()}
        assert dict(found.tags) == own, f"created with the tags {dict(found.tags)}, not {own}"
        self.example.hands.tag(found, OTHERS)
        subject = Subject(declaration, found, {**own, **OTHERS})
        self._is_active(subject)
        yield subject
        if self.env.find_component(LIVE_SYSTEM, subject.id) is not None:
            self._put_back(subject)
        self.env.assert_safe()
        self._is_clean = True

    def _put_back(self, subject: Subject) -> None:
        """Bring the example's own values back (a protection may have been switched on), and take it away."""
        self._stands(subject)
        grown = {name: subject.declaration["parameters"][name] for name in self.example.only_up}
        subject.declaration = {**self.example.declaration, "id": subject.id}
        subject.declaration = subject.declared(**grown)
        self._redeploy(subject)
        self._is_active(subject)
        self.env.deploy(LIVE_SYSTEM, *self.example.parents)
        self.env.settle()

    def _settle_parents(self) -> None:
        if not self._is_clean:
            self.env.start_over()
            self._is_clean = True

    def _fresh(self, **more: Any) -> dict[str, Any]:
        self._names += 1
        return self.example.under_name(f"{self.example.declaration['id']}-{self._names}", **more)

    # --- what people do

    def _redeploy(self, subject: Subject, **parameters: Any) -> None:
        self.env.deploy(LIVE_SYSTEM, *self.example.parents, subject.declared(**parameters))
        if parameters and set(parameters) <= set(self.example.changes):
            subject.declaration = subject.declared(**parameters)
        self.env.settle()

    def _edit(self, subject: Subject, *names: str) -> None:
        for name in names:
            value = self._resolved(name, self.example.changes[name])
            self.example.hands.edit(subject.found.resource_id, name, value)

    def _tag(self, subject: Subject, tags: Mapping[str, str]) -> None:
        self.example.hands.tag(subject.found, tags)
        subject.tags.update({key: value for key, value in tags.items() if key != RECONCILE})

    def _untag(self, subject: Subject, *keys: str) -> None:
        self.example.hands.untag(subject.found, *keys)
        for key in keys:
            subject.tags.pop(key, None)

    def _hand_back(self, subject: Subject) -> None:
        self._tag(subject, HANDSHAKE)
        self.env.settle()
        self._is_active(subject)

    def _push(self, subject: Subject) -> None:
        self.env.force_push(LIVE_SYSTEM, subject.id)
        subject.tags.update(stamp(LIVE_SYSTEM).to_mapping())

    # --- what can be seen

    def _component(self, live_system: str, component: str) -> dict[str, Any]:
        shown = self.env.find_component(live_system, component)
        assert shown is not None, f"{component!r} is gone from {live_system!r}"
        return shown

    def _shown(self, subject: Subject) -> dict[str, Any]:
        return self._component(LIVE_SYSTEM, subject.id)

    def _outputs(self, subject: Subject) -> dict[str, Any]:
        outputs: dict[str, Any] = self._shown(subject)["outputFields"]
        return outputs

    def _shows(self, subject: Subject, status: str) -> None:
        shown = self._shown(subject)
        assert shown["status"] == status, f"{shown['status']}, not {status}: {shown['message']}"

    def _cycle_until(self, subject: Subject, status: str) -> None:
        for _ in range(PATIENCE):
            self.env.cycle()
            if self._shown(subject)["status"] == status:
                return
        self._shows(subject, status)

    def _says(self, subject: Subject, name: str, *values: Any) -> None:
        message = self._shown(subject)["message"]
        parts = [part for value in values for part in (value if isinstance(value, list) else [value])]
        told = [name, *(json.dumps(part).strip('"') for part in parts)]
        unsaid = [text for text in told if text not in message]
        assert not unsaid, f"{unsaid} is not named in {message!r}"

    def _stands(self, subject: Subject) -> None:
        """The same one resource, with its tags and everybody else's."""
        found = self.example.hands.find(subject.id)
        assert len(found) == 1, f"{len(found)} resources are named {subject.id!r}: {found}"
        assert found[0].resource_id == subject.found.resource_id, f"it was replaced by {found[0].resource_id}"
        tags = dict(found[0].tags)
        assert tags == subject.tags, f"tags are {tags}, not {subject.tags}"

    def _is_active(self, subject: Subject) -> None:
        self._shows(subject, "Active")
        assert not self._drift(subject), self._drift(subject)
        self._stands(subject)

    def _drift(self, subject: Subject, *, ignoring: bool = True) -> Drift:
        declared = subject.declaration["parameters"]
        ignored = subject.declaration.get("ignoreDrift", ()) if ignoring else ()
        resolved = {name: self._resolved(name, value) for name, value in declared.items()}
        return find_drift(self._compared, resolved, self._outputs(subject), ignored)

    def _resolved(self, name: str, value: Any) -> Any:
        """A value with component ids replaced by the output that stands for them."""
        if name not in self._references:
            return value
        output = self._references[name][1]
        if isinstance(value, list):
            return [self._component(LIVE_SYSTEM, one)["outputFields"][output] for one in value]
        return self._component(LIVE_SYSTEM, value)["outputFields"][output]

    def _writes_for(self, subject: Subject) -> list[Write]:
        return [w for w in self.env.writes() if (w.live_system, w.component) == (LIVE_SYSTEM, subject.id)]
