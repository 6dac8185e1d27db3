"""A deploy says what it will not do, its plan says the same, and what is gone is not shown as if it existed (C10)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agent_answers import answered_by_agent
from tests.world import World, subnet, vpc

ONE_BY_ONE = (
    "This LiveSystem owns 1 resource that is imported by 1 other LiveSystem. "
    "Deleting will cause that LiveSystem to report Missing on that reference."
)


def _put(world: World, live_system: str, *components: dict[str, Any], **more: Any) -> Any:
    body = {"id": live_system, "components": list(components), **more}
    return world.api.put(f"/livesystems/{live_system}", json=body)


def _deployed(world: World, live_system: str, *components: dict[str, Any]) -> list[str]:
    """Deploy, and return what was warned about."""
    answer = _put(world, live_system, *components)
    assert answer.status_code == 202, answer.text
    warnings: list[str] = answer.json()["warnings"]
    return warnings


def _plan(world: World, live_system: str, *components: dict[str, Any]) -> dict[str, Any]:
    """A plan, answered by the world's agent."""
    body = {"id": live_system, "components": list(components)}
    path = f"/livesystems/{live_system}/plan"
    answer = answered_by_agent(lambda: world.api.post(path, json=body), world.agent.run_once)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _endings(world: World, live_system: str) -> dict[str, tuple[str, str]]:
    body = world.api.delete(f"/livesystems/{live_system}", params={"dryRun": "true"}).json()
    return {item["componentId"]: (item["ending"], item["message"]) for item in body["preview"]["components"]}


def _listed(world: World) -> set[str]:
    return {item["name"] for item in world.api.get("/resources").json()["items"]}


@pytest.mark.rule("C10", "O1")
def test_a_deploy_of_what_another_owns_says_that_it_is_imported(world: World) -> None:
    world.agent.run_once()
    assert _deployed(world, "ls-a", vpc()) == []
    world.settle()
    said = ["'net' is owned by 'ls-a': it is imported, nothing is created"]
    assert _plan(world, "ls-b", vpc(), subnet("own"))["warnings"] == said
    assert _deployed(world, "ls-b", vpc(), subnet("own")) == said


@pytest.mark.rule("C10", "O7")
def test_taking_out_what_others_import_warns_with_the_numbers_of_a_deletion(world: World) -> None:
    world.deploy("ls-a", vpc(), vpc("other", cidrBlock="10.9.0.0/16"))
    world.settle()
    world.deploy("ls-b", vpc())
    world.settle()
    said = [f"'net' is taken out of the declaration. {ONE_BY_ONE}"]
    rest = vpc("other", cidrBlock="10.9.0.0/16")
    assert _plan(world, "ls-a", rest)["warnings"] == said
    assert _deployed(world, "ls-a", rest) == said
    assert _plan(world, "ls-b")["warnings"] == [], "an importer takes nothing from anybody"


@pytest.mark.rule("C10", "O12")
def test_what_is_only_read_is_named(world: World) -> None:
    world.agent.run_once()
    said = ["'net' is read only (importOnly): nothing is created or changed"]
    assert _deployed(world, "ls-a", {**vpc(), "importOnly": True}) == said


@pytest.mark.rule("C10", "C6")
def test_a_plan_ends_with_the_verdict_of_the_deploy(world: World) -> None:
    world.agent.run_once()
    missing = {**vpc(), "importOnly": True}
    plan = _plan(world, "ls-a", missing, subnet())
    assert (plan["verdict"], plan["summary"]["fail"]) == ("Failed", 1)
    assert any(reason.startswith("net: ") for reason in plan["reasons"]), plan["reasons"]
    mutation = world.deploy("ls-a", missing, subnet())
    world.cycle(3)
    assert world.mutation("ls-a", mutation)["status"] == plan["verdict"]
    assert _plan(world, "ls-b", vpc("fine"))["verdict"] == "Completed"


@pytest.mark.rule("C10", "C6", "C8")
def test_a_plan_of_what_a_person_must_resolve_first_fails(world: World) -> None:
    world.cloud.knobs.fail(
        times=None, operation="DescribeVpcs", actor="agent", code="UnauthorizedOperation", status=403
    )
    world.agent.run_once()
    plan = _plan(world, "ls-a", vpc())
    assert (plan["verdict"], plan["components"][0]["action"]) == ("Failed", "fail")


