"""Prepared statements: they return and fail as those that SQLAlchemy executes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from alembic import command
from sqlalchemy import bindparam, insert, literal, select, text
from sqlalchemy.exc import IntegrityError

from fractal_cloud.control.store import Store, open_store, schema
from fractal_cloud.control.store.driver import PreparedStatement, among
from fractal_cloud.control.store.failures import Overloaded, Undone
from fractal_cloud.control.store.limits import Limits
from fractal_cloud.control.store.migrate import config
from tests.store.playing import CATALOG, World, net

TYPES = PreparedStatement(
    select(schema.types.c.type).where(among(schema.types.c.type, "names")).order_by(schema.types.c.type)
)
ADDED = PreparedStatement(insert(schema.types).values(type=bindparam("name"), provider="x", facts={}))
NAMES = ["plain", 'a "quoted" one', "back\\slash", "comma,{brace}", "", "NULL", "é \U0001f600", "it's 100 %s"]


@pytest.fixture
def store(postgres_database: str) -> Iterator[Store]:
    """A store with little patience."""
    made = open_store(postgres_database, types_here=CATALOG, limits=Limits(connections=2, statement_seconds=0.5))
    yield made
    made.close()


def _add(store: Store, *names: str) -> None:
    with store.write() as tx:
        for name in names:
            ADDED.run(tx.connection, {"name": name})


def _add_and_be_cut(store: Store) -> None:
    with store.write() as tx:
        ADDED.run(tx.connection, {"name": "lost"})
        pid = tx.connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        with store.read() as other:
            other.connection.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        TYPES.rows(tx.connection, {"names": []})


def test_rows_are_what_sqlalchemy_makes_of_them(world: World) -> None:
    world.deploy("ls-a", net(), net("other"))
    world.agent().settle()
    for table in (schema.components, schema.agents, schema.scopes, schema.mutations):
        query = select(*table.c, literal("x").label("more")).order_by(*table.primary_key)
        with world.store.read() as tx:
            expected = [tuple(row) for row in tx.connection.execute(query)]
            found = PreparedStatement(query).rows(tx.connection, {})
        assert expected
        assert [tuple(row) for row in found] == expected
        assert found[0].more == "x"


def test_any_text_can_stand_in_a_list(world: World) -> None:
    with world.store.write() as tx:
        assert [ADDED.run(tx.connection, {"name": name}) for name in NAMES] == [1] * len(NAMES)
    with world.store.read() as tx:
        assert {row.type for row in TYPES.rows(tx.connection, {"names": NAMES})} == set(NAMES)
        assert [row.type for row in TYPES.rows(tx.connection, {"names": {"NULL", "none such"}})] == ["NULL"]
        assert TYPES.rows(tx.connection, {"names": []}) == []


def test_what_the_database_refuses_is_raised_as_by_sqlalchemy(world: World) -> None:
    with pytest.raises(IntegrityError):
        _add(world.store, "twice", "twice")
    with world.store.read() as tx:
        assert TYPES.rows(tx.connection, {"names": ["twice"]}) == []


def test_a_connection_that_is_cut_is_undone_and_replaced(store: Store) -> None:
    with pytest.raises(Undone):
        _add_and_be_cut(store)
    with store.write() as tx:
        assert TYPES.rows(tx.connection, {"names": ["lost"]}) == []


def test_a_statement_that_lasts_too_long_is_overload(store: Store) -> None:
    with pytest.raises(Overloaded, match="took too long"), store.read() as tx:
        PreparedStatement(text("SELECT pg_sleep(5)")).run(tx.connection, {})


def test_types_registered_before_the_column_was_there_get_what_links_set(world: World) -> None:
    facts = {"parameterSchema": {"properties": {"name": {}, "target": {"x-fractal": {"linked": True}}}}}
    with world.store.write() as tx:
        made = config(tx.connection)
        command.downgrade(made, "0002")
        row = {"type": "T", "provider": "x", "facts": facts}
        tx.connection.execute(insert(schema.types).inline(), [row])
        command.upgrade(made, "head")
        assert tx.connection.execute(select(schema.types.c.linked).where(schema.types.c.type == "T")).scalar() == [
            "target"
        ]
