"""Plans: what a deploy would do, asked of the agents without deploying (C6).

Each scope has one task (``plan_tasks``) with its work as it would be after the deploy; nothing else of it is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fractal_cloud.control.store import links, livesystems, plan_tasks, scopes, work
from fractal_cloud.control.store.agents import Agent, all_agents, realms
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.declaration_merge import Merge, Target, merge
from fractal_cloud.control.store.errors import Refused
from fractal_cloud.control.store.outside import Needs, Source
from fractal_cloud.control.store.placement import foreign_message, recall_overrides
from fractal_cloud.control.store.realm_bindings import Name
from fractal_cloud.control.store.realm_bindings import others as all_others
from fractal_cloud.control.store.records import ComponentRecord, Json, new_id, records_of
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.model.host import host_of
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.wire import PlannedAction, PlannedLink, PlannedLinkAction
from fractal_cloud.rules.identify import DeclaredIdentity
from fractal_cloud.rules.link_plan import plan_links

CHANGES = frozenset({PlannedAction.CREATE, PlannedAction.CHANGE, PlannedAction.DELETE, PlannedAction.DROP})


@dataclass(slots=True)
class Asked:
    """A plan under way: the components asked about, and why some of them will get no answer.

    ``hosted``: those whose host (a cluster) nobody reaches yet, by uid, each with its id.
    ``elsewhere``: those in whose place another realm is reached, or for whose environment nobody has a token, by uid: a
    deploy would wait for a person (S26, A1, C8).
    ``links``: what would become of the links of each, by uid; nobody has to be asked for that.
    ``warnings``: what the deploy would warn of.
    """

    plan_id: str
    live_system_id: str
    rows: Sequence[ComponentRecord]
    unanswered: dict[str, str] = field(default_factory=dict)
    scopes: frozenset[str] = frozenset()
    hosted: dict[str, str] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    links: dict[str, list[PlannedLink]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def ask(
    tx: Tx,
    declaration: LiveSystemDeclaration,
    identities: Mapping[str, DeclaredIdentity],
    unserved: Mapping[tuple[str, str], str] | None = None,
) -> Asked:
    """Compare a declaration with what is there, and store one task for the agents of every scope it touches.

    ``unserved``: why links, by the ids of their ends, would be carried out by nobody who is known here.
    """
    stored = livesystems.find(tx, declaration.id)
    if stored is not None and stored.deleting and not stored.in_recovery:
        raise Refused(f"LiveSystem {declaration.id!r} is being deleted: plan it again once it is gone")
    livesystems.check_environment(stored, declaration)
    generation = 1 if stored is None else stored.generation + 1
    rows = records_of(tx, declaration.id)
    reached = realms(tx, also=livesystems.host_names(declaration, identities))
    merged = merge(rows, Target(declaration, identities, reached, generation, tx.now))
    if merged.errors:
        raise DeclarationError(merged.errors)
    recall_overrides(tx, merged.added)
    asked = Asked(new_id(), declaration.id, merged.all)
    asked.links = _links(tx, {row.uid: row for row in rows}, merged, unserved or {})
    return _put(tx, asked, work.Header(declaration.readoption, declaration.tags, tx.now))


def ask_as_it_stands(tx: Tx, live_system_id: str) -> Asked:
    """Ask what would become of a LiveSystem if it were reconciled as it stands, its deletions too (C9)."""
    stored = livesystems.require(tx, live_system_id)
    asked = Asked(new_id(), live_system_id, records_of(tx, live_system_id))
    return _put(tx, asked, work.Header(stored.readoption, stored.tags, stored.deployed_at))


def _put(tx: Tx, asked: Asked, header: work.Header) -> Asked:
    """Store one task for the agents of every scope that is asked about."""
    living = [agent for agent in all_agents(tx) if agent.deadline > tx.now]
    served = {reach for agent in living for reach in agent.reaches}
    unbound = _unbound(tx, asked, living)
    others = all_others(tx)
    for row in asked.rows:
        host = host_of(row.realm_name)
        if row.realm is None and host is not None and (row.provider, "") in served:
            asked.hosted[row.uid] = host.component_id
            asked.unanswered[row.uid] = ""
        elif row.realm is None or (row.provider, row.realm) not in served:
            asked.unanswered[row.uid] = _why_unserved(row, served, others)
            if row.realm is not None and (row.environment, row.provider, row.realm_name) in others:
                asked.elsewhere.add(row.uid)
        elif row.scope_key in unbound:
            asked.unanswered[row.uid] = unbound[row.scope_key]
            asked.elsewhere.add(row.uid)
    tasks = _tasks(tx, asked, header)
    asked.scopes = frozenset(task["work"]["scope"] for task in tasks)
    plan_tasks.store_tasks(tx, asked.plan_id, tasks)
    return asked


def _unbound(tx: Tx, asked: Asked, living: Sequence[Agent]) -> dict[str, str]:
    """The scopes that nobody's token covers with all environments in them, and why (A1)."""
    wanted: dict[str, set[str]] = {}
    for row in asked.rows:
        if row.scope_key is not None:
            wanted.setdefault(row.scope_key, set()).add(row.environment)
    found: dict[str, str] = {}
    for key, inside in scopes.environments_in(tx, wanted).items():
        scope, environments = Scope.from_key(key), inside | wanted[key]
        reaching = [agent for agent in living if (scope.provider, scope.realm) in agent.reaches]
        if reaching and all(agent.lacks(environments) for agent in reaching):
            lacking = {agent.id: agent.lacks(environments) for agent in reaching}
            found[key] = livesystems.shared_message(scope, environments, lacking)
    return found


