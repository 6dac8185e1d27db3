"""Links to a PostgreSQL server that somebody runs: only ever imported, and yet wired, with a real server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from fractal_cloud.offers.database_roles import dsn_setting
from fractal_cloud.offers.policy import PolicyOptions
from fractal_cloud.offers.postgres.policy import policy
from fractal_sandbox import Sandbox
from tests import postgres
from tests.linking.test_aws_rules import LS, link
from tests.linking.two_clouds import SECRETS, BesideAServer, TwoClouds, two_clouds, workload

OTHER = "ls-other"


@pytest.fixture
def clouds(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[TwoClouds]:
    """The whole product with an agent for PostgreSQL servers and one for Kubernetes."""
    with two_clouds(session_sandbox, tmp_path, BesideAServer) as made:
        yield made


@pytest.fixture
def server(database: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A server as people declare it; the agent has the connection string for it."""
    monkeypatch.setenv(dsn_setting(LS, "db"), database)
    return declared(database)


def declared(dsn: str, **more: Any) -> dict[str, Any]:
    parts = urlsplit(dsn)
    where = {"host": parts.hostname, "port": parts.port}
    return {"id": "db", "type": "Storage.SelfHosted.Postgres", "parameters": where, **more}


def shop(clouds: TwoClouds, server: dict[str, Any], *links: dict[str, Any], live_system: str = LS) -> str:
    mutation = clouds.deploy(live_system, server, workload("shop", *links, name=f"shop-{live_system}"))
    clouds.settle(at_most=20)
    return mutation


