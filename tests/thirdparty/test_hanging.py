"""Real agents in which a third party's verb and a call to AWS hang: the rest is reconciled, SIGTERM ends them within
ten seconds, and another agent serves their scopes (S24).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.testing.tokens import agent_token
from fractal_sandbox import Sandbox, agent_env
from tests.thirdparty.stage import ACME_AGENT, CYCLE, FRACTAL, Stage
from tests.world import security_group, subnet, vpc

pytestmark = [pytest.mark.xdist_group("third party"), pytest.mark.timeout(400)]
LS = "ls-stuck"
STOPS_WITHIN = 10.0
PACKAGE = '''
"""Archives of AcmeDB, in a package of somebody else: its list does not return while a file is there."""

import os
import time
from dataclasses import replace
from pathlib import Path

from acmedb.component import AcmeDb
from acmedb.offer import AcmeDbOffer


class AcmeArchive(AcmeDb):
    """A database that is only read."""

    type = "Storage.PaaS.AcmeArchive"


class AcmeArchiveOffer(AcmeDbOffer):
    """How archives are read and changed."""

    component = AcmeArchive
    title = "AcmeDB archive"

    def sightings(self, cloud, look):
        flag = Path(os.environ["ACME_HANGS"])
        flag.with_suffix(f".{os.getpid()}").touch()
        while flag.exists():
            time.sleep(0.05)
        for found in super().sightings(cloud, look):
            yield replace(found, type=AcmeArchive.type)

    def read(self, cloud, resource_id, sweep=()):
        found = super().read(cloud, resource_id, sweep)
        return None if found is None else replace(found, type=AcmeArchive.type)

    def create(self, cloud, wanted, tags):
        return replace(super().create(cloud, wanted, tags), type=AcmeArchive.type)
'''


def install(folder: Path) -> None:
    """Lay the package where pip would, with the entry point by which it is found."""
    (folder / "acmearchive.py").write_text(PACKAGE)
    about = folder / "acmearchive-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acmearchive\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fractal_cloud.offers]\nacmearchive = acmearchive\n")


class HangingStage(Stage):
    """A control plane, AcmeDB, and agents that serve AcmeDB and AWS at once."""

    patience = 100.0

    def __init__(self, sandbox: Sandbox, with_package: Mapping[str, str], folder: Path) -> None:
        super().__init__(sandbox, with_package, folder)
        self._hangs = folder / "archives-hang"
        self._hangs.touch()
        self._rule = sandbox.aws.knobs.hang(operation="DescribeSubnets", actor="agent")

    def start_agent(self, name: str, *options: str) -> None:
        own = {
            "FRACTAL_URL": self.url,
            "FRACTAL_TOKEN": agent_token(self.api, name, providers=["acme", "aws"]),
            "FRACTAL_CYCLE_SECONDS": CYCLE,
            "FRACTAL_STATE_DIR": str(self._folder / name),
            "ACMEDB_URL": self.acme_url,
            "ACMEDB_TOKEN": ACME_AGENT,
            "ACME_HANGS": str(self._hangs),
        }
        command = [*FRACTAL, "agent", "--provider", "acme", "--provider", "aws", *options]
        self._start(name, command, {**self.with_package, **agent_env(self.sandbox.url, self._folder), **own})

    def wait_until_hanging(self, name: str, calls: int) -> None:
        """Until the third party's verb and a call to AWS hang in that agent, as they do in those before it."""
        marker = self._hangs.with_suffix(f".{self._processes[name].pid}")
        self.wait_for(marker.exists, f"the list of archives hangs in the {name} agent")
        self.sandbox.aws.knobs.wait_until_hanging(calls)

    def release(self) -> None:
        """From now on everything returns."""
        self._hangs.unlink()
        self.sandbox.aws.knobs.remove(self._rule)

    def stop(self, name: str) -> float:
        """Send SIGTERM to an agent; how many seconds it took to end."""
        process = self._processes.pop(name)
        assert process.poll() is None, f"the {name} agent ended by itself\n{self._logs()}"
        begun = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        try:
            code = process.wait(60)
        finally:
            process.kill()
        took = time.monotonic() - begun
        assert code == 0, self._logs()
        return took

    def last_seen(self) -> list[str]:
        return [agent["lastSeen"] for agent in self.api.get("/agents").json()["items"]]

    def wait_until_it_says(self, name: str, text: str) -> None:
        self.wait_for(lambda: text in self.component(LS, name)["message"], f"{name} says {text!r}")

    def wait_until_applied(self, generation: int, *components: str) -> None:
        def is_so() -> bool:
            found = [self.component(LS, name) for name in components]
            return all((one["status"], one["observedGeneration"]) == ("Active", generation) for one in found)

        self.wait_for(is_so, f"generation {generation} of {components} is applied")


@pytest.fixture
def stage(session_sandbox: Sandbox, with_package: dict[str, str], tmp_path: Path) -> Iterator[HangingStage]:
    session_sandbox.aws.reset()
    site = tmp_path / "site"
    site.mkdir()
    install(site)
    path = os.pathsep.join([str(site), with_package["PYTHONPATH"]])
    made = HangingStage(session_sandbox, {**with_package, "PYTHONPATH": path}, tmp_path)
    try:
        made.start_servers()
        yield made
    finally:
        session_sandbox.aws.knobs.reset()
        made.close()


def declared(size: str) -> dict[str, Any]:
    orders = {"id": "orders", "type": "Storage.PaaS.AcmeDb", "parameters": {"size": size}}
    archive = {"id": "archive", "type": "Storage.PaaS.AcmeArchive", "parameters": {}}
    return {"id": LS, "components": [vpc(), subnet(), security_group(), orders, archive]}


@pytest.mark.rule("S24")
def test_agents_with_verbs_that_hang_reconcile_the_rest_stop_in_time_and_leave_their_scopes_to_another(
    stage: HangingStage,
) -> None:
    # calls are given up after some seconds: everything else of both scopes is reconciled, and the agent is alive
    stage.start_agent("first", "--call-seconds", "3")
    stage.wait_for(lambda: stage._serving() == {"acme", "aws"}, "the agent registers")
    assert stage.deploy(declared("small")).status_code == 202
    stage.wait_until_hanging("first", 1)
    stage.wait_until_applied(1, "net", "group", "orders")
    for stuck in ("subnet", "archive"):
        stage.wait_until_it_says(stuck, "did not return")
        assert stage.component(LS, stuck)["status"] != "Active"
    before = stage.last_seen()
    stage.wait_for(lambda: stage.last_seen() > before, "an agent with calls that hang heartbeats")
    assert stage.deploy(declared("medium")).status_code == 202
    stage.wait_until_applied(2, "net", "group", "orders")
    assert stage.stop("first") < STOPS_WITHIN

    # calls are under way, and would be waited for for two minutes
    stage.start_agent("second")
    stage.wait_until_hanging("second", 2)
    assert stage.stop("second") < STOPS_WITHIN

    # whoever comes next has their scopes, and all of it is reconciled
    stage.release()
    stage.start_agent("third")
    stage.wait_until_applied(2, "net", "group", "orders", "subnet", "archive")
    assert not stage.sandbox.aws.monitor.violations
