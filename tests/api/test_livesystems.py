"""Deploying, reading and deleting LiveSystems over HTTP."""

from __future__ import annotations

import json

import pytest

from tests.api.conftest import BUCKET, VPC, Api, subnet, vpc


@pytest.mark.rule("C1", "C3")
def test_a_deploy_is_taken_and_can_be_read_at_once(api: Api) -> None:
    answer = api.put("ls-a", vpc(), subnet())
    assert answer.status_code == 202
    body = answer.json()
    assert set(body) == {"liveSystemId", "mutationId", "warnings"}
    found = api.get("/livesystems/ls-a")
    assert (found["id"], found["environment"], found["readoption"]) == ("ls-a", "default", "handshake")
    assert [part["id"] for part in found["components"]] == ["net", "sub"]
    assert found["components"][1]["dependencies"] == ["net"]
    assert found["components"][1]["provider"] == "aws"
    assert found["mutationId"] == body["mutationId"]
    mutation = api.get(f"/livesystems/ls-a/mutations/{body['mutationId']}")
    assert (mutation["status"], set(mutation["components"])) == ("InProgress", {"net", "sub"})


@pytest.mark.rule("C1")
def test_a_component_is_shown_as_the_contract_says(api: Api) -> None:
    api.put("ls-a", vpc())
    api.settle(("ls-a", "net"))
    override = {"stance": "override", "status": "ManualOverride", "overridden": True, "message": "managed-by is absent"}
    drift = {"instanceTenancy": {"declared": "default", "actual": "dedicated"}}
    api.report("ls-a", "net", **override, outputFields={"vpcId": "vpc-1", "drift": drift})
    found = api.get("/livesystems/ls-a/components/net")
    assert found["id"] == "ls-a/blueprint/net"
    assert found["type"] == VPC
    assert (found["status"], found["message"], found["owner"]) == ("ManualOverride", "managed-by is absent", "ls-a")
    assert (found["generation"], found["observedGeneration"]) == (1, 1)
    assert found["lastUpdated"].endswith("Z")
    assert set(found["override"]) == {"since", "by", "reason", "until"}
    assert found["outputFields"]["drift"] == drift


@pytest.mark.parametrize("name", ["net", "ls-a/blueprint/net", "ls-a%2Fblueprint%2Fnet"])
def test_a_component_may_be_named_by_its_short_or_its_full_id(api: Api, name: str) -> None:
    api.put("ls-a", vpc())
    assert api.get(f"/livesystems/ls-a/components/{name}")["componentId"] == "net"
    assert api.get(f"/livesystems/ls-a/components/{name}/journal")["items"] == []
    assert api.get(f"/livesystems/ls-a/components/{name}/glass")["componentId"] == "net"


def test_the_full_id_of_another_live_system_is_not_found(api: Api) -> None:
    api.put("ls-a", vpc())
    assert api.client.get("/livesystems/ls-a/components/ls-b/blueprint/net").status_code == 404


def test_post_creates_once(api: Api) -> None:
    body = {"id": "ls-a", "components": [vpc()]}
    assert api.client.post("/livesystems", json=body).status_code == 202
    again = api.client.post("/livesystems", json=body)
    assert again.status_code == 409
    assert again.headers["content-type"] == "application/problem+json"
    assert "PUT /livesystems/ls-a" in again.json()["detail"]


def test_if_match_is_the_generation(api: Api) -> None:
    api.put("ls-a", vpc())
    tag = api.client.get("/livesystems/ls-a").headers["etag"]
    assert tag == '"1"'
    assert api.put("ls-a", vpc(), headers={"If-Match": tag}).status_code == 202
    assert api.put("ls-a", vpc(), headers={"If-Match": tag}).status_code == 412
    assert api.put("ls-a", vpc(), headers={"If-Match": '"1", "2"'}).status_code == 202
    assert api.put("ls-a", vpc(), headers={"If-Match": "*"}).status_code == 202
    assert api.put("ls-a", vpc(), headers={"If-Match": ""}).status_code == 412


@pytest.mark.rule("S21")
def test_a_deploy_warns_of_a_provider_nobody_serves(api: Api) -> None:
    (warning,) = api.put("ls-a", vpc()).json()["warnings"]
    assert "no running agent serves 'aws'" in warning
    api.register()
    assert api.put("ls-a", vpc()).json()["warnings"] == []


@pytest.mark.rule("C4")
def test_a_refused_declaration_is_an_event_of_a_known_live_system_without_its_body(api: Api) -> None:
    api.put("ls-a", vpc())
    assert api.put("ls-a", vpc(parameters={"secretive": "s3cret"})).status_code == 422
    assert api.put("ls-b", vpc(parameters={"secretive": "s3cret"})).status_code == 422
    newest = api.get("/livesystems/ls-a/events")["items"][0]
    assert (newest["kind"], newest["by"]) == ("DeclarationRefused", "admin")
    assert "s3cret" not in json.dumps(newest)
    assert api.client.get("/livesystems/ls-b/events").status_code == 404


