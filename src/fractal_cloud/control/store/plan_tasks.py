"""The tasks of plans somebody waits for: one per scope, answered by an agent that reaches it (C6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import and_, bindparam, delete, insert, or_, select, update

from fractal_cloud.control.store import scopes
from fractal_cloud.control.store.agents import Agent
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import pair_among, update_rows
from fractal_cloud.control.store.errors import NotFound, ReportRefused
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.report_words import check_plan
from fractal_cloud.control.store.schema import plans
from fractal_cloud.control.store.signals import plan_topic
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.wire import PlanResult, PlanTask

HANDED_AGAIN_AFTER = timedelta(seconds=20)
KEPT_FOR = timedelta(minutes=10)


def store_tasks(tx: Tx, plan_id: str, tasks: Iterable[Json], environments: Collection[str] = ()) -> None:
    """Keep the tasks of a plan, as ``PlanTask`` spells them, and wake the agents that can answer.

    ``environments``: those of which an agent must be, beside those of the components.
    """
    rows = []
    for task in tasks:
        scope = Scope.from_key(task["work"]["scope"])
        rows.append(
            {
                "id": task["id"],
                "plan_id": plan_id,
                "scope_key": scope.key,
                "provider": scope.provider,
                "realm": scope.realm,
                "environments": sorted({*environments, *(one["environment"] for one in task["work"]["components"])}),
                "handed_to": [],
                "task": task,
                "created_at": tx.now,
            }
        )
    if rows:
        tx.connection.execute(insert(plans), rows)
        scopes.wake(tx, (row["scope_key"] for row in rows))


_IS_WAITING: Final = and_(
    pair_among(plans.c.provider, plans.c.realm, "realms"),
    plans.c.result.is_(None),
    plans.c.created_at > bindparam("asked_after"),
    or_(plans.c.handed_at.is_(None), plans.c.handed_at <= bindparam("handed_until")),
)
_WAITING: Final = (
    select(plans.c.id, plans.c.environments, plans.c.task, plans.c.handed_to)
    .where(_IS_WAITING)
    .with_for_update(skip_locked=True)
)


def _by(tx: Tx, reaches: Iterable[tuple[str, str]]) -> Json:
    """The parameters of who asks, and when."""
    return {"realms": reaches, "asked_after": tx.now - KEPT_FOR, "handed_until": tx.now - HANDED_AGAIN_AFTER}


def is_waiting(created_at: datetime, handed_at: datetime | None, now: datetime) -> bool:
    """Whether a task that has no answer waits for an agent, given when it was asked for and last handed out."""
    return created_at > now - KEPT_FOR and (handed_at is None or handed_at <= now - HANDED_AGAIN_AFTER)


def hand_out(tx: Tx, agent: Agent) -> list[Json]:
    """The tasks that wait for an agent with this reach and these environments: each to one agent at a time."""
    waiting = tx.connection.execute(_WAITING, _by(tx, agent.reaches)).all()
    found = [row for row in waiting if not agent.lacks(row.environments)]
    given = {row.id: sorted({*row.handed_to, agent.token_id}) for row in found}
    update_rows(tx.connection, plans, [{"id": key, "handed_at": tx.now, "handed_to": to} for key, to in given.items()])
    return [row.task for row in found]


def answer(tx: Tx, task_id: str, result: PlanResult, token_id: str, accept: Callable[[PlanTask], None]) -> None:
    """Keep an agent's answer, and wake the one who asked; the first answer counts.

    Only who was handed a task may answer it, and only what was asked: anything else is refused (A3). ``accept``: what
    is done with a type that was learned, for a task that asks for one.
    """
    query = select(plans.c.plan_id, plans.c.task, plans.c.handed_to, plans.c.result.is_not(None).label("is_answered"))
    row = tx.connection.execute(query.where(plans.c.id == task_id)).first()
    if row is None or token_id not in row.handed_to:
        raise NotFound(f"there is no plan task {task_id!r} any more: nobody waits for it")
    task = PlanTask.model_validate(row.task)
    _check(result, task)
    if not row.is_answered:
        accept(task)
        tx.connection.execute(update(plans).where(plans.c.id == task_id).values(result=result.to_json()))
        tx.wake([plan_topic(row.plan_id)])


def _check(result: PlanResult, task: PlanTask) -> None:
    """Refuse an answer that speaks of what was not asked about, or calls it something else."""
    check_plan(result.components, result.why)
    if result.learned is not None and not task.learn:
        raise ReportRefused(f"the answer to plan task {task.id!r} is refused: it was not asked about a type")
    declared = {part.uid: (part.declaration.id, part.declaration.type) for part in task.work.components}
    asked = {uid: declared[uid] for uid in task.uids}
    for one in result.components:
        if asked.get(one.uid) != (one.component_id, one.type):
            raise ReportRefused(
                f"the answer to plan task {task.id!r} is refused: it was not asked about component "
                f"{one.component_id!r} of type {one.type!r} ({one.uid!r})"
            )


def results(tx: Tx, plan_id: str) -> dict[str, Json | None]:
    """The answers to a plan's tasks so far, by scope."""
    query = select(plans.c.scope_key, plans.c.result).where(plans.c.plan_id == plan_id)
    return {row.scope_key: row.result for row in tx.connection.execute(query)}


def forget(tx: Tx, plan_id: str) -> None:
    """Drop a plan nobody waits for any more."""
    tx.connection.execute(delete(plans).where(plans.c.plan_id == plan_id))


def has_old(tx: Tx) -> bool:
    """Whether there are plans whose asker must have gone long ago."""
    query = select(plans.c.id).where(plans.c.created_at <= tx.now - KEPT_FOR).limit(1)
    return tx.connection.execute(query).first() is not None


def forget_old(tx: Tx) -> None:
    """Drop plans whose asker must have gone long ago."""
    tx.connection.execute(delete(plans).where(plans.c.created_at <= tx.now - KEPT_FOR))