@pytest.mark.rule("C10", "O8")
def test_an_owner_tag_that_names_no_known_livesystem_is_said_so(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.person.tag(world.output("ls-a", "net", "vpcId"), fractal_cloud_owner="ls-typo")
    world.cycle()
    said = "this control plane knows no LiveSystem 'ls-typo'"
    assert said in world.component("ls-a", "net")["message"]
    mutation = str(world.api.get("/livesystems/ls-a").json()["mutationId"])
    assert said in world.mutation("ls-a", mutation)["components"]["net"]["message"]
    assert said in _deployed(world, "ls-a", vpc())[0]
    world.deploy("ls-typo", vpc())
    world.cycle()
    assert world.component("ls-a", "net")["message"] == "owned by 'ls-typo': read only"


@pytest.mark.rule("C10")
def test_the_environment_of_a_livesystem_cannot_change(world: World) -> None:
    world.deploy("ls-a", vpc())
    for answer in (
        _put(world, "ls-a", vpc(), environment="prod"),
        world.api.post("/livesystems/ls-a/plan", json={"id": "ls-a", "environment": "prod", "components": [vpc()]}),
    ):
        assert answer.status_code == 422
        assert answer.json()["errors"] == [
            {
                "path": "environment",
                "message": "is 'prod', but LiveSystem 'ls-a' is deployed in 'default', and that cannot change: "
                "deploy it under another id, or delete it and deploy it again",
            }
        ]
    assert world.api.get("/livesystems/ls-a").json()["environment"] == "default"
    assert "DeclarationRefused" in {event["kind"] for event in world.events("ls-a")}


@pytest.mark.rule("O14", "S0")
def test_a_delete_preview_knows_nothing_of_what_was_never_read(world: World) -> None:
    world.cloud.knobs.fail(times=None, operation="DescribeVpcs", actor="agent", code="InternalError", status=500)
    world.deploy("ls-a", vpc(), subnet())
    world.cycle()
    words = "no agent has read it yet: what becomes of it is decided when one does"
    assert _endings(world, "ls-a") == {"net": ("unknown", words), "subnet": ("unknown", words)}


@pytest.mark.rule("O13", "O10")
def test_resources_forget_what_was_deleted(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    world.deploy("ls-b", vpc())
    world.settle()
    assert _listed(world) == {"net", "net/subnet"}
    key = next(item["key"] for item in world.api.get("/resources").json()["items"] if item["name"] == "net")
    world.delete("ls-a")
    world.settle()
    assert _listed(world) == set(), "ls-b still declares it, but it is absent"
    one = world.api.get(f"/resources/{key}").json()
    assert (one["owner"], one["absent"]) == ("ls-a", True), "who owned it last is remembered while it is declared"
    world.delete("ls-b")
    world.settle()
    assert world.api.get(f"/resources/{key}").status_code == 404
    world.deploy("ls-a", vpc())
    world.settle()
    (item,) = world.api.get("/resources").json()["items"]
    assert (item["owner"], item["resourceId"]) == ("ls-a", world.output("ls-a", "net", "vpcId"))
    assert item["absent"] is False


@pytest.mark.rule("O13", "O10", "S3")
def test_resources_remember_what_was_left_or_only_dropped(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.deploy("ls-b", vpc())
    world.settle()
    world.delete("ls-b")
    world.settle()
    assert _listed(world) == {"net"}
    world.person.break_glass(world.output("ls-a", "net", "vpcId"))
    world.cycle()
    world.delete("ls-a")
    world.settle()
    (item,) = world.api.get("/resources").json()["items"]
    assert (item["name"], item["leftBy"]) == ("net", "ls-a")


@pytest.mark.rule("O13")
def test_a_creation_that_was_refused_leaves_no_resource(world: World) -> None:
    world.cloud.knobs.fail(times=None, operation="CreateVpc", code="VpcLimitExceeded", status=400)
    world.deploy("ls-a", vpc())
    world.cycle(2)
    assert _listed(world) == set()
