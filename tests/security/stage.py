"""What a hostile agent meets: a control plane over HTTP, two honest agents with leases, and a world that is declared.

The shop runs in the environment «prod»: an app in the east, linked to a database in the west, so that a
password travels sealed from one agent to the other. The lab is another environment with an account of its own in the
east; the north is another provider. Tokens for these two are the ones that were stolen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx2 as httpx

from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store
from fractal_cloud.control.store.plan_tasks import store_tasks
from fractal_cloud.control.store.schema import components, journal, metadata, plans, scopes, types
from fractal_cloud.control.store.work import full_work
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.wire import Claim, JournalEntry, LastSeen, PlanTask, Report, ScopeReport
from fractal_cloud.offers.registry import Registry, installed
from fractal_cloud.testing.tokens import agent_token
from tests import library_caches
from tests.http_server import served
from tests.links import clouds, east, west
from tests.links.world import database, link, workload
from tests.security import regional
from tests.security.hostile_agent import HostileAgent, Json, Own, Victim

ADMIN: Final = "the-admins-own-token"
PROD, LAB = "prod", "lab"
CYCLE: Final = 60.0
REGIONS: Final = ("alpha", "beta", "delta")
REGISTRY: Final = Registry([east, west, regional])
INSTALLED: Final = "NetworkAndCompute.IaaS.AwsVpc"
NORTH_TYPE: Final = TypeFacts(
    type="Toy.NorthThing",
    provider="north",
    title="Thing",
    parameter_schema={"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
    outputs={"endpoint": "where it is reached"},
)
OWN: Final = {
    "realm": Own("lab-agent", LAB, "east", "account-lab"),
    "provider": Own("north-agent", PROD, "north", "account-north", (NORTH_TYPE.to_json(),)),
    "environment": Own("lab-east-agent", LAB, "east", "account-east"),
}
"""What each stolen token is for, by what it differs in from the honest agent's."""


