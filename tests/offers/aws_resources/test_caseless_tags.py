"""Tags of types whose keys AWS compares without regard to case: users and roles of IAM among them (T7, T8)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from botocore.session import Session

from fractal_cloud.offers.aws.resources import tags
from fractal_cloud.offers.aws.resources.schema import Tagging
from fractal_cloud.offers.aws.resources.tables.tagging import has_caseless_keys
from fractal_cloud.offers.aws.tags import RULES
from fractal_sandbox import Sandbox
from fractal_sandbox.aws.cloudcontrol.patching import patched
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, one, queue
from tests.world import World, world

TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
READ: Final = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}],
}
ROLE: Final = {"RoleName": "made", "AssumeRolePolicyDocument": TRUST}
USER: Final = {"UserName": "made"}
IDENTITIES: Final = [pytest.param("AWS::IAM::Role", ROLE, id="role"), pytest.param("AWS::IAM::User", USER, id="user")]
CASELESS: Final = {"kendra": "Kendra", "kendra-ranking": "KendraRanking", "qbusiness": "QBusiness"}
OWN: Final = {"managed-by": "fractal-cloud", "fractal-cloud-owner": LIVE_SYSTEM}


@pytest.fixture(scope="module")
def running() -> Iterator[Sandbox]:
    with Sandbox(port=0) as sandbox:
        yield sandbox


@pytest.fixture
def aws(running: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world(running, tmp_path, monkeypatch, cycle_seconds=0.02) as made:
        running.aws.lift_limits()
        yield made
        made.assert_safe()


def _pairs(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _make(aws: World, kind: str, parameters: dict[str, Any], tags: dict[str, str]) -> None:
    """A person makes it, by Cloud Control."""
    state = json.dumps({**parameters, "Tags": _pairs(tags)})
    aws.person.client("cloudcontrol").create_resource(TypeName=kind, DesiredState=state)


def _tags(aws: World, kind: str, identifier: str = "made") -> dict[str, str]:
    found = aws.person.client("cloudcontrol").get_resource(TypeName=kind, Identifier=identifier)
    tags = json.loads(found["ResourceDescription"]["Properties"]).get("Tags") or []
    return {tag["Key"]: tag["Value"] for tag in tags}


def _retag(aws: World, kind: str, tags: dict[str, str], *, gone: tuple[str, ...] = ()) -> None:
    """A person sets these tags and takes off others, as they are spelled, by Cloud Control."""
    kept = {key: value for key, value in _tags(aws, kind).items() if key not in gone}
    patch = [{"op": "add", "path": "/Tags", "value": _pairs({**kept, **tags})}]
    aws.person.client("cloudcontrol").update_resource(TypeName=kind, Identifier="made", PatchDocument=json.dumps(patch))


@pytest.mark.rule("T7", "T8", "G10")
@pytest.mark.parametrize(("kind", "parameters"), IDENTITIES)
def test_another_managers_tag_is_recognised_in_whatever_case_its_key_is(
    aws: World, kind: str, parameters: dict[str, Any]
) -> None:
    _make(aws, kind, parameters, {"Managed-By": "terraform"})
    aws.deploy(LIVE_SYSTEM, one(kind, "made", **parameters))
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "made") == "ManualOverride"
    assert "terraform" in aws.component(LIVE_SYSTEM, "made")["message"]
    assert aws.force_push(LIVE_SYSTEM, "made").status_code == 409
    aws.settle()
    assert _tags(aws, kind) == {"Managed-By": "terraform"}


@pytest.mark.rule("S6", "T4", "T8")
@pytest.mark.parametrize(("kind", "parameters"), IDENTITIES)
def test_another_owner_is_recognised_in_whatever_case_its_key_is(
    aws: World, kind: str, parameters: dict[str, Any]
) -> None:
    others = {"Fractal-Cloud-Owner": "billing"}
    _make(aws, kind, parameters, others)
    aws.deploy(LIVE_SYSTEM, one(kind, "made", **parameters))
    aws.settle()
    aws.force_push(LIVE_SYSTEM, "made")
    aws.settle()
    assert _tags(aws, kind) == others
    assert "billing" in aws.component(LIVE_SYSTEM, "made")["message"]


@pytest.mark.rule("G7", "S9", "T1", "T6", "T8")
@pytest.mark.parametrize(("kind", "parameters"), IDENTITIES)
def test_a_handshake_in_other_letters_is_one_and_is_ended_where_it_stands(
    aws: World, kind: str, parameters: dict[str, Any]
) -> None:
    """What a person wrote keeps its spelling; the request is taken off by the key as it stands on the resource."""
    aws.deploy(LIVE_SYSTEM, one(kind, "made", **parameters))
    aws.settle()
    assert _tags(aws, kind) == OWN
    _retag(aws, kind, {}, gone=("managed-by",))
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "made") == "ManualOverride"
    _retag(aws, kind, {"Managed-By": "fractal-cloud", "FRACTAL-CLOUD": "reconcile"})
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "made") == "Active", aws.component(LIVE_SYSTEM, "made")
    assert _tags(aws, kind) == {"Managed-By": "fractal-cloud", "fractal-cloud-owner": LIVE_SYSTEM}
    assert aws.glass(LIVE_SYSTEM, "made", "break", reason="it burns").status_code == 202
    aws.settle()
    assert _tags(aws, kind) == {"fractal-cloud-owner": LIVE_SYSTEM}


@pytest.mark.rule("T1", "T8")
@pytest.mark.parametrize(("kind", "parameters"), IDENTITIES)
def test_a_declared_tag_is_the_one_that_differs_in_case_alone(
    aws: World, kind: str, parameters: dict[str, Any]
) -> None:
    declared = {**one(kind, "made", **parameters), "tags": {"team": "blue"}}
    aws.deploy(LIVE_SYSTEM, declared)
    aws.settle()
    _retag(aws, kind, {"Team": "blue"}, gone=("team",))
    results = aws.cycle()
    assert not any(result.writes for result in results), "another spelling of its key is no difference"
    _retag(aws, kind, {"Team": "red"})
    aws.settle()
    assert _tags(aws, kind) == {"Team": "blue", **OWN}


@pytest.mark.rule("T1", "T8")
@pytest.mark.parametrize("key", ["Managed-By", "FRACTAL-CLOUD", "Fractal-Cloud-Owner"])
def test_a_key_that_is_one_of_the_three_to_the_type_cannot_be_declared(aws: World, key: str) -> None:
    for component in (one("AWS::IAM::Role", "made", **ROLE), one("AWS::IAM::User", "made", **USER)):
        body = {"id": LIVE_SYSTEM, "components": [{**component, "tags": {key: "mine"}}]}
        answer = aws.api.put(f"/livesystems/{LIVE_SYSTEM}", json=body)
        assert answer.status_code == 422
        assert "belongs to the product" in answer.text
    body = {"id": LIVE_SYSTEM, "components": [{**queue(), "tags": {key: "mine"}}]}
    assert aws.api.put(f"/livesystems/{LIVE_SYSTEM}", json=body).status_code == 202, "to a queue they are two keys"


@pytest.mark.rule("T7", "T8", "G10")
def test_to_other_types_of_iam_keys_that_differ_in_case_are_two(aws: World) -> None:
    """The counterpart: to a policy, `Managed-By` is any tag of somebody else's, and stays."""
    iam = aws.person.client("iam")
    made = iam.create_policy(
        PolicyName="made", PolicyDocument=json.dumps(READ), Tags=_pairs({"Managed-By": "terraform"})
    )["Policy"]
    aws.deploy(LIVE_SYSTEM, one("AWS::IAM::ManagedPolicy", "made", ManagedPolicyName="made", PolicyDocument=READ))
    aws.settle()
    aws.force_push(LIVE_SYSTEM, "made")
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "made") == "Active", aws.component(LIVE_SYSTEM, "made")
    kept = {tag["Key"]: tag["Value"] for tag in iam.list_policy_tags(PolicyArn=made["Arn"])["Tags"]}
    assert kept == {"Managed-By": "terraform", **OWN}


