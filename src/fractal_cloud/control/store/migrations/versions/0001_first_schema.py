"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.create_table(
        "agents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("reaches", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("types", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("cycle_seconds", sa.Float(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("read_at", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("swept_since", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counters")),
    )
    op.create_table(
        "departures",
        sa.Column("scope_key", sa.Text(), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope_key", "uid", name=op.f("pk_departures")),
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("live_system_id", sa.Text(), nullable=False),
        sa.Column("component_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("after", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
    )
    op.create_index("ix_events_live_system_id_seq", "events", ["live_system_id", "seq"], unique=False)
    op.create_table(
        "journal",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("live_system_id", sa.Text(), nullable=False),
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=True),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("after", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("tags", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("request_ids", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_journal")),
    )
    op.create_index(
        "ix_journal_live_system_id_component_id_at", "journal", ["live_system_id", "component_id", "at"], unique=False
    )
    op.create_index(
        "ix_journal_open",
        "journal",
        ["uid"],
        unique=False,
        sqlite_where=sa.text("outcome IS NULL"),
        postgresql_where=sa.text("outcome IS NULL"),
    )
    op.create_table(
        "live_systems",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("readoption", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("deployed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleting", sa.Boolean(), nullable=False),
        sa.Column("mutation_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_live_systems")),
    )
    op.create_table(
        "mutations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("live_system_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("frozen", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mutations")),
    )
    op.create_index(
        "ix_mutations_live_system_id_created_at", "mutations", ["live_system_id", "created_at"], unique=False
    )
    op.create_table(
        "plans",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("scope_key", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("realm", sa.Text(), nullable=False),
        sa.Column("task", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("handed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plans")),
    )
    op.create_index("ix_plans_plan_id", "plans", ["plan_id"], unique=False)
    op.create_index("ix_plans_provider_realm", "plans", ["provider", "realm"], unique=False)
    op.create_table(
        "reaches",
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("realm", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("environment", "provider", "name", name=op.f("pk_reaches")),
    )
    op.create_table(
        "resources",
        sa.Column("identity_key", sa.Text(), nullable=False),
        sa.Column("scope_key", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("resource_id", sa.Text(), nullable=True),
        sa.Column("left_by", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("identity_key", name=op.f("pk_resources")),
    )
    op.create_index("ix_resources_scope_key", "resources", ["scope_key"], unique=False)
    op.create_table(
        "scopes",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("realm", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("wake_seq", sa.BigInteger(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_scopes")),
    )
    op.create_index("ix_scopes_holder", "scopes", ["holder"], unique=False)
    op.create_index("ix_scopes_provider_realm", "scopes", ["provider", "realm"], unique=False)
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("providers", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
    )
    op.create_table(
        "types",
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("type", name=op.f("pk_types")),
    )
    op.create_table(
        "components",
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("live_system_id", sa.Text(), nullable=False),
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("declaration", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("dealt_generation", sa.BigInteger(), nullable=False),
        sa.Column("deleting", sa.Boolean(), nullable=False),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=False),
        sa.Column("declared_place", sa.Text(), nullable=False),
        sa.Column("declared_name", sa.Text(), nullable=False),
        sa.Column("declared_parent", sa.Text(), nullable=False),
        sa.Column("realm_name", sa.Text(), nullable=False),
        sa.Column("declared_realm_name", sa.Text(), nullable=False),
        sa.Column("realm", sa.Text(), nullable=True),
        sa.Column("scope_key", sa.Text(), nullable=True),
        sa.Column("identity_key", sa.Text(), nullable=True),
        sa.Column("stance", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("resource_id", sa.Text(), nullable=True),
        sa.Column("output_fields", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("observed_generation", sa.BigInteger(), nullable=False),
        sa.Column("established", sa.Boolean(), nullable=False),
        sa.Column("absent_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("noticed_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("intent", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("override", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("waits_for", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("overdue", sa.Boolean(), nullable=False),
        sa.Column("last_updated", sa.DateTime(timezone=True), nullable=False),
        sa.Column("links", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("work_version", sa.BigInteger(), nullable=False),
        sa.Column("declared_version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["live_system_id"],
            ["live_systems.id"],
            name=op.f("fk_components_live_system_id_live_systems"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_components")),
        sa.UniqueConstraint("live_system_id", "component_id", name=op.f("uq_components_live_system_id_component_id")),
    )
    op.create_index("ix_components_environment_provider", "components", ["environment", "provider"], unique=False)
    op.create_index("ix_components_identity_key", "components", ["identity_key"], unique=False)
    op.create_index("ix_components_scope_key_work_version", "components", ["scope_key", "work_version"], unique=False)
    op.create_table(
        "mutation_components",
        sa.Column("mutation_id", sa.Text(), nullable=False),
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("output_fields", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("observed_generation", sa.BigInteger(), nullable=False),
        sa.Column("waits_for", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("links", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["mutation_id"],
            ["mutations.id"],
            name=op.f("fk_mutation_components_mutation_id_mutations"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("mutation_id", "component_id", name=op.f("pk_mutation_components")),
    )
    op.create_table(
        "refers",
        sa.Column("live_system_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["live_system_id"],
            ["live_systems.id"],
            name=op.f("fk_refers_live_system_id_live_systems"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("live_system_id", "source", "target", "kind", name=op.f("pk_refers")),
    )
    op.create_index(
        "ix_refers_live_system_id_target_kind_source",
        "refers",
        ["live_system_id", "target", "kind", "source"],
        unique=False,
    )


def downgrade() -> None:
    """Step back."""
    op.drop_index("ix_refers_live_system_id_target_kind_source", table_name="refers")
    op.drop_table("refers")
    op.drop_table("mutation_components")
    op.drop_index("ix_components_scope_key_work_version", table_name="components")
    op.drop_index("ix_components_identity_key", table_name="components")
    op.drop_index("ix_components_environment_provider", table_name="components")
    op.drop_table("components")
    op.drop_table("types")
    op.drop_table("tokens")
    op.drop_index("ix_scopes_provider_realm", table_name="scopes")
    op.drop_index("ix_scopes_holder", table_name="scopes")
    op.drop_table("scopes")
    op.drop_index("ix_resources_scope_key", table_name="resources")
    op.drop_table("resources")
    op.drop_table("reaches")
    op.drop_index("ix_plans_provider_realm", table_name="plans")
    op.drop_index("ix_plans_plan_id", table_name="plans")
    op.drop_table("plans")
    op.drop_index("ix_mutations_live_system_id_created_at", table_name="mutations")
    op.drop_table("mutations")
    op.drop_table("live_systems")
    op.drop_index(
        "ix_journal_open",
        table_name="journal",
        sqlite_where=sa.text("outcome IS NULL"),
        postgresql_where=sa.text("outcome IS NULL"),
    )
    op.drop_index("ix_journal_live_system_id_component_id_at", table_name="journal")
    op.drop_table("journal")
    op.drop_index("ix_events_live_system_id_seq", table_name="events")
    op.drop_table("events")
    op.drop_table("departures")
    op.drop_table("counters")
    op.drop_table("agents")
