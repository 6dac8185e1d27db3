"""Who changed what outside of Fractal Cloud: noticed when it is judged, and asked of the cloud's own record.

    judged ──▶ noted ──▶ asked before the first write (a record that the correction would overwrite)
                  └────▶ asked at the end of the cycle, and again ever later, for half an hour (a record written late)

Nothing is asked where nothing was changed. What counts as a change is decided in ``rules.changed_by``; that a record
cannot be read is no error of any component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog

from fractal_cloud.agent.cycle_state import CycleState
from fractal_cloud.agent.writing import wanted
from fractal_cloud.model.errors import CloudError, Denied
from fractal_cloud.model.observed import ChangedBy
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.history import Asked, Author, Record
from fractal_cloud.rules.changed_by import LONGEST_WAIT, Changes, Moment, after_reading, is_waiting
from fractal_cloud.rules.judge import Judgement
from fractal_cloud.rules.setbacks import given_up

log = structlog.get_logger()

MOST_QUESTIONS: Final = 5
"""Of how many components a late record is asked in one cycle: CloudTrail answers two calls a second."""
MOST_QUESTIONS_AT_ONCE: Final = 50
"""The same of a record that only costs a read of the resource."""

Judgements = dict[str, Judgement]


@dataclass(slots=True)
class _Question:
    """What is asked of one component, and its offer's record."""

    tracked: Tracked
    sighting: Sighting
    record: Record
    changes: Changes


