"""What agents say to the control plane: the models of ``model.wire``, one route each.

The long poll and reports are async, because they wait for others. What agents say often is answered ready-made: FastAPI
would check our own answer once more, on another thread.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from fractal_cloud.control.api.batching import Batcher, RunIndividually
from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import StrictRoute, TheStore, Who, answer
from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.principal import Principal
from fractal_cloud.control.store import Store, agents, claims, plan_tasks, realms, recovery, reports, scopes
from fractal_cloud.control.store.errors import Forbidden
from fractal_cloud.control.store.failures import OutcomeUnknown, again
from fractal_cloud.control.store.signals import reach_topic
from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.errors import InputError
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
from fractal_cloud.offers.type_validation import type_errors

router = APIRouter(prefix="/agent", tags=["agents"], route_class=StrictRoute)
LONGEST_WAIT = 60.0
LONGEST_CYCLE = 86_400.0


class AgentName(Wire):
    """An agent says which one it is."""

    agent_id: str


class Released(AgentName):
    """An agent gives scopes back: these, or without a list all of them, because it stops."""

    scopes: list[str] | None = None


@router.post("/register")
def register(registration: Registration, store: TheStore, who: Who, request: Request) -> Registered:
    """An agent introduces itself: what it reaches, and which types it knows."""
    if not 0 < registration.cycle_seconds <= LONGEST_CYCLE:
        raise BadRequest([InputError("cycleSeconds", f"is {registration.cycle_seconds}: give seconds, up to a day")])
    spoken_for = {reach.provider for reach in registration.reaches} | {facts.provider for facts in registration.types}
    beyond = spoken_for - who.providers
    if who.providers and beyond:
        raise Forbidden(
            f"token {who.name!r} may not speak for {', '.join(sorted(map(repr, beyond)))}: "
            "start the agent with fewer providers, or with another token"
        )
    with store.read() as tx:
        errors = type_errors(registration.types, store.catalog(tx))
    if errors:
        raise BadRequest(errors)
    if registration.last_seen is not None:
        _recover_if_restored(store, registration, registration.last_seen, who, request.app.state.authenticator)
    with store.write() as tx:
        registered = agents.register(tx, registration, who.id)
        realms.accept_recreated(tx, registration.environment)
        return registered


def _recover_if_restored(
    store: Store, registration: Registration, seen: LastSeen, who: Principal, authenticator: Authenticator
) -> None:
    """Begin a recovery where the agent knows more than the database does; that stands even if the agent is refused."""
    with store.read() as tx:
        if not recovery.is_restored(tx, seen):
            return
    with store.write() as tx:
        recovery.begin_if_restored(tx, seen, registration.agent_id, who.name)
    authenticator.forget()


@router.post("/claim", responses={200: {"model": Claimed}})
def claim(wanted: Claim, store: TheStore, who: Who) -> Response:
    """All leases the agent holds, new ones, and the work that changed."""
    return answer(claims.claim(store.database, wanted, who.id))


@router.post("/heartbeat", responses={200: {"model": Beat}})
def heartbeat(beat: Heartbeat, store: TheStore, who: Who) -> Response:
    """The agent is alive; its leases live on."""
    with store.write() as tx:
        beaten = agents.heartbeat(tx, beat, who.id)
    return answer(beaten)


@router.post("/report", responses={200: {"model": Reported}})
async def report(sent: Report, who: Who, request: Request) -> Response:
    """All that changed in a cycle, or is about to be written; refused whole where a lease is lost."""
    batcher: Batcher[reports.Sent, Reported] = request.app.state.reports
    return answer(await batcher.run(reports.Sent(sent, who.id)))


def report_batcher(store: Store) -> Batcher[reports.Sent, Reported]:
    """Make the batcher that applies reports which arrive at the same time in one transaction."""

    def apply(sent: Sequence[reports.Sent]) -> Sequence[Reported | Exception]:
        try:
            with store.write() as tx:
                return reports.apply(tx, sent)
        except OutcomeUnknown:
            raise  # it may be committed: not again
        except Exception as error:
            if len(sent) > 1:
                raise RunIndividually from error
            raise

    return Batcher(apply, operator.attrgetter("subjects"))


@router.post("/release", status_code=204)
def release(given: Released, store: TheStore, who: Who) -> None:
    """The agent gives scopes back, or stops: others may take them at once."""
    with store.write() as tx:
        agents.get(tx, given.agent_id, who.id)
        if given.scopes is None:
            agents.leave(tx, given.agent_id)
        else:
            scopes.release(tx, given.agent_id, given.scopes)


@router.post("/plans/{id}", status_code=204)
def answer_plan(
    task_id: Annotated[str, Path(alias="id", pattern="^[0-9a-f]{1,64}$")], result: PlanResult, store: TheStore, who: Who
) -> None:
    """An agent's answer to a plan somebody waits for."""
    with store.write() as tx:
        plan_tasks.answer(tx, task_id, result, who.providers or None)


@router.post("/wait", responses={200: {"model": Woken}})
async def wait(wanted: Wait, store: TheStore, who: Who, request: Request) -> Response:
    """Return as soon as there is news for the agent, else after so many seconds."""
    mark = store.signals.mark()
    now, reaches = await run_in_threadpool(_wake_number, store, wanted, who)
    if now != wanted.wake:
        return answer(Woken(wake=now, woken=True))
    topics = [reach_topic(*reach) for reach in reaches]
    with store.signals.subscribe(topics) as subscription:
        # What was committed before the subscription began is news, too: it is read again where something was.
        is_woken = store.signals.was_notified(topics, mark)
        if not is_woken and not await request.is_disconnected():
            is_woken = await subscription.wait(min(wanted.seconds, LONGEST_WAIT))
        if is_woken:
            now, _ = await run_in_threadpool(again, lambda: _wake_number(store, wanted, who))
    return answer(Woken(wake=now, woken=now != wanted.wake))


def _wake_number(store: Store, wanted: Wait, who: Principal) -> tuple[int, frozenset[tuple[str, str]]]:
    with store.read() as tx:
        return agents.wake_number(tx, wanted.agent_id, who.id)
