"""A third party's package, installed beside agents only: real processes, two clouds, two tokens, one link."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.thirdparty.conftest import EXAMPLE, ROOT
from tests.thirdparty.stage import Stage

TYPE = "Storage.PaaS.AcmeDb"
WORKLOAD = "CustomWorkloads.CaaS.KubernetesWorkload"
SHOP: dict[str, Any] = yaml.safe_load((EXAMPLE / "shop.yaml").read_text())

pytestmark = [pytest.mark.xdist_group("third party"), pytest.mark.timeout(120)]


def test_nothing_in_the_product_names_the_third_party() -> None:
    done = subprocess.run([sys.executable, "-c", "import acmedb"], capture_output=True, text=True, check=False)
    assert "No module named 'acmedb'" in done.stderr, "the project's own environment must not have it"
    named = [path for path in (ROOT / "src").rglob("*.py") if "acmedb" in path.read_text().lower()]
    assert named == []


@pytest.mark.rule("L7", "L16")
def test_types_that_only_an_agent_has_are_known_with_their_parameters_and_links(stage: Stage) -> None:
    [found] = [offer for offer in stage.api.get("/offers").json()["items"] if offer["type"] == TYPE]
    assert found["provider"] == "acme"
    assert found["parameterSchema"]["properties"]["size"]["enum"] == ["small", "medium", "large"]
    links = {(link["half"], link["source"], link["target"]): link for link in found["links"]}
    assert set(links) == {("inbound", "*", TYPE), ("outbound", WORKLOAD, TYPE)}
    assert {link["linkType"] for link in links.values()} == {"acmeDbLink"}
    assert all(link["required"] == ["keyspace"] for link in links.values())


@pytest.mark.rule("L7", "L16")
def test_what_is_wrong_with_it_is_reported_at_deploy_by_a_control_plane_that_has_not_the_package(stage: Stage) -> None:
    database, workload = SHOP["components"]
    wrong = {**database, "parameters": {"size": "huge", "colour": "red"}}
    answer = stage.deploy({"id": "ls-wrong", "components": [wrong, {**workload, "links": [{"target": "orders"}]}]})
    assert answer.status_code == 422
    paths = {fault["path"] for fault in answer.json()["errors"]}
    assert paths == {
        "components[orders].parameters.size",
        "components[orders].parameters.colour",
        "components[web].links[0].settings.keyspace",
    }


def test_python_and_yaml_declare_the_same(with_package: dict[str, str]) -> None:
    code = f"import json, runpy; print(json.dumps(runpy.run_path({str(EXAMPLE / 'shop.py')!r})['shop'].to_json()))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=with_package, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    declared = json.loads(done.stdout)
    for ours, theirs in zip(SHOP["components"], declared["components"], strict=True):
        assert {**theirs, **ours} == theirs


@pytest.mark.rule("L4", "L9", "L10", "L13", "L14", "L16", "G1", "G7", "G11")
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine: Debian's curl brings it")
def test_a_workload_uses_a_third_partys_database_until_the_link_is_taken_away(stage: Stage) -> None:
    stage.fractal("deploy", str(EXAMPLE / "shop.yaml"), "--wait")

    # both converge, and what the workload gets opens the database
    stage.wait_for(lambda: "ORDERS_PASSWORD" in stage.environment("web"), "the workload is wired")
    stage.wait_for_status("ls-shop", "web", "Active")
    env = stage.environment("web")
    assert stage.can_log_in(env)
    assert env["ORDERS_KEYSPACE"] == "shop"
    assert not stage.can_log_in({**env, "ORDERS_PASSWORD": "guessed"})
    old = env["ORDERS_PASSWORD"]
    for path in ("", "/components/orders", "/components/web", "/components/orders/journal", "/events"):
        assert old not in stage.api.get(f"/livesystems/ls-shop{path}").text

    # what is there can be discovered, by whoever has the package
    [found] = yaml.safe_load(stage.discover())["components"]
    assert (found["id"], found["type"], found["parameters"]["size"]) == ("orders", TYPE, "small")

    # a user that somebody drops comes back, and the workload gets its new password
    by_hand = 'curl -s -H "Authorization: Bearer $ACMEDB_TOKEN" "$ACMEDB_URL/'
    shown = stage.component("ls-shop", "orders")["outputFields"]
    stage.type_in_shell(
        f'{by_hand}databases/{shown["databaseId"]}/users/{shown["linkedCredentials.web.user"]}" -X DELETE'
    )
    stage.wait_for(lambda: stage.environment("web").get("ORDERS_PASSWORD", "") not in ("", old), "it is sealed anew")
    env = stage.environment("web")
    assert stage.can_log_in(env)
    stage.wait_for_status("ls-shop", "web", "Active")

    # break the glass with the command that the product prints, and see what comes of it
    glass = stage.api.get("/livesystems/ls-shop/components/orders/glass").json()
    stage.type_in_shell(glass["break"][0])
    stage.wait_for_status("ls-shop", "orders", "ManualOverride")
    database_id = stage.component("ls-shop", "orders")["outputFields"]["databaseId"]
    resize = glass["break"][0].split(" -d ")[0] + """ -d '{"size": "large", "labels": {"team": "shop"}}'"""
    assert json.loads(stage.type_in_shell(resize))["id"] == database_id
    stage.wait_for(lambda: "drift" in stage.component("ls-shop", "orders")["outputFields"], "the drift is shown")
    shown = stage.component("ls-shop", "orders")
    assert shown["outputFields"]["drift"] == {"size": {"declared": "small", "actual": "large"}}

    # in override nothing is taken back: the link goes, and the login stays
    database, workload = SHOP["components"]
    unlinked = {**SHOP, "components": [database, {**workload, "links": []}]}
    assert stage.deploy(unlinked).status_code == 202
    stage.wait_for(lambda: stage.secrets() == [], "the workload's Secret goes")
    assert stage.can_log_in(env)

    # handed back, it is as declared, other people's labels stand, and the login is refused
    stage.type_in_shell(glass["readopt"][0])
    stage.wait_for(lambda: not stage.can_log_in(env), "the user is dropped")
    shown = stage.wait_for_status("ls-shop", "orders", "Active")
    assert "drift" not in shown["outputFields"]
    assert not [name for name in shown["outputFields"] if name.startswith("linkedCredentials.")]
    read = glass["break"][0].replace("-X PATCH", "").split(" -d ")[0]
    actual = json.loads(stage.type_in_shell(read))
    labels = {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-shop", "team": "shop"}
    assert (actual["size"], actual["labels"]) == ("small", labels)
    stage.wait_for(lambda: stage.environment("web") == {}, "the workload forgets what it got")

    stage.api.delete("/livesystems/ls-shop")
    stage.wait_for(lambda: stage.api.get("/livesystems/ls-shop").status_code == 404, "all of it is deleted")
    assert json.loads(stage.type_in_shell(read))["code"] == "unknown"
    assert json.loads(stage.type_in_shell(f'{by_hand}backups"')) == {"items": ["orders"]}
    assert not stage.sandbox.kubernetes.monitor.violations
