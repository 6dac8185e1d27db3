"""The facts of Aruba's API that the product rests on, as the sandbox serves them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest

from fractal_sandbox import Sandbox
from tests.offers.aruba.person import DISKS, LOCATION, SERVERS, VPCS, ArubaPerson


@pytest.fixture
def person(session_sandbox: Sandbox) -> Iterator[ArubaPerson]:
    session_sandbox.aruba.reset()
    yield ArubaPerson(session_sandbox.url)
    session_sandbox.aruba.reset()


def refusal(error: HTTPError) -> dict[str, Any]:
    with error:
        found: dict[str, Any] = json.loads(error.read())
    return found


def disk(person: ArubaPerson, name: str = "disk", **properties: Any) -> str:
    return person.create(DISKS, name, **{"sizeGb": 10, "type": "Standard", "billingPeriod": "Hour", **properties})


def test_a_list_has_the_vendors_envelope(person: ArubaPerson) -> None:
    for number in range(3):
        person.create(VPCS, f"net-{number}")
    page = person.call("GET", person.collection(VPCS), limit="2", offset="1")
    assert page["total"] == 3
    assert [one["metadata"]["name"] for one in page["values"]] == ["net-1", "net-2"]
    assert page["next"] == ""
    assert page["prev"].endswith("offset=0&limit=2")


def test_a_write_replaces_all_tags_and_one_without_tags_leaves_none(person: ArubaPerson) -> None:
    uri = person.create(VPCS, "main-net", ("team-pay", "env:prod"))
    person.put(uri, tags=["other"])
    assert person.tags(uri) == ["other"]
    person.call("PUT", uri, {"metadata": {"name": "main-net", "location": {"value": LOCATION}}, "properties": {}})
    assert person.tags(uri) == []


def test_a_tag_has_four_characters_at_least_and_the_newer_rule_refuses_the_colon(session_sandbox: Sandbox) -> None:
    session_sandbox.aruba.reset()
    with pytest.raises(HTTPError) as short:
        ArubaPerson(session_sandbox.url).create(VPCS, "main-net", ("abc",))
    assert refusal(short.value)["errors"] == [{"field": "Tag", "message": "length must be at least 4"}]
    strict = ArubaPerson(session_sandbox.url, "strict")
    with pytest.raises(HTTPError) as colon:
        strict.create(VPCS, "main-net", ("managed-by:fractal-cloud",))
    assert refusal(colon.value)["errors"][0]["field"] == "Tag"
    assert strict.create(VPCS, "main-net", ("managed-by-fractal-cloud",))


def test_a_disk_grows_and_its_type_stays(person: ArubaPerson) -> None:
    uri = disk(person)
    person.put(uri, sizeGb=20)
    for change in ({"sizeGb": 10}, {"type": "Performance"}):
        with pytest.raises(HTTPError) as refused:
            person.put(uri, **change)
        assert refused.value.code == 400
        assert refusal(refused.value)["errors"]


def test_what_is_in_use_is_not_deleted_and_no_field_is_blamed(person: ArubaPerson) -> None:
    uri = person.create(VPCS, "main-net")
    inside = person.create(f"{uri}/subnets", "part", type="Basic")
    with pytest.raises(HTTPError) as refused:
        person.delete(uri)
    problem = refusal(refused.value)
    assert (problem["status"], problem["errors"]) == (400, [])
    assert problem["traceId"]
    found = person.get(uri)
    assert found is not None
    assert [one["uri"] for one in found["properties"]["linkedResources"]] == [inside]


def test_a_deletion_passes_through_a_state_of_its_own(person: ArubaPerson, session_sandbox: Sandbox) -> None:
    uri = disk(person)
    session_sandbox.aruba.knobs.slow_deletion(reads=2)
    person.delete(uri)
    states = []
    while (found := person.get(uri)) is not None:
        states.append(found["status"]["state"])
    assert states
    assert set(states) == {"Deleting"}


def test_wrong_tokens_are_refused(person: ArubaPerson) -> None:
    person.token = "nobody's"
    with pytest.raises(HTTPError) as refused:
        person.list(VPCS)
    assert refused.value.code == 401
    assert refusal(refused.value)["title"]


def server(person: ArubaPerson, boot: str, name: str = "server", *tags: str) -> str:
    vpc = person.create(VPCS, "main-net")
    net = person.create(f"{vpc}/subnets", "part", type="Basic")
    return person.create(
        SERVERS,
        name,
        tags,
        dataCenter="ITBG-1",
        vpc={"uri": vpc},
        flavorName="CSO2A4",
        bootVolume={"uri": boot},
        subnets=[{"uri": net}],
    )


def bootable(person: ArubaPerson) -> str:
    return disk(person, bootable=True, image="LU22-001")


def test_a_server_keeps_the_tags_it_was_created_with(person: ArubaPerson) -> None:
    uri = server(person, bootable(person), "server", "team-pay")
    for method in ("PUT", "PATCH"):
        metadata = {"name": "server", "location": {"value": LOCATION}, "tags": ["other"]}
        with pytest.raises(HTTPError) as refused:
            person.call(method, uri, {"metadata": metadata, "properties": {}})
        assert refusal(refused.value)["status"] == 405
    assert person.tags(uri) == ["team-pay"]


def test_a_server_is_created_by_the_newer_version_of_the_call(person: ArubaPerson) -> None:
    with pytest.raises(HTTPError) as refused:
        person.call("POST", person.collection(SERVERS), {"metadata": {}, "properties": {}})
    assert refusal(refused.value)["errors"][0]["field"] == "api-version"


def test_a_disk_is_in_use_by_one_server_and_is_kept_by_it(person: ArubaPerson) -> None:
    boot = bootable(person)
    uri = server(person, boot)
    assert (person.get(boot) or {})["status"]["state"] == "InUse"
    with pytest.raises(HTTPError) as twice:
        server(person, boot, "other")
    assert refusal(twice.value)["title"] == "BootVolume in use."
    with pytest.raises(HTTPError) as kept:
        person.delete(boot)
    assert refusal(kept.value)["errors"] == []
    person.delete(uri)
    assert (person.get(boot) or {})["status"]["state"] == "NotUsed"


def test_a_deleted_server_deletes_its_boot_volume_unless_the_call_says_otherwise(person: ArubaPerson) -> None:
    boot = bootable(person)
    person.call("DELETE", server(person, boot))
    assert person.get(boot) is None


def test_a_server_is_switched_off_and_on_by_calls_of_their_own(person: ArubaPerson) -> None:
    uri = server(person, bootable(person))
    person.act(uri, "poweroff")
    assert (person.get(uri) or {})["status"]["state"] == "Stopped"
    with pytest.raises(HTTPError) as again:
        person.act(uri, "poweroff")
    assert refusal(again.value)["status"] == 400
    person.act(uri, "poweron")
    assert (person.get(uri) or {})["status"]["state"] == "Running"
