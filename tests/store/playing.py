"""A store to play with: types of no cloud, a clock that stands, and an agent that says what the test wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fractal_cloud.control.store import (
    Store,
    agents,
    claims,
    components,
    events,
    livesystems,
    mutations,
    reports,
    scopes,
    tokens,
    unread_scopes,
)
from fractal_cloud.control.store.access import Access
from fractal_cloud.control.store.livesystems import Deploy
from fractal_cloud.control.store.tokens import NewToken
from fractal_cloud.model.catalog import GlassCommands, TypeFacts
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import (
    Claim,
    Claimed,
    ComponentChange,
    Heartbeat,
    LastSeen,
    Reach,
    Registered,
    Registration,
    Report,
    Reported,
    ScopeCycle,
    ScopeReport,
    WorkComponent,
)
from fractal_cloud.model.wording import FACTS
from fractal_cloud.rules.grants import EVERYTHING, Grants
from fractal_cloud.rules.identify import identities
from tests.last_seen import last_seen

Json = dict[str, Any]
EVERYWHERE = Access("admin", "admin", EVERYTHING)


def _facts(name: str, provider: str, place: list[str], **more: Any) -> TypeFacts:
    properties: Json = {"name": {"type": "string"}, "region": {"type": "string"}, "size": {"type": "integer"}}
    if more.get("realm"):
        properties["cluster"] = {"type": "string"}
        properties["space"] = {"type": "string", "default": "default", FACTS: {"enforced": True}}
    if more.get("parent"):
        properties["net"] = {"type": "string", FACTS: {"reference": {"type": "Test.Net", "output": "netId"}}}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return TypeFacts(type=name, provider=provider, title=name, parameter_schema=schema, place=place, **more)


CATALOG: Mapping[str, TypeFacts] = {
    facts.type: facts
    for facts in (
        _facts(
            "Test.Net",
            "test",
            ["region"],
            glass=GlassCommands(
                break_glass=["test untag --region {region} {resourceId}"], readopt=["test tag {netId} {resourceId}"]
            ),
        ),
        _facts("Test.Sub", "test", ["region"], parent="net"),
        _facts("Test.Box", "test", [], holds_data=True),
        _facts("Test.Mute", "test", ["region"], taggable=False),
        _facts("Other.Thing", "other", []),
        _facts("Many.Pod", "many", ["space"], realm="cluster"),
    )
}


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        """What time it is."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


def net(component_id: str = "net", region: str = "north", **more: Any) -> Json:
    """A component that is unique in a region."""
    return component(component_id, "Test.Net", {"region": region, **more.pop("parameters", {})}, **more)


def box(component_id: str = "box", **more: Any) -> Json:
    """A component that is unique everywhere, and holds data."""
    return component(component_id, "Test.Box", more.pop("parameters", {}), **more)


def sub(component_id: str = "sub", of: str = "net", **more: Any) -> Json:
    """A component in a net."""
    return component(component_id, "Test.Sub", {"net": of}, dependencies=[of], **more)


def pod(component_id: str = "pod", cluster: str | None = None, **more: Any) -> Json:
    """A component in one of several realms of its provider."""
    named = {} if cluster is None else {"cluster": cluster}
    return component(component_id, "Many.Pod", {**named, **more.pop("parameters", {})}, **more)


def component(component_id: str, kind: str, parameters: Json, **more: Any) -> Json:
    """One component of a declaration, normalised as validation leaves it."""
    provider = CATALOG[kind].provider
    return {"id": component_id, "type": kind, "provider": provider, "parameters": parameters, **more}


@dataclass
class World:
    """One store with its clock; what happens in it is said in the words of the protocol."""

    store: Store
    clock: Clock

    def deploy(self, live_system_id: str, *parts: Json, by: str = "ann", **more: Any) -> str:
        """Deploy a LiveSystem of these components."""
        conditions = {name: more.pop(name) for name in ("expected", "must_be_new") if name in more}
        declaration = LiveSystemDeclaration.model_validate({"id": live_system_id, "components": list(parts), **more})
        found = identities(declaration, CATALOG)
        with self.store.write() as tx:
            return livesystems.deploy(tx, Deploy(declaration, found, by, **conditions))

    def delete(self, live_system_id: str) -> str:
        """Delete a LiveSystem."""
        with self.store.write() as tx:
            return livesystems.remove(tx, live_system_id, "ann")

    def live_system(self, live_system_id: str) -> Json:
        """A LiveSystem as people read it."""
        with self.store.read() as tx:
            return livesystems.get(tx, live_system_id)

    def component(self, live_system_id: str, component_id: str) -> Json:
        """A component as people read it."""
        with self.store.read() as tx:
            return components.get(tx, live_system_id, component_id)

    def mutation(self, live_system_id: str, mutation_id: str) -> Json:
        """A mutation as people read it."""
        with self.store.read() as tx:
            return mutations.get(tx, live_system_id, mutation_id)

    def events(self, live_system_id: str | None = None) -> list[Json]:
        """What happened, oldest first."""
        with self.store.read() as tx:
            return events.list_page(tx, live_system_id, 1000, None)[::-1]

    def kinds(self, live_system_id: str, component_id: str | None = None) -> list[str]:
        """What kinds of things happened, oldest first."""
        return [
            event["kind"]
            for event in self.events(live_system_id)
            if component_id is None or event["componentId"] == component_id
        ]

    def agent(self, agent_id: str = "a1", realm: str = "acct", **more: Any) -> Player:
        """An agent that has registered, with a token that is bound to everything unless another one is given."""
        player = Player(self, agent_id)
        if "access" in more:
            player.access = more.pop("access")
        player.register(realm, **more)
        return player

    def token(self, name: str, providers: str = "*", environments: str = "*", realms: str = "*") -> Access:
        """A new token of an agent, bound to these (several are separated by spaces)."""
        grants = Grants.of(providers.split(), environments.split(), realms.split())
        with self.store.write() as tx:
            _, made = tokens.create(tx, NewToken(name, "agent", grants))
        return Access(made["id"], name, grants)