@dataclass
class Stage:
    """One control plane with its honest agents; ``tokens``: the secret of each token, by name."""

    url: str
    store: Store
    people: httpx.Client
    agents: dict[str, Agent] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    # --- people

    def deploy(self, live_system_id: str, environment: str, *parts: Json) -> None:
        """Deploy a LiveSystem."""
        body = {"id": live_system_id, "environment": environment, "components": list(parts)}
        answer = self.people.put(f"/livesystems/{live_system_id}", json=body)
        assert answer.status_code == 202, answer.text

    def token(self, name: str, own: Own) -> str:
        """Make an agent's token for no more than it needs."""
        bound = {"providers": [own.provider], "environments": [own.environment], "realms": [own.realm]}
        self.tokens[name] = agent_token(self.people, name, **bound)
        return self.tokens[name]

    def get(self, path: str) -> Json:
        """Read what must be there."""
        answer = self.people.get(path)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    # --- honest agents

    def start(self, provider: str) -> None:
        """Start an honest agent for a provider, with a token of its own."""
        own = Own(f"{provider}-agent", PROD, provider, f"account-{provider}")
        secret = self.token(f"{provider}-prod", own)
        settings = AgentSettings(
            agent_id=own.agent_id,
            environment=PROD,
            providers=(provider,),
            cycle_seconds=CYCLE,
            token=secret,
            visibility_seconds=0.01,
            concurrency=2,
        )
        self.agents[provider] = Agent(settings, ControlPlane(self.url, secret), REGISTRY)

    def cycle(self) -> None:
        """One cycle of each honest agent."""
        for agent in self.agents.values():
            agent.run_once()

    def settle(self) -> None:
        """Cycles until nothing is left to do."""
        for _ in range(15):
            results = [result for agent in self.agents.values() for result in agent.run_once()]
            if results and all(one.settled and not one.writes and not one.changes for one in results):
                return
        raise AssertionError("the honest agents did not settle")

    # --- what can be seen

    def dump(self) -> dict[str, list[Json]]:
        """Every row of every table."""
        with self.store.read() as tx:
            return {
                table.name: [dict(row._mapping) for row in tx.connection.execute(table.select())]
                for table in metadata.sorted_tables
            }

    def holders(self) -> dict[str, tuple[str | None, int]]:
        """Who holds each scope, under which lease."""
        with self.store.read() as tx:
            return {row.key: (row.holder, row.token) for row in tx.connection.execute(scopes.select())}

    def victim(self, component_id: str = "app", live_system_id: str = "ls-shop") -> Victim:
        """All that there is to know of a component and of its agent."""
        with self.store.read() as tx:
            mine = (components.c.live_system_id == live_system_id) & (components.c.component_id == component_id)
            part = tx.connection.execute(components.select().where(mine)).one()
            scope = tx.connection.execute(scopes.select().where(scopes.c.key == part.scope_key)).one()
            entries = tx.connection.execute(journal.select().where(journal.c.uid == part.uid)).all()
            task = tx.connection.execute(plans.select()).one()
            facts = tx.connection.execute(types.select().where(types.c.type == part.type)).one().facts
        return Victim(
            agent_id=scope.holder,
            environment=part.environment,
            provider=part.provider,
            realm=part.realm,
            scope=scope.key,
            lease=scope.token,
            version=scope.version,
            uid=part.uid,
            live_system_id=live_system_id,
            component_id=component_id,
            identity=part.identity_key,
            linked="db" if component_id == "app" else "app",
            open_entry=next(entry.id for entry in entries if entry.outcome is None),
            closed_entry=next(entry.id for entry in entries if entry.outcome is not None),
            request_id=part.request["id"],
            plan_task=task.id,
            plan_uid=part.uid,
            facts=facts,
            installed=installed().catalog()[INSTALLED].to_json(),
        )

    # --- the one who came by a token

    def hostile(self, differs_in: str) -> HostileAgent:
        """A hostile agent with a stolen token; it holds what the token is for, if that is anything."""
        own = OWN[differs_in]
        made = HostileAgent(self.url, self.token(own.agent_id, own), own, self.victim(), meanwhile=self.cycle)
        made.begin()
        if differs_in == "realm":
            self.deploy("ls-lab", LAB, database("labdb"))
        elif differs_in == "provider":
            self.deploy("ls-north", PROD, {"id": "thing", "type": NORTH_TYPE.type, "parameters": {}})
        made.begin()
        return made

    def _busy(self) -> None:
        """Let the shop's app be at work: a write under way, an operator's request, a plan that waits."""
        with self.store.read() as tx:
            part = tx.connection.execute(components.select().where(components.c.component_id == "app")).one()
            scope = tx.connection.execute(scopes.select().where(scopes.c.key == part.scope_key)).one()
        agent = self.agents["east"]
        entry = JournalEntry(id="a" * 32, uid=part.uid, generation=part.generation, verb="update", reason="drift")
        sent = ScopeReport(scope=scope.key, token=scope.token, version=scope.version, journal=[entry])
        seen: LastSeen = agent._known_event()
        agent._control.report(Report(agent_id=agent.settings.agent_id, last_seen=seen, scopes=[sent]))
        answer = self.people.post("/livesystems/ls-shop/components/app/glass", json={"action": "break", "reason": "x"})
        assert answer.status_code == 202, answer.text
        with self.store.write() as tx:
            work = full_work(tx, {scope.key: scope.version})[scope.key]
            task = PlanTask.model_validate({"id": "b" * 32, "work": work, "uids": [part.uid]})
            store_tasks(tx, "c" * 32, [task.to_json()])
        agent._control.claim(Claim(agent_id=agent.settings.agent_id, last_seen=seen, held={scope.key: scope.version}))


def _queue(region: str) -> Json:
    return {"id": f"queue-{region}", "type": "Toy.EastQueue", "parameters": {"region": region}}


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """A shop that is settled and then at work, a lab and a north that nobody serves yet."""
    clouds.empty()
    settings = ControlSettings(
        database_url=library_caches.database(folder / "control.db"), admin_token=ADMIN, cycle_seconds=CYCLE
    )
    app = create_app(settings)
    with served(app) as url, httpx.Client(base_url=url, headers={"Authorization": f"Bearer {ADMIN}"}) as people:
        made = Stage(url, app.state.store, people)
        try:
            made.start("east")
            made.start("west")
            made.cycle()  # they register: their types can be declared
            parts = [database("db", at="west"), workload("app", link("db", database="orders"), at="east")]
            made.deploy("ls-shop", PROD, *parts, *map(_queue, REGIONS))
            made.settle()
            made._busy()
            yield made
        finally:
            for agent in made.agents.values():
                agent.close()
                agent._control.close()
