"""Running one half of one link: the link as its handler sees it, the guard before it, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar

import structlog

from fractal_cloud.agent.evaluator import Evaluator
from fractal_cloud.agent.link_sealing import repeats_what_was_revoked
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.agent.watchdog import NoReturn, StillOut, Watchdog
from fractal_cloud.model.declaration import Scalar
from fractal_cloud.model.errors import CloudError, GivenUp, LinkError, LinkNotReady, Unreadable
from fractal_cloud.model.link import Half, LinkSettings, LinkState, LinkWork
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.link import Handler, InboundLink, Link, OutboundLink
from fractal_cloud.offers.secret import SealingKey, without_secrets
from fractal_cloud.rules.judge import Judgement, Verb
from fractal_cloud.rules.situate import ABSENT, View

log = structlog.get_logger()
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Task:
    """One half that has something to do.

    ``work`` None: the link was taken away, or must not be served; ``waits`` then says why it is still remembered.
    ``silent``: nothing is known to differ, it is only checked. ``link`` is made once and kept.
    ``repairs``: what it made is not there any more. ``withdrawn``: the keys for which it is revoked and then provided
    anew, by their fingerprints (A5).
    """

    tracked: Tracked
    half: Half
    other: str
    handler: Handler
    state: LinkState
    verb: Literal["provide", "revoke"]
    work: LinkWork | None = None
    digest: str = ""
    waits: str = ""
    silent: bool = False
    repairs: bool = False
    withdrawn: Sequence[str] = ()
    entry_id: str = ""
    link: Link[Any] | None = None

    @property
    def key(self) -> tuple[str, Half, str]:
        """Which half of which link it is."""
        return self.tracked.uid, self.half, self.other


@dataclass(slots=True)
class Done:
    """What came of one task. ``published`` None: nothing is published (any more). ``problem``: what people read.

    ``failed``: it cannot be done as it is declared. ``waits``: the other side is not as far. ``is_faulty``: the handler
    itself failed.
    """

    task: Task
    published: dict[str, Scalar] | None = None
    error: CloudError | None = None
    problem: str = ""
    failed: bool = False
    waits: bool = False
    is_faulty: bool = False
    abandoned: bool = False
    request_ids: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)


class LinkHandlers:
    """Runs halves of links in one scope. ``may_write`` is asked right before every one."""

    def __init__(
        self,
        held: HeldScope,
        evaluator: Evaluator,
        offers: Mapping[str, OfferFacts],
        sealing: SealingKey,
        may_write: Callable[[], bool],
        watchdog: Watchdog,
    ) -> None:
        self._watchdog = watchdog
        self._held = held
        self._evaluator = evaluator
        self._offers = offers
        self._sealing = sealing
        self._may_write = may_write

    def link_of(self, task: Task) -> Link[Any]:
        """The link as the handler sees it; raises ``LinkSettingsError`` where its settings are not what it asks for."""
        if task.link is None:
            task.link = self._made(task)
        return task.link

    def _made(self, task: Task) -> Link[Any]:
        tracked, work, state = task.tracked, task.work, task.state
        settings = self._settings(task)
        previous = None
        if work is not None and state.begun and state.settings != work.settings:
            previous = _read_leniently(task.handler, state.settings)
        common: dict[str, Any] = {
            "own": tracked.component_id if work is not None else state.own or tracked.component_id,
            "other": task.other,
            "live_system_id": tracked.live_system_id,
            "other_type": work.type if work is not None else state.other_type,
            "own_provider": self._held.scope.provider,
            "other_provider": work.provider if work is not None else state.other_provider,
            "settings": settings,
            "cloud": self._held.cloud,
            "sighting": self._evaluator.view(tracked).sighting,
            "parameters": tracked.parameters,
            "outputs": work.outputs if work is not None else {},
            "published": work.published if work is not None else {},
            "fields": state.fields,
            "previous": previous,
        }
        if task.half == "inbound":
            return InboundLink(**common, keys=tuple(work.keys) if work is not None else (), is_revoked=state.revoked)
        return OutboundLink(**common, sealing=self._sealing)

    def _settings(self, task: Task) -> LinkSettings:
        if task.work is None:
            return _read_leniently(task.handler, task.state.settings)
        ends = (task.other, task.tracked.component_id)
        source, target = ends if task.half == "inbound" else ends[::-1]
        return task.handler.read_settings(task.work.settings, source, target)

    def carry_out_all(self, tasks: Sequence[Task]) -> list[Done]:
        """Run halves one after the other: those of one component, which may change the same thing in the cloud."""
        return [self.carry_out(task) for task in tasks]

    def carry_out(self, task: Task) -> Done:
        """Run one half, guarded. Whatever a handler raises is reported, with the secrets it has seen taken out."""
        done = Done(task)
        try:
            link = self.link_of(task)
            with self._held.cloud.calling_as(
                CallContext(task.tracked.live_system_id, task.tracked.component_id, "link")
            ) as act:
                try:
                    self._run(task, link, done)
                finally:
                    done.request_ids = list(act.request_ids)
        except CloudError as error:
            done.error = error
            done.problem = self._clean(error.message, task)
        except LinkNotReady as error:
            done.problem, done.waits = self._clean(str(error), task), True
        except LinkError as error:
            done.problem, done.failed = self._clean(str(error), task), True
        except Exception as error:  # noqa: BLE001  # somebody else's code: its errors must not end the scope's cycle
            text = self._clean(f"{type(error).__name__}: {error}", task)
            log.error("link handler failed", handler=task.handler.where, error=text)
            done.problem, done.is_faulty = f"the handler {task.handler.where} failed: {text}", True
        return done

    def _run(self, task: Task, link: Link[Any], done: Done) -> None:
        if not task.silent or task.handler.revoke is not None:
            link.sighting = self._guard(task, done)
        if done.abandoned:
            return
        if task.tracked.in_recovery or not self._may_write():
            done.abandoned = True
        elif task.verb == "revoke":
            self._call(task, lambda: _revoke(task.handler, link))
            self._revoke_tried(task, link)
        else:
            self._revoke_tried(task, link)
            done.published = self._call(task, lambda: task.handler(link))
            if repeats_what_was_revoked(task.state, link, done.published):
                raise LinkError(f"{task.handler.where} published again what was revoked: it must make a new secret")
            if done.published is None and task.state.fields:
                self._call(task, lambda: _revoke(task.handler, link))

    def _call(self, task: Task, run: Callable[[], T]) -> T:
        """Run what a package wrote; what does not return is given up, and may still take effect (S24)."""
        what = f"the handler {task.handler.where}"
        try:
            return self._watchdog.call(self.key_of(task.handler), lambda _: run())
        except NoReturn as error:
            text = f"{what} did not return within {error.seconds:g} s and was given up: it may still take effect"
            raise GivenUp(text, code="NoReturn") from error
        except StillOut as error:
            raise Unreadable(f"{what} was not called: an earlier call has not returned", code="NoReturn") from error

    def check(self, handler: Handler, run: Callable[[], T]) -> T:
        """Ask a handler something; raises what it raises, and ``Unreadable`` where it does not return."""
        try:
            return self._watchdog.call(self.key_of(handler), lambda _: run())
        except NoReturn as error:
            raise Unreadable(f"it did not return within {error.seconds:g} s", code="NoReturn") from error
        except StillOut as error:
            raise Unreadable("an earlier call has not returned", code="NoReturn") from error

    def key_of(self, handler: Handler) -> tuple[str, str]:
        """What is not called again until it has returned: one handler in one scope."""
        return self._held.scope.key, handler.where

    def _revoke_tried(self, task: Task, link: Link[Any]) -> None:
        """Revoke what may have been made under settings that are no longer declared, whose end nobody knows (S17)."""
        current = (task.state.settings, task.work.settings if task.work is not None else None)
        for settings in task.state.tried:
            if settings not in current:
                tried = replace(link, settings=_read_leniently(task.handler, settings), previous=None)
                self._call(task, partial(_revoke, task.handler, tried))

    def _guard(self, task: Task, done: Done) -> Sighting | None:
        """Read the own resource once more: only what is still ours is wired, or unwired (S16)."""
        tracked = task.tracked
        sighting = self._evaluator.view(tracked).sighting
        if sighting is None:
            return None  # only something is taken back of what is gone already
        fresh = self._offers[tracked.type].offer.read(self._held.cloud, sighting.resource_id)
        if fresh is not None and (fresh.name, fresh.parent_id) != (sighting.name, sighting.parent_id):
            fresh = None  # renamed behind our back: it is no longer what the component names
        fresh = None if fresh is None else self._evaluator.as_declared(tracked, fresh)
        again = self._evaluator.judge(tracked, View(sighting=fresh) if fresh is not None else ABSENT)
        is_here = again.stance is Stance.IMPORTED and self._evaluator.is_wired_here(tracked)
        done.abandoned = not (
            _is_there_for_links(tracked, fresh, again) if is_here else _is_ours(tracked, fresh, again)
        )
        done.tags = dict(fresh.tags) if fresh is not None else {}
        return fresh

    def _clean(self, text: str, task: Task) -> str:
        return without_secrets(text, task.link.watch.seen if task.link is not None else ())


def _is_there_for_links(tracked: Tracked, fresh: Sighting | None, again: Judgement) -> bool:
    """Of what nobody can own: whether it is what the component means, or goes from the declaration with its links."""
    return again.finished if tracked.deleting else fresh is not None


def _is_ours(tracked: Tracked, fresh: Sighting | None, again: Judgement) -> bool:
    if tracked.deleting:
        return fresh is None or (again.step is not None and again.step.verb is Verb.DELETE)
    return fresh is not None and fresh.protocol.is_managed and again.stance is Stance.MANAGED and not again.noticing


def _revoke(handler: Handler, link: Link[Any]) -> None:
    if handler.revoke is not None:
        handler.revoke(link)


def _read_leniently(handler: Handler, settings: Mapping[str, Any]) -> LinkSettings:
    """Settings under which something was provided once, even if today's contract would refuse them."""
    try:
        return handler.read_settings(settings, "", "")
    except LinkError:
        names = {item.alias or name: name for name, item in handler.settings.model_fields.items()}
        return handler.settings.model_construct(**{names.get(key, key): value for key, value in settings.items()})
