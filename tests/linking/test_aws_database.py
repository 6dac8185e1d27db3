"""Links from AWS to an RDS for PostgreSQL, with a real server behind it: the role is used to log in."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.linking.test_aws_rules import LS, link, machine
from tests.world import World, security_group, subnet, vpc

DATABASE = {
    "id": "db",
    "type": "Storage.PaaS.AwsRdsPostgres",
    "parameters": {"region": "eu-west-1", "dbInstanceClass": "db.t4g.medium", "allocatedStorage": 20},
}


def deploy(world: World, *links: dict[str, Any]) -> str:
    shop = machine("shop", "group", *links)
    mutation = world.deploy(LS, vpc(), subnet(), security_group("group"), DATABASE, shop)
    world.settle()
    return mutation


def login(world: World) -> dict[str, Any]:
    """The content of the secret whose name the source is given, read as what runs there would read it."""
    store, region, name = str(world.output(LS, "shop", "databaseLink.db.secretName")).split(":")
    assert (store, region) == ("aws-secrets-manager", "eu-west-1")
    found = world.person.client("secretsmanager").get_secret_value(SecretId=name)
    kept: dict[str, Any] = json.loads(found["SecretString"])
    return kept


def connect(kept: dict[str, Any], **other: Any) -> psycopg.Connection[Any]:
    login_data = {"host": kept["host"], "port": kept["port"], "user": kept["username"], "password": kept["password"]}
    return psycopg.connect(**{"dbname": kept["dbname"], **login_data, **other}, autocommit=True)


@pytest.mark.rule("L3", "L9")
def test_a_role_of_its_own_logs_in_and_its_password_stands_only_in_the_secret(world: World, database: str) -> None:
    mutation = deploy(world, link("db", database="orders"))
    kept = login(world)
    with connect(kept) as connection:
        connection.execute("CREATE TABLE orders (id int)")
        connection.execute("INSERT INTO orders VALUES (1)")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        connect(kept, password="guessed")
    assert world.mutation(LS, mutation)["status"] == "Completed"
    for path in ("", "/components/db", "/components/shop", "/events", "/components/db/journal"):
        assert kept["password"] not in world.api.get(f"/livesystems/{LS}{path}").text
    assert world.settle() == 1
    world.assert_safe()


@pytest.mark.rule("L1", "L7")
def test_read_only_reads_what_others_write_and_writes_nothing(world: World, database: str) -> None:
    deploy(world, link("db", database="orders"))
    with connect(login(world)) as connection:
        connection.execute("CREATE TABLE before (id int)")
    deploy(world, link("db", database="orders", access="read-only"))
    kept = login(world)
    with psycopg.connect(database.replace("/postgres", "/orders"), autocommit=True) as owner:
        owner.execute("CREATE TABLE after (id int)")
    with connect(kept) as connection:
        connection.execute("SELECT * FROM after")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO after VALUES (1)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE mine (id int)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO before VALUES (1)")


@pytest.mark.rule("L10")
def test_a_revoked_role_is_refused_and_what_it_made_stays(world: World, database: str) -> None:
    deploy(world, link("db", database="orders"))
    kept = login(world)
    open_session = connect(kept)
    open_session.execute("CREATE TABLE orders (id int)")
    deploy(world)
    with pytest.raises(psycopg.OperationalError):
        connect(kept)
    with pytest.raises(psycopg.OperationalError):
        open_session.execute("SELECT 1")
    with psycopg.connect(database.replace("/postgres", "/orders")) as owner:
        assert owner.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    secrets = world.person.client("secretsmanager").list_secrets()["SecretList"]
    assert not [secret for secret in secrets if secret["Name"].startswith("fractal-cloud/")]
    assert not [name for name in world.component(LS, "shop")["outputFields"] if "." in name]
    world.assert_safe()


@pytest.mark.rule("L10")
def test_a_link_that_moves_to_another_database_leaves_nothing_in_the_first(world: World, database: str) -> None:
    deploy(world, link("db", database="orders"))
    deploy(world, link("db", database="invoices"))
    kept = login(world)
    role = str(world.output(LS, "shop", "databaseLink.db.user"))
    with psycopg.connect(database) as owner:
        found = owner.execute("SELECT has_database_privilege(%s, 'orders', 'CREATE')", [role]).fetchone()
        assert found == (False,)
    assert world.output(LS, "shop", "databaseLink.db.database") == "invoices"
    with connect(kept, dbname="invoices") as connection:
        connection.execute("CREATE TABLE invoices (id int)")


@pytest.mark.rule("L14")
def test_a_role_that_was_dropped_by_hand_comes_back(world: World, database: str) -> None:
    deploy(world, link("db", database="orders"))
    role = str(world.output(LS, "shop", "databaseLink.db.user"))
    with psycopg.connect(database.replace("/postgres", "/orders"), autocommit=True) as owner:
        owner.execute(f"DROP OWNED BY {role}")
        owner.execute(f"DROP ROLE {role}")
    world.settle()
    with connect(login(world)) as connection:
        connection.execute("SELECT 1")


@pytest.mark.rule("L5")
def test_a_database_that_is_not_there_yet_is_waited_for_and_said_so(world: World, database: str) -> None:
    deploy(world, link("db", database="later"))
    assert "the server has no database 'later': create it" in world.component(LS, "db")["message"]
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("CREATE DATABASE later")
    world.settle()
    assert world.component(LS, "db")["status"] == "Active"
    with connect(login(world)) as connection:
        connection.execute("SELECT 1")
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("DROP DATABASE later WITH (FORCE)")


@pytest.mark.rule("L10")
def test_before_the_database_goes_the_role_and_its_secret_go(world: World, database: str) -> None:
    deploy(world, link("db", database="orders"))
    kept = login(world)
    world.delete(LS)
    world.settle(at_most=30)
    assert world.api.get(f"/livesystems/{LS}").status_code == 404
    with pytest.raises(psycopg.OperationalError):
        connect(kept)
    secrets = world.person.client("secretsmanager").list_secrets()["SecretList"]
    assert not [secret for secret in secrets if secret["Name"].startswith("fractal-cloud/")]
    world.assert_safe()
