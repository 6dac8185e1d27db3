"""What OCI does that the agent relies on: etags, retry tokens, pages, whole maps of tags, refusals, signatures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from fractal_sandbox import Sandbox
from tests.offers.oci.examples import DOMAIN, IMAGE
from tests.offers.oci.person import BUCKETS, COMPARTMENT, CORE, OciPerson

VCNS = f"{CORE}/vcns"
BODY = {"compartmentId": COMPARTMENT, "cidrBlocks": ["10.0.0.0/16"], "displayName": "net"}


@pytest.fixture
def oci(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[OciPerson]:
    session_sandbox.oci.reset()
    yield OciPerson(session_sandbox.url, tmp_path)
    session_sandbox.oci.reset()


def refusal(oci: OciPerson, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    with pytest.raises(HTTPError) as caught:
        oci.send(method, path, body, None, **headers)
    error = json.loads(caught.value.read())
    caught.value.close()
    return caught.value.code, error["code"]


def test_every_change_has_an_etag_of_its_own_and_an_old_one_is_refused(oci: OciPerson) -> None:
    made, headers = oci.send("POST", VCNS, BODY)
    path = f"{VCNS}/{made['id']}"
    assert headers["opc-request-id"]
    _, after = oci.send("PUT", path, {"freeformTags": {"a": "b"}}, None, if_match=headers["etag"])
    assert after["etag"] != headers["etag"]
    assert refusal(oci, "PUT", path, {"displayName": "x"}, if_match=headers["etag"]) == (412, "NoEtagMatch")
    assert refusal(oci, "DELETE", path, if_match=headers["etag"]) == (412, "NoEtagMatch")
    assert refusal(oci, "POST", f"{path}/actions/addCidr", {"cidrBlock": "10.1.0.0/16"}, if_match="x")[0] == 412
    assert oci.send("GET", path)[1]["etag"] == after["etag"]


def test_a_retry_token_makes_one_resource_and_never_another(oci: OciPerson) -> None:
    first, _ = oci.send("POST", VCNS, BODY, None, opc_retry_token="t-1")
    again, _ = oci.send("POST", VCNS, BODY, None, opc_retry_token="t-1")
    assert again["id"] == first["id"]
    assert len(oci.list(VCNS)) == 1
    assert refusal(oci, "POST", VCNS, {**BODY, "displayName": "x"}, opc_retry_token="t-1") == (400, "InvalidParameter")
    oci.delete(f"{VCNS}/{first['id']}")
    assert refusal(oci, "POST", VCNS, BODY, opc_retry_token="t-1") == (409, "InvalidatedRetryToken")


def test_lists_come_in_pages_that_a_header_continues(oci: OciPerson) -> None:
    for number in range(5):
        oci.create("vcns", cidrBlocks=["10.0.0.0/16"], displayName=f"net-{number}")
    seen: list[str] = []
    query = {"compartmentId": COMPARTMENT, "limit": "2"}
    for _ in range(3):
        items, headers = oci.send("GET", VCNS, None, query)
        seen += [one["displayName"] for one in items]
        query["page"] = headers.get("opc-next-page", "")
    assert seen == [f"net-{number}" for number in range(5)]
    assert not query["page"]


def test_tags_are_one_map_with_rules(oci: OciPerson) -> None:
    made = oci.create("vcns", cidrBlocks=["10.0.0.0/16"], freeformTags={"a": "1", "b": "2"})
    path = f"{VCNS}/{made['id']}"
    assert oci.call("PUT", path, {"freeformTags": {"b": "3"}})["freeformTags"] == {"b": "3"}
    for bad in ({"a b": "c"}, {"a.b": "c"}, {"A": "1", "a": "2"}, {"k": "v" * 257}, {str(n): "" for n in range(11)}):
        assert refusal(oci, "PUT", path, {"freeformTags": bad}) == (400, "InvalidParameter"), bad
    assert oci.call("PUT", path, {"displayName": "other"})["freeformTags"] == {"b": "3"}, "what is not sent stays"


def test_buckets_are_listed_without_tags_unless_they_are_asked_for(oci: OciPerson) -> None:
    oci.create(BUCKETS, name="objects", freeformTags={"a": "b"})
    [plain] = oci.list(BUCKETS)
    [tagged] = oci.list(BUCKETS, fields="tags")
    assert "freeformTags" not in plain
    assert tagged["freeformTags"] == {"a": "b"}
    assert "versioning" not in tagged
    assert refusal(oci, "POST", BUCKETS, {"name": "objects", "compartmentId": COMPARTMENT}) == (
        409,
        "BucketAlreadyExists",
    )
    assert refusal(oci, "POST", f"{BUCKETS}/objects", {"versioning": "Enabled"}, if_match="x") == (412, "IfMatchFailed")
    assert refusal(oci, "GET", f"{BUCKETS}/nothing") == (404, "BucketNotFound")


def test_versioning_never_goes_back_to_disabled(oci: OciPerson) -> None:
    oci.create(BUCKETS, name="objects", versioning="Enabled")
    assert oci.call("POST", f"{BUCKETS}/objects", {"versioning": "Suspended"})["versioning"] == "Suspended"
    assert refusal(oci, "POST", f"{BUCKETS}/objects", {"versioning": "Disabled"})[0] == 400


def test_a_deleted_machine_deletes_its_boot_volume_unless_the_call_says_otherwise(oci: OciPerson) -> None:
    net = oci.create("vcns", cidrBlocks=["10.0.0.0/16"])["id"]
    part = oci.create("subnets", vcnId=net, cidrBlock="10.0.1.0/24")["id"]

    def launch() -> str:
        source = {"sourceType": "image", "imageId": IMAGE}
        made = oci.create(
            "instances",
            availabilityDomain=DOMAIN,
            shape="VM.Standard2.1",
            sourceDetails=source,
            createVnicDetails={"subnetId": part},
        )
        return str(made["id"])

    first, second = launch(), launch()
    assert len(oci.list(f"{CORE}/bootVolumes")) == 2
    oci.delete(f"{CORE}/instances/{first}")
    oci.call("DELETE", f"{CORE}/instances/{second}", preserveBootVolume="true")
    assert [one["instanceId"] for one in oci.list(f"{CORE}/bootVolumes")] == [second]
    assert {one["lifecycleState"] for one in oci.list(f"{CORE}/instances")} == {"TERMINATED"}
    oci.delete(f"{CORE}/subnets/{part}")


def test_search_fits_each_clause_by_itself(oci: OciPerson) -> None:
    oci.create("vcns", cidrBlocks=["10.0.0.0/16"], displayName="both", freeformTags={"managed-by": "x", "y": "ours"})
    oci.create(BUCKETS, name="one", freeformTags={"managed-by": "ours"})
    query = "query all resources where freeformTags.key = 'managed-by' && freeformTags.value = 'ours'"
    found = oci.call("POST", "/20180409/resources", {"type": "Structured", "query": query})["items"]
    assert [one["displayName"] for one in found] == ["both", "one"]
    assert refusal(oci, "POST", "/20180409/resources", {"type": "Structured", "query": "list all"})[0] == 400


def test_nobody_is_let_in_without_a_signature_that_fits(oci: OciPerson, session_sandbox: Sandbox) -> None:
    url = f"{session_sandbox.url}/oci{VCNS}?compartmentId={COMPARTMENT}"
    for headers in ({}, {"Authorization": 'Signature algorithm="rsa-sha256",keyId="x",signature="y",headers="date"'}):
        with pytest.raises(HTTPError) as caught:
            urlopen(Request(url, headers=headers), timeout=20)
        assert (caught.value.code, json.loads(caught.value.read())["code"]) == (401, "NotAuthenticated")
        caught.value.close()
    assert oci.list(VCNS) == []


def test_what_it_does_not_know_is_refused_and_not_ignored(oci: OciPerson) -> None:
    assert refusal(oci, "POST", VCNS, {**BODY, "colour": "red"}) == (400, "InvalidParameter")
    assert refusal(oci, "GET", f"{VCNS}/ocid1.vcn.nothing") == (404, "NotAuthorizedOrNotFound")
    assert refusal(oci, "GET", f"{VCNS}?compartmentId=elsewhere")[0] == 404
