"""Types that the catalog lacks, asked of a running agent of their provider: a task like those of plans, one per type.

An answer is stored as a type that the agent's token brought (A4); nothing of it changes another type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import select

from fractal_cloud.control.store import offers, plan_tasks, work
from fractal_cloud.control.store.agents import Agent, all_agents
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.errors import ReportRefused
from fractal_cloud.control.store.records import new_id
from fractal_cloud.control.store.schema import agents
from fractal_cloud.model.catalog import GLOBAL_PLACE, as_word
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.visible_text import visible
from fractal_cloud.model.wire import PlanResult, PlanTask
from fractal_cloud.offers.family import Family
from fractal_cloud.offers.installed_types import InstalledTypes
from fractal_cloud.offers.learned_types import learned_errors

MOST_AT_ONCE: Final = 5
"""So many types of one declaration are asked about: each costs calls to a cloud (A9)."""
_MOST_WHY: Final = 300
_PLACES: Final = ("region", "location", "zone", "namespace")
_REALMS: Final = ("cluster",)


@dataclass(frozen=True, slots=True)
class Lacking:
    """A type that the catalog lacks, of a family's form, and the parameters of a component that declares it."""

    type: str
    family: Family
    parameters: Mapping[str, Any]


@dataclass(slots=True)
class Asked:
    """What was asked: by type, the plan its task belongs to. ``why``: by type, why it is not known."""

    plans: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)


def ask(tx: Tx, environment: str, lacking: Iterable[Lacking]) -> Asked:
    """Ask a running agent about each of these types, where there is one that may serve it in that environment."""
    living = [agent for agent in all_agents(tx) if agent.deadline > tx.now and agent.environment == environment]
    living = [agent for agent in living if not agent.lacks([environment])]
    serving = _families(tx)
    asked = Asked()
    for one in list(lacking)[:MOST_AT_ONCE]:
        able = [agent for agent in living if one.family.name in serving.get(agent.id, ())]
        scope = _scope(able, one)
        if scope is None:
            asked.why[one.type] = (
                f"no running agent of {one.family.provider!r} in environment {environment!r} could be asked what "
                "it is: start one, and deploy again"
            )
            continue
        asked.plans[one.type] = plan_id = new_id()
        empty = work.empty_work(scope.key, 0, full=True)
        task = {"id": new_id(), "work": empty, "uids": [], "learn": one.type}
        plan_tasks.store_tasks(tx, plan_id, [task], [environment])
    return asked


def _families(tx: Tx) -> dict[str, list[str]]:
    return {row.id: list(row.families) for row in tx.connection.execute(select(agents.c.id, agents.c.families))}


def _scope(able: Iterable[Agent], one: Lacking) -> Scope | None:
    """Where a type is asked about: the realm and place that its component names, as far as they can be known."""
    named = next((name for word in _REALMS if (name := as_word(one.parameters.get(word)))), "")
    realms = {
        name: realm
        for agent in able
        for (provider, name), realm in sorted(agent.realms.items())
        if provider == one.family.provider and realm
    }
    realm = realms.get(named) or realms.get("") or next(iter(realms.values()), None)
    place = next((place for word in _PLACES if (place := as_word(one.parameters.get(word)))), GLOBAL_PLACE)
    return None if realm is None else Scope(one.family.provider, realm, place)


def accept(tx: Tx, task: PlanTask, result: PlanResult, token_name: str, installed: InstalledTypes) -> None:
    """Store what an agent says of the one type it was asked about; refused is what speaks of anything else (A3, A4)."""
    facts = result.learned
    if facts is None:
        return
    family = installed.family_of(task.learn)
    if family is None:
        raise ReportRefused(f"the answer to task {task.id!r} is refused: {task.learn!r} is of no family here")
    problem = next(learned_errors(facts, task.learn, family), "")
    if problem:
        raise ReportRefused(f"the answer to task {task.id!r} is refused: {visible(problem)}")
    offers.register(tx, [facts], token_name, installed)


def is_answered(tx: Tx, asked: Asked) -> bool:
    """Whether all of it was answered."""
    return all(None not in plan_tasks.results(tx, plan_id).values() for plan_id in asked.plans.values())


def conclude(tx: Tx, asked: Asked, waited: float) -> dict[str, str]:
    """Why each type is not known, by type, as far as it was said; the tasks are forgotten then."""
    found = dict(asked.why)
    for name, plan_id in asked.plans.items():
        for result in plan_tasks.results(tx, plan_id).values():
            if result is None:
                silent = f"a running agent was asked what it is and did not answer within {waited:g} s"
                found[name] = f"{silent}: deploy again"
            elif not result.get("learned"):
                why = visible(str(result.get("why", "")))[:_MOST_WHY]
                found[name] = f"a running agent asked its cloud, which {why or 'has no such type either'}"
        plan_tasks.forget(tx, plan_id)
    return found
