"""What agents say to the control plane: the models of ``model.wire``, one route each.

The long poll and reports are async, because they wait for others. What agents say often is answered ready-made: FastAPI
would check our own answer once more, on another thread.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from fractal_cloud.control.api.batching import Batcher, RunIndividually
from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import StrictRoute, TheStore, Who, answer
from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.principal import Role
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import (
    Store,
    access,
    agents,
    claims,
    learning,
    plan_tasks,
    realms,
    recovery,
    reports,
    scopes,
    unread_scopes,
)
from fractal_cloud.control.store.access import Access
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.errors import AgentRefused, Forbidden, ReportRefused, TypeOfAnother
from fractal_cloud.control.store.failures import OutcomeUnknown, again
from fractal_cloud.control.store.signals import reach_topic
from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.errors import InputError
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.wire import (
    Beat,
    Claim,
    Claimed,
    Heartbeat,
    LastSeen,
    PlanResult,
    Registered,
    Registration,
    Report,
    Reported,
    Wait,
    Woken,
)
from fractal_cloud.offers.secret import is_public_key
from fractal_cloud.offers.type_validation import template_errors, type_errors
from fractal_cloud.rules.grants import EVERYTHING

router = APIRouter(prefix="/agent", tags=["agents"], route_class=StrictRoute)
LONGEST_WAIT = 60.0
LONGEST_CYCLE = 86_400.0


async def _speaker(request: Request, who: Who) -> Access:
    """The token an agent speaks with; an admin's is none, unless the settings of a control plane on loopback say so."""
    settings: ControlSettings = request.app.state.settings
    if who.role is Role.AGENT:
        return Access(who.id, who.name, who.grants)
    if not settings.lets_admins_be_agents:
        raise Forbidden(
            f"token {who.name!r} has the role {who.role.value!r}, and an agent needs one of its own: make one with "
            "`fractal token create --role agent --provider … --environment … --realm …`"
        )
    return Access(who.id, who.name, EVERYTHING)


Speaker = Annotated[Access, Depends(_speaker)]


class AgentName(Wire):
    """An agent says which one it is."""

    agent_id: str


class Released(AgentName):
    """An agent gives scopes back: these, or without a list all of them, because it stops."""

    scopes: list[str] | None = None


@router.post("/register")
def register(registration: Registration, store: TheStore, speaker: Speaker, request: Request) -> Registered:
    """An agent introduces itself: what it reaches, and which types it knows."""
    if not 0 < registration.cycle_seconds <= LONGEST_CYCLE:
        raise BadRequest([InputError("cycleSeconds", f"is {registration.cycle_seconds}: give seconds, up to a day")])
    with _recorded(store, EventKind.REGISTRATION_REFUSED, speaker, registration.agent_id):
        with store.read() as tx:
            access.check(tx, speaker, registration)
            errors = type_errors(registration.types, store.catalog(tx))
        # Of a type that is installed here, the commands installed here are printed, whatever an agent brings.
        errors += template_errors([facts for facts in registration.types if facts.type not in store.installed_types])
        if registration.public_key and not is_public_key(registration.public_key):
            errors.append(InputError("publicKey", "is no key that a value can be sealed to: give 32 bytes in base64"))
        if errors:
            raise BadRequest(errors)
        if registration.last_seen is not None:
            _recover_if_restored(store, registration, registration.last_seen, speaker, request.app.state.authenticator)
        with store.write() as tx:
            registered = agents.register(tx, registration, speaker, store.installed_types)
            realms.accept_recreated(tx, registration.environment)
            return registered


@contextmanager
def _recorded(store: Store, kind: EventKind, speaker: Access, agent_id: str) -> Iterator[None]:
    """Record an event of what is refused: it is beyond the token, is another's, or speaks in words nobody may print."""
    try:
        yield
    except (AgentRefused, ReportRefused, TypeOfAnother) as refused:
        with store.write() as tx:
            store.refusals.record(tx, kind, speaker.token, agent_id, refused.message)
        raise


def _recover_if_restored(
    store: Store, registration: Registration, seen: LastSeen, speaker: Access, authenticator: Authenticator
) -> None:
    """Begin a recovery where the agent knows more than the database does; that stands even if the agent is refused."""
    with store.read() as tx:
        if not recovery.is_restored(tx, seen):
            return
    with store.write() as tx:
        recovery.begin_if_restored(tx, seen, registration.agent_id, speaker.token)
    authenticator.forget()


