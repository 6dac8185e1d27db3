"""Links in one cycle of one scope: which halves have something to do, and what is remembered of them.

    declared links ──┐
    remembered links ├─▶ plan ──▶ publish intents ──▶ run the halves ──▶ remember what they publish
    verify in bulk ──┘

It comes after the components themselves were brought to their declaration: a link never orders anything (L2). The
halves share nothing with those of the other side but what is published (L4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from enum import Enum

import structlog

from fractal_cloud.agent.book import Book
from fractal_cloud.agent.halves import Done, Halves, Task
from fractal_cloud.agent.outlook import Outlook
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.model.errors import CloudError, Throttled, Transient, Unreadable
from fractal_cloud.model.link import NO_LINKS, Half, LinkState, LinkStates, LinkWork
from fractal_cloud.model.sighting import Condition
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tracked import Tracked, to_change
from fractal_cloud.offers.link import Handler, Handlers
from fractal_cloud.rules.judge import Judgement
from fractal_cloud.rules.links import digest

log = structlog.get_logger()

_NOT_THERE = frozenset({Condition.CREATING, Condition.DYING, Condition.BROKEN})


class Phase(Enum):
    """What may be done for the links of a component now."""

    ACT = "act"
    HOLD = "hold"
    LEAVE = "leave"
    END = "end"


class Wiring:
    """The links of one scope in one cycle. ``is_unfinished``: something is left to do, so look again soon."""

    def __init__(
        self, held: HeldScope, outlook: Outlook, book: Book, handlers: Handlers, halves: Halves, pool: Executor
    ) -> None:
        self._held = held
        self._outlook = outlook
        self._book = book
        self._handlers = handlers
        self._halves = halves
        self._pool = pool
        self.writes = 0
        self.is_unfinished = False

    def is_intact(self) -> bool:
        """Whether all that links made is still there; asked where nothing else changed since all was settled (L14)."""
        if not self._held.is_wired:
            return True
        settled = self._held.wires
        if settled is None or any(task.handler.verify is None for task in settled):
            return False
        return not self._damaged(settled)

    def run(self, judgements: Mapping[str, Judgement]) -> None:
        """Bring all links of the scope to what is declared, as far as their ends allow."""
        held = self._held
        held.wires = None
        if not held.is_wired:
            return
        wired = [tracked for tracked in held.tracked.values() if tracked.is_wired]
        planned = [task for tracked in wired for task in self._plan(tracked, judgements[tracked.uid])]
        settled = [task for task in planned if task.silent]
        tasks = [task for task in planned if not task.silent]
        damaged = self._damaged([task for task in settled if task.handler.verify is not None])
        for task in damaged:
            task.silent = False
        again = [task for task in settled if task.handler.verify is None]
        self._publish_intents([*tasks, *damaged])
        for done in self._pool.map(self._halves.carry_out, [*tasks, *damaged, *again]):
            self._take_in(done)
        if not self.is_unfinished:
            held.wires = settled if not tasks and not damaged else None

    def holds_deletion(self, tracked: Tracked, judgement: Judgement) -> bool:
        """Whether something that links made must be taken back before the component may go (L10)."""
        if not tracked.deleting or tracked.memory.links is NO_LINKS:
            return False
        if self._phase(tracked, judgement)[0] is not Phase.END:
            return False
        return any(self._revoker(tracked, half, state) for half, _, state in _all_states(tracked))

    # --- planning

    def _phase(self, tracked: Tracked, judgement: Judgement) -> tuple[Phase, str]:
        view = self._outlook.view(tracked)
        name = repr(tracked.component_id)
        if view.error is not None:
            return Phase.LEAVE, ""
        if tracked.deleting:
            ends = not judgement.left and not judgement.stance.hands_off
            return (Phase.END if ends else Phase.LEAVE), ""
        if judgement.stance is Stance.OVERRIDE:
            return Phase.HOLD, f"{name} is in override, and it waits until that is managed again"
        if judgement.stance is Stance.IMPORTED:
            return Phase.HOLD, f"{name} is imported, and only its owner wires it"
        if judgement.stance is not Stance.MANAGED or view.sighting is None or view.sighting.condition in _NOT_THERE:
            return Phase.HOLD, f"{name} is not there yet"
        return Phase.ACT, ""

    def _plan(self, tracked: Tracked, judgement: Judgement) -> Iterator[Task]:
        phase, reason = self._phase(tracked, judgement)
        if phase is Phase.LEAVE:
            return
        halves: tuple[tuple[Half, Sequence[LinkWork]], ...] = (
            ("inbound", tracked.links_in),
            ("outbound", tracked.links_out),
        )
        for half, declared in halves:
            wanted = {link.other for link in declared} if phase is not Phase.END else set()
            for link in declared if phase is not Phase.END else ():
                if phase is Phase.HOLD:
                    self._hold(tracked, half, link, reason)
                else:
                    yield from self._plan_link(tracked, half, link)
            for other, state in list(_states(tracked, half).items()):
                if other not in wanted:
                    yield from self._plan_end(tracked, half, other, state, reason)

    def _hold(self, tracked: Tracked, half: Half, link: LinkWork, reason: str) -> None:
        """Nothing is provided or changed for now; what was published stays (L13)."""
        handler = self._find(tracked, half, link.type)
        if handler is None:
            return
        state = _states(tracked, half).get(link.other) or _begun(handler, link)
        unfinished = not state.digest or state.settings != link.settings
        self._remember(tracked, half, link.other, _with(state, waits=reason if unfinished else ""))

    def _plan_link(self, tracked: Tracked, half: Half, link: LinkWork) -> Iterator[Task]:
        handler = self._find(tracked, half, link.type)
        state = _states(tracked, half).get(link.other)
        if handler is None:
            if state is not None:
                self._remember(tracked, half, link.other, None)
            return
        known = state or _begun(handler, link)
        if link.refused:
            if known.digest or known.fields:
                yield Task(tracked, half, link.other, handler, known, "revoke", waits=link.refused)
            else:
                self._remember(tracked, half, link.other, _with(known, waits=link.refused))
            return
        sighting = self._outlook.view(tracked).sighting
        assert sighting is not None, "only what is there is wired"
        made_from = digest(handler.where, link, sighting.resource_id, sighting.outputs)
        same = known.digest == made_from
        if same and known.failed:
            return  # it fails in the same way until something changes
        yield Task(tracked, half, link.other, handler, known, "provide", link, made_from, silent=same)

    def _plan_end(self, tracked: Tracked, half: Half, other: str, state: LinkState, held_back: str) -> Iterator[Task]:
        handler = self._revoker(tracked, half, state)
        if handler is None:
            self._remember(tracked, half, other, None)
        elif held_back:
            self._remember(tracked, half, other, _with(state, waits=f"it is to be taken back: {held_back}"))
        else:
            yield Task(tracked, half, other, handler, state, "revoke")

    def _find(self, tracked: Tracked, half: Half, other_type: str) -> Handler | None:
        pair = (other_type, tracked.type) if half == "inbound" else (tracked.type, other_type)
        return self._handlers.find(half, *pair)

    def _revoker(self, tracked: Tracked, half: Half, state: LinkState) -> Handler | None:
        """Who can take back what is remembered of a link; None where there is nothing to take back."""
        handler = self._find(tracked, half, state.other_type)
        return handler if handler is not None and handler.revoke is not None else None

    def _damaged(self, settled: Iterable[Task]) -> list[Task]:
        """Of links in which nothing is known to differ, those whose thing is not there as it was made (L14)."""
        by_handler: dict[Handler, list[Task]] = defaultdict(list)
        for task in settled:
            by_handler[task.handler].append(task)
        return [task for handler, tasks in by_handler.items() for task in self._verify(handler, tasks)]

    def _verify(self, handler: Handler, tasks: list[Task]) -> list[Task]:
        assert handler.verify is not None, "only handlers that can verify are asked"
        try:
            links = {id(self._halves.link_of(task)): task for task in tasks}
            intact = {id(link) for link in handler.verify([task.link for task in tasks])}
        except CloudError as error:
            log.warning("links cannot be checked", handler=handler.where, error=error.message)
            return []
        return [task for key, task in links.items() if key not in intact]

    # --- what is remembered

    def _publish_intents(self, tasks: Sequence[Task]) -> None:
        """Memory first: the control plane knows of every half before it runs, and what to take back of it (S17, C7)."""
        if not tasks:
            return
        for task in tasks:
            self._remember(task.tracked, task.half, task.other, _with(task.state, digest=""))
            task.entry_id = self._book.journal.intend_link(task.tracked, task)
        touched = {task.tracked.uid: task.tracked for task in tasks}
        memories = {uid: tracked.memory for uid, tracked in touched.items()}
        self._book.publish([to_change(uid, memory) for uid, memory in memories.items()], memories)

    def _take_in(self, done: Done) -> None:
        task = done.task
        if task.entry_id:
            self._book.journal.close_link(done)
            self.writes += not done.abandoned
        if done.abandoned:
            self.is_unfinished = True
            return
        if done.trouble:
            self._take_in_trouble(done)
        elif task.verb == "revoke":
            kept = _with(task.state, digest="", fields={}, waits=task.waits) if task.waits else None
            self._remember(task.tracked, task.half, task.other, kept)
        else:
            assert task.work is not None, "only a link that stands is provided"
            waits = "" if done.published is not None else f"{task.other!r} has published nothing for it yet"
            state = _begun(task.handler, task.work)
            state = _with(state, digest=task.digest, fields=done.published or {}, waits=waits)
            self._remember(task.tracked, task.half, task.other, state)

    def _take_in_trouble(self, done: Done) -> None:
        """It is tried again: at once where a cloud stood in the way, else when something changes."""
        task = done.task
        failed = done.failed and task.verb == "provide"
        self.is_unfinished |= isinstance(done.error, (Transient, Throttled, Unreadable))
        state = _with(task.state, digest=task.digest if failed else "", waits=done.trouble, failed=failed)
        self._remember(task.tracked, task.half, task.other, state)

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
        self._book.unpublished.add(tracked.uid)


def _states(tracked: Tracked, half: Half) -> dict[str, LinkState]:
    links = tracked.memory.links
    return links.inbound if half == "inbound" else links.outbound


def _all_states(tracked: Tracked) -> Iterator[tuple[Half, str, LinkState]]:
    for other, state in tracked.memory.links.inbound.items():
        yield "inbound", other, state
    for other, state in tracked.memory.links.outbound.items():
        yield "outbound", other, state


def _begun(handler: Handler, link: LinkWork) -> LinkState:
    return LinkState(
        link_type=handler.link_type, other_type=link.type, other_provider=link.provider, settings=dict(link.settings)
    )


def _with(state: LinkState, **changes: object) -> LinkState:
    return state.model_copy(update=changes)
