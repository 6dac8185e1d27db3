"""Everything that runs: two control planes on one PostgreSQL, three agents, the sandbox, and the network between them.

    agent ──proxy──▶ control plane 1 or 2 ──proxy──▶ PostgreSQL
      └─────proxy──▶ sandbox

People have ways of their own, on which nothing is broken: a proxy before both control planes, and the sandbox itself.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.request import Request, urlopen

import httpx2 as httpx
from sqlalchemy import Engine, create_engine, text

from fractal_cloud.testing.tokens import agent_token
from fractal_sandbox import agent_env
from fractal_sandbox.owned_resources import Owned
from tests import aws_rights, postgres
from tests.chaos.processes import Command, Fractal, Keeper, Nursery, Program, wait_until
from tests.chaos.proxy import FAIR, Network, Proxy
from tests.ports import free_port

ADMIN: Final = "token-of-the-admin"
CYCLE: Final = 1.0
AGENTS: Final = ("agent-1", "agent-2", "agent-3")
PLANES: Final = ("plane-1", "plane-2")
POSTGRES: Final = "postgres"
SANDBOX: Final = "sandbox"


class Stage:
    """The processes by name, the proxies by name, and people's ways to see."""

    def __init__(self, keeper: Keeper, network: Network, seed: int) -> None:
        self.folder = keeper.folder
        self._network = network
        self._nursery = Nursery(self.folder)
        self._ports = {name: free_port() for name in (POSTGRES, SANDBOX, *PLANES)}
        self.programs: dict[str, Program] = {}
        self.proxies: dict[str, Proxy] = {}
        for name in PLANES:
            self._proxy(f"{name}→{POSTGRES}", seed, POSTGRES)
        for name in AGENTS:
            self._proxy(f"{name}→planes", seed, *PLANES)
            self._proxy(f"{name}→{SANDBOX}", seed, SANDBOX)
        self._front = Proxy(network, "people→planes", [self._ports[name] for name in PLANES])
        self.cloud_url = f"http://127.0.0.1:{self._ports[SANDBOX]}"
        self.url = self._front.url
        self.api = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {ADMIN}"}, timeout=20.0)
        self.database: Engine = create_engine(self._database_url(self._ports[POSTGRES]), pool_pre_ping=True)

    def _proxy(self, name: str, seed: int, *targets: str) -> None:
        self.proxies[name] = Proxy(self._network, name, [self._ports[target] for target in targets], seed)

    @staticmethod
    def _database_url(port: int) -> str:
        return f"postgresql+psycopg://test@127.0.0.1:{port}/postgres"

    # --- the processes

    def start(self) -> None:
        """Start all of it, and wait until every agent is known."""
        self._prepare()
        self.programs[SANDBOX].start()
        self.programs[POSTGRES].start()
        wait_until(lambda: postgres.answers(self._ports[POSTGRES]), "PostgreSQL answers")
        for name in PLANES:
            self.programs[name].start()
        wait_until(self.is_ready, "a control plane is ready")
        self._prepare_agents()
        for name in AGENTS:
            self.programs[name].start()
        wait_until(lambda: self.agents_alive() == len(AGENTS), "every agent has registered")
        aws_rights.attach(self.cloud_url)

    def _prepare(self) -> None:
        home = self.folder / POSTGRES
        home.mkdir()
        command = postgres.prepare(home)
        # Killed with SIGKILL, it must have kept what it confirmed; and leave nothing in shared memory.
        durable = {"synchronous_commit": "on", "dynamic_shared_memory_type": "mmap"}
        command += postgres.settings(home, self._ports[POSTGRES], **durable)
        self._add(Command(POSTGRES, self.folder, {}, command, postgres.run_as()))
        self._add(self._fractal(SANDBOX, {}, "sandbox", "--sandbox-port", str(self._ports[SANDBOX])))
        cycle = {"FRACTAL_TOKEN": ADMIN, "FRACTAL_CYCLE_SECONDS": str(CYCLE)}
        for name in PLANES:
            way = self._database_url(self.proxies[f"{name}→{POSTGRES}"].port)
            env = {**cycle, "FRACTAL_DATABASE_URL": way}
            self._add(self._fractal(name, env, "serve", "--port", str(self._ports[name])))

    def _prepare_agents(self) -> None:
        token = agent_token(self.api, providers=["aws"])
        cycle = {"FRACTAL_TOKEN": token, "FRACTAL_CYCLE_SECONDS": str(CYCLE)}
        for name in AGENTS:
            env = {**cycle, "FRACTAL_URL": self.proxies[f"{name}→planes"].url}
            credentials = agent_env(self.proxies[f"{name}→{SANDBOX}"].url)
            self._add(self._fractal(name, {**env, **credentials}, "agent", "--provider", "aws"))

    def _fractal(self, name: str, env: Mapping[str, str], *arguments: str) -> Fractal:
        return Fractal(name, self._nursery, self.folder, env, *arguments)

    def _add(self, program: Program) -> None:
        self.programs[program.name] = program

    def restart_postgres(self, *, politely: bool) -> None:
        """End PostgreSQL, by a fast shutdown or by SIGKILL, and start it again on what it kept."""
        program = self.programs[POSTGRES]
        if politely:
            program.end(signal.SIGINT)
        elif program.is_running:
            program.kill()
        self.start_postgres()

    def start_postgres(self) -> None:
        """Start PostgreSQL on what it kept; its last processes may still be on their way out."""
        program = self.programs[POSTGRES]

        def is_up() -> bool:
            if not program.is_running:
                program.start()
            return postgres.answers(self._ports[POSTGRES])

        wait_until(is_up, "PostgreSQL answers again")

    def cut_database_connections(self) -> None:
        """Let PostgreSQL end every session but this one."""
        with self.database.connect() as connection:
            others = "WHERE pid <> pg_backend_pid() AND usename = 'test'"
            connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity {others}"))

    def repair(self) -> None:
        """Let everything run, every clock be right and every connection be fair."""
        for proxy in self.proxies.values():
            proxy.set(FAIR)
        for program in self.programs.values():
            program.set_clock(0)
            if program.is_running:
                program.resume()
                continue
            assert program.was_ended, f"SAFETY: {program.name} ended by itself:\n{program.last_lines()}"
            if program.name == POSTGRES:
                self.start_postgres()
            else:
                program.start()
        self.turn_knobs({})

    def close(self) -> None:
        """End everything, PostgreSQL in its own way, and let go of the connections."""
        for name, program in self.programs.items():
            if program.is_running and name == POSTGRES:
                program.resume()
                program.end(signal.SIGINT)
            elif program.is_running:
                program.kill()
        self._nursery.close()
        self.api.close()
        self.database.dispose()

    # --- what can be seen

    def is_ready(self) -> bool:
        """Whether a control plane and its database answer."""
        with suppress(httpx.TransportError):
            return self.api.get("/readyz").status_code == 200
        return False

    def agents_alive(self) -> int:
        """How many agents the control plane takes for alive."""
        with suppress(httpx.TransportError):
            answer = self.api.get("/agents")
            if answer.status_code == 200:
                return sum(agent["alive"] for agent in answer.json()["items"])
        return 0

    def rows(self, query: str, **values: Any) -> list[Any]:
        """What the database holds, asked of it directly."""
        with self.database.connect() as connection:
            return list(connection.execute(text(query), values))

    # --- the sandbox's own surface

    def turn_knobs(self, settings: Mapping[str, Any]) -> None:
        """Turn the cloud's knobs; those not named are as usual."""
        self._sandbox("PUT", "knobs", dict(settings))

    def writes(self) -> list[dict[str, Any]]:
        """The agents' writing calls since they were last forgotten."""
        found: list[dict[str, Any]] = self._sandbox("GET", "calls?actor=agent&writesOnly=1")["calls"]
        return found

    def reads_by_region(self) -> Counter[str]:
        """How often agents have listed a region's subnets, which every cycle does once, by region."""
        calls = self._sandbox("GET", "calls?actor=agent&operation=DescribeSubnets")["calls"]
        return Counter(call["region"] for call in calls)

    def forget_calls(self) -> None:
        """Begin a new list of calls."""
        self._sandbox("DELETE", "calls")

    def owned(self) -> list[Owned]:
        """Every resource that carries an owner tag."""
        return [Owned(**one) for one in self._sandbox("GET", "owned")["owned"]]

    def findings(self) -> dict[str, Any]:
        """What the safety monitor found."""
        found: dict[str, Any] = self._sandbox("GET", "monitor")
        return found

    def _sandbox(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"{self.cloud_url}/_sandbox/aws/{path}", data, method=method), timeout=60) as answer:
            return json.load(answer)

    def logs(self) -> str:
        """The ends of all logs."""
        return "\n".join(f"--- {program.name}\n{program.last_lines()}" for program in self.programs.values())


@contextmanager
def staged(seed: int) -> Iterator[Stage]:
    """A stage on which everything runs, and of which nothing is left at the end."""
    keeper, network = Keeper(), Network()
    try:
        stage = Stage(keeper, network, seed)
        try:
            stage.start()
            yield stage
        except BaseException:
            print(stage.logs())
            raise
        finally:
            stage.close()
    finally:
        network.close()
        keeper.close()
