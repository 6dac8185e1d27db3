"""Secrets that are made once, in the vendor's own store: a password of a database, a variable of a workload (A8)."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from fractal_cloud.cli import logs
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from tests import aws_rights
from tests.agent_answers import answered_by_agent
from tests.faults.effects import Fault
from tests.offers.kubernetes.attempts import AsTheAgent
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.kubernetes.rights import printed_rights
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world
from tests.secret_references import canaries
from tests.secret_references.test_user_data import in_the_cloud, machine
from tests.world import World
from tests.world import world as make_world

pytestmark = [pytest.mark.rule("A8"), pytest.mark.timeout(120)]
GENERATED = {"$secret": {"generate": 32}}
NAME = "fractal-cloud/ls-a/web/generated/userData"
OURS = {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"}


@pytest.fixture(autouse=True)
def detailed_logs() -> Iterator[None]:
    """Logs as detailed as they can be."""
    before = structlog.get_config()
    logs.set_up(logging.DEBUG)
    yield
    structlog.configure(**before)


@pytest.fixture
def aws(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The whole product over AWS, with the rights that are printed for generated secrets."""
    with make_world(session_sandbox, tmp_path, monkeypatch, agent_id="agent-1", state_dir=tmp_path / "state") as made:
        aws_rights.limit(session_sandbox, with_generated_secrets=True)
        yield made
        made.assert_safe()


@pytest.fixture
def cluster(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    """The whole product over a cluster, with the rights that are printed for generated secrets."""
    more: dict[str, Any] = {"agent_id": "agent-1", "state_dir": tmp_path / "state"}
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld, **more) as made:
        yield made
        made.assert_safe()


def stored(world: World, name: str = NAME) -> str | None:
    """The value in Secrets Manager; None where there is none."""
    client = world.person.client("secretsmanager")
    try:
        return str(client.get_secret_value(SecretId=name)["SecretString"])
    except client.exceptions.ResourceNotFoundException:
        return None


def keep(world: World, value: str, **tags: str) -> None:
    """Somebody makes a secret of the name."""
    listed = [{"Key": key, "Value": text} for key, text in tags.items()]
    world.person.client("secretsmanager").create_secret(Name=NAME, SecretString=value, Tags=listed)


# --- AWS


def test_it_is_made_once_and_stays_the_same_until_the_component_is_deleted(aws: World) -> None:
    aws.deploy("ls-a", machine(GENERATED))
    aws.settle()
    assert aws.status("ls-a", "web") == "Active", aws.component("ls-a", "web")
    value = stored(aws)
    assert value is not None
    assert len(value) == 32
    assert in_the_cloud(aws) == value
    described = aws.person.client("secretsmanager").describe_secret(SecretId=NAME)
    assert {one["Key"]: one["Value"] for one in described["Tags"]}.items() >= OURS.items()
    aws.restart_agent()
    aws.settle()
    aws.deploy("ls-a", machine({"$secret": {"generate": 40}}))
    aws.settle()
    assert stored(aws) == in_the_cloud(aws) == value, "the length counts when it is made"
    aws.delete("ls-a")
    aws.settle(at_most=30)
    assert stored(aws) is None


def test_a_machine_that_is_deleted_by_hand_comes_back_with_the_same_value(aws: World) -> None:
    aws.deploy("ls-a", machine(GENERATED))
    aws.settle()
    value = stored(aws)
    aws.person.ec2.terminate_instances(InstanceIds=[aws.component("ls-a", "web")["resourceId"]])
    aws.settle(at_most=30)
    aws.deploy("ls-a", machine(GENERATED))
    aws.settle(at_most=30)
    assert aws.status("ls-a", "web") == "Active", aws.component("ls-a", "web")
    assert in_the_cloud(aws) == stored(aws) == value


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({}, "is there without our tags"),
        ({**OURS, "fractal-cloud-owner": "ls-z"}, "belongs to LiveSystem 'ls-z'"),
        ({**OURS, "managed-by": "terraform"}, "is managed by 'terraform'"),
    ],
)
@pytest.mark.rule("S6", "S7", "T7")
def test_a_secret_of_somebody_else_is_neither_used_nor_changed(aws: World, tags: dict[str, str], said: str) -> None:
    keep(aws, "somebody-elses-value", **tags)
    aws.deploy("ls-a", machine(GENERATED))
    aws.cycle(3)
    shown = aws.component("ls-a", "web")
    assert shown["status"] == "Failed"
    assert said in shown["message"]
    assert shown["resourceId"] is None, "nothing half is made"
    aws.delete("ls-a")
    aws.settle(at_most=30)
    assert stored(aws) == "somebody-elses-value"


