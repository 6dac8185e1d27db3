"""What is kept of every LiveSystem about its components, so that no list counts them; filled from what is there."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from fractal_cloud.control.store.driver import UtcTime, chunks

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_GRAVEST_FIRST = (
    *("Failed", "Missing", "Deleting", "Mutating", "Instantiating", "ReconcileRequested", "ManualOverride", "Active"),
)
_TEXTS = ("types", "providers", "realms", "owners")
_NUMBERS = ("overrides", "overdue", "drifted")
_JSON = sa.JSON(none_as_null=True)

_live_systems = sa.table(
    "live_systems",
    *(sa.column(name, sa.Text) for name in ("id", "status", *_TEXTS)),
    *(sa.column(name, sa.BigInteger) for name in _NUMBERS),
    *(sa.column(name, UtcTime) for name in ("deployed_at", "oldest_override", "last_updated")),
    sa.column("deleting", sa.Boolean),
    sa.column("counts", _JSON),
)
_components = sa.table(
    "components",
    *(sa.column(name, sa.Text) for name in ("live_system_id", "status", "type", "provider", "realm", "realm_name")),
    *(sa.column(name, sa.Text) for name in ("owner", "scope_key")),
    sa.column("overdue", sa.Boolean),
    sa.column("override", _JSON),
    sa.column("output_fields", _JSON),
    sa.column("last_updated", UtcTime),
)
_scopes = sa.table(
    "live_system_scopes",
    sa.column("live_system_id", sa.Text),
    sa.column("scope_key", sa.Text),
    sa.column("components", sa.BigInteger),
)


def upgrade() -> None:
    """Step forward."""
    op.add_column("live_systems", sa.Column("status", sa.Text(), nullable=False, server_default="Active"))
    op.add_column("live_systems", sa.Column("counts", _JSON, nullable=False, server_default="{}"))
    for name in _NUMBERS:
        op.add_column("live_systems", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("live_systems", sa.Column("oldest_override", UtcTime(), nullable=True))
    op.add_column(
        "live_systems",
        sa.Column("last_updated", UtcTime(), nullable=False, server_default="1970-01-01 00:00:00.000000"),
    )
    for name in _TEXTS:
        op.add_column("live_systems", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "live_system_scopes",
        sa.Column("live_system_id", sa.Text(), nullable=False),
        sa.Column("scope_key", sa.Text(), nullable=False),
        sa.Column("components", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("live_system_id", "scope_key", name="pk_live_system_scopes"),
        sa.ForeignKeyConstraint(
            ["live_system_id"],
            ["live_systems.id"],
            name="fk_live_system_scopes_live_system_id_live_systems",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_live_system_scopes_scope_key", "live_system_scopes", ["scope_key"])
    where = sa.text("override IS NOT NULL")
    op.create_index(
        "ix_components_overridden",
        "components",
        ["live_system_id", "component_id"],
        sqlite_where=where,
        postgresql_where=where,
    )
    op.drop_index("ix_components_not_overdue", "components")
    op.create_index(
        "ix_resources_resource_id", "resources", ["resource_id"], postgresql_ops={"resource_id": "text_pattern_ops"}
    )
    op.create_index(
        "ix_components_component_id",
        "components",
        ["component_id", "live_system_id"],
        postgresql_ops={"component_id": "text_pattern_ops"},
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE live_systems SET (fillfactor = 70)")
    _fill(op.get_bind())


def _fill(connection: sa.Connection) -> None:
    c = _live_systems.c
    found = connection.execute(sa.select(c.id, c.deleting, c.deployed_at).order_by(c.id)).all()
    by_id = {row.id: row for row in found}
    for some in chunks(by_id):
        components: dict[str, list[Any]] = defaultdict(list)
        for row in connection.execute(sa.select(_components).where(_components.c.live_system_id.in_(some))):
            components[row.live_system_id].append(row)
        for name in some:
            _fill_one(connection, by_id[name], components[name])


def _fill_one(connection: sa.Connection, live_system: Any, components: list[Any]) -> None:
    counts = Counter(row.status for row in components)
    present = {*counts, *(["Deleting"] if live_system.deleting else [])}
    since = [datetime.fromisoformat(row.override["since"]) for row in components if row.override is not None]
    realms = {name for row in components for name in (row.realm, row.realm_name) if name}
    kept = {
        "status": next((status for status in _GRAVEST_FIRST if status in present), "Active"),
        "counts": dict(counts),
        "overrides": len(since),
        "overdue": sum(row.overdue for row in components),
        "drifted": sum(bool(row.output_fields.get("drift")) for row in components),
        "oldest_override": min(since).astimezone(UTC) if since else None,
        "last_updated": max([live_system.deployed_at, *(row.last_updated for row in components)]),
        "types": _listed({row.type for row in components}),
        "providers": _listed({row.provider for row in components}),
        "realms": _listed(realms),
        "owners": _listed({row.owner for row in components} - {None, live_system.id}),
    }
    connection.execute(sa.update(_live_systems).where(_live_systems.c.id == live_system.id).values(kept))
    scopes = Counter(row.scope_key for row in components if row.scope_key is not None)
    rows = [{"live_system_id": live_system.id, "scope_key": key, "components": many} for key, many in scopes.items()]
    if rows:
        connection.execute(sa.insert(_scopes), rows)


def _listed(values: set[str]) -> str:
    return "\n" + "\n".join(sorted(values)) + "\n" if values else ""


def downgrade() -> None:
    """Step back."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE live_systems RESET (fillfactor)")
    op.drop_index("ix_components_component_id", "components")
    op.drop_index("ix_resources_resource_id", "resources")
    where = sa.text("override IS NOT NULL AND NOT overdue")
    op.create_index("ix_components_not_overdue", "components", ["uid"], sqlite_where=where, postgresql_where=where)
    op.drop_index("ix_components_overridden", "components")
    op.drop_table("live_system_scopes")
    for name in (*_TEXTS, "last_updated", "oldest_override", *_NUMBERS, "counts", "status"):
        op.drop_column("live_systems", name)
