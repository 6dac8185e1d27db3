"""Random fleets, written straight into the tables, and a plain model of how they are listed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete

from fractal_cloud.control.store import Store, summaries
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import insert_rows
from fractal_cloud.control.store.listing import ComponentOrder, Filters, Order, Overridden
from fractal_cloud.control.store.records import ComponentRecord, insert_records, iso, new_id
from fractal_cloud.control.store.schema import (
    components,
    live_system_environments,
    live_systems,
    resources,
    scope_reads,
    scopes,
)
from fractal_cloud.model.observed import blank_columns
from fractal_cloud.model.status import Status, gravest

NOW: Final = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
STATUSES: Final = tuple(status.value for status in Status if status is not Status.DELETED)
TYPES: Final = ("Test.Net", "Test.Sub", "Other.IaaS.Net", "AWS::SQS::Queue")
PROVIDERS: Final = ("aws", "azure", "k8s")
ENVIRONMENTS: Final = ("default", "prod", "prod-eu")
REALMS: Final = ("111122223333", "444455556666", "Subscription-A")
NAMES: Final = ("web", "web-vm", "db", "net_1", "Queue%")


@dataclass(frozen=True, slots=True)
class Fleet:
    """LiveSystems and components as plain documents, and the keys of scopes that nobody reads."""

    live_systems: list[dict[str, Any]]
    components: list[dict[str, Any]]
    stale: frozenset[str] = frozenset()


def made(chance: random.Random) -> Fleet:
    """A fleet of a few LiveSystems with a few components each."""
    keys = [f"{provider}/{realm}/" for provider in PROVIDERS for realm in REALMS]
    fleet = Fleet([], [], frozenset(chance.sample(keys, chance.choice((0, 0, 1, 2, 9)))))
    for number in range(chance.randint(0, 12)):
        name = f"{chance.choice(('ls', 'team', 'prod'))}-{number}"
        owned = [_component(chance, name, part) for part in chance.sample(NAMES, chance.randint(0, len(NAMES)))]
        environment = chance.choice(ENVIRONMENTS)
        deployed = NOW - timedelta(minutes=chance.randint(0, 60))
        for one in owned:
            one["environment"] = environment
        fleet.components.extend(owned)
        fleet.live_systems.append(
            {
                "id": name,
                "environment": environment,
                "deployed_at": deployed,
                "deleting": chance.random() < 0.1,
                "last_updated": max([deployed, *(one["last_updated"] for one in owned)]),
            }
        )
    return fleet


def _component(chance: random.Random, live_system_id: str, name: str) -> dict[str, Any]:
    is_held = chance.random() < 0.25
    provider, realm = chance.choice(PROVIDERS), chance.choice((*REALMS, None))
    micro = chance.choice((0, 500_000))
    since = NOW - timedelta(seconds=chance.randint(0, 5), microseconds=micro)
    calm = chance.random() < 0.6
    return {
        "uid": new_id(),
        "live_system_id": live_system_id,
        "component_id": name,
        "status": "Active" if calm else chance.choice(STATUSES),
        "type": chance.choice(TYPES),
        "provider": provider,
        "realm": realm,
        "realm_name": chance.choice(("", "main")),
        "scope_key": None if realm is None else f"{provider}/{realm}/",
        "identity_key": f"identity {live_system_id} {name}",
        "resource_id": chance.choice((None, f"vpc-0{chance.randint(0, 3)}abc{name}")),
        "owner": chance.choice((live_system_id, live_system_id, "ls-0", None)),
        "override": {"since": iso(since), "by": chance.choice((None, "anna", "bea")), "reason": None, "until": None}
        if is_held
        else None,
        "overdue": is_held and chance.random() < 0.3,
        "drift": chance.random() < 0.2,
        "unread": chance.random() < 0.03,
        "last_updated": NOW - timedelta(minutes=chance.randint(0, 60)),
    }


def write(store: Store, fleet: Fleet) -> None:
    """Put a fleet in the place of what is there."""
    with store.write() as tx:
        for table in (components, live_systems, resources, live_system_environments, scopes, scope_reads):
            tx.connection.execute(delete(table))
        rest = {"description": "", "readoption": "handshake", "generation": 1, "mutation_id": ""}
        insert_rows(tx.connection, live_systems, [{**one, **rest} for one in fleet.live_systems])
        known = [{"live_system_id": one["id"], "environment": one["environment"]} for one in fleet.live_systems]
        insert_rows(tx.connection, live_system_environments, known)
        insert_records(tx, [_record(one) for one in fleet.components])
        tx.recount.clear()
        summaries.recount(tx.connection, [one["id"] for one in fleet.live_systems], datetime(2000, 1, 1, tzinfo=UTC))
        _write_resources(tx, fleet)
        _write_scopes(tx, fleet)


def _record(one: dict[str, Any]) -> ComponentRecord:
    own = {name: value for name, value in one.items() if name != "drift"}
    drift = {"drift": {"size": {"declared": 1, "actual": 2}}} if one["drift"] else {}
    declaration = {"id": one["component_id"], "type": one["type"], "provider": one["provider"], "parameters": {}}
    names = ("place", "name", "parent", "declared_place", "declared_name", "declared_parent")
    return ComponentRecord(
        **{**blank_columns(), **dict.fromkeys(names, ""), **own, "output_fields": drift, "declaration": declaration},
        generation=1,
    )


def _write_resources(tx: Tx, fleet: Fleet) -> None:
    rows = [
        {"identity_key": one["identity_key"], "scope_key": "", "resource_id": one["resource_id"], "updated_at": NOW}
        for one in fleet.components
        if one["resource_id"] is not None
    ]
    insert_rows(tx.connection, resources, rows)


def _write_scopes(tx: Tx, fleet: Fleet) -> None:
    keys = sorted({one["scope_key"] for one in fleet.components} - {None} | fleet.stale)
    rows = [dict(zip(("provider", "realm", "place"), key.split("/"), strict=True), key=key) for key in keys]
    insert_rows(tx.connection, scopes, rows)
    insert_rows(tx.connection, scope_reads, [{"scope_key": key, "stale_since": NOW} for key in sorted(fleet.stale)])


# --- the model


def _in(part: str, text: str | None) -> bool:
    return text is not None and part.lower() in text.lower()


def _is_resource(search: str, one: dict[str, Any]) -> bool:
    found: str | None = one["resource_id"]
    return found is not None and (found == search or (len(search) >= 6 and found.startswith(search)))


def _is_type(name: str, kind: str) -> bool:
    return kind.lower() == name.lower() or kind.lower().endswith(f".{name.lower()}")


class Model:
    """How a fleet is listed, in the plainest way."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.parts: dict[str, list[dict[str, Any]]] = {one["id"]: [] for one in fleet.live_systems}
        self.by_id = {one["id"]: one for one in fleet.live_systems}
        for part in fleet.components:
            self.parts[part["live_system_id"]].append(part)

    def is_stale(self, part: dict[str, Any]) -> bool:
        """Whether nobody reads a component."""
        return part["unread"] or part["scope_key"] in self.fleet.stale

    def status(self, name: str) -> str:
        """The status of a LiveSystem."""
        dying = [Status.DELETING] if self.by_id[name]["deleting"] else []
        return gravest([*(Status(part["status"]) for part in self.parts[name]), *dying]).value

    def summary(self, name: str) -> dict[str, Any]:
        """What is said of a LiveSystem."""
        parts = self.parts[name]
        return {
            "id": name,
            "status": self.status(name),
            "counts": dict(Counter(part["status"] for part in parts)),
            "overrides": sum(part["override"] is not None for part in parts),
            "overdue": sum(part["overdue"] for part in parts),
            "drifted": sum(part["drift"] for part in parts),
            "staleComponents": sum(map(self.is_stale, parts)),
            "stale": any(map(self.is_stale, parts)),
            "oldestOverride": min(map(_since, filter(_is_held, parts)), default=None),
            "lastUpdated": self.by_id[name]["last_updated"],
        }

    def live_systems(self, filters: Filters, order: Order, environments: Iterable[str] = ENVIRONMENTS) -> list[str]:
        """The ids of all LiveSystems that fit, in order."""
        fitting = [one for one in self.by_id if self._fits(one, filters) and self._environment(one) in environments]
        key: Callable[[str], Any] = {
            Order.ID: lambda name: name,
            Order.WORST: self._worst,
            Order.LAST_UPDATED: lambda name: (-self.by_id[name]["last_updated"].timestamp(), name),
        }[order]
        return sorted(fitting, key=key)

    def _environment(self, name: str) -> str:
        return str(self.by_id[name]["environment"])

    def _worst(self, name: str) -> tuple[Any, ...]:
        summary = self.summary(name)
        under_way = ("Mutating", "Instantiating", "ReconcileRequested")
        order = (
            summary["status"] == "Failed",
            summary["status"] == "Missing",
            summary["overdue"] > 0,
            summary["stale"],
            summary["status"] == "Deleting",
            summary["status"] in under_way,
            summary["overrides"] > 0,
            True,
        )
        rank = order.index(True)
        return rank, summary["oldestOverride"] if rank in (2, 6) else NOW, name

    def _fits(self, name: str, filters: Filters) -> bool:
        parts, summary = self.parts[name], self.summary(name)
        overridden = {
            Overridden.TRUE: summary["overrides"] > 0,
            Overridden.FALSE: summary["overrides"] == 0,
            Overridden.OVERDUE: summary["overdue"] > 0,
        }
        search = filters.search
        found = any(
            _in(search, text) for part in parts for text in (part["type"], part["realm"], part["realm_name"])
        ) or any(_in(search, text) for text in (name, self._environment(name)))
        return (
            (not filters.status or summary["status"] in filters.status)
            and (not filters.environment or self._environment(name) in filters.environment)
            and (not filters.type or any(_is_type(kind, part["type"]) for kind in filters.type for part in parts))
            and (not filters.provider or any(part["provider"] in filters.provider for part in parts))
            and (not filters.owner or name in filters.owner or any(part["owner"] in filters.owner for part in parts))
            and (not filters.override or any(overridden[wanted] for wanted in filters.override))
            and (not filters.stale or summary["stale"] in filters.stale)
            and (filters.since is None or summary["lastUpdated"] >= filters.since)
            and (not search or found or any(_is_resource(search, part) for part in parts))
        )

    def components(
        self, filters: Filters, order: ComponentOrder, environments: Iterable[str] = ENVIRONMENTS
    ) -> list[tuple[str, str]]:
        """All components that fit, in order."""
        fitting = [
            one
            for one in self.fleet.components
            if self._component_fits(one, filters) and one["environment"] in environments
        ]
        if order is ComponentOrder.OVERRIDE:
            fitting = [one for one in fitting if one["override"] is not None]
            fitting.sort(key=lambda one: (_since(one), one["live_system_id"], one["component_id"]))
        else:
            fitting.sort(key=lambda one: (one["live_system_id"], one["component_id"]))
        return [(one["live_system_id"], one["component_id"]) for one in fitting]

    def _component_fits(self, one: dict[str, Any], filters: Filters) -> bool:
        overridden = {
            Overridden.TRUE: one["override"] is not None,
            Overridden.FALSE: one["override"] is None,
            Overridden.OVERDUE: one["overdue"],
        }
        search = filters.search
        texts = ("live_system_id", "environment", "type", "realm", "realm_name")
        return (
            (not filters.status or one["status"] in filters.status)
            and (not filters.environment or one["environment"] in filters.environment)
            and (not filters.type or any(_is_type(kind, one["type"]) for kind in filters.type))
            and (not filters.provider or one["provider"] in filters.provider)
            and (not filters.owner or one["owner"] in filters.owner)
            and (not filters.override or any(overridden[wanted] for wanted in filters.override))
            and (not filters.stale or self.is_stale(one) in filters.stale)
            and (not filters.by or (one["override"] or {}).get("by") in filters.by)
            and (filters.since is None or one["last_updated"] >= filters.since)
            and (
                not search
                or any(_in(search, one[name]) for name in texts)
                or one["component_id"].startswith(search)
                or _is_resource(search, one)
            )
        )