@pytest.mark.rule("L14")
def test_one_that_was_deleted_is_said_and_not_made_anew_and_another_of_its_name_is_written(aws: World) -> None:
    aws.deploy("ls-a", machine(GENERATED))
    aws.settle()
    value = in_the_cloud(aws)
    aws.person.client("secretsmanager").delete_secret(SecretId=NAME, ForceDeleteWithoutRecovery=True)
    aws.cycle(3)
    shown = aws.component("ls-a", "web")
    assert shown["status"] == "Failed"
    assert f"secret '{NAME}' (AWS Secrets Manager), which was made for it, was deleted" in shown["message"]
    assert stored(aws) is None
    assert in_the_cloud(aws) == value
    keep(aws, "another-value", **OURS)
    aws.settle(at_most=30)
    assert in_the_cloud(aws) == "another-value"
    assert aws.status("ls-a", "web") == "Active"


def test_one_that_is_about_to_be_deleted_is_said_with_how_to_restore_it(aws: World) -> None:
    aws.deploy("ls-a", machine(GENERATED))
    aws.settle()
    client = aws.person.client("secretsmanager")
    client.delete_secret(SecretId=NAME)
    aws.cycle(3)
    assert "restore-secret" in aws.component("ls-a", "web")["message"]
    client.restore_secret(SecretId=NAME)
    aws.settle()
    assert aws.status("ls-a", "web") == "Active"


@pytest.mark.rule("S17")
def test_a_component_that_is_there_gets_one_when_it_first_asks_for_it(aws: World) -> None:
    aws.deploy("ls-a", machine("#!/bin/sh"))
    aws.settle()
    aws.deploy("ls-a", machine(GENERATED))
    aws.settle(at_most=30)
    assert in_the_cloud(aws) == stored(aws) is not None
    aws.deploy("ls-a", machine("#!/bin/sh"))
    aws.settle(at_most=30)
    assert stored(aws) is not None, "it goes with the component, and not before"
    aws.delete("ls-a")
    aws.settle(at_most=30)
    assert stored(aws) is None


@pytest.mark.rule("G8", "O10")
def test_what_stays_in_the_cloud_keeps_its_secret(aws: World) -> None:
    aws.deploy("ls-a", machine(GENERATED))
    aws.settle()
    aws.person.break_glass(aws.component("ls-a", "web")["resourceId"])
    aws.settle()
    aws.delete("ls-a")
    aws.settle(at_most=30)
    assert stored(aws) is not None