@pytest.mark.rule("C1")
def test_bad_input_is_refused_whole_with_every_fault_and_its_path(api: Api) -> None:
    api.put("ls-a", vpc())
    body = {
        "id": "ls-b",
        "components": [
            vpc("net", parameters={"cidrBlock": "10.0.0.0/99", "colour": "red"}),
            {"id": "Bad_Id", "type": VPC, "parameters": {"region": "eu-west-1", "cidrBlock": "10.0.0.0/16"}},
            {"id": "what", "type": "No.Such.Type", "parameters": {}},
            {"id": "sub", "type": "NetworkAndCompute.IaaS.AwsSubnet", "parameters": {"vpc": "nowhere"}},
            {"id": "wrong", "type": BUCKET, "provider": "gcp", "parameters": {}},
        ],
    }
    answer = api.client.put("/livesystems/ls-a", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    paths = [error["path"] for error in problem["errors"]]
    for path in (
        "id",
        "components[net].parameters.cidrBlock",
        "components[net].parameters.colour",
        "components[what].type",
        "components[sub].parameters.vpc",
        "components[wrong].provider",
    ):
        assert path in paths, (path, paths)
    assert any("Bad_Id" in error["path"] or "Bad_Id" in error["message"] for error in problem["errors"])
    assert all(error["message"] for error in problem["errors"])
    assert api.get("/livesystems/ls-a")["generation"] == 1


@pytest.mark.rule("L2", "O16", "T9")
@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ([vpc("a", dependencies=["b"]), vpc("b", dependencies=["a"])], "a → b → a"),
        ([vpc("a", parameters={"name": "same"}), vpc("b", parameters={"name": "same"})], "a"),
        ([vpc("a"), vpc("a")], "a"),
        ([vpc("a", parameters={"name": "nul\x00"})], "control"),
    ],
    ids=["a cycle of dependencies", "one identity twice", "one id twice", "a control character"],
)
def test_a_declaration_that_contradicts_itself_is_refused(api: Api, parts: list[dict[str, object]], word: str) -> None:
    answer = api.put("ls-a", *parts)
    assert answer.status_code == 422, answer.text
    assert word in answer.text


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"id": "\\ud800"}', b'{"id": NaN}', b'{"id": 1e999}'],
)
def test_a_body_that_is_no_declaration_is_refused(api: Api, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    for answer in (
        api.client.put("/livesystems/ls-a", content=body, headers=headers),
        api.client.post("/livesystems", content=body, headers=headers),
    ):
        assert answer.status_code == 422, (body, answer.text)
        assert answer.json()["errors"]


def test_a_body_beyond_the_limit_is_refused(api: Api) -> None:
    big = b'{"id": "' + b"x" * (9 * 1024 * 1024) + b'"}'
    answer = api.client.put("/livesystems/ls-a", content=big)
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"

    def pieces() -> object:
        for _ in range(9):
            yield b"x" * 1024 * 1024

    assert api.client.put("/livesystems/ls-a", content=pieces()).status_code == 413  # type: ignore[arg-type]


def test_lists_are_read_page_by_page(api: Api) -> None:
    for name in ("ls-a", "ls-b", "ls-c"):
        api.put(name, vpc())
    first = api.get("/livesystems", params={"limit": 2})
    assert [item["id"] for item in first["items"]] == ["ls-a", "ls-b"]
    second = api.get("/livesystems", params={"limit": 2, "cursor": first["cursor"]})
    assert ([item["id"] for item in second["items"]], second["cursor"]) == (["ls-c"], None)


@pytest.mark.rule("O3", "O6")
def test_a_live_system_is_gone_when_its_components_are(api: Api) -> None:
    api.put("ls-a", vpc())
    api.settle(("ls-a", "net"))
    answer = api.client.delete("/livesystems/ls-a")
    assert answer.status_code == 202
    mutation = answer.json()["mutationId"]
    assert api.client.delete("/livesystems/ls-a").json()["mutationId"] == mutation
    assert api.put("ls-a", vpc()).status_code == 409
    api.claim()
    api.report("ls-a", "net", status="Deleted", finished=True)
    missing = api.client.get("/livesystems/ls-a")
    assert missing.status_code == 404
    assert missing.json()["detail"] == "there is no LiveSystem 'ls-a': GET /livesystems lists them"
    assert api.client.get("/livesystems/ls-a/components").status_code == 404
    assert api.client.delete("/livesystems/ls-a").status_code == 404
    assert api.get(f"/livesystems/ls-a/mutations/{mutation}")["status"] == "Completed"
    assert len(api.get("/livesystems/ls-a/mutations")["items"]) == 2
    assert api.get("/livesystems/ls-a/events")["items"][0]["kind"] == "Deleted"


@pytest.mark.rule("O7", "O14")
def test_a_delete_warns_with_the_true_numbers_and_can_be_previewed(api: Api) -> None:
    api.put("ls-a", vpc("net"), vpc("left"), subnet("sub", "left"))
    api.put("ls-b", vpc("net"))
    api.settle(("ls-a", "net"), ("ls-a", "left"), ("ls-a", "sub"))
    api.report("ls-a", "sub", stance="override", status="ManualOverride", overridden=True)
    preview = api.client.delete("/livesystems/ls-a", params={"dryRun": "true"})
    assert preview.status_code == 200
    assert preview.json()["warnings"] == [
        (
            "This LiveSystem owns 1 resource that is imported by 1 other LiveSystem. "
            "Deleting will cause that LiveSystem to report Missing on that reference."
        )
    ]
    endings = {part["componentId"]: part["ending"] for part in preview.json()["preview"]["components"]}
    assert endings == {"net": "deleted", "left": "left", "sub": "left"}
    assert not api.get("/livesystems/ls-a")["deleting"]
    assert api.client.delete("/livesystems/ls-a").json()["warnings"] == preview.json()["warnings"]