def _is_held(part: dict[str, Any]) -> bool:
    return part["override"] is not None


def _since(part: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(part["override"]["since"])


def filters_of(chance: random.Random) -> Filters:
    """Filters by chance: mostly one or two of them."""

    def some(values: tuple[Any, ...], rate: float) -> tuple[Any, ...]:
        return tuple(chance.sample(values, chance.randint(1, 2))) if chance.random() < rate else ()

    words = ("", "", "", "web", "prod", "ls-1", "1111", "net", "sqs", "vpc-01abc", "vpc-0", "_", "%", "main", "zzz")
    return Filters(
        status=some(STATUSES, 0.25),
        environment=some(ENVIRONMENTS, 0.2),
        type=some((*TYPES, "Net", "net", "et"), 0.15),
        provider=some(PROVIDERS, 0.15),
        owner=some(("ls-0", "ls-1", "team-2"), 0.1),
        stale=some((True, False), 0.2),
        override=some(tuple(Overridden), 0.2),
        by=(),
        since=NOW - timedelta(minutes=chance.randint(0, 60)) if chance.random() < 0.15 else None,
        search=chance.choice(words),
    )


def large(live_systems: int, each: int) -> Fleet:
    """A fleet of many LiveSystems with many components, of every status."""
    chance = random.Random(live_systems)
    fleet = Fleet([], [])
    for number in range(live_systems):
        name = f"live-system-of-team-{number:04}"
        own = [_component(chance, name, f"component-{part:03}") for part in range(each)]
        for one in own:
            one["environment"] = "production-eu"
        fleet.components.extend(own)
        fleet.live_systems.append(
            {"id": name, "environment": "production-eu", "deployed_at": NOW, "deleting": False, "last_updated": NOW}
        )
    return fleet
