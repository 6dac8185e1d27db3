"""The facts of Azure that the offers rest on, tried on the sandbox's Resource Manager as a person would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.azure import GROUP, LOCATION, SUBSCRIPTION
from tests.offers.azure.person import AzurePerson, Item

NETWORKS = "Microsoft.Network/virtualNetworks"
GROUPS = "Microsoft.Network/networkSecurityGroups"
ACCOUNTS = "Microsoft.Storage/storageAccounts"


@pytest.fixture
def person(session_sandbox: Sandbox) -> Iterator[AzurePerson]:
    session_sandbox.azure.reset()
    yield AzurePerson(session_sandbox.url)
    session_sandbox.azure.reset()


def refusal(person: AzurePerson, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    """The status and the code of a request that is refused."""
    with pytest.raises(HTTPError) as raised:
        person.call(method, path, body, **headers)
    return raised.value.code, json.loads(raised.value.read())["error"]["code"]


def network(*subnets: str, **more: Any) -> Item:
    """A body."""
    parts = [{"name": name, "properties": {"addressPrefix": f"10.0.{i}.0/24"}} for i, name in enumerate(subnets)]
    return {
        "location": LOCATION,
        "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": parts},
        **more,
    }


def test_a_stale_etag_is_refused_and_a_change_of_tags_makes_an_etag_stale(person: AzurePerson) -> None:
    path = person.path(GROUPS, "fence")
    made = person.call("PUT", path, {"location": LOCATION, "properties": {}})
    person.tag(path, team="payments")
    assert refusal(person, "PUT", path, made, **{"If-Match": made["etag"]}) == (412, "PreconditionFailed")
    fresh = person.call("GET", path)
    assert fresh["etag"] != made["etag"]
    person.call("PUT", path, fresh, **{"If-Match": fresh["etag"]})


def test_what_is_there_is_not_made_once_more_where_that_is_asked_for(person: AzurePerson) -> None:
    path = person.path(NETWORKS, "net")
    person.call("PUT", path, network(), **{"If-None-Match": "*"})
    assert refusal(person, "PUT", path, network(), **{"If-None-Match": "*"}) == (412, "PreconditionFailed")
    assert refusal(person, "PUT", person.path(NETWORKS, "net", "nowhere"), network()) == (404, "ResourceGroupNotFound")


def test_a_put_replaces_the_tags_and_a_network_put_without_subnets_keeps_them(person: AzurePerson) -> None:
    path = person.path(NETWORKS, "net")
    person.call("PUT", path, network("a", "b", tags={"team": "x"}))
    whole = network()
    del whole["properties"]["subnets"]
    after = person.call("PUT", path, whole)
    assert [one["name"] for one in after["properties"]["subnets"]] == ["a", "b"]
    assert person.tags(path) == {}
    emptied = person.call("PUT", path, network())
    assert emptied["properties"]["subnets"] == []


def test_names_and_keys_of_tags_are_compared_without_regard_to_case_and_values_are_not(person: AzurePerson) -> None:
    path = person.path(NETWORKS, "Net")
    person.call("PUT", path, network(tags={"Team": "x"}))
    lower = person.path(NETWORKS, "net").lower()
    assert person.call("GET", lower)["name"] == "Net"
    person.write_tags(lower, "Merge", {"team": "y"})
    assert person.tags(path) == {"Team": "y"}
    person.write_tags(path, "Delete", {"TEAM": "Y"})
    assert person.tags(path) == {"Team": "y"}, "the value is another one"
    person.write_tags(path, "Delete", {"TEAM": "y"})
    assert person.tags(path) == {}


@pytest.mark.parametrize(
    "tags", [{"a<b": "x"}, {"a": "x" * 257}, {"k" * 513: "x"}, {f"k{n}": "x" for n in range(51)}, {"a": "1", "A": "2"}]
)
def test_tags_that_azure_refuses_are_refused(person: AzurePerson, tags: dict[str, str]) -> None:
    path = person.path(NETWORKS, "net")
    person.call("PUT", path, network())
    status, _ = refusal(person, "PATCH", f"{path}/providers/Microsoft.Resources/tags/default", _merge(tags))
    assert status == 400


def _merge(tags: dict[str, str]) -> Item:
    return {"operation": "Merge", "properties": {"tags": tags}}


def test_lists_come_in_pages_of_a_group_or_of_all(person: AzurePerson, session_sandbox: Sandbox) -> None:
    person.make_group("other")
    for number in range(5):
        person.call("PUT", person.path(NETWORKS, f"net-{number}", "other" if number == 4 else GROUP), network())
    session_sandbox.azure.knobs.page_size = 2
    path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/{NETWORKS}"
    first = person.call("GET", path)
    assert [one["name"] for one in first["value"]] == ["net-0", "net-1"]
    assert "skiptoken=2" in first["nextLink"]
    session_sandbox.azure.knobs.page_size = None
    everything = person.call("GET", f"/subscriptions/{SUBSCRIPTION}/providers/{NETWORKS}")
    assert len(everything["value"]) == 5


def test_a_list_by_tag_leaves_the_tags_out(person: AzurePerson) -> None:
    person.call("PUT", person.path(NETWORKS, "net"), network(tags={"team": "x"}))
    path = f"/subscriptions/{SUBSCRIPTION}/resources"
    assert person.call("GET", path)["value"][0]["tags"] == {"team": "x"}
    [found] = person.call("GET", f"{path}?$filter=tagName eq 'team' and tagValue eq 'x'")["value"]
    assert "tags" not in found
    question = {"subscriptions": [SUBSCRIPTION], "query": "resources | where tags['team'] =~ 'x'"}
    assert person.call("POST", "/providers/Microsoft.ResourceGraph/resources", question)["totalRecords"] == 1


def test_slow_work_refuses_other_work_meanwhile(person: AzurePerson, session_sandbox: Sandbox) -> None:
    session_sandbox.azure.knobs.slow_creation(reads=2)
    path = person.path(NETWORKS, "net")
    assert person.call("PUT", path, network())["properties"]["provisioningState"] == "Succeeded"
    assert person.call("GET", path)["properties"]["provisioningState"] == "Creating"
    assert refusal(person, "PUT", path, network()) == (409, "AnotherOperationInProgress")
    person.call("GET", path)
    assert person.call("GET", path)["properties"]["provisioningState"] == "Succeeded"


def test_a_lock_keeps_everything_below_it(person: AzurePerson) -> None:
    path = person.path(NETWORKS, "net")
    person.call("PUT", path, network())
    lock = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Authorization/locks/keep"
    person.call("PUT", lock, {"properties": {"level": "CanNotDelete"}})
    assert refusal(person, "DELETE", path) == (409, "ScopeLocked")
    person.tag(path, team="x")
    person.call("PUT", lock, {"properties": {"level": "ReadOnly"}})
    assert refusal(person, "PUT", path, network()) == (409, "ScopeLocked")
    person.call("DELETE", lock)
    person.call("DELETE", path)
    assert person.find(path) is None


def test_an_account_has_one_name_in_the_world(person: AzurePerson) -> None:
    person.make_group("other")
    body = {"location": LOCATION, "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": {}}
    person.call("PUT", person.path(ACCOUNTS, "store1"), body)
    taken = refusal(person, "PUT", person.path(ACCOUNTS, "store1", "other"), body)
    assert taken == (409, "StorageAccountAlreadyTaken")
    assert refusal(person, "PUT", person.path(ACCOUNTS, "not-a-name"), body) == (400, "AccountNameInvalid")


def test_who_has_no_token_is_refused(person: AzurePerson) -> None:
    person._token = "somebody.else.s"
    path = person.path(NETWORKS, "net")
    assert refusal(person, "GET", path) == (401, "InvalidAuthenticationToken")
