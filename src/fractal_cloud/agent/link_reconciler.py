"""Links in one cycle of one scope: which halves have something to do, and what is remembered of them.

    declared links ──┐
    remembered links ├─▶ plan ──▶ publish intents ──▶ run the halves ──▶ remember what they publish
    verify in bulk ──┘

It comes after the components themselves were brought to their declaration: a link never orders anything (L2). The
halves share nothing with those of the other side but what is published (L4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from enum import Enum
from typing import Any

import structlog

from fractal_cloud.agent import link_sealing
from fractal_cloud.agent.evaluator import Evaluator
from fractal_cloud.agent.journal import EntryRef
from fractal_cloud.agent.link_backoff import LinkBackoff
from fractal_cloud.agent.link_checks import Checks
from fractal_cloud.agent.link_handlers import Done, LinkHandlers, Task
from fractal_cloud.agent.report_builder import ReportBuilder
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.model.declaration import Scalar
from fractal_cloud.model.errors import GivenUp, LinkError, Throttled, Transient, Unreadable
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.link import NO_LINKS, Half, LinkState, LinkStates, LinkWork
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tracked import Tracked, to_change
from fractal_cloud.model.wording import counted
from fractal_cloud.offers.link import Handler, Handlers
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.rules.judge import Judgement, Verb
from fractal_cloud.rules.links import digest

log = structlog.get_logger()

_NOT_THERE = frozenset({Condition.CREATING, Condition.DYING, Condition.BROKEN})


class Phase(Enum):
    """What may be done for the links of a component now."""

    ACT = "act"
    HOLD = "hold"
    LEAVE = "leave"
    END = "end"


class LinkReconciler:
    """The links of one scope in one cycle.

    ``is_unfinished``: something is left to do, so read again soon. ``is_held_up``: something is left that was refused,
    and is tried again in the next cycle, or later. ``moves``: halves after which something else may have to follow.
    """

    def __init__(
        self,
        held: HeldScope,
        evaluator: Evaluator,
        report: ReportBuilder,
        handlers: Handlers,
        link_handlers: LinkHandlers,
        pool: Executor,
    ) -> None:
        self._held = held
        self._evaluator = evaluator
        self._report = report
        self._handlers = handlers
        self._link_handlers = link_handlers
        self._pool = pool
        self._checks = Checks(held, link_handlers, pool, evaluator.sweep_budget)
        self._backoff = LinkBackoff(held, evaluator.cycle)
        self.writes = 0
        self.moves = 0
        self.is_unfinished = False
        self.is_held_up = False

    def is_intact(self) -> bool:
        """Whether all that links made is still there; asked where nothing else changed since all was settled (L14)."""
        if not self._held.work.is_wired:
            return True
        settled = self._held.work.link_tasks
        return settled is not None and not self._checks.damaged(settled)

    def run(self, judgements: Mapping[str, Judgement]) -> None:
        """Bring all links of the scope to what is declared, as far as their ends allow."""
        held = self._held
        if not held.work.is_wired:
            return
        wired = [tracked for tracked in held.work.tracked.values() if tracked.is_wired]
        planned = [task for tracked in wired for task in self._planned(tracked, judgements[tracked.uid])]
        self._backoff.keep_only({task.key for task in planned})
        tasks = [task for task in planned if not task.silent and self._is_due(task)]
        settled = [task for task in planned if task.silent and not task.state.waits]
        waiting = [task for task in planned if task.silent and task.state.waits]
        damaged = [task for task in self._checks.damaged(settled) if self._is_due(task)]
        for task in damaged:
            task.silent, task.repairs = False, True
        self._publish_intents([*tasks, *damaged])
        by_component: dict[str, list[Task]] = defaultdict(list)
        for task in (*tasks, *damaged, *waiting):
            by_component[task.tracked.uid].append(task)
        for several in self._pool.map(self._link_handlers.carry_out_all, by_component.values()):
            for done in several:
                self._apply_result(done)
        is_all_done = not (tasks or damaged or waiting or self.is_unfinished or self.is_held_up)
        held.work.link_tasks = settled if is_all_done else None

    def holds_deletion(self, tracked: Tracked, judgement: Judgement) -> bool:
        """Whether something that links made must be taken back before the component may go (L10)."""
        if not tracked.deleting or tracked.memory.links is NO_LINKS:
            return False
        if self._phase(tracked, judgement)[0] is not Phase.END:
            return False
        return any(
            state.begun and self._find(tracked, half, state.other_type) for half, _, state in _all_states(tracked)
        )

    def _is_due(self, task: Task) -> bool:
        """Whether a half runs now, or waits because it was refused before, and nothing changed since."""
        is_due = self._backoff.allow(task, self._evaluator.now)
        self.is_held_up |= not is_due
        return is_due

    # --- planning

    def _phase(self, tracked: Tracked, judgement: Judgement) -> tuple[Phase, str]:
        view = self._evaluator.view(tracked)
        name = repr(tracked.component_id)
        if view.error is not None or tracked.in_recovery:
            return Phase.LEAVE, ""
        is_imported = judgement.stance is Stance.IMPORTED
        is_ours = not judgement.stance.is_read_only or (is_imported and self._evaluator.is_wired_here(tracked))
        if tracked.deleting:
            goes = judgement.finished or (judgement.step is not None and judgement.step.verb is Verb.DELETE)
            return (Phase.END if goes and is_ours and not judgement.left else Phase.LEAVE), ""
        if judgement.stance is Stance.OVERRIDE:
            return Phase.HOLD, f"{name} is in override, and it waits until that is managed again"
        if is_imported and not is_ours:
            return Phase.HOLD, f"{name} is imported, and only its owner wires it"
        if view.sighting is None or view.sighting.condition in _NOT_THERE:
            return Phase.HOLD, f"{name} is not there yet"
        if judgement.noticing or not (is_imported or judgement.stance is Stance.MANAGED):
            return Phase.HOLD, f"{name} is shown for one cycle before anything of it is written"
        return Phase.ACT, ""

    def _planned(self, tracked: Tracked, judgement: Judgement) -> list[Task]:
        """The halves of one component that have something to do; what goes wrong here goes wrong for it alone (S24)."""
        if tracked.given_up:
            self.is_held_up = True
            return []
        try:
            return list(self._plan(tracked, judgement))
        except Exception as error:
            log.exception("links cannot be planned", live_system=tracked.live_system_id, id=tracked.component_id)
            self._report.add_event_once(
                tracked, EventKind.OFFER_FAILED, f"its links cannot be planned: {describe_unexpected(error)}"
            )
            self.is_held_up = True
            return []

    def _plan(self, tracked: Tracked, judgement: Judgement) -> Iterator[Task]:
        phase, reason = self._phase(tracked, judgement)
        if phase is Phase.LEAVE:
            return
        link_handlers: tuple[tuple[Half, Sequence[LinkWork]], ...] = (
            ("inbound", tracked.links_in),
            ("outbound", tracked.links_out),
        )
        for half, declared in link_handlers:
            is_lost = judgement.stance is Stance.IMPORTED and not self._evaluator.is_wired_here(tracked)
            ends = phase is Phase.END or (is_lost and half == "inbound")  # its owner's component serves the links to it
            links = () if ends else declared
            for link in links:
                if phase is Phase.HOLD:
                    self._hold(tracked, half, link, reason)
                else:
                    yield from self._plan_link(tracked, half, link)
            wanted = {link.other for link in links}
            for other, state in list(_states(tracked, half).items()):
                if other not in wanted:
                    yield from self._plan_end(tracked, half, other, state, reason, is_lost=is_lost)

    def _hold(self, tracked: Tracked, half: Half, link: LinkWork, reason: str) -> None:
        """Nothing is provided or changed for now; what was published stays (L13)."""
        handler = self._find(tracked, half, link.type)
        state = _states(tracked, half).get(link.other)
        if handler is None or (state is not None and state.failed):
            return
        state = state or _begun(handler, link)
        unfinished = not state.digest or state.settings != link.settings
        self._remember(tracked, half, link.other, _with(state, waits=reason if unfinished else ""))

    def _plan_link(self, tracked: Tracked, half: Half, link: LinkWork) -> Iterator[Task]:
        handler = self._find(tracked, half, link.type)
        state = _states(tracked, half).get(link.other)
        if handler is None:
            self._leave_to_nobody(tracked, half, link.other, state)
            return
        known = state or _begun(handler, link)
        if known.begun and known.own not in ("", tracked.component_id):
            # It bears the mark of another id (O16): taken back under that one, and made anew under this.
            yield Task(tracked, half, link.other, handler, known, "revoke")
        elif link.refused and known.begun:
            yield Task(tracked, half, link.other, handler, known, "revoke", waits=link.refused)
        elif link.refused:
            self._remember(tracked, half, link.other, _with(known, waits=link.refused))
        elif link.failed:
            self._remember(tracked, half, link.other, _with(known, digest="", waits=link.failed, failed=True))
        elif half == "inbound" and (withdrawn := link_sealing.withdrawn_keys(known, link)):
            yield Task(tracked, half, link.other, handler, known, "revoke", withdrawn=withdrawn)
        else:
            yield from self._plan_provision(tracked, half, link, handler, known)

    def _plan_provision(
        self, tracked: Tracked, half: Half, link: LinkWork, handler: Handler, known: LinkState
    ) -> Iterator[Task]:
        sighting = self._evaluator.view(tracked).sighting
        assert sighting is not None, "only what is there is wired"
        if not known.begun:
            known = _with(known, settings=dict(link.settings))  # others were never acted on
        made_from = digest(handler.where, link, _own(tracked, sighting))
        same = known.digest == made_from and not link_sealing.is_new_key_there(known, link)
        if same and known.failed:
            return  # it fails in the same way until something changes
        task = Task(tracked, half, link.other, handler, known, "provide", link, made_from, silent=same)
        try:
            if not same:
                self._link_handlers.link_of(task)
            yield task
        except LinkError as error:
            failed = _with(known, digest=made_from, waits=str(error), failed=True)
            self._remember(tracked, half, link.other, failed)

    def _leave_to_nobody(self, tracked: Tracked, half: Half, other: str, state: LinkState | None) -> None:
        """Nobody here has this half. What was made by it stays until somebody has: a package may just be missing."""
        if state is not None:
            ends = f"{state.other_type} and {tracked.type}"
            text = f"this agent has no {half} half between {ends}: install the package that has it, and restart it"
            self._remember(tracked, half, other, _with(state, waits=text) if state.begun else None)

    def _plan_end(
        self, tracked: Tracked, half: Half, other: str, state: LinkState, held_back: str, *, is_lost: bool
    ) -> Iterator[Task]:
        handler = self._find(tracked, half, state.other_type)
        if not state.begun:
            self._remember(tracked, half, other, None)
        elif handler is None:
            self._leave_to_nobody(tracked, half, other, state)
        elif is_lost:
            text = f"what was made for it is still there: {held_back}, and only its owner can take it back"
            self._remember(tracked, half, other, _with(state, digest="", fields={}, waits=text, failed=False))
        elif held_back:
            self._remember(tracked, half, other, _with(state, waits=f"it is to be taken back: {held_back}"))
        else:
            yield Task(tracked, half, other, handler, state, "revoke")

    def _find(self, tracked: Tracked, half: Half, other_type: str) -> Handler | None:
        pair = (other_type, tracked.type) if half == "inbound" else (tracked.type, other_type)
        return self._handlers.find(half, *pair)

    # --- what is remembered

    def _publish_intents(self, tasks: Sequence[Task]) -> None:
        """Memory first: the control plane knows of every half before it runs, and what to take back of it (S17, C7)."""
        if not tasks:
            return
        for task in tasks:
            self._remember(task.tracked, task.half, task.other, _intended(task))
            task.entry_id = self._intend(task)
        touched = {task.tracked.uid: task.tracked for task in tasks}
        memories = {uid: tracked.memory for uid, tracked in touched.items()}
        self._report.publish([to_change(uid, memory) for uid, memory in memories.items()], memories)

    def _intend(self, task: Task) -> str:
        return self._report.journal.intend_link(task, self._evaluator.view(task.tracked).sighting)

    def _apply_result(self, done: Done) -> None:
        task = done.task
        if task.silent and done.published is not None:
            # It waited, and was checked in silence: only that something came of it is worth an entry.
            task.entry_id = self._intend(task)
        noted = EntryRef()
        if task.entry_id:
            noted = self._report.journal.close_link(done)
            self.writes += not done.abandoned
        if done.abandoned:
            self.is_unfinished = True
        elif done.problem:
            self._apply_failure(done, noted)
        elif task.verb == "revoke" and task.withdrawn:
            self._backoff.forget(task)
            self.moves += 1
            self._apply_withdrawal(task)
        elif task.verb == "revoke":
            self._backoff.forget(task)
            self.moves += 1
            kept = _with(task.state, digest="", fields={}, begun=False, tried=[], failed=False, waits=task.waits)
            self._remember(task.tracked, task.half, task.other, kept if task.waits else None)
            self.is_unfinished |= task.other in _others(task.tracked, task.half) and not task.waits
        else:
            self._backoff.forget(task)
            self._apply_published(task, done.published)

    def _apply_withdrawal(self, task: Task) -> None:
        """A key was withdrawn, and what was sealed to it opens nothing any more: it is provided anew at once (A5).

        What is published stays until then: the source keeps its secret, which is of no use, until it has the new one.
        """
        keys = ", ".join(task.withdrawn)
        text = f"access of {task.other!r} revoked: it was sealed to key {keys}, which was withdrawn"
        self._report.add_event(task.tracked, EventKind.SECRET_REVOKED, text)
        kept = _with(task.state, digest="", seen_keys=None, revoked=True, tried=[], failed=False, waits="")
        self._remember(task.tracked, task.half, task.other, kept)
        self.is_unfinished = True

    def _apply_published(self, task: Task, published: Mapping[str, Scalar] | None) -> None:
        assert task.work is not None, "only a link that stands is provided"
        waits = failed = False
        if published is None:
            waits, failed = True, task.handler.if_missing == "fail"
        state = LinkState(
            **_ends(task.handler, task.work),
            digest=task.digest,
            fields=dict(published or {}),
            waits=_nothing_yet(task) if waits else "",
            failed=failed,
            begun=True,
            own=task.tracked.component_id,
            **link_sealing.keys_after(task.state, task.link, task.work, published),
        )
        if link_sealing.has_sealed(task.link):
            self._report.add_event(task.tracked, EventKind.SECRET_SEALED, _sealed(task))
        self.moves += state.fields != task.state.fields
        self._remember(task.tracked, task.half, task.other, state)

    def _apply_failure(self, done: Done, noted: EntryRef) -> None:
        """It is tried again when something changes; later, where it was refused; soon, where a cloud did not answer."""
        task = done.task
        if isinstance(done.error, GivenUp):
            self._held.observed.reads_since.pop(task.tracked.uid, None)
            self._report.add_event_once(task.tracked, EventKind.CALL_GIVEN_UP, done.problem)
        is_over = (done.failed or done.waits) and task.verb == "provide"
        message = done.problem
        if not is_over:
            next_try = self._backoff.add(done, noted, self._evaluator.now) if done.error or not done.waits else ""
            message = f"{message}; {next_try}" if next_try else message
            self.is_held_up = True
            self.is_unfinished |= isinstance(done.error, Transient | Throttled | Unreadable)
        before = _states(task.tracked, task.half).get(task.other, task.state)
        changes: dict[str, object] = {"digest": task.digest if is_over else "", "waits": message}
        if task.work is not None:
            changes |= {"failed": done.failed, "seen_keys": link_sealing.fingerprints(task.work)}
        self._remember(task.tracked, task.half, task.other, _with(before, **changes))

    def _remember(self, tracked: Tracked, half: Half, other: str, state: LinkState | None) -> None:
        states = dict(_states(tracked, half))
        if states.get(other) == state:
            return
        if state is None:
            del states[other]
        else:
            states[other] = state
        links = tracked.memory.links
        inbound = states if half == "inbound" else links.inbound
        outbound = states if half == "outbound" else links.outbound
        new = LinkStates(inbound=inbound, outbound=outbound) if inbound or outbound else NO_LINKS
        tracked.memory = replace(tracked.memory, links=new)
        self._report.unpublished.add(tracked.uid)


def _states(tracked: Tracked, half: Half) -> dict[str, LinkState]:
    links = tracked.memory.links
    return links.inbound if half == "inbound" else links.outbound


def _all_states(tracked: Tracked) -> Iterator[tuple[Half, str, LinkState]]:
    for other, state in tracked.memory.links.inbound.items():
        yield "inbound", other, state
    for other, state in tracked.memory.links.outbound.items():
        yield "outbound", other, state


def _others(tracked: Tracked, half: Half) -> set[str]:
    return {link.other for link in (tracked.links_in if half == "inbound" else tracked.links_out)}


def _own(tracked: Tracked, sighting: Sighting) -> list[Any]:
    """What a half sees of its own side."""
    return [tracked.component_id, sighting.resource_id, dict(sighting.outputs), dict(tracked.parameters)]


def _ends(handler: Handler, link: LinkWork) -> dict[str, Any]:
    return {
        "link_type": handler.link_type,
        "other_type": link.type,
        "other_provider": link.provider,
        "settings": dict(link.settings),
    }


def _begun(handler: Handler, link: LinkWork) -> LinkState:
    return LinkState(**_ends(handler, link))


def _intended(task: Task) -> LinkState:
    """What must be remembered of a half before it runs: that it did, and under which settings."""
    state = task.state
    tried = list(state.tried)
    if task.work is not None and task.work.settings != state.settings and task.work.settings not in tried:
        tried.append(dict(task.work.settings))
    return _with(state, digest="", begun=True, own=state.own or task.tracked.component_id, tried=tried)


def _nothing_yet(task: Task) -> str:
    if task.half == "outbound":
        return f"{task.other!r} has published nothing for it yet"
    return f"{task.tracked.component_id!r} is not as far yet, or {task.other!r} is not"


def _sealed(task: Task) -> str:
    assert task.work is not None, "only for a link that stands is anything sealed"
    keys = link_sealing.fingerprints(task.work)
    anew = " anew" if task.state.fields else ""
    return f"secret for {task.other!r} sealed{anew} to {counted(len(keys), 'key')}: {', '.join(keys)}"


def _with(state: LinkState, **changes: object) -> LinkState:
    return state.model_copy(update=changes)