@dataclass
class Player:
    """An agent that reports what the test wants."""

    world: World
    id: str
    tokens: dict[str, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    work: dict[str, WorkComponent] = field(default_factory=dict)
    scope_of: dict[str, str] = field(default_factory=dict)
    remembers: LastSeen | None = None
    access: Access = EVERYWHERE

    def register(
        self,
        realm: str = "acct",
        providers: tuple[str, ...] = ("test",),
        environment: str = "default",
        cycle: float = 5.0,
        types: tuple[TypeFacts, ...] = tuple(CATALOG.values()),
        token: str | None = None,
        grants: Grants | None = None,
        clusters: Mapping[str, str] | None = None,
    ) -> Registered:
        """Introduce itself; ``clusters`` are realms of the provider that has several, by their names."""
        reaches = [Reach(provider=provider, realm=realm) for provider in providers]
        reaches += [Reach(provider="many", name=name, realm=reached) for name, reached in (clusters or {}).items()]
        registration = Registration(
            agent_id=self.id, environment=environment, reaches=reaches, types=list(types), cycle_seconds=cycle
        )
        token = token or self.access.token_id
        access = Access(token, token, grants or self.access.grants)
        with self.world.store.write() as tx:
            registered = agents.register(tx, registration, access)
        self.remembers = registered.last_seen
        return registered

    def claim(self, limit: int = 1000) -> Claimed:
        """Claim, and take in the work."""
        wanted = Claim(agent_id=self.id, last_seen=self.last_seen, held=self.versions, limit=limit)
        claimed = Claimed.model_validate(claims.claim(self.world.store.database, wanted, self.access))
        self.tokens = {lease.scope: lease.token for lease in claimed.leases}
        self.versions = {key: version for key, version in self.versions.items() if key in self.tokens}
        self.work = {uid: part for uid, part in self.work.items() if self.scope_of[uid] in self.tokens}
        for lease in claimed.leases:
            if lease.work is not None:
                self.versions[lease.scope] = lease.work.version
                for uid in lease.work.gone:
                    self.work.pop(uid, None)
                for part in lease.work.components:
                    self.work[part.uid] = part
                    self.scope_of[part.uid] = lease.scope
        return claimed

    def beat(
        self,
        read_at: Mapping[str, datetime] | None = None,
        held: Mapping[str, int] | None = None,
        cycles: Mapping[str, ScopeCycle] | None = None,
    ) -> list[str]:
        """Say that it lives, what it has read and what it takes for its own; the scopes it lost."""
        beat = Heartbeat(
            agent_id=self.id,
            last_seen=self.last_seen,
            read_at=dict(read_at or {}),
            held=dict(held or {}),
            cycles=dict(cycles or {}),
        )
        with self.world.store.write() as tx:
            beaten = agents.heartbeat(tx, beat, self.access)
        if beaten.beyond:
            with self.world.store.write() as tx:
                scopes.release(tx, self.id, beaten.beyond)
        if beaten.has_read:
            with self.world.store.write() as tx:
                unread_scopes.end_read_by(tx, self.id)
        return beaten.beat.lost

    def uid(self, live_system_id: str, component_id: str) -> str:
        """The uid a component has in the work."""
        for uid, part in self.work.items():
            if part.live_system_id == live_system_id and part.declaration.id == component_id:
                return uid
        raise KeyError((live_system_id, component_id))

    def says(self, live_system_id: str, component_id: str, **more: Any) -> ComponentChange:
        """One component's change: by default it is managed and active at its generation."""
        uid = self.uid(live_system_id, component_id)
        values: Json = {
            "stance": Stance.MANAGED,
            "status": Status.ACTIVE,
            "owner": live_system_id,
            "resource_id": f"id-{component_id}",
            "established": True,
            "observed_generation": self.work[uid].generation,
        }
        return ComponentChange(uid=uid, **{**values, **more})

    def report(self, *changes: ComponentChange, **more: Any) -> Reported:
        """Report changes, each under its scope's lease; ``more`` goes into the first scope's report."""
        sent = self.sent(*changes, **more)
        with self.world.store.write() as tx:
            return reports.report(tx, sent.report, sent.token_id)

    def sent(self, *changes: ComponentChange, **more: Any) -> reports.Sent:
        """What ``report`` sends."""
        by_scope: dict[str, list[ComponentChange]] = {}
        for change in changes:
            by_scope.setdefault(self.scope_of[change.uid], []).append(change)
        if not by_scope:
            by_scope[next(iter(self.tokens))] = []
        spoken = [
            ScopeReport(
                scope=key,
                token=self.tokens.get(key, 0),
                version=self.versions.get(key, 0),
                changes=group,
                **(more if not index else {}),
            )
            for index, (key, group) in enumerate(by_scope.items())
        ]
        return reports.Sent(Report(agent_id=self.id, last_seen=self.last_seen, scopes=spoken), self.access.token_id)

    @property
    def last_seen(self) -> LastSeen:
        """What it remembers of the database; one that was never here, all there is."""
        return self.remembers or last_seen(self.world.store)

    def settle(self, *live_system_ids: str) -> None:
        """Claim, and report everything in the work as managed and active."""
        self.claim()
        wanted = [p for p in self.work.values() if not live_system_ids or p.live_system_id in live_system_ids]
        self.report(*(self.says(part.live_system_id, part.declaration.id) for part in wanted))
