"""Another account, vCenter or project than the one that was first reached, on every kind of provider (S26)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import Denied
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.aruba.cloud import ArubaSession
from fractal_cloud.offers.azure.cloud import AzureSession
from fractal_cloud.offers.gcp.cloud import GcpSession
from fractal_cloud.offers.hetzner.cloud import HetznerSession
from fractal_cloud.offers.oci.cloud import OciSession
from fractal_cloud.offers.offer import Session
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.vsphere.simulator import why_not
from tests.offers.aruba.examples import VPC
from tests.offers.aruba.worlds import ArubaWorld
from tests.offers.vsphere.examples import EXAMPLES as MACHINES
from tests.offers.vsphere.worlds import vsphere_world
from tests.offers.worlds import provider_world
from tests.world import Declaration, World, vpc
from tests.world import world as aws_world


@contextmanager
def on_aws(sandbox: Sandbox, folder: Path) -> Iterator[tuple[World, Declaration]]:
    with pytest.MonkeyPatch.context() as patch, aws_world(sandbox, folder, patch) as made:
        yield made, vpc("one")


@contextmanager
def on_aruba(sandbox: Sandbox, folder: Path) -> Iterator[tuple[World, Declaration]]:
    with provider_world(sandbox, folder, ArubaWorld) as made:
        yield made, VPC


@contextmanager
def on_vsphere(sandbox: Sandbox, folder: Path) -> Iterator[tuple[World, Declaration]]:
    if why_not():
        pytest.skip(why_not())
    with vsphere_world(sandbox, folder) as made:
        [example] = MACHINES.values()
        yield made, example.components[-1]


def lead_elsewhere(world: World, realm: str, other: str) -> None:
    """Have the cloud say that it is another account, project or vCenter."""
    if world.providers == ("vsphere",):
        world.cloud.instance = other
    for operation in ("GetCallerIdentity", "getProject", "listProjects"):
        world.cloud.knobs.rewrite(
            lambda body: body.replace(realm.encode(), other.encode()), actor="agent", operation=operation
        )


def lead_back(world: World) -> None:
    """Have it say what it is."""
    world.cloud.instance = ""
    world.cloud.knobs.reset()


WHERE: dict[str, Any] = {"aws": on_aws, "aruba": on_aruba, "vsphere": on_vsphere}


@pytest.mark.rule("S26", "S0")
@pytest.mark.parametrize("provider", WHERE)
def test_nothing_is_made_changed_or_called_gone_where_another_realm_answers(
    session_sandbox: Sandbox, tmp_path: Path, provider: str
) -> None:
    with WHERE[provider](session_sandbox, tmp_path) as (world, component):
        world.deploy("ls-a", component)
        world.settle(20)
        name = component["id"]
        before = world.component("ls-a", name)
        assert before["status"] == "Active", before["message"]
        realm = next(one["realm"] for one in world.api.get("/scopes").json()["items"])
        other = re.sub(r"[0-9a-f]", "7", realm)
        lead_elsewhere(world, realm, other)
        world.deploy("ls-a", component, {**component, "id": f"{name}-2"})
        written = len([one for one in world.cloud.calls.find(actor="agent") if one.call.is_write])
        world.cycle(4)
        assert len([one for one in world.cloud.calls.find(actor="agent") if one.call.is_write]) == written
        for component_id in (name, f"{name}-2"):
            assert f"is now {other!r}, it was {realm!r}" in world.component("ls-a", component_id)["message"]
        after = world.component("ls-a", name)
        assert (after["status"], after["resourceId"]) == (before["status"], before["resourceId"])
        assert [event["kind"] for event in world.events("ls-a")].count("RealmChanged") == 1
        lead_back(world)
        world.cycle(2)
        world.settle(20)
        assert [world.status("ls-a", one) for one in (name, f"{name}-2")] == ["Active", "Active"]


SESSIONS: dict[str, type[Session]] = {
    "aruba": ArubaSession,
    "azure": AzureSession,
    "gcp": GcpSession,
    "hetzner": HetznerSession,
    "oci": OciSession,
}


@pytest.mark.rule("S26")
@pytest.mark.parametrize("provider", SESSIONS)
def test_what_is_reached_is_confirmed_in_one_call_at_most(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    cloud: Any = getattr(session_sandbox, provider)
    cloud.reset()
    for name, value in agent_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    session = SESSIONS[provider]()
    realms = set(session.realms().values())
    for realm in realms:
        before = len(cloud.calls.find(actor="agent"))
        assert session.realm_now(Scope(provider, realm, "anywhere")) == realm
        assert len(cloud.calls.find(actor="agent")) - before == (0 if provider == "hetzner" else 1)
    if provider != "hetzner":  # of which project a token is, Hetzner does not say
        cloud.knobs.fail(status=403, times=None, actor="agent")
        with pytest.raises(Denied):
            session.realm_now(Scope(provider, realms.pop(), "anywhere"))
        cloud.knobs.reset()
