"""A fleet for the pages: many LiveSystems, of which some need a person, without any cloud behind them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import FastAPI
from sqlalchemy import select
from starlette.testclient import TestClient

from fractal_cloud.control.store import housekeeping, overrides, resources, unread_scopes
from fractal_cloud.control.store.overrides import Terms
from fractal_cloud.control.store.schema import components
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import KnownResource, ScopeCycle
from tests.store.playing import Clock, Player, World
from tests.world import ADMIN_TOKEN, security_group, subnet, vpc

ACCOUNT, OTHER_ACCOUNT = "123456789012", "210987654321"
SSH = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIp": "10.0.0.0/8"}
WEB = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "0.0.0.0/0"}


class RealClock(Clock):
    """The machine's time, which the pages go by."""

    def __call__(self) -> datetime:
        return datetime.now(UTC)


def ago(**span: float) -> datetime:
    """A moment before now."""
    return datetime.now(UTC) - timedelta(**span)


class Fleet:
    """A control plane with many LiveSystems in two environments, and the agents that read them."""

    def __init__(self, app: FastAPI, many: int) -> None:
        self.app, self.many = app, many
        self.api = TestClient(app, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        self.world = World(app.state.store, RealClock())
        self.names = [f"team-{number:03}" for number in range(many)]
        self.agents: list[Player] = []

    def build(self) -> Fleet:
        """Deploy all, let two agents read them, and let things go wrong in some."""
        for number, name in enumerate(self.names):
            group = security_group(ingress=[WEB])
            parts = [vpc(name=f"{name}-net"), subnet(name=f"{name}-subnet"), {**group, "id": "gate"}]
            document: dict[str, Any] = {"id": name, "environment": self.environment(number), "components": parts}
            if number % 10 == 0:
                document["description"] = f"What team {number} runs"
            assert self.api.post("/livesystems", json=document).status_code == 202
        for name, environment, account in (("agent-a", "prod", ACCOUNT), ("agent-b", "stage", OTHER_ACCOUNT)):
            player = Player(self.world, name)
            player.register(account, ("aws",), environment, types=())
            player.settle()
            self.agents.append(player)
        self.read()
        return self

    def environment(self, number: int) -> str:
        return "stage" if number % 5 == 4 else "prod"

    def read(self, at: datetime | None = None, *agents: Player) -> None:
        """Let agents say that they have read all their scopes."""
        for player in agents or self.agents:
            cycle = ScopeCycle(seconds=1.4, calls=12, throttles=2, errors=0)
            player.beat(
                {key: at or datetime.now(UTC) for key in player.tokens},
                player.tokens,
                dict.fromkeys(player.tokens, cycle),
            )

    def go_wrong(self) -> None:
        """Of those in prod: three components fail, two are missing, four are held by hand, one of them for too long."""
        player, prod = self.agents[0], [name for at, name in enumerate(self.names) if self.environment(at) == "prod"]
        denied = "denied: ec2:CreateSubnet on vpc-0a1b2c: the agent's role may not; next try at 15:04:10 UTC"
        drift = {"ingress": {"declared": [WEB], "actual": [WEB, SSH]}}
        held: dict[str, Any] = {"stance": Stance.OVERRIDE, "status": Status.MANUAL_OVERRIDE, "overridden": True}
        message = "In manual override: the agent reads it and changes nothing"
        player.report(
            *(player.says(name, "subnet", status=Status.FAILED, message=denied) for name in prod[-3:]),
            *(
                player.says(name, "net", status=Status.MISSING, message="vpc-0fe is gone", resource_id="vpc-0fe")
                for name in prod[-5:-3]
            ),
        )
        for at, (name, by, until, reason) in enumerate(
            (
                (prod[6], None, None, None),
                (prod[3], "anna", ago(minutes=5), "INC-4711: locked out of the bastion"),
                (prod[5], "bea", ago(hours=-4), "a rule of the auditors that has to be tried by hand first"),
                (prod[4], "admin", ago(hours=-1), "INC-4712"),
            )
        ):
            fields = {"groupId": f"sg-{at}", **({"drift": drift} if at % 2 else {})}
            player.report(player.says(name, "gate", **held, message=message, output_fields=fields))
            if by is not None:
                with self.world.store.write() as tx:
                    overrides.hand_over(tx, name, "gate", Terms(by, to=by, until=until, reason=reason))
        housekeeping.mark_overdue(self.world.store.database)
        self._remember_resources()

    def _remember_resources(self) -> None:
        """What agents report beside the components: by which id the cloud knows each."""
        with self.world.store.write() as tx:
            rows = tx.connection.execute(select(components).where(components.c.resource_id.is_not(None))).all()
            for row in rows:
                known = KnownResource(identity=row.identity_key, owner=row.owner, resource_id=row.resource_id)
                resources.write(tx, row.scope_key, [known])

    def fall_silent(self, player: Player) -> None:
        """Let nobody have read an agent's scopes for an hour."""
        self.read(ago(hours=1), player)
        unread_scopes.mark_unread(self.world.store.database, timedelta(seconds=5))