@router.post("/claim", responses={200: {"model": Claimed}})
def claim(wanted: Claim, store: TheStore, speaker: Speaker) -> Response:
    """All leases the agent holds, new ones, and the work that changed."""
    with _recorded(store, EventKind.REPORT_REFUSED, speaker, wanted.agent_id):
        return answer(claims.claim(store.database, wanted, speaker))


@router.post("/heartbeat", responses={200: {"model": Beat}})
def heartbeat(beat: Heartbeat, store: TheStore, speaker: Speaker) -> Response:
    """The agent is alive; its leases live on, but for those of scopes that its token does not cover any more."""
    with store.write() as tx:
        beaten = agents.heartbeat(tx, beat, speaker)
    if beaten.beyond:
        with store.write() as tx:
            scopes.release(tx, beat.agent_id, beaten.beyond)
    if beaten.has_read:
        with store.write() as tx:
            unread_scopes.end_read_by(tx, beat.agent_id)
    return answer(beaten.beat)


@router.post("/report", responses={200: {"model": Reported}})
async def report(sent: Report, speaker: Speaker, request: Request) -> Response:
    """All that changed in a cycle, or is about to be written; refused whole where a lease is lost."""
    batcher: Batcher[reports.Sent, Reported] = request.app.state.reports
    return answer(await batcher.run(reports.Sent(sent, speaker.token_id, speaker.token)))


def report_batcher(store: Store) -> Batcher[reports.Sent, Reported]:
    """Make the batcher that applies reports which arrive at the same time in one transaction."""

    def apply(sent: Sequence[reports.Sent]) -> Sequence[Reported | Exception]:
        try:
            with store.write() as tx:
                outcomes = reports.apply(tx, sent)
                _record_refused(store, tx, zip(sent, outcomes, strict=True))
                return outcomes
        except OutcomeUnknown:
            raise  # it may be committed: not again
        except Exception as error:
            if len(sent) > 1:
                raise RunIndividually from error
            raise

    return Batcher(apply, operator.attrgetter("subjects"))


def _record_refused(store: Store, tx: Tx, reported: Iterable[tuple[reports.Sent, object]]) -> None:
    """Record who reported what is another's (A3)."""
    for one, outcome in reported:
        if isinstance(outcome, ReportRefused):
            kind = EventKind.REPORT_REFUSED
            store.refusals.record(tx, kind, one.token_name, one.report.agent_id, outcome.message)


@router.post("/release", status_code=204)
def release(given: Released, store: TheStore, speaker: Speaker) -> None:
    """The agent gives scopes back, or stops: others may take them at once."""
    with store.write() as tx:
        agents.get(tx, given.agent_id, speaker)
        if given.scopes is None:
            agents.leave(tx, given.agent_id)
        else:
            scopes.release(tx, given.agent_id, given.scopes)


@router.post("/plans/{id}", status_code=204)
def answer_plan(
    task_id: Annotated[str, Path(alias="id", pattern="^[0-9a-f]{1,64}$")],
    result: PlanResult,
    store: TheStore,
    speaker: Speaker,
) -> None:
    """An agent's answer to a plan somebody waits for."""
    with _recorded(store, EventKind.REPORT_REFUSED, speaker, "of a plan"), store.write() as tx:
        installed = store.installed_types
        plan_tasks.answer(
            tx,
            task_id,
            result,
            speaker.token_id,
            lambda task: learning.accept(tx, task, result, speaker.token, installed),
        )


@router.post("/wait", responses={200: {"model": Woken}})
async def wait(wanted: Wait, store: TheStore, speaker: Speaker, request: Request) -> Response:
    """Return as soon as there is news for the agent, else after so many seconds."""
    mark = store.signals.mark()
    now, reaches = await run_in_threadpool(_wake_number, store, wanted, speaker)
    if now != wanted.wake:
        return answer(Woken(wake=now, woken=True))
    topics = [reach_topic(*reach) for reach in reaches]
    with store.signals.subscribe(topics) as subscription:
        # What was committed before the subscription began is news, too: it is read again where something was.
        is_woken = store.signals.was_notified(topics, mark)
        if not is_woken and not await request.is_disconnected():
            is_woken = await subscription.wait(min(wanted.seconds, LONGEST_WAIT))
        if is_woken:
            now, _ = await run_in_threadpool(again, lambda: _wake_number(store, wanted, speaker))
    return answer(Woken(wake=now, woken=now != wanted.wake))


def _wake_number(store: Store, wanted: Wait, speaker: Access) -> tuple[int, frozenset[tuple[str, str]]]:
    with store.read() as tx:
        return agents.wake_number(tx, wanted.agent_id, speaker)