def _why_unserved(row: ComponentRecord, served: Collection[Name], others: Mapping[tuple[str, str, str], str]) -> str:
    """Why no agent can be asked about a component: nobody reaches its realm, or another one in its place (S26)."""
    other = others.get((row.environment, row.provider, row.realm_name))
    if row.realm is not None and other is not None:
        return foreign_message(row, other)
    is_served = any(row.provider == provider for provider, _ in served)
    return livesystems.unserved_message(row.provider, row.environment, row.realm_name if is_served else "")


def _links(
    tx: Tx, before_it: Mapping[str, ComponentRecord], merged: Merge, unserved: Mapping[tuple[str, str], str]
) -> dict[str, list[PlannedLink]]:
    """What would become of the links of every component, by uid, where it has or had any."""
    by_id = {row.component_id: row for row in (*merged.added, *merged.kept)}
    pairs = [(row, by_id[target]) for row in by_id.values() for target in _settings(row)]
    waits = {**links.refusals_if_declared(tx, pairs), **unserved}
    found: dict[str, list[PlannedLink]] = {}
    for row in merged.all:
        before = merged.replaced.get(row.uid) or before_it.get(row.uid)
        old = _settings(before) if before is not None and not before.deleting else {}
        new = {} if row.deleting else _settings(row)
        if old or new:
            why = {target: waits[row.component_id, target] for target in new if (row.component_id, target) in waits}
            found[row.uid] = list(plan_links(old, new, why))
    return found


def _settings(row: ComponentRecord) -> dict[str, Json]:
    return {link["target"]: link.get("settings", {}) for link in row.declaration.get("links", ())}


def _tasks(tx: Tx, asked: Asked, header: work.Header) -> list[Json]:
    by_scope: dict[str, list[ComponentRecord]] = {}
    for row in asked.rows:
        if row.uid not in asked.unanswered:
            by_scope.setdefault(str(row.scope_key), []).append(row)
    current = work.full_work(tx, dict.fromkeys(by_scope, 0))
    by_id = {row.component_id: row for row in asked.rows}
    held_by = _held_by(asked.rows)
    open_writes = {c["uid"]: c["openWrites"] for found in current.values() for c in found["components"]}
    tasks = []
    for key, rows in by_scope.items():
        scope_work = current[key]
        scope_work["components"] = [
            component for component in scope_work["components"] if component["liveSystemId"] != asked.live_system_id
        ]
        scope_work["components"] += [
            {
                **work.work_component(row, header),
                "heldBy": held_by.get(row.uid, []),
                "openWrites": open_writes.get(row.uid, []),
            }
            for row in rows
        ]
        scope_work["outside"] = [o for o in scope_work["outside"] if o["liveSystemId"] != asked.live_system_id]
        scope_work["outside"] += _outside(tx, key, rows, by_id)
        tasks.append({"id": new_id(), "work": scope_work, "uids": [row.uid for row in rows]})
    return tasks


