"""What the sandbox's Google Cloud does as Google does it: fingerprints, etags, label rules, operations, two views."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.gcp import PATH, PROJECT, TOKENS
from tests.offers.gcp.person import REGION, GcpPerson

MACHINE: dict[str, Any] = {
    "name": "box",
    "machineType": "zones/z/machineTypes/e2-small",
    "labels": {"team": "a"},
    "disks": [{"initializeParams": {"sourceImage": "projects/d/global/images/i"}}],
    "networkInterfaces": [{}],
}


@pytest.fixture
def person(session_sandbox: Sandbox) -> GcpPerson:
    session_sandbox.gcp.reset()
    return GcpPerson(session_sandbox.url)


def refusal(call: Callable[[], object]) -> tuple[int, str]:
    """The status of a refused call, and its reason or status word."""
    with pytest.raises(HTTPError) as caught:
        call()
    error = json.loads(caught.value.read())["error"]
    return caught.value.code, error.get("status") or error["errors"][0]["reason"]


def make_machine(person: GcpPerson, **more: Any) -> dict[str, Any]:
    query = {"requestId": more.pop("request")} if "request" in more else {}
    made: dict[str, Any] = person.call("POST", person.instance("").rstrip("/"), {**MACHINE, **more}, **query)
    return made


# --- labels


@pytest.mark.rule("T10")
def test_labels_of_a_machine_are_written_whole_and_only_with_their_fingerprint(person: GcpPerson) -> None:
    make_machine(person)
    here = f"{person.instance('box')}/setLabels"
    read = person.get(person.instance("box"))
    assert read is not None
    person.call("POST", here, {"labels": {"team": "b"}, "labelFingerprint": read["labelFingerprint"]})
    again = {"labels": {"team": "c"}, "labelFingerprint": read["labelFingerprint"]}
    assert refusal(lambda: person.call("POST", here, again)) == (412, "conditionNotMet")
    now = person.get(person.instance("box"))
    assert now is not None
    assert now["labels"] == {"team": "b"}


@pytest.mark.rule("T8")
@pytest.mark.parametrize("labels", [{"Team": "a"}, {"team": "A"}, {"1team": "a"}, {"team": "a:b"}, {"t" * 64: ""}])
def test_labels_that_google_refuses_are_refused(person: GcpPerson, labels: dict[str, str]) -> None:
    assert refusal(lambda: make_machine(person, labels=labels)) == (400, "invalid")


def test_at_most_64_labels_fit(person: GcpPerson) -> None:
    make_machine(person, labels={f"l{number}": "" for number in range(64)})
    assert refusal(lambda: make_machine(person, name="b", labels={f"l{n}": "" for n in range(65)})) == (400, "invalid")


def test_single_labels_of_a_bucket_are_merged_and_null_removes_one(person: GcpPerson) -> None:
    person.call("POST", "/storage/v1/b", {"name": "photos", "labels": {"a": "1", "b": "2"}}, project=PROJECT)
    person.call("PATCH", person.bucket("photos"), {"labels": {"a": None, "c": "3"}})
    bucket = person.get(person.bucket("photos"))
    assert bucket is not None
    assert bucket["labels"] == {"b": "2", "c": "3"}
    assert bucket["metageneration"] == "2"
    stale = {"ifMetagenerationMatch": "1"}
    assert refusal(lambda: person.call("PATCH", person.bucket("photos"), {"labels": {}}, **stale)) == (
        412,
        "conditionNotMet",
    )
    assert refusal(lambda: person.call("DELETE", person.bucket("photos"), **stale)) == (412, "conditionNotMet")


def test_a_service_refuses_an_old_etag_and_reserved_labels(person: GcpPerson) -> None:
    template = {"containers": [{"image": "shop:1"}]}
    person.call("POST", person.service("").rstrip("/"), {"template": template}, serviceId="shop")
    read = person.get(person.service("shop"))
    assert read is not None
    person.call("PATCH", person.service("shop"), {"labels": {"a": "1"}, "etag": read["etag"]}, updateMask="labels")
    old = {"labels": {}, "etag": read["etag"]}
    assert refusal(lambda: person.call("PATCH", person.service("shop"), old, updateMask="labels")) == (409, "ABORTED")
    assert refusal(lambda: person.call("DELETE", person.service("shop"), etag=read["etag"])) == (409, "ABORTED")
    reserved = {"labels": {"run.googleapis.com/x": "y"}}
    assert refusal(lambda: person.call("PATCH", person.service("shop"), reserved, updateMask="labels")) == (
        400,
        "INVALID_ARGUMENT",
    )


def test_a_cluster_accepts_one_change_with_its_etag_and_labels_with_their_fingerprint(person: GcpPerson) -> None:
    person.call("POST", person.cluster("").rstrip("/"), {"cluster": {"name": "kube"}})
    read = person.get(person.cluster("kube"))
    assert read is not None
    fresh = {"resourceLabels": {"a": "1"}, "labelFingerprint": read["labelFingerprint"]}
    person.call("POST", f"{person.cluster('kube')}:setResourceLabels", fresh)
    assert refusal(lambda: person.call("POST", f"{person.cluster('kube')}:setResourceLabels", fresh)) == (
        409,
        "ABORTED",
    )
    change = {"desiredReleaseChannel": {"channel": "STABLE"}}
    old = {"update": {**change, "etag": read["etag"]}}
    assert refusal(lambda: person.call("PUT", person.cluster("kube"), old)) == (409, "ABORTED")
    two = {"update": {**change, "desiredMasterVersion": "1.34"}}
    assert refusal(lambda: person.call("PUT", person.cluster("kube"), two)) == (400, "INVALID_ARGUMENT")


def test_a_database_accepts_settings_only_with_their_version(person: GcpPerson) -> None:
    body = {"name": "orders", "region": REGION, "databaseVersion": "POSTGRES_16", "settings": {"tier": "db-f1-micro"}}
    person.call("POST", person.database("").rstrip("/"), body)
    change = {"settings": {"tier": "db-g1-small", "settingsVersion": "1"}}
    person.call("PATCH", person.database("orders"), change)
    assert refusal(lambda: person.call("PATCH", person.database("orders"), change)) == (412, "conditionNotMet")
    smaller = {"settings": {"dataDiskSizeGb": "5"}}
    assert refusal(lambda: person.call("PATCH", person.database("orders"), smaller)) == (400, "invalid")


# --- operations and states


def test_the_same_request_is_carried_out_once(person: GcpPerson) -> None:
    first = make_machine(person, request="11111111-2222-3333-4444-555555555555")
    again = make_machine(person, request="11111111-2222-3333-4444-555555555555")
    assert again["name"] == first["name"]
    assert refusal(lambda: make_machine(person)) == (409, "alreadyExists")


def test_an_operation_runs_as_long_as_what_it_makes(person: GcpPerson, session_sandbox: Sandbox) -> None:
    session_sandbox.gcp.knobs.slow_creation(reads=2, kind="instance")
    operation = make_machine(person)
    wait = operation["selfLink"].partition(PATH)[2] + "/wait"
    machine = person.get(person.instance("box"))
    assert machine is not None
    assert machine["status"] == "PROVISIONING"
    assert refusal(lambda: person.call("POST", f"{person.instance('box')}/stop")) == (400, "resourceNotReady")
    assert person.call("POST", wait)["status"] in ("RUNNING", "DONE")
    assert person.call("POST", wait)["status"] == "DONE"


def test_only_a_stopped_machine_changes_its_size(person: GcpPerson) -> None:
    make_machine(person)
    here = person.instance("box")
    size = {"machineType": "zones/z/machineTypes/e2-medium"}
    assert refusal(lambda: person.call("POST", f"{here}/setMachineType", size)) == (400, "invalid")
    person.call("POST", f"{here}/stop")
    person.call("POST", f"{here}/setMachineType", size)
    machine = person.get(here)
    assert machine is not None
    assert machine["status"] == "TERMINATED"
    assert machine["machineType"].endswith("/e2-medium")


def test_pages_are_as_long_as_asked_for_and_lead_on(person: GcpPerson) -> None:
    for number in range(3):
        make_machine(person, name=f"box-{number}")
    collection = person.instance("").rstrip("/")
    first = person.call("GET", collection, maxResults="2")
    second = person.call("GET", collection, maxResults="2", pageToken=first["nextPageToken"])
    assert [one["name"] for page in (first, second) for one in page["items"]] == ["box-0", "box-1", "box-2"]
    assert "nextPageToken" not in second


# --- callers and addresses


def test_a_caller_nobody_knows_is_turned_away(session_sandbox: Sandbox) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", session_sandbox.port, timeout=10)
    connection.request("GET", f"{PATH}/storage/v1/b?project={PROJECT}", headers={"Authorization": "Bearer nobody"})
    answer = connection.getresponse()
    assert answer.status == 401
    assert json.loads(answer.read())["error"]["status"] == "UNAUTHENTICATED"
    connection.close()


def test_both_versions_of_cloud_run_show_one_state_to_a_client_with_the_sandbox_as_its_proxy(
    person: GcpPerson, session_sandbox: Sandbox
) -> None:
    template = {"containers": [{"image": "shop:1"}]}
    person.call("POST", person.service("").rstrip("/"), {"template": template, "labels": {"a": "1"}}, serviceId="shop")
    connection = http.client.HTTPConnection("127.0.0.1", session_sandbox.port, timeout=10)
    host = f"http://{REGION}-127.0.0.1:{session_sandbox.port}"
    address = f"{host}{PATH}/apis/serving.knative.dev/v1/namespaces/{PROJECT}/services/shop"
    headers = {"Authorization": f"Bearer {TOKENS['person']}", "Host": host.removeprefix("http://")}
    connection.request("GET", address, headers=headers)
    found = json.loads(connection.getresponse().read())
    assert found["metadata"]["labels"]["a"] == "1"
    found["metadata"]["labels"]["a"] = "2"
    connection.request("PUT", address, json.dumps(found), headers)
    assert connection.getresponse().read()
    service = person.get(person.service("shop"))
    assert service is not None
    assert service["labels"] == {"a": "2"}
    connection.request("PUT", address, json.dumps(found), headers)
    assert connection.getresponse().status == 409
    connection.close()
