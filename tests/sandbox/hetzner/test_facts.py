"""The sandbox's project against what is known of the real one: pages, labels, names, locks, refusals, actions."""

from __future__ import annotations

from typing import Any

import pytest
from hcloud import APIException, Client
from hcloud.images import Image
from hcloud.locations import Location
from hcloud.server_types import ServerType

from fractal_sandbox import Sandbox
from tests.offers.hetzner.person import HetznerPerson


@pytest.fixture
def person(session_sandbox: Sandbox) -> HetznerPerson:
    session_sandbox.hetzner.reset()
    return HetznerPerson(session_sandbox.url)


def refused(person: HetznerPerson, method: str, path: str, body: dict[str, Any] | None = None) -> str:
    with pytest.raises(APIException) as error:
        person.call(method, path, body)
    return str(error.value.code)


def test_lists_are_paged_and_say_so(person: HetznerPerson) -> None:
    for number in range(30):
        person.create("firewalls", f"wall-{number:02}")
    answer = person.call("GET", "/firewalls")
    assert len(answer["firewalls"]) == 25
    assert answer["meta"]["pagination"] == {
        "page": 1,
        "per_page": 25,
        "previous_page": None,
        "next_page": 2,
        "last_page": 2,
        "total_entries": 30,
    }
    rest = person.call("GET", "/firewalls?page=2&sort=name:desc")
    assert [one["name"] for one in rest["firewalls"]] == [f"wall-{number:02}" for number in range(4, -1, -1)]
    assert rest["meta"]["pagination"]["next_page"] is None
    assert refused(person, "GET", "/firewalls?per_page=51") == "invalid_input"


@pytest.mark.rule("T10")
def test_a_write_of_labels_replaces_them_all_and_touches_nothing_else(person: HetznerPerson) -> None:
    made = person.server("web", labels={"a": "1", "b": "2"})
    person.call("PUT", f"/servers/{made['id']}", {"labels": {"c": ""}})
    after = person.get("servers", made["id"])
    assert after["labels"] == {"c": ""}
    assert {**after, "labels": made["labels"]} == {**made, "status": "running", "locked": False}


@pytest.mark.parametrize(
    "labels", [{"a b": "c"}, {"a": "b c"}, {"a": "b/c"}, {"-a": "b"}, {"a": "x" * 64}, {"/a": "b"}]
)
def test_labels_that_hetzner_does_not_accept_are_refused(person: HetznerPerson, labels: dict[str, str]) -> None:
    assert refused(person, "POST", "/firewalls", {"name": "wall", "labels": labels}) == "invalid_input"


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("env", ["a", "b"]),
        ("!env", ["c"]),
        ("env=live", ["a"]),
        ("env==live,tier=web", ["a"]),
        ("env!=live", ["b", "c"]),
        ("env in (live,test)", ["a", "b"]),
        ("env notin (live)", ["b", "c"]),
    ],
)
def test_label_selectors(person: HetznerPerson, selector: str, names: list[str]) -> None:
    person.create("firewalls", "a", labels={"env": "live", "tier": "web"})
    person.create("firewalls", "b", labels={"env": "test"})
    person.create("firewalls", "c")
    found = person.client.firewalls.get_all(label_selector=selector)
    assert [one.name for one in found] == names


def test_names_are_unique_but_for_networks(person: HetznerPerson) -> None:
    person.server("web")
    body = {"name": "web", "server_type": "cx23", "image": "debian-13"}
    assert refused(person, "POST", "/servers", body) == "uniqueness_error"
    assert person.network("net")["id"] != person.network("net")["id"]


def test_what_is_protected_attached_or_applied_is_not_deleted(person: HetznerPerson) -> None:
    wall = person.create("firewalls", "wall")
    web = person.server("web", firewalls=[{"firewall": wall["id"]}])
    disk = person.create("volumes", "disk", size=10, server=web["id"])
    assert refused(person, "DELETE", f"/firewalls/{wall['id']}") == "resource_in_use"
    assert refused(person, "DELETE", f"/volumes/{disk['id']}") == "resource_in_use"
    person.act("servers", web["id"], "change_protection", delete=True, rebuild=True)
    assert refused(person, "DELETE", f"/servers/{web['id']}") == "protected"


def test_deleting_a_network_or_a_server_detaches_without_asking(person: HetznerPerson) -> None:
    net = person.network("net")
    web = person.server("web", networks=[net["id"]])
    disk = person.create("volumes", "disk", size=10, server=web["id"])
    assert person.get("networks", net["id"])["servers"] == [web["id"]]
    person.delete("networks", net["id"])
    assert person.get("servers", web["id"])["private_net"] == []
    person.delete("servers", web["id"])
    assert person.get("volumes", disk["id"])["server"] is None


def test_a_type_is_changed_only_while_the_server_is_off_and_no_disk_shrinks(person: HetznerPerson) -> None:
    web = person.server("web")["id"]
    change = f"/servers/{web}/actions/change_type"
    assert refused(person, "POST", change, {"server_type": "cx33", "upgrade_disk": True}) == "server_not_stopped"
    person.act("servers", web, "poweroff")
    person.act("servers", web, "change_type", server_type="cx33", upgrade_disk=True)
    assert refused(person, "POST", change, {"server_type": "cx23", "upgrade_disk": False}) == "invalid_server_type"


def test_what_an_action_is_running_on_is_locked(session_sandbox: Sandbox, person: HetznerPerson) -> None:
    session_sandbox.hetzner.knobs.slow_creation(kind="server", reads=3)
    web = person.server("web")
    assert (web["status"], web["locked"]) == ("initializing", True)
    assert refused(person, "POST", f"/servers/{web['id']}/actions/poweroff") == "locked"
    assert person.get("servers", web["id"])["status"] == "initializing"
    person.get("servers", web["id"])
    person.get("servers", web["id"])
    assert person.get("servers", web["id"])["status"] == "running"


def test_callers_are_distinguished_and_others_refused(session_sandbox: Sandbox, person: HetznerPerson) -> None:
    stranger = Client("stranger", api_endpoint=person.env["HCLOUD_ENDPOINT"])
    with pytest.raises(APIException, match="unable to authenticate"):
        stranger.servers.get_all()
    assert refused(person, "GET", "/zones") == "not_found"


def test_the_vendors_client_makes_waits_for_and_deletes_a_server(
    session_sandbox: Sandbox, person: HetznerPerson
) -> None:
    session_sandbox.hetzner.knobs.slow_creation(kind="server", seconds=0.2)
    client = Client(person.env["HCLOUD_TOKEN"], api_endpoint=person.env["HCLOUD_ENDPOINT"], poll_interval=0.05)
    made = client.servers.create(
        "web", ServerType(name="cx23"), Image(name="debian-13"), location=Location(name="fsn1"), labels={"a": "b"}
    )
    assert made.action.status == "running"
    made.action.wait_until_finished()
    found = client.servers.get_by_name("web")
    assert found is not None
    assert (found.status, found.labels) == ("running", {"a": "b"})
    found.delete().wait_until_finished()
    assert client.servers.get_by_name("web") is None