def _held_by(rows: Sequence[ComponentRecord]) -> dict[str, list[str]]:
    """By uid of what would be deleted, the components in other scopes that would have to go before it (O10)."""
    going = {row.component_id: row for row in rows if row.deleting and row.scope_key is not None}
    found: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row.component_id):
        for target, kind in row.references():
            needed = going.get(target) if kind == "dependency" else None
            if needed is not None and row.scope_key not in (None, needed.scope_key):
                found.setdefault(needed.uid, []).append(row.component_id)
    return found


def _outside(tx: Tx, key: str, rows: Sequence[ComponentRecord], by_id: Mapping[str, ComponentRecord]) -> list[Json]:
    found = {}
    sources = [Source(row.live_system_id, row.type, row.declaration.get("parameters", {})) for row in rows]
    needs = Needs(tx, sources)
    for row in rows:
        for target, kind in row.references():
            other = by_id.get(target)
            if kind == "dependency" and other is not None and other.scope_key != key:
                found[target] = {
                    "liveSystemId": other.live_system_id,
                    "componentId": other.component_id,
                    "status": other.status,
                    "outputFields": needs.of(other.live_system_id, target, other.output_fields),
                    "moved": not other.is_where_declared,
                }
    return list(found.values())


def is_answered(tx: Tx, asked: Asked) -> bool:
    """Whether every scope's agent has answered."""
    return all(result is not None for result in plan_tasks.results(tx, asked.plan_id).values())


def conclude(tx: Tx, asked: Asked, waited: float) -> Json:
    """The plan as far as it was answered; it is forgotten then."""
    answers = plan_tasks.results(tx, asked.plan_id)
    plan_tasks.forget(tx, asked.plan_id)
    planned = {item["uid"]: item for result in answers.values() if result for item in result["components"]}
    found = {item["componentId"]: item["action"] for item in planned.values()}
    components = [
        planned.get(row.uid) or _with_host(row, asked, found) or _unknown(row, asked, waited) for row in asked.rows
    ]
    counts = Counter(component["action"] for component in components)
    failing = [component for component in components if component["action"] == PlannedAction.FAIL.value]
    rewired = any(link.action is not PlannedLinkAction.NOTHING for of_one in asked.links.values() for link in of_one)
    return {
        "liveSystemId": asked.live_system_id,
        "components": [_shown(component, asked) for component in components],
        "summary": {action.value: counts[action.value] for action in PlannedAction},
        "hasChanges": rewired or any(counts[action.value] for action in CHANGES),
        "warnings": asked.warnings,
        "verdict": _verdict(counts),
        "reasons": [f"{component['componentId']}: {component['message']}" for component in failing],
    }


def _verdict(counts: Mapping[str, int]) -> str:
    """How the deploy's mutation would end (C8), as far as is known (C10)."""
    if counts[PlannedAction.FAIL.value]:
        return "Failed"
    return "Unknown" if counts[PlannedAction.UNKNOWN.value] else "Completed"


def _shown(component: Json, asked: Asked) -> Json:
    links_of_it = [link.to_json() for link in asked.links.get(component["uid"], ())]
    return {**{name: value for name, value in component.items() if name != "uid"}, "links": links_of_it}


def _with_host(row: ComponentRecord, asked: Asked, found: Mapping[str, str]) -> Json | None:
    """What becomes of a component whose host nobody reaches: what is not there yet has nothing in it."""
    host = asked.hosted.get(row.uid)
    if host is None:
        return None
    if row.deleting:
        action, message = PlannedAction.DROP, f"it was never made: {host!r} is not reached"
    elif found.get(host) == PlannedAction.CREATE.value:
        action, message = PlannedAction.CREATE, f"in {host!r}, which is created first"
    else:
        action, message = PlannedAction.UNKNOWN, f"no agent has reached {host!r} yet: plan again once it is there"
    return {**_unknown(row, asked, 0.0), "action": action.value, "message": message}


def _unknown(row: ComponentRecord, asked: Asked, waited: float) -> Json:
    silent = f"the agent of {row.scope_key!r} did not answer within {waited:g} s: see its log, or plan again"
    return {
        "uid": row.uid,
        "componentId": row.component_id,
        "type": row.type,
        "action": (PlannedAction.FAIL if row.uid in asked.elsewhere else PlannedAction.UNKNOWN).value,
        "rule": "",
        "message": asked.unanswered.get(row.uid, silent),
        "changes": {},
        "warnings": [],
        "resourceId": row.resource_id,
        "holdsData": False,
        "found": {},
    }
