"""The contract every offer keeps, one demand a method. Each tries the offer's example in a small world and raises
``AssertionError`` with what is wrong; a demand that does not concern an offer is kept by doing nothing.

How a resource to try it on comes and goes, and what holds at the end of every trial, is in ``trial.py``.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from contextlib import suppress

from fractal_cloud.model.commands import command_errors, values_of
from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE, RECONCILE_VALUE
from fractal_cloud.testing.example import Hazard
from fractal_cloud.testing.trial import HANDSHAKE, LIVE_SYSTEM, MINE, READER, SLOW, Subject, Trial, parameters_of


class OfferContract(Trial):
    """One offer, held to its contract. A demand hands its resource on to the next one, if it is as it was."""

    @classmethod
    def demands(cls) -> list[str]:
        """The names of all methods that are a demand of the contract, in order: a suite runs each of them."""
        return [name for name, value in vars(cls).items() if inspect.isfunction(value) and not name.startswith("_")]

    # --- the contract

    def creates_exactly_one_with_its_tags_in_the_call(self) -> None:
        """T2, S17: one creation, stamped in the call itself; nothing is tagged afterwards.

        An offer with a ``predicted_id``, or with an example that says so, may tag once right after the creation, where
        its cloud accepts no tags in the call.
        """
        with self._subject(is_new=True) as subject:
            reasons = [write.reason for write in self._writes_for(subject)]
            assert reasons.count("create") == 1, f"created {reasons.count('create')} times: {reasons}"
            may_follow = self.example.tags_follow or self.offer.predicted_id("any") is not None
            if reasons[:2] == ["create", "tagging"] and may_follow:
                del reasons[1]
            assert set(reasons) <= {"create", "deploy"}, f"after the creation only parameters are set: {reasons}"

    def is_silent_once_settled(self) -> None:
        """S20: the cycles after a settled one write nothing, to the cloud or to the control plane."""
        with self._subject(is_new=True):
            if self.example.touches_parents:
                self.env.cycle()
            before = len(self.env.writes()), self.env.publications()
            for _ in range(3):
                self.env.cycle()
            after = len(self.env.writes()), self.env.publications()
            assert after == before, f"(cloud writes, reports) went from {before} to {after}: {self.env.writes()[-3:]}"

    def brings_every_parameter_back(self) -> None:
        """S12: whatever a person changed returns to its declared value, one parameter after the other."""
        with self._subject() as subject:
            for name in self.example.editable():
                before = len(self._writes_for(subject))
                self._edit(subject, name)
                self.env.settle()
                self._is_active(subject)
                reasons = [write.reason for write in self._writes_for(subject)[before:]]
                assert "drift" in reasons, f"the change of {name} was not corrected: {reasons}"

    def carries_out_every_change(self) -> None:
        """S12: a new declaration reaches the cloud in place, one parameter after the other."""
        with self._subject() as subject:
            for name, value in self.example.changes.items():
                before = len(self._writes_for(subject))
                self._redeploy(subject, **{name: value})
                self._is_active(subject)
                reasons = [write.reason for write in self._writes_for(subject)[before:]]
                assert "deploy" in reasons, f"the new {name} was not carried out: {reasons}"

    def never_shrinks_what_only_grows(self) -> None:
        """S18: what the cloud lets only grow stays grown: `Failed`, naming it and both values, until it is declared."""
        with self._subject() as subject:
            for name in sorted(self.example.only_up):
                self._edit(subject, name)
                self._cycle_until(subject, "Failed")
                self._says(subject, name, self.example.changes[name], subject.declaration["parameters"][name])
                self._redeploy(subject, **{name: self.example.changes[name]})
                self._is_active(subject)

    def refuses_every_change_in_place(self) -> None:
        """S18: what cannot change in place destroys nothing, and the other parameters are still reconciled."""
        with self._subject() as subject:
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
        """S18: another name is no rename: nothing is destroyed, nothing made, both names are reported."""
        with self._subject() as subject:
            other = self.example.as_name(f"{subject.id}-renamed")
            self._redeploy(subject, **{self.example.name_parameter: other})
            self._shows(subject, "Failed")
            self._says(subject, "name", subject.id, other)
            assert not self.example.operator.find(other), "a resource was made under the other name"
            self._redeploy(subject)
            self._is_active(subject)

    def writes_the_declared_tags_and_no_others(self) -> None:
        """T1, T2, T10: the user's own tags travel in the creation; what a person makes of one of them comes back.

        Where tags cannot be written one by one it is reported, and comes back in re-adoption. An importer writes none,
        and a key that is taken out of the declaration stays on the resource.
        """
        with self._subject(is_new=True, tags=dict(MINE)) as subject:
            rules = self.offer.tag_rules
            before = len(self._writes_for(subject))
            if not self.offer.tags_frozen:
                self._tag(subject, {"team": "other"})
                self.env.settle()
                if rules.written_once:
                    self._stays_reported(subject, "tags.team", "shop", "other")
                    self._break(subject)
                    self.env.cycle()
                    self._hand_back_tags(subject, MINE)
                else:
                    subject.tags |= MINE
                self._is_active(subject)
            imported = {**subject.declaration, "importOnly": True, "tags": {"team": "readers"}}
            self.env.deploy(READER, *self.example.parents, imported)
            self.env.settle()
            self._stands(subject)
            drift = self._component(READER, subject.id)["outputFields"]["drift"]
            assert drift["tags.team"] == {"declared": "readers", "actual": "shop"}, drift
            self.env.delete(READER)
            self.env.settle()
            subject.declaration.pop("tags")
            self._redeploy(subject)
            self._is_active(subject)
            reasons = {write.reason for write in self._writes_for(subject)[before:]}
            assert reasons <= {"drift", "handshake"}, f"tags were written for {reasons}"

    def _stays_reported(self, subject: Subject, name: str, declared: str, actual: str) -> None:
        shown = self._shown(subject)
        assert shown["status"] == "Active", shown
        assert shown["outputFields"]["drift"] == {name: {"declared": declared, "actual": actual}}, shown
        assert name in shown["message"], shown["message"]
        self._stands(subject)

    def _hand_back_tags(self, subject: Subject, tags: Mapping[str, str]) -> None:
        self.example.operator.tag(subject.found, HANDSHAKE)
        self.env.settle()
        subject.tags |= {MANAGED_BY: OURS, **tags}

    def leaves_ignored_parameters_alone(self) -> None:
        """G15: set at creation, never compared, never written afterwards, not even by a handshake or a Force Push."""
        names = self.example.editable()
        with self._subject(ignoreDrift=names) as subject:
            for name in names:
                self._edit(subject, name)
            before = len(self._writes_for(subject))
            self.env.settle()
            self._shows(subject, "Active")
            assert not self._shown(subject)["outputFields"].get("drift"), "what is ignored is no drift"
            if not self.offer.tags_frozen:
                self._tag(subject, {RECONCILE: RECONCILE_VALUE})
                self.env.settle()
            self._break(subject)
            self.env.cycle()
            self._push(subject)
            self.env.settle()
            reasons = {write.reason for write in self._writes_for(subject)[before:]}
            assert reasons <= {"handshake", "force-push"}, f"only tags may have been written: {reasons}"
            assert self._drifting(subject, ignoring=False) <= set(names)

    def sets_ignored_parameters_at_creation(self) -> None:
        """G15: a parameter that is not compared later on still has its declared value at creation."""
        with self._subject(ignoreDrift=self.example.editable()) as subject:
            subject.declaration.pop("ignoreDrift")
            before = len(self._writes_for(subject))
            self._redeploy(subject)
            self._is_active(subject)
            late = [write.operation for write in self._writes_for(subject)[before:]]
            assert not late, f"not set at creation: {late} came only when the parameters were compared again"

    def only_imports_what_is_import_only(self) -> None:
        """O12, S1, S5: importOnly never creates, claims, changes or deletes."""
        with self._subject() as subject:
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
        """S16: the glass is broken between the agent's look and its write: the write does not happen."""
        if not self.example.changes:
            return
        with self._subject() as subject:
            name = self._make_drift(subject)
            before = len(self._writes_for(subject))
            self.env.before_next_write(lambda: self._break(subject))
            self.env.cycle()
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            assert name in self._drifting(subject), f"{name} was written although managed-by was gone"
            assert len(self._writes_for(subject)) == before, self._writes_for(subject)[before:]
            self._hand_back(subject)

    def lets_a_person_win_before_a_deletion(self) -> None:
        """S16, O10: the glass is broken between the agent's look and the deletion: the resource is left."""
        with self._subject() as subject:
            self.env.before_next_write(lambda: self._break(subject))
            self.env.deploy(LIVE_SYSTEM, *self.example.parents)
            self.env.settle()
            assert self.env.find_component(LIVE_SYSTEM, subject.id) is None
            self._stands(subject)
            self.example.operator.delete(subject.found)
            self.env.settle()

    def breaks_the_glass_and_is_handed_back(self) -> None:
        """G1, G3, G7, S11, T6: in manual override within a cycle, drift shown, and back only by both tags.

        Where tags are frozen, both go through the product (G13).
        """
        with self._subject() as subject:
            self._break(subject)
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            drifting = [self._make_drift(subject)] if self.example.changes else []
            before = len(self._writes_for(subject))
            self.env.cycle()
            shown = self._shown(subject)
            assert parameters_of(shown["outputFields"].get("drift", {})) == set(drifting), shown
            if self.example.editable():
                changed = parameters_of(one["parameter"] for one in shown["changedBy"] if one["stands"])
                assert set(drifting) <= changed, f"{drifting} is not listed as changed by somebody: {changed}"
            if not self.offer.tags_frozen:
                self._tag(subject, {MANAGED_BY: OURS})
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            assert len(self._writes_for(subject)) == before, "written to while in manual override"
            self._hand_back(subject)

    def pushes_by_force(self) -> None:
        """G10: a Force Push tags in the operator's name and brings the declaration back."""
        with self._subject() as subject:
            self._break(subject)
            for name in self.example.editable()[:1]:
                self._edit(subject, name)
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            self._push(subject)
            self.env.settle()
            self._is_active(subject)

    def moves_to_another_owner(self) -> None:
        """O8, T4: an operator's transfer replaces the owner tag in one call, and nothing else; and back again.

        Where that takes more than one call, or tags are frozen, nothing is written.
        """
        with self._subject() as subject:
            self.env.deploy(READER, *self.example.parents, subject.declaration)
            self.env.settle()
            for owner, to in ((LIVE_SYSTEM, READER), (READER, LIVE_SYSTEM)):
                self._transfer(subject, owner, to)
            self.env.delete(READER)
            self.env.settle()
            self._is_active(subject)

    def _transfer(self, subject: Subject, owner: str, to: str) -> None:
        before = len(self.env.writes())
        self.env.transfer(owner, subject.id, to)
        self.env.settle()
        written = [(write.live_system, write.reason) for write in self.env.writes()[before:]]
        if not self.offer.facts().owner_moves:
            assert not written, f"its owner cannot be moved, and this was written: {written}"
            return
        assert written == [(owner, "transfer")], f"one call moves the owner, and these were made: {written}"
        subject.tags[OWNER] = to
        self._stands(subject)
        shown = [self._component(name, subject.id)["status"] for name in (owner, to)]
        assert shown == ["ExternallyManaged", "Active"], f"the old and the new owner show {shown}"

    def says_truly_that_its_tags_are_frozen(self) -> None:
        """T8: a type that says so is believed nothing that its tags say later on: they really must not change."""
        if not self.offer.tags_frozen:
            return
        with self._subject() as subject:
            operator = self.example.operator
            # The cloud may refuse it, in words of its own, or pass it over: either way nothing has changed.
            with suppress(Exception):
                operator.untag(subject.found, MANAGED_BY)
            self._stands(subject)
            with suppress(Exception):
                operator.tag(subject.found, {RECONCILE: RECONCILE_VALUE, OWNER: READER})
            self._stands(subject)

    def remembers_who_took_it_over_where_no_tag_can_say_it(self) -> None:
        """G13, S17: who, why and until when stand on the component; nothing is written, and a new agent knows."""
        if not self.offer.tags_frozen:
            return
        with self._subject() as subject:
            before = len(self._writes_for(subject))
            self._break(subject)
            self.env.cycle()
            override = self._shown(subject)["override"]
            assert override is not None, "nothing is remembered"
            assert override["by"], "who broke the glass is not reported"
            name = self._make_drift(subject) if self.example.changes else ""
            self.env.restart_agent()
            self.env.settle()
            self._shows(subject, "ManualOverride")
            assert not name or name in self._drifting(subject), f"{name} was written by an agent that did not know"
            assert len(self._writes_for(subject)) == before, self._writes_for(subject)[before:]
            self._hand_back(subject)
            assert self._shown(subject)["override"] is None, "handed back, and still in override"

    def stamps_the_owner_where_there_is_none(self) -> None:
        """S9, T4: the handshake of the claimant puts the lost owner tag back."""
        if self.offer.tags_frozen:
            return
        with self._subject() as subject:
            self._break(subject, OWNER)
            self.env.cycle()
            self._shows(subject, "ManualOverride")
            subject.tags[OWNER] = LIVE_SYSTEM
            self._hand_back(subject)

    def deletes_and_forgets(self) -> None:
        """O10: deleted, and gone from the books; what vanished right before the deletion is success too."""
        for vanishes in (False, True):
            with self._subject() as subject:
                if vanishes:
                    self.env.before_next_write(lambda found=subject.found: self.example.operator.delete(found))  # type: ignore[misc]
                self.env.deploy(LIVE_SYSTEM, *self.example.parents)
                self.env.settle()
                assert not self.example.operator.find(subject.id), "it is still there"
                assert self.env.find_component(LIVE_SYSTEM, subject.id) is None

    def shows_the_cloud_at_work(self) -> None:
        """S13: `Instantiating` while the cloud creates it, then `Active`; nothing is made twice meanwhile."""
        if not self.example.is_slow:
            return
        self._settle_parents()
        self._remove_subject()
        declaration = self._fresh()
        with self.env.slow_creation(SLOW):
            self.env.deploy(LIVE_SYSTEM, *self.example.parents, declaration)
            self.env.cycle()
            shown = self._component(LIVE_SYSTEM, declaration["id"])
            assert shown["status"] == "Instantiating", shown
            until = time.monotonic() + SLOW
            while time.monotonic() < until:
                self.env.cycle()
        self.env.settle()  # the last of them may have looked a moment too early
        self._meet(declaration)
        with self._tried() as subject:
            self._is_active(subject)

    def respects_what_blocks_a_deletion(self) -> None:
        """O6, O15: what blocks a deletion is named, nothing is forced, and it goes once that is out of the way."""
        for hazard in self.example.hazards:
            self._respects(hazard)

    def _respects(self, hazard: Hazard) -> None:
        with self._subject() as subject:
            obstacle = hazard.arrange(subject.found)
            self.env.deploy(LIVE_SYSTEM, *self.example.parents)
            self.env.cycle()
            self.env.cycle()
            shown = self._shown(subject)
            assert shown["status"] == hazard.status, f"{hazard.title}: {shown}"
            unsaid = [word for word in obstacle.words if word not in shown["message"]]
            assert not unsaid, f"{hazard.title}: {unsaid} is not named in {shown['message']!r}"
            assert self.example.operator.find(subject.id), f"{hazard.title}: it was deleted all the same"
            obstacle.clear()
            self.env.settle()
            assert not self.example.operator.find(subject.id), f"{hazard.title}: cleared, and it is still there"

    def prints_commands_that_fill_in(self) -> None:
        """G12, A6: the vendor's commands need nothing but what the component publishes, and can be pasted safely."""
        with self._subject() as subject:
            shown = self._shown(subject)
            fields = {name: shown[name] for name in ("resourceId", "liveSystemId", "componentId")}
            fields |= shown["outputFields"]
            for command in [*self.offer.glass.break_glass, *self.offer.glass.readopt]:
                unknown = values_of(command) - set(fields)
                assert not command_errors(command), f"{command!r} {command_errors(command)[0]}"
                assert not unknown, f"{command!r} needs {sorted(unknown)}, which is not published"
            glass = self.offer.glass
            by_tags = self.offer.taggable and not self.offer.tags_frozen
            assert (glass.break_glass and glass.readopt) or not by_tags, "no command breaks the glass and hands it back"