class ChangeAuthors:
    """Follows changes through one cycle. ``before``: when the scope was read the time before."""

    def __init__(self, state: CycleState) -> None:
        self.before: datetime | None = None
        self._state = state
        self._held = state.held
        self._enquiries = state.held.enquiries
        self._evaluator = state.evaluator
        self._report = state.report

    @property
    def due(self) -> frozenset[str]:
        """The components for whom a late record is to be asked now."""
        now = self._evaluator.now
        enquiries = self._enquiries
        if not enquiries.next_ask or not (enquiries.may_ask(now) or enquiries.is_denied(now)):
            return frozenset()
        return frozenset(uid for uid, at in enquiries.next_ask.items() if at <= now)

    # --- noticing

    def begin(self, judgements: Judgements) -> None:
        """Note what was changed since the last cycle; ask what the corrections of this one would overwrite."""
        new = [tracked for tracked in self._note(judgements, begins=True) if is_waiting(tracked.memory.changed_by)]
        for one in new:
            self._enquiries.next_ask.setdefault(one.uid, self._evaluator.now)
        questions = [q for q in self._questions(t.uid for t in new) if not q.record.is_late]
        for question in questions[:MOST_QUESTIONS_AT_ONCE]:
            self._ask_now(question)
        for question in questions[MOST_QUESTIONS_AT_ONCE:]:
            self._end(question, "unknown")

    def end(self, judgements: Judgements) -> None:
        """Note what stands no longer; ask late records what is due."""
        self._note(judgements, begins=False)
        now = self._evaluator.now
        questions = self._questions(uid for uid in sorted(self.due) if uid in judgements)
        for question in questions[:MOST_QUESTIONS]:
            if self._enquiries.may_ask(now):
                self._ask_late(question)
        if self._enquiries.is_denied(now):
            for question in questions:
                self._end(question, "denied")

    def _note(self, judgements: Judgements, *, begins: bool) -> list[Tracked]:
        changed = []
        for uid, judgement in judgements.items():
            tracked = self._held.work.tracked.get(uid)
            if tracked is None or not (judgement.drift or tracked.memory.changed_by or judgement.rule == "S7"):
                continue  # nearly always
            after = self._after(tracked, judgement, begins=begins)
            if after is not tracked.memory.changed_by:
                self._remember(tracked, after)
                changed.append(tracked)
        return changed

    def _after(self, tracked: Tracked, judgement: Judgement, *, begins: bool) -> Changes:
        facts = self._state.context.offers[tracked.type]
        record = facts.offer.record
        swept = self._held.observed.swept.get(tracked.uid)
        moment = Moment(
            now=self._evaluator.now,
            before=self.before,
            source=record.name if record is not None else "",
            begins=begins,
            swept=facts.compared.swept - facts.offer.swept_in_bulk,
            swept_before=swept.before if swept is not None else None,
            linked=facts.compared.linked,
        )
        return after_reading(tracked, self._evaluator.view(tracked).sighting, judgement, moment)

    def _remember(self, tracked: Tracked, changes: Changes) -> None:
        tracked.memory = replace(tracked.memory, changed_by=changes)
        self._report.unpublished.add(tracked.uid)
        if not is_waiting(changes):
            self._enquiries.forget(tracked.uid)

    # --- asking

    def _questions(self, uids: Iterable[str]) -> list[_Question]:
        found = []
        for uid in uids:
            tracked = self._held.work.tracked.get(uid)
            record = self._state.offer_of(tracked).record if tracked is not None else None
            if tracked is None or not is_waiting(tracked.memory.changed_by) or record is None:
                self._enquiries.forget(uid)
                continue
            sighting = self._evaluator.view(tracked).sighting
            if sighting is not None:
                found.append(_Question(tracked, sighting, record, tracked.memory.changed_by))
            elif all(self._is_too_late(one) for one in tracked.memory.changed_by if one.state == "waiting"):
                self._remember(tracked, _ended(tracked.memory.changed_by, "unknown"))
            else:
                self._ask_again(tracked)
        return found

    def _ask_now(self, question: _Question) -> None:
        try:
            found = self._ask(question)
        except CloudError:
            found = {}  # that it is not known is all that follows
        self._remember(question.tracked, tuple(_named(one, found.get(one.parameter)) for one in question.changes))
        self._end(question, "unknown")

    def _ask_late(self, question: _Question) -> None:
        now, tracked = self._evaluator.now, question.tracked
        try:
            found = self._ask(question)
        except Denied as error:
            log.warning("who changed it is not known: reading is denied", record=question.record.name, error=str(error))
            self._enquiries.refuse(now, is_denied=True)
            return
        except CloudError as error:
            log.info("who changed it was not answered", record=question.record.name, error=str(error))
            self._enquiries.refuse(now)
            return
        self._enquiries.answered()
        after = []
        for one in question.changes:
            author = found.get(one.parameter) if one.state == "waiting" else None
            is_late = self._is_too_late(one)
            if author is not None and (author.is_certain or is_late):
                after.append(_named(one, author))
            elif one.state == "waiting" and is_late:
                after.append(one.model_copy(update={"state": "unknown"}))
            else:
                after.append(one)
        if tuple(after) != question.changes:
            self._remember(tracked, tuple(after))
        if is_waiting(tuple(after)):
            self._ask_again(tracked)

    def _ask_again(self, tracked: Tracked) -> None:
        waiting = [one.seen for one in tracked.memory.changed_by if one.state == "waiting"]
        self._enquiries.ask_again(tracked.uid, self._evaluator.now, max(waiting) + LONGEST_WAIT)

    def _ask(self, question: _Question) -> Mapping[str, Author]:
        tracked, sighting = question.tracked, question.sighting
        if self._state.secrets.are_unknown(tracked):
            return {}  # whether a record is about a value that is not known cannot be said
        offer = self._state.offer_of(tracked)
        waiting = [one for one in question.changes if one.state == "waiting"]
        asked = [Asked(one.parameter, one.seen, one.value, one.after) for one in waiting]
        return offer.changed_by(self._held.cloud, sighting, wanted(self._evaluator, offer, tracked), asked)

    def _is_too_late(self, one: ChangedBy) -> bool:
        return self._evaluator.now - one.seen >= LONGEST_WAIT

    def _end(self, question: _Question, state: str) -> None:
        changes = question.tracked.memory.changed_by
        if is_waiting(changes):
            self._remember(question.tracked, _ended(changes, state))

    # --- who sets values back (S27)

    def name_opponents(self, judgements: Judgements, judge: Callable[[Tracked], Judgement]) -> None:
        """Say who set back what was given up, where the cloud can say so: just now, or when a late record shows it."""
        for uid, judgement in judgements.items():
            lost = given_up(judgement.setbacks)
            tracked = self._held.work.tracked[uid]
            sighting = self._evaluator.view(tracked).sighting
            if not lost or sighting is None:
                continue
            known = _by_parameter(tracked.memory.changed_by)
            asked = [one for one in lost if one.by is None or (not one.by and one.parameter in known)]
            if not asked:
                continue
            unknown = [one.parameter for one in asked if one.parameter not in known]
            known |= self._opponents(tracked, sighting, unknown)
            named = [
                one.model_copy(update={"by": known.get(one.parameter, "")}) if one in asked else one
                for one in judgement.setbacks
            ]
            tracked.memory = replace(tracked.memory, setbacks=tuple(named))
            self._report.unpublished.add(uid)
            judgements[uid] = judge(tracked)

    def _opponents(self, tracked: Tracked, sighting: Sighting, names: list[str]) -> dict[str, str]:
        offer = self._state.offer_of(tracked)
        if not names or offer.record is None or offer.record.is_late:
            return {}
        asked = [Asked(name, self._evaluator.now) for name in names]
        try:
            found = offer.changed_by(self._held.cloud, sighting, wanted(self._evaluator, offer, tracked), asked)
        except CloudError:
            return {}
        return {name: author.by for name, author in found.items()}


def _by_parameter(changes: Changes) -> dict[str, str]:
    """By parameter, who is known to have changed it last."""
    return {one.parameter: one.by for one in reversed(changes) if one.state == "known"}


def _named(one: ChangedBy, author: Author | None) -> ChangedBy:
    if author is None or author.is_agent or one.state != "waiting":
        return one
    return one.model_copy(
        update={
            "state": "known" if author.is_certain else "related",
            "by": author.by,
            "identity": author.identity,
            "at": author.at,
            "how": author.how,
            "address": author.address,
        }
    )


def _ended(changes: Changes, state: str) -> Changes:
    return tuple(one.model_copy(update={"state": state}) if one.state == "waiting" else one for one in changes)
