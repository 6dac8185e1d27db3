"""The offer, held to the contract that every offer of Fractal Cloud keeps, over a real AcmeDB server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.request import Request, urlopen

import pytest

from acmedb import AcmeDb
from acmedb.server import AcmeServer
from fractal_cloud.offers.registry import installed
from fractal_cloud.testing import Found, Hazard, Obstacle, OfferContract, OfferExample, Product

AGENT, PERSON = "of-the-agent", "of-a-person"


class Person:
    """Somebody with curl and a token of their own; not one line of the offer is used."""

    def __init__(self, url: str) -> None:
        self._url = url

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {PERSON}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"{self._url}{path}", data, headers, method=method), timeout=10) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def find(self, name: str) -> list[Found]:
        items = self.call("GET", "/databases")["items"]
        return [Found(one["id"], one["labels"], one["id"]) for one in items if one["name"] == name]

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        self.call("PATCH", f"/databases/{resource_id}", {parameter: value})

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self.call("PATCH", f"/databases/{found.handle}", {"labels": dict(tags)})

    def untag(self, found: Found, *keys: str) -> None:
        self.call("PATCH", f"/databases/{found.handle}", {"labels": dict.fromkeys(keys)})

    def delete(self, found: Found) -> None:
        self.call("DELETE", f"/databases/{found.handle}")


def example(person: Person) -> OfferExample:
    """A database with every parameter that can change, other values for them, and what blocks its deletion."""

    def protect(found: Found) -> Obstacle:
        person.edit(found.resource_id, "deletionProtection", True)
        return Obstacle(("deletionProtection",), lambda: person.edit(found.resource_id, "deletionProtection", False))

    parameters = {"version": "8", "size": "small", "maxConnections": 100, "deletionProtection": False}
    return OfferExample(
        components=[{"id": "orders", "type": AcmeDb.type, "parameters": parameters}],
        changes={"size": "large", "maxConnections": 200, "deletionProtection": True},
        immutable_changes={"version": "7"},
        operator=person,
        is_slow=True,
        hazards=[Hazard("deletion protection", "Failed", protect)],
    )


@pytest.fixture(scope="module")
def server() -> Iterator[AcmeServer]:
    with AcmeServer([AGENT, PERSON]) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACMEDB_URL", running.url)
        patch.setenv("ACMEDB_TOKEN", AGENT)
        yield running


@pytest.fixture(scope="module")
def product(server: AcmeServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    def slow(seconds: float) -> None:
        server.provision_seconds = seconds

    with Product(tmp_path_factory.mktemp("product"), ["acme"], forget=server.forget, slow=slow) as made:
        yield made


@pytest.fixture(scope="module")
def contract(server: AcmeServer, product: Product) -> OfferContract:
    return OfferContract(installed()[AcmeDb.type], example(Person(server.url)), product)


@pytest.mark.parametrize("demand", OfferContract.demands())
def test_a_database_keeps_the_contract(contract: OfferContract, demand: str) -> None:
    getattr(contract, demand)()


def test_whoever_is_faster_than_the_agents_call_wins(server: AcmeServer, product: Product) -> None:
    """The guard has read, and the person comes right before the call: the etag refuses it."""
    product.start_over()
    person, database = Person(server.url), {"id": "orders", "type": AcmeDb.type, "parameters": {"size": "small"}}
    product.deploy("ls-shop", database)
    product.settle()
    [found] = person.find("orders")
    person.edit(found.resource_id, "size", "large")
    product.before_next_call(lambda: person.untag(found, "managed-by"))
    product.cycle()
    product.cycle()
    shown = product.find_component("ls-shop", "orders")
    assert shown is not None
    assert shown["status"] == "ManualOverride"
    assert shown["outputFields"]["drift"] == {"size": {"declared": "small", "actual": "large"}}
    assert not [write for write in product.writes() if write.operation == "update"]
    product.assert_safe()
