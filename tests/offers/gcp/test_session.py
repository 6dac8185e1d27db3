"""How Google is reached: whose projects, at which addresses, by which credentials, and what its refusals are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import (
    Conflict,
    Denied,
    Invalid,
    LimitReached,
    NotFound,
    Overtaken,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.call_context import CallContext, calling_as
from fractal_cloud.offers.gcp.bucket import GcpGcsBucketOffer
from fractal_cloud.offers.gcp.cloud import GcpSession
from fractal_cloud.offers.gcp.errors import GoogleDialect, check_operation, check_whole
from fractal_cloud.offers.gcp.vm import GcpVmOffer
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.rest import Answer, Call
from fractal_sandbox import Sandbox
from tests.offers.gcp.person import ZONE, GcpPerson

PROJECT, OTHER = "fractal-sandbox", "fractal-sandbox-2"


# --- which projects


def test_several_projects_are_reached_by_their_ids(session: GcpSession) -> None:
    assert session.realms() == {PROJECT: PROJECT, OTHER: OTHER, "": PROJECT}


def test_a_number_is_returned_as_the_id_it_stands_for(session: GcpSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRACTAL_GCP_PROJECTS", "100000000002")
    assert session.realms() == {"100000000002": OTHER, "": OTHER}


@pytest.mark.rule("S26")
def test_a_project_that_may_not_be_asked_for_is_not_reached(
    session: GcpSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRACTAL_GCP_PROJECTS", f"{PROJECT},somebody-elses,123456789")
    assert session.realms() == {PROJECT: PROJECT, "": PROJECT}
    assert list(session.missing()) == ["somebody-elses", "123456789"]
    with pytest.raises(Denied):
        session.realm_now(Scope("gcp", "somebody-elses", "global"))


def test_without_any_project_it_says_what_to_set(session: GcpSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRACTAL_GCP_PROJECTS", "GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "")  # google-auth would ask gcloud
    with pytest.raises(Denied, match="set GOOGLE_CLOUD_PROJECT"):
        session.realms()


@pytest.mark.rule("S6", "S15")
def test_one_project_shows_nothing_of_another(session: GcpSession, google: Sandbox) -> None:
    person = GcpPerson(google.url)
    person.call("POST", "/storage/v1/b", {"name": "mine", "location": "EU"}, project=PROJECT)
    person.call("POST", "/storage/v1/b", {"name": "theirs", "location": "EU"}, project=OTHER)
    seen = GcpGcsBucketOffer().sightings(session.at(Scope("gcp", PROJECT, "global")), Query())
    assert [one.name for one in seen] == ["mine"]
    session.realms()
    assert GcpGcsBucketOffer().read(session.at(Scope("gcp", PROJECT, "global")), "theirs") is None


# --- credentials and addresses


def test_a_token_that_is_not_taken_is_denied_with_advice(
    google: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "token"
    source.write_text("nobody")
    given = json.loads(Path(os.environ["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())
    given["credential_source"] = {"file": str(source)}
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(given))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(wrong))
    with pytest.raises(Denied, match="give the agent application default credentials"):
        GcpSession().realms()


def test_without_credentials_it_says_what_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nowhere.json"))
    with pytest.raises(Denied, match="give the agent application default credentials"):
        GcpSession().realms()


def test_every_service_is_asked_at_its_own_address(session: GcpSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", "https://storage.private.example/storage/v1/")
    monkeypatch.delenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE")
    monkeypatch.delenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL")
    monkeypatch.setenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "cloud.sovereign.example")
    assert session.client("storage").base == "https://storage.private.example/storage/v1"
    assert session.client("compute").base == "https://compute.cloud.sovereign.example/compute/v1"
    assert session.client("sql").base == "https://sqladmin.cloud.sovereign.example"


@pytest.mark.rule("C7")
def test_writes_say_for_whom_and_leave_their_request_id(session: GcpSession, google: Sandbox) -> None:
    cloud = session.at(Scope("gcp", PROJECT, "global"))
    with calling_as(CallContext("ls-a", "photos", "create")) as act:
        body = {
            "name": "a-bucket",
            "location": "EU",
            "labels": {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"},
        }
        cloud.write("storage", "POST", "/b", body, {"project": PROJECT})
        cloud.write("compute", "POST", f"/projects/{PROJECT}/global/networks", {"name": "a-net"})
    [bucket, network] = google.gcp.calls.find(actor="agent", writes_only=True)
    assert (bucket.origin.live_system, bucket.origin.component, bucket.origin.reason) == ("ls-a", "photos", "create")
    assert len(act.request_ids[0]) == 32
    assert act.request_ids[1].startswith("operation-")
    assert network.operation == "insertNetwork"


# --- what Google says


def refused(code: int, method: str = "POST", **error: Any) -> Exception:
    content = json.dumps({"error": {"code": code, "message": "No.", **error}}).encode()
    dialect = GoogleDialect(lambda: "token", {})
    return dialect.error_of(Answer(Call(method, "/x"), code, {}, content))


def reason(word: str) -> dict[str, Any]:
    return {"errors": [{"reason": word}]}


@pytest.mark.rule("S21", "S16", "S0")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refused(403, **reason("rateLimitExceeded")), Throttled),
        (refused(403, **reason("forbidden")), Denied),
        (refused(403, status="PERMISSION_DENIED", details=[{"reason": "RATE_LIMIT_EXCEEDED"}]), Throttled),
        (refused(429, status="RESOURCE_EXHAUSTED"), Throttled),
        (refused(412, **reason("conditionNotMet")), Overtaken),
        (refused(409, status="ABORTED"), Overtaken),
        (refused(409, **reason("operationInProgress")), Conflict),
        (refused(400, **reason("resourceNotReady")), Conflict),
        (refused(400, **reason("resourceInUseByAnotherResource")), Conflict),
        (refused(400, status="FAILED_PRECONDITION"), Conflict),
        (refused(400, **reason("invalid")), Invalid),
        (refused(404, **reason("notFound")), NotFound),
        (refused(503), Transient),
        (refused(503, "GET"), Unreadable),
        (refused(400, "GET", **reason("invalid")), Unreadable),
        (refused(404, "GET", **reason("notFound")), NotFound),
    ],
)
def test_every_refusal_is_of_the_closed_set(error: Exception, kind: type[Exception]) -> None:
    assert type(error) is kind, error


@pytest.mark.rule("S0")
@pytest.mark.parametrize(
    "page",
    [
        {"warning": {"code": "UNREACHABLE", "message": "zone b did not answer"}},
        {"warnings": [{"code": "REGION_UNREACHABLE", "region": "r"}]},
        {"missingZones": ["europe-west1-c"]},
        {"unreachable": ["projects/p/locations/r"]},
    ],
)
def test_a_list_with_holes_is_unreadable(page: dict[str, Any]) -> None:
    with pytest.raises(Unreadable, match="not whole"):
        check_whole(page, "GET /x")


def test_a_page_that_is_merely_empty_is_whole() -> None:
    check_whole({"warning": {"code": "NO_RESULTS_ON_PAGE"}}, "GET /x")


@pytest.mark.parametrize(
    ("code", "kind"),
    [("ZONE_RESOURCE_POOL_EXHAUSTED", Throttled), ("QUOTA_EXCEEDED", LimitReached), ("INVALID_USAGE", Invalid)],
)
def test_an_operation_that_failed_is_reported(code: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="no capacity"):
        check_operation({"name": "op", "error": {"errors": [{"code": code, "message": "no capacity"}]}}, "POST /x")


@pytest.mark.rule("S20")
def test_a_list_is_one_call_per_page_however_many_machines(session: GcpSession, google: Sandbox) -> None:
    person = GcpPerson(google.url)
    for number in range(5):
        body = {
            "name": f"box-{number}",
            "machineType": "zones/z/machineTypes/e2-small",
            "disks": [{"initializeParams": {"sourceImage": "projects/d/global/images/i"}}],
            "networkInterfaces": [{}],
        }
        person.call("POST", person.instance("").rstrip("/"), body)
    cloud = session.at(Scope("gcp", PROJECT, ZONE))
    google.gcp.calls.clear()
    assert len(list(GcpVmOffer().sightings(cloud, Query()))) == 5
    assert google.gcp.calls.count(operation="list*") == 1
    google.gcp.knobs.page_size = 2
    google.gcp.calls.clear()
    assert len(list(GcpVmOffer().sightings(cloud, Query()))) == 5
    assert google.gcp.calls.count(operation="list*") == 3
    assert google.gcp.calls.count(operation="get*") == 0