def test_it_is_found_nowhere_but_in_the_store_and_the_cloud(
    aws: World, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    aws.sandbox.aws.knobs.fail(operation="RunInstances", code="Bad", message="bad", status=400, times=1)
    aws.deploy("ls-a", machine(GENERATED))
    aws.cycle(2)
    aws.deploy("ls-a", machine(GENERATED))
    aws.settle(at_most=30)
    value = stored(aws)
    assert value is not None
    assert in_the_cloud(aws) == value
    body = {"id": "ls-a", "components": [machine(GENERATED)]}
    plan = answered_by_agent(lambda: aws.api.post("/livesystems/ls-a/plan", json=body), aws.agent.run_once)
    assert plan.status_code == 200, plan.text
    logged = capfd.readouterr()
    assert "event=cycle" in logged.err
    texts = canaries.pages(aws.api, aws.app, "web") | canaries.files(tmp_path, tmp_path / "secrets")
    texts |= {"log": (logged.out + logged.err).encode(), "plan": plan.content}
    texts["agent"] = repr(aws.agent).encode() + repr(vars(aws.agent)).encode()
    canaries.assert_silent(texts, value)


def test_a_plan_of_a_new_component_makes_nothing(aws: World) -> None:
    aws.cycle()
    body = {"id": "ls-a", "components": [machine(GENERATED)]}
    plan = answered_by_agent(lambda: aws.api.post("/livesystems/ls-a/plan", json=body), aws.agent.run_once)
    assert plan.status_code == 200, plan.text
    assert plan.json()["components"][0]["action"] == "create", plan.text
    assert stored(aws) is None


def test_without_the_rights_nothing_is_made_and_the_refusal_is_said(aws: World, session_sandbox: Sandbox) -> None:
    aws_rights.limit(session_sandbox)
    aws.deploy("ls-a", machine(GENERATED))
    aws.cycle(3)
    assert "cannot be read" in aws.component("ls-a", "web")["message"]
    assert stored(aws) is None


# --- Kubernetes


def workload(value: Any = GENERATED) -> dict[str, Any]:
    """A workload with a password in its environment."""
    parameters = {"image": "web:1", "env": {"LEVEL": "info", "DB": value}}
    return {"id": "web", "type": "CustomWorkloads.CaaS.KubernetesWorkload", "parameters": parameters}


def in_the_cluster(world: KubernetesWorld) -> str:
    """The variable as the workload has it."""
    found = world.kube.get("deployments", "web")
    assert found is not None
    [one] = [e for e in found["spec"]["template"]["spec"]["containers"][0]["env"] if e["name"] == "DB"]
    return str(one["value"])


def kept(world: KubernetesWorld) -> list[Any]:
    """The Secrets that were generated."""
    items = world.kube.call("GET", world.kube.path("secrets"))["items"]
    return [one for one in items if one["metadata"]["name"].startswith("fractal-generated-web-")]


def decoded(secret: Any) -> str:
    """What a Secret holds."""
    return base64.b64decode(secret["data"]["value"]).decode()


def test_in_a_cluster_it_is_a_secret_of_the_namespace(cluster: KubernetesWorld) -> None:
    cluster.deploy("ls-a", workload())
    cluster.settle()
    assert cluster.status("ls-a", "web") == "Active", cluster.component("ls-a", "web")
    [secret] = kept(cluster)
    assert secret["metadata"]["labels"]["fractal.cloud/owner"] == "ls-a"
    assert in_the_cluster(cluster) == decoded(secret)
    cluster.restart_agent()
    cluster.settle()
    cluster.delete("ls-a")
    cluster.settle()
    assert kept(cluster) == []


@pytest.mark.rule("S17")
@pytest.mark.parametrize(
    "fault",
    [
        Fault.KILLED_AFTER,
        Fault.ANSWER_LOST,
        pytest.param(Fault.KILLED_BEFORE, marks=pytest.mark.soak),
        pytest.param(Fault.CALL_LOST, marks=pytest.mark.soak),
    ],
)
def test_whatever_effect_the_agent_does_not_survive_one_secret_is_made_and_none_is_left(
    cluster: KubernetesWorld, fault: Fault
) -> None:
    number, struck, names = 0, True, set[str]()
    while struck:
        cluster.start_over()
        cluster.effects.arm(number, fault)
        cluster.deploy("ls-a", workload())
        cluster.survive()
        assert cluster.status("ls-a", "web") == "Active", cluster.component("ls-a", "web")
        [secret] = kept(cluster)
        assert in_the_cluster(cluster) == decoded(secret)
        cluster.delete("ls-a")
        cluster.survive()
        assert kept(cluster) == [], (number, cluster.effects.occurred, cluster.effects.struck)
        struck = cluster.effects.struck
        names |= set(cluster.effects.occurred)
        cluster.assert_safe()
        number += 1
    assert number > 6, names
    assert any(name.startswith("DELETE fractal-generated-web") for name in names), names


# --- rights


def test_aws_prints_the_rights_only_when_asked_and_for_names_of_their_own() -> None:
    def of_generated(documents: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        every = [one for document in documents for one in document["Statement"]]
        return {one["Sid"]: one for one in every if "Generated" in one["Sid"]}

    assert of_generated(aws_rights.printed()) == {}
    found = of_generated(aws_rights.printed(with_generated_secrets=True))
    assert len(found) == 3
    for one in found.values():
        assert one["Resource"] == ["arn:*:secretsmanager:*:*:secret:fractal-cloud/*/generated/*"]
    managed = {"StringEquals": {"aws:ResourceTag/managed-by": "fractal-cloud"}}
    assert found["UseGeneratedSecrets"]["Condition"] == managed, "nothing else is read or deleted"


@pytest.mark.rule("A7")
@pytest.mark.parametrize(
    ("method", "name", "labels"),
    [
        ("POST", "another", {"fractal.cloud/generated": "x"}),
        ("POST", "fractal-generated-x", {}),
        ("POST", "fractal-link-x", {"fractal.cloud/link": "x"}),
        ("DELETE", "somebodys", None),
    ],
    ids=["another name", "no mark", "one of links", "delete"],
)
def test_in_a_cluster_no_other_secrets_are_made_or_deleted(
    session_sandbox: Sandbox, tmp_path: Path, method: str, name: str, labels: dict[str, str] | None
) -> None:
    session_sandbox.kubernetes.reset()
    KubernetesPerson(session_sandbox.url, tmp_path).create(
        "secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "somebodys"}, "data": {}}
    )
    path = "/api/v1/namespaces/default/secrets"
    body = None if labels is None else {"metadata": {"name": name, "labels": labels}}
    with printed_rights(session_sandbox, PolicyOptions(with_generated_secrets=True)):
        status, text = AsTheAgent(session_sandbox).ask(method, path if method == "POST" else f"{path}/{name}", body)
    assert status == 403, text
