"""What is taken out of a declared list or map of a kind by its own name goes, where it is ours alone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.offers.kubernetes.any_kind.test_product import MERGE, item
from tests.offers.kubernetes.declaring import component
from tests.offers.kubernetes.rights import AGENT, EVERYTHING
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

SERVICE = "/api/v1/namespaces/default/services/front"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/web"


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    with (
        kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made,
        session_sandbox.kubernetes.restrict_agent(AGENT, EVERYTHING),
    ):
        yield made
        made.assert_safe()


def service(*ports: int) -> dict[str, Any]:
    said = [{"name": f"p{port}", "port": port} for port in ports]
    return component("v1/Service", "front", spec={"selector": {"app": "web"}, "ports": said})


def web(env: dict[str, str], annotations: dict[str, str], **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x:1", "env": [{"name": k, "value": v} for k, v in env.items()]}
    template = {"metadata": {"labels": {"app": "web"}, "annotations": annotations}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {**component("apps/v1/Deployment", "web", spec=spec), **more}


def ports(world: KubernetesWorld) -> list[int]:
    return [one["port"] for one in item(world, SERVICE)["spec"]["ports"]]


def pod(world: KubernetesWorld) -> tuple[list[str], dict[str, str]]:
    template = item(world, DEPLOYMENT)["spec"]["template"]
    env = template["spec"]["containers"][0].get("env") or []
    return [one["name"] for one in env], template["metadata"].get("annotations") or {}


def plan(world: KubernetesWorld, *components: dict[str, Any]) -> dict[str, set[str]]:
    """What a deploy of these would change, by component."""
    return {one["componentId"]: set(one["changes"] or {}) for one in planned(world, *components)["components"]}


def planned(world: KubernetesWorld, *components: dict[str, Any]) -> dict[str, Any]:
    """The plan of a deploy of these."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        body = {"id": "ls-a", "components": list(components)}
        asked = pool.submit(world.api.post, "/livesystems/ls-a/plan", json=body)
        while not asked.done():
            world.agent.run_once()
    found: dict[str, Any] = asked.result().json()
    return found


@pytest.mark.rule("S12", "C6", "C7", "S20")
def test_what_is_taken_out_is_said_in_the_plan_and_goes_and_what_others_put_there_stays(world: KubernetesWorld) -> None:
    world.deploy("ls-a", service(80, 81), web({"A": "1", "B": "2"}, {"x": "1", "y": "2"}))
    world.settle()
    theirs = [{"op": "add", "path": "/spec/ports/-", "value": {"name": "theirs", "port": 99, "targetPort": 99}}]
    world.kube.call("PATCH", SERVICE, theirs, "application/json-patch+json")
    mine = [
        {"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "THEIRS", "value": "1"}},
        {"op": "add", "path": "/spec/template/metadata/annotations/theirs", "value": "1"},
    ]
    world.kube.call("PATCH", DEPLOYMENT, mine, "application/json-patch+json")
    world.settle()
    assert "drift" not in world.component("ls-a", "front")["outputFields"]

    after = [service(80), web({"B": "2"}, {"y": "2"})]
    changes = plan(world, *after)
    assert changes["front"] == {"spec.ports[port=81,protocol=TCP]"}
    assert changes["web"] == {
        "spec.template.metadata.annotations.x",
        "spec.template.spec.containers[name=main].env[name=A]",
    }
    world.deploy("ls-a", *after)
    world.settle()
    assert ports(world) == [80, 99]
    assert pod(world) == (["B", "THEIRS"], {"y": "2", "theirs": "1"})
    written = world.api.get("/livesystems/ls-a/components/front/journal").json()["items"][0]
    assert "spec.ports[port=81,protocol=TCP]" in str(written)
    assert not any(result.writes for result in world.cycle())


@pytest.mark.rule("S27", "G15", "T1")
def test_what_somebody_else_has_a_part_in_or_is_ignored_stays(world: KubernetesWorld) -> None:
    world.deploy("ls-a", service(80, 81), web({"A": "1", "B": "2"}, {"x": "1"}))
    world.settle()
    taken = item(world, SERVICE)["spec"]["ports"]
    taken[1]["targetPort"] = 8081
    world.kube.call("PATCH", SERVICE, {"spec": {"ports": taken}}, MERGE)
    path = "spec.template.spec.containers[name=main].env[name=A]"
    world.deploy("ls-a", service(80), web({"B": "2"}, {}, ignoreDrift=[path]))
    world.settle()
    assert ports(world) == [80, 81], "somebody else changed it, and has a part in it"
    assert pod(world) == (["A", "B"], {}), "the one is ignored, the other was ours"
    assert not any(result.writes for result in world.cycle())


@pytest.mark.rule("G3", "G6")
def test_in_override_it_is_a_difference_and_nothing_is_written(world: KubernetesWorld) -> None:
    world.deploy("ls-a", service(80, 81))
    world.settle()
    world.kube.call("PATCH", SERVICE, {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}, MERGE)
    world.settle()
    world.deploy("ls-a", service(80))
    world.settle()
    assert world.status("ls-a", "front") == "ManualOverride"
    assert list(world.drift("ls-a", "front") or {}) == ["spec.ports[port=81,protocol=TCP]"]
    assert ports(world) == [80, 81]