@pytest.mark.parametrize(("kind", "parameters"), IDENTITIES)
def test_the_sandbox_replaces_a_key_that_differs_in_case_alone(
    aws: World, kind: str, parameters: dict[str, Any]
) -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html: «it replaces the first tag»."""
    _make(aws, kind, parameters, {"Department": "finance"})
    assert _tags(aws, kind) == {"Department": "finance"}, "case is preserved"
    _retag(aws, kind, {"department": "hr"})
    assert _tags(aws, kind) == {"department": "hr"}
    state = json.dumps({**parameters, f"{kind[10:]}Name": "other", "Tags": _pairs({"team": "a", "Team": "b"})})
    control = aws.person.client("cloudcontrol")
    token = control.create_resource(TypeName=kind, DesiredState=state)["ProgressEvent"]["RequestToken"]
    refused = control.get_resource_request_status(RequestToken=token)["ProgressEvent"]
    assert refused["OperationStatus"] == "FAILED"
    assert "Tag keys are case insensitive" in refused["StatusMessage"]


@pytest.mark.rule("S6", "T7", "T8")
def test_spellings_of_one_key_that_say_different_things_are_never_ours() -> None:
    rules = RULES.model_copy(update={"caseless": True})
    found = rules.protocol({"managed-by": "fractal-cloud", "Managed-By": "terraform", "FRACTAL-CLOUD": "reconcile"})
    assert (found.is_managed, found.other_manager, found.reconcile) == (False, "fractal-cloud / terraform", True)
    assert rules.protocol({"Fractal-Cloud-Owner": "a", "fractal-cloud-owner": "b"}).owner == "a / b"
    assert RULES.protocol({"managed-by": "fractal-cloud", "Managed-By": "terraform"}).is_managed


@pytest.mark.rule("T1", "T8")
@pytest.mark.parametrize("caseless", [True, False])
def test_a_tag_of_a_map_is_changed_by_the_key_that_stands_there(caseless: bool) -> None:
    """No type of AWS has such a map today: what it would be is decided all the same."""
    tagging = Tagging("Tags", "map", caseless=caseless)
    held = {"Team": "red", "FRACTAL-CLOUD": "reconcile"}
    done = patched({"Tags": held}, tags.changes(tagging, held, {"team": "blue"}, ["fractal-cloud"]))["Tags"]
    assert done == ({"Team": "blue"} if caseless else {**held, "team": "blue"})


_SAYS_SO: Final = re.compile(r"[Kk]eys are not case[- ]sensitive")


def _says_so(service: str) -> bool:
    """Whether a service's own model calls the keys of its tags so."""
    model = Session().get_service_model(service)
    if "Tag" not in model.shape_names:
        return False
    members = getattr(model.shape_for("Tag"), "members", {})
    return any(_SAYS_SO.search(members[name].documentation) for name in ("Key", "key") if name in members)


@pytest.mark.rule("T8")
@pytest.mark.parametrize("services", [CASELESS, pytest.param(None, marks=pytest.mark.soak)], ids=["listed", "all"])
def test_the_services_whose_models_say_so_are_in_the_table(services: dict[str, str] | None) -> None:
    found = {name for name in services or Session().get_available_services() if _says_so(name)}
    assert found - {"lex-models"} == CASELESS.keys()
    assert all(has_caseless_keys(f"AWS::{name}::Any") for name in CASELESS.values())
    assert not any(has_caseless_keys(name) for name in ("AWS::IAM::ManagedPolicy", "AWS::Lex::Bot", "AWS::SQS::Queue"))