def roles(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as owner:
        return [name for (name,) in owner.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'fc\\_%'")]


@pytest.mark.rule("S5", "L3", "L9", "L12")
def test_the_server_is_imported_and_a_workload_logs_in_with_a_role_of_its_own(
    clouds: TwoClouds, database: str, server: dict[str, Any]
) -> None:
    mutation = shop(clouds, server, link("db", database="orders"))
    kept = clouds.secret()
    with psycopg.connect(kept["url"], autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int)")
    (secret,) = clouds.objects(SECRETS)
    env = clouds.env(f"shop-{LS}")
    assert env["DB_PASSWORD"]["valueFrom"]["secretKeyRef"]["name"] == secret["metadata"]["name"]
    assert env["DB_DATABASE"]["value"] == "orders"
    shown = clouds.component(LS, "db")
    assert (shown["status"], shown["owner"]) == ("ExternallyManaged", None)
    assert clouds.mutation(LS, mutation)["status"] == "Completed"
    for path in ("", "/components/db", "/components/shop", "/events", "/components/db/journal"):
        text = clouds.api.get(f"/livesystems/{LS}{path}").text
        assert kept["password"] not in text
        assert "of-the-master-user" not in text
    assert clouds.settle() == 1
    clouds.assert_safe()


@pytest.mark.rule("L7")
def test_read_only_reads_and_writes_nothing(clouds: TwoClouds, database: str, server: dict[str, Any]) -> None:
    with psycopg.connect(database, dbname="orders", autocommit=True) as owner:
        owner.execute("CREATE TABLE stock (id int)")
    shop(clouds, server, link("db", database="orders", access="read-only"))
    with psycopg.connect(clouds.secret()["url"], autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM stock").fetchone() == (0,)
        for statement in ("INSERT INTO stock VALUES (1)", "CREATE TABLE more (id int)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


@pytest.mark.rule("L14")
def test_a_role_that_was_dropped_by_hand_comes_back(clouds: TwoClouds, database: str, server: dict[str, Any]) -> None:
    shop(clouds, server, link("db", database="orders"))
    (role,) = roles(database)
    for name in ("orders", "postgres"):
        with psycopg.connect(database, dbname=name, autocommit=True) as owner:
            owner.execute(f"DROP OWNED BY {role}")
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(f"DROP ROLE {role}")
    clouds.settle(at_most=20)
    assert roles(database) == [role]
    psycopg.connect(clouds.secret()["url"]).close()


@pytest.mark.rule("L10")
def test_a_link_taken_away_leaves_no_role_and_its_login_is_refused(
    clouds: TwoClouds, database: str, server: dict[str, Any]
) -> None:
    shop(clouds, server, link("db", database="orders"))
    kept = clouds.secret()
    shop(clouds, server)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(kept["url"])
    assert roles(database) == []
    assert clouds.objects(SECRETS) == []


@pytest.mark.rule("L10", "O3", "O10")
def test_deleting_the_live_system_drops_its_roles_and_leaves_the_server(
    clouds: TwoClouds, database: str, server: dict[str, Any]
) -> None:
    shop(clouds, server, link("db", database="orders"))
    with psycopg.connect(clouds.secret()["url"], autocommit=True) as connection:
        connection.execute("CREATE TABLE made (id int)")
    clouds.delete(LS)
    clouds.cycle(8)
    assert clouds.api.get(f"/livesystems/{LS}").status_code == 404
    assert roles(database) == []
    with psycopg.connect(database, dbname="orders") as owner:
        assert owner.execute("SELECT count(*) FROM made").fetchone() == (0,), "what the role made stays"


@pytest.mark.rule("L12")
def test_two_live_systems_on_one_server_each_serve_their_own_links(
    clouds: TwoClouds, database: str, server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(dsn_setting(OTHER, "db"), database)
    shop(clouds, server, link("db", database="orders"))
    before = clouds.secret()
    shop(clouds, server, link("db", database="orders", access="read-only"), live_system=OTHER)
    assert len(roles(database)) == 2
    psycopg.connect(before["url"]).close()
    clouds.delete(OTHER)
    clouds.cycle(8)
    assert len(roles(database)) == 1
    psycopg.connect(before["url"]).close()
    assert clouds.settle() == 1


def test_the_missing_connection_string_is_named_and_the_link_goes_on_when_it_is_there(
    clouds: TwoClouds, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop(clouds, declared(database), link("db", database="orders"))
    assert "FRACTAL_POSTGRES_DSN_LS_SHOP_DB is not set" in clouds.component(LS, "db")["message"]
    assert clouds.status(LS, "db") == "ExternallyManaged"
    assert roles(database) == []
    monkeypatch.setenv("FRACTAL_POSTGRES_DSN_LS_SHOP_DB", database)
    clouds.settle(at_most=20)
    psycopg.connect(clouds.secret()["url"]).close()


def test_a_connection_string_that_leads_elsewhere_is_refused(
    clouds: TwoClouds, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(dsn_setting(LS, "db"), "postgresql://test:hush@elsewhere:5432/postgres")
    clouds.deploy(LS, declared(database), workload("shop", link("db", database="orders")))
    clouds.cycle(6)
    message = clouds.component(LS, "db")["message"]
    assert "leads to elsewhere:5432" in message
    assert "hush" not in message
    assert roles(database) == []


@pytest.mark.rule("S18")
def test_an_immutable_address_is_refused_and_the_message_says_so(
    clouds: TwoClouds, database: str, server: dict[str, Any]
) -> None:
    shop(clouds, server, link("db", database="orders"))
    moved = {**server, "parameters": {**server["parameters"], "host": "elsewhere.example.com"}}
    shop(clouds, moved, link("db", database="orders"))
    assert 'cannot become "elsewhere.example.com/' in clouds.component(LS, "db")["message"]
    assert len(roles(database)) == 1
    psycopg.connect(clouds.secret()["url"]).close()


@pytest.mark.rule("O12")
def test_nothing_is_made_in_what_says_import_only(clouds: TwoClouds, database: str, server: dict[str, Any]) -> None:
    shop(clouds, {**server, "importOnly": True}, link("db", database="orders"))
    assert "'db' is importOnly" in clouds.component(LS, "shop")["message"]
    assert roles(database) == []


@pytest.mark.rule("S0", "S1")
def test_a_server_that_does_not_answer_is_unreadable_and_never_missing(
    clouds: TwoClouds, monkeypatch: pytest.MonkeyPatch
) -> None:
    if postgres.binaries() is None:
        pytest.skip("no PostgreSQL server on this machine: install Debian's postgresql")
    with postgres.server(password="of-the-master-user") as url:
        dsn = url.replace("postgresql+psycopg", "postgresql")
        monkeypatch.setenv(dsn_setting(LS, "db"), dsn)
        shop(clouds, declared(dsn), link("db", database="postgres"))
        fields = clouds.component(LS, "db")["outputFields"]
    clouds.cycle(3)
    shown = clouds.component(LS, "db")
    assert shown["status"] == "ExternallyManaged"
    assert "cannot be reached" in shown["message"]
    assert shown["outputFields"] == fields
    assert clouds.secret()["password"], "the workload keeps what it has"
    clouds.delete(LS)
    clouds.cycle(4)
    assert clouds.status(LS, "db") == "ExternallyManaged", "it waits: what it made cannot be taken back yet"


def make_user(database: str) -> str:
    """Run what is printed, as an administrator would; returns the connection string of the user that it makes."""
    psql = [str((postgres.binaries() or Path()) / "psql"), "-v", "database=orders", "-v", "ON_ERROR_STOP=1", database]
    printed = policy(PolicyOptions(with_links=True))
    for _ in range(2):  # a second time it changes nothing
        subprocess.run(psql, input=printed, text=True, check=True, timeout=60, stdout=subprocess.DEVNULL)
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("ALTER ROLE fractal PASSWORD 'hush'")
    parts = urlsplit(database)
    return f"postgresql://fractal:hush@{parts.hostname}:{parts.port}/postgres"


@pytest.mark.rule("A7", "L3", "L10")
def test_the_user_that_the_printed_policy_makes_is_enough(
    clouds: TwoClouds, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(dsn_setting(LS, "db"), make_user(database))
    shop(clouds, declared(database), link("db", database="orders"))
    kept = clouds.secret()
    with psycopg.connect(kept["url"], autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int)")
    shop(clouds, declared(database), link("db", database="orders", access="read-only"))
    with psycopg.connect(kept["url"]) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("INSERT INTO orders VALUES (1)")
    shop(clouds, declared(database))
    assert roles(database) == []


CHANGE = "fractal_cloud.change_role"
# What PostgreSQL's documentation warns of («Role Attributes», «Predefined Roles»), and what the function must not do.
ATTEMPTS = [
    "GRANT pg_execute_server_program TO fractal",
    "GRANT pg_read_server_files TO fractal",
    "GRANT pg_write_server_files TO fractal",
    "GRANT pg_read_all_data TO fractal",
    "GRANT theirs TO fractal",
    "CREATE ROLE evil LOGIN",
    "ALTER ROLE fractal CREATEROLE",
    "ALTER ROLE fractal SUPERUSER",
    "ALTER ROLE theirs PASSWORD 'x'",
    "DROP ROLE theirs",
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "SELECT pg_read_file('/etc/passwd')",
    "SET ROLE theirs",
    "ALTER FUNCTION fractal_cloud.change_role(text, text, text) OWNER TO fractal",
    f"CREATE OR REPLACE FUNCTION {CHANGE}(action text, role_name text, value text) RETURNS void LANGUAGE sql AS ''",
    "SELECT fractal_cloud.change_role('create', 'evil', NULL)",
    "SELECT fractal_cloud.change_role('create', 'fc_x SUPERUSER', NULL)",
    "SELECT fractal_cloud.change_role('create', E'fc_x\n', NULL)",
    "SELECT fractal_cloud.change_role('create', NULL, NULL)",
    "SELECT fractal_cloud.change_role('password', 'theirs', 'SCRAM-SHA-256$x')",
    "SELECT fractal_cloud.change_role('password', 'fc_theirs', 'SCRAM-SHA-256$x')",
    "SELECT fractal_cloud.change_role('drop', 'fc_theirs', NULL)",
    "SELECT fractal_cloud.change_role('create', 'fc_theirs', NULL)",
    "SELECT fractal_cloud.change_role('superuser', 'fc_mine', NULL)",
    "SELECT fractal_cloud.change_role('comment', 'fc_mine', 'somebody''s')",
    "SELECT fractal_cloud.change_role('password', 'fc_mine', 'plain')",
    "SELECT fractal_cloud.change_role(NULL, 'fc_mine', NULL)",
]


@pytest.mark.rule("A7")
def test_the_printed_user_becomes_nobody_else_on_a_real_server(database: str) -> None:
    dsn = make_user(database)
    with psycopg.connect(database, autocommit=True) as owner:
        for name in ("theirs", "fc_theirs"):
            owner.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'theirs'")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT fractal_cloud.change_role('create', 'fc_mine', NULL)")
        for attempt in ATTEMPTS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(attempt)
    with psycopg.connect(database, autocommit=True) as owner:
        attributes = "rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
        found = owner.execute(f"SELECT {attributes} FROM pg_roles WHERE rolname LIKE 'fc_%' OR rolname = 'fractal'")
        assert [has for (has,) in found] == [False, False, False]
        for name in ("theirs", "fc_theirs", "fc_mine"):
            owner.execute(f"DROP ROLE {name}")


@pytest.mark.rule("A7")
def test_without_links_no_user_is_made() -> None:
    assert all(line.startswith("--") for line in policy().splitlines())
