"""A PostgreSQL server as a declared thing: found by host and port, read without credentials, never written to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from sqlalchemy import make_url

from fractal_cloud import LiveSystem, storage
from fractal_cloud.model.errors import DeclarationError, Denied, Invalid, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.tags import NO_TAGS
from fractal_cloud.offers.database_roles import Server, dsn_setting, server_from_setting
from fractal_cloud.offers.offer import Query, Wanted
from fractal_cloud.offers.postgres.cloud import PostgresCloud, PostgresSession
from fractal_cloud.offers.postgres.server import PostgresServer, PostgresServerOffer, SslMode
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check
from fractal_cloud.rules.identify import DeclaredIdentity, identities
from tests import postgres
from tests.ports import free_port

OFFER = PostgresServerOffer()


def document(*servers: dict[str, Any]) -> dict[str, Any]:
    components = [{"id": f"db-{n}", "type": PostgresServer.type, "parameters": p} for n, p in enumerate(servers)]
    return {"id": "ls-a", "components": components}


def place_of(**parameters: Any) -> DeclaredIdentity:
    catalog = installed().catalog()
    return identities(check(document(parameters), catalog), catalog)["db-0"]


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """A real server that nobody gets into without a password."""
    if postgres.binaries() is None:
        pytest.skip("no PostgreSQL server on this machine: install Debian's postgresql")
    with postgres.server(password="of-the-master-user") as url:
        found = make_url(url)
        yield str(found.host), int(found.port or 0)


def at(host: str, port: int) -> PostgresCloud:
    return PostgresSession().at(Scope("postgres", "default", f"{host}/{port}"))


@pytest.mark.rule("O1")
def test_host_and_port_find_a_server_whatever_its_component_is_called() -> None:
    assert place_of(host="db.internal", port=5432) == place_of(host="db.internal")
    assert place_of(host="db.internal") == DeclaredIdentity("db.internal/5432", "postgres")
    assert place_of(host="db.internal", port=5433) != place_of(host="db.internal")


@pytest.mark.rule("O16")
def test_one_server_is_declared_once_in_a_live_system() -> None:
    with pytest.raises(DeclarationError, match="speaks of the same resource"):
        check(document({"host": "db.internal"}, {"host": "db.internal", "port": 5432}), installed().catalog())


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({}, "host"),
        ({"host": "db.internal", "name": "mine"}, "name"),
        ({"host": "user:pw@db"}, "host"),
        ({"host": "a/b"}, "host"),
        ({"host": "db", "port": 0}, "port"),
        ({"host": "db", "password": "x"}, "password"),
        ({"host": "db", "sslmode": "maybe"}, "sslmode"),
    ],
)
def test_what_is_no_address_and_every_credential_is_refused(parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        check(document(parameters), installed().catalog())
    assert any(f"parameters.{named}" in fault.path for fault in refused.value.errors)


def test_it_is_declared_in_python_under_its_short_name() -> None:
    server = storage.postgres.server(id="db", host="db.internal", sslmode="require")
    assert LiveSystem(id="ls-a", components=[server]).to_json()["components"][0]["parameters"] == {
        "host": "db.internal",
        "sslmode": "require",
    }


@pytest.mark.rule("S5")
def test_a_server_is_seen_without_any_credentials(address: tuple[str, int]) -> None:
    cloud = at(*address)
    (seen,) = OFFER.sightings(cloud, Query())
    assert seen.outputs == {"endpointAddress": address[0], "endpointPort": address[1]}
    assert set(seen.outputs) == set(OFFER.outputs)
    assert seen.protocol == NO_TAGS
    assert OFFER.read(cloud, seen.resource_id) == seen
    assert OFFER.read(cloud, "another:1") is None


@pytest.mark.rule("S0")
def test_where_nobody_answers_it_is_unreadable_and_not_absent() -> None:
    port = free_port()
    with pytest.raises(Unreadable, match=f"127.0.0.1:{port} cannot be reached"):
        list(OFFER.sightings(at("127.0.0.1", port), Query()))


@pytest.mark.rule("S1", "S5")
def test_no_verb_writes_to_a_server(address: tuple[str, int]) -> None:
    cloud = at(*address)
    (seen,) = OFFER.sightings(cloud, Query())
    wanted = Wanted(PostgresServer(id="db", host=address[0]), "ls-a")
    writes: list[Callable[[], None]] = [
        lambda: OFFER.create(cloud, wanted, NO_TAGS),
        lambda: OFFER.update(cloud, seen, wanted, ["port"]),
        lambda: OFFER.delete(cloud, seen),
        lambda: OFFER.tag(cloud, seen, NO_TAGS, NO_TAGS),
    ]
    for write in writes:
        with pytest.raises(Invalid, match="only ever imported"):
            write()


def test_every_mode_of_tls_is_one_that_the_client_knows(address: tuple[str, int]) -> None:
    for mode in get_args(SslMode):
        assert Server.from_dsn(f"postgresql://a:b@db:5432/postgres?sslmode={mode}").sslmode == mode


@pytest.mark.parametrize("dsn", ["hush hush", "postgresql://u:hush@one:1,two:2/db"])
def test_a_connection_string_that_cannot_be_read_is_not_repeated(dsn: str) -> None:
    with pytest.raises(Invalid) as refused:
        Server.from_dsn(dsn)
    assert "hush" not in refused.value.message
    assert refused.value.__cause__ is None


def test_a_connection_string_can_be_pinned_to_the_one_component_it_is_meant_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert dsn_setting("ls-a", "b-db") == dsn_setting("ls-a-b", "db")
    pinned = "postgresql://u:hush@db:5432/postgres?application_name=ls-a-b/db"
    monkeypatch.setenv(dsn_setting("ls-a-b", "db"), pinned)
    assert server_from_setting("ls-a-b", "db") == Server.from_dsn(pinned)
    with pytest.raises(Denied, match="meant for another component than 'ls-a/b-db'") as refused:
        server_from_setting("ls-a", "b-db")
    assert "hush" not in refused.value.message


def test_networks_are_distinguished_by_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PostgresSession().realms() == {"": "default"}
    monkeypatch.setenv("FRACTAL_POSTGRES_NETWORK", "berlin")
    assert PostgresSession().realms() == {"": "berlin"}
