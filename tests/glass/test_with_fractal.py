"""Where no tag can be changed, the product's own program breaks the glass, with the commands that it prints (G12, G13).

The program runs as a process of its own, against a control plane that really listens.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fractal_cloud.control.app import create_app
from fractal_cloud.offers.aruba.cloud_server import ArubaCloudServer
from fractal_sandbox import Sandbox
from tests.glass.printed_commands import Run, commands, terminal
from tests.http_server import served
from tests.offers.aruba.examples import EXAMPLES
from tests.offers.aruba.worlds import ArubaWorld
from tests.offers.worlds import provider_world
from tests.world import ADMIN_TOKEN

PROVIDER = "aruba"


@dataclass(frozen=True)
class Desk:
    """The terminal of an operator of one server."""

    world: ArubaWorld
    shell: Run

    def status(self) -> str:
        return str(self.world.status("ls-a", "server"))

    def state(self) -> str:
        item = self.world.aruba.get(self.world.component("ls-a", "server")["resourceId"])
        assert item is not None
        return str(item["status"]["state"])


@pytest.fixture
def desk(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[Desk]:
    with provider_world(session_sandbox, tmp_path, ArubaWorld) as world:
        world.deploy("ls-a", *EXAMPLES[ArubaCloudServer].components)
        world.survive()
        with served(create_app(world._settings)) as url:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            env = {"PATH": path, "FRACTAL_URL": url, "FRACTAL_TOKEN": ADMIN_TOKEN, "COLUMNS": "400"}
            yield Desk(world, terminal(tmp_path, env))


@pytest.mark.rule("G12", "G13", "S9", "S11")
def test_a_server_is_let_go_and_handed_back_by_the_printed_commands(desk: Desk) -> None:
    printed = desk.shell("fractal glass ls-a server")
    assert "fractal glass ls-a server --break" in printed
    assert "fractal glass ls-a server --readopt" in printed
    assert "no console and no command line of the vendor's can break the glass" in printed
    [break_glass], [readopt] = commands(desk.world, "server")
    said = desk.shell(f"{break_glass} --reason 'it smokes' --until 4h")
    assert "its tags are frozen, so the control plane remembers it: nothing is written to the cloud" in said
    desk.world.cycle()
    assert desk.status() == "ManualOverride"
    desk.world.aruba.act(desk.world.component("ls-a", "server")["resourceId"], "poweroff")
    desk.world.cycle(2)
    assert json.loads(desk.shell("fractal drift ls-a --output json")), "the drift is shown"
    shown = json.loads(desk.shell("fractal status ls-a server --output json"))
    assert (shown["override"]["by"], shown["override"]["reason"]) == ("admin", "it smokes")
    assert shown["override"]["until"] is not None
    assert "makes it as declared, and then manages it again" in desk.shell(readopt)
    desk.world.survive()
    assert (desk.status(), desk.state()) == ("Active", "Running")
    desk.world.assert_safe()


@pytest.mark.rule("G10")
def test_a_force_push_ends_the_override_of_a_server(desk: Desk) -> None:
    desk.shell("fractal glass ls-a server --break")
    desk.world.cycle()
    desk.world.aruba.act(desk.world.component("ls-a", "server")["resourceId"], "poweroff")
    assert desk.status() == "ManualOverride"
    said = desk.shell("fractal force-push ls-a")
    assert "server: Force Push asked for; the agent makes it as declared" in said
    desk.world.survive()
    assert (desk.status(), desk.state()) == ("Active", "Running")
