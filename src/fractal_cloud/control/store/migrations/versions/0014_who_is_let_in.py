"""Which agents and keys are known at a realm, and which wait; whose a type is; to whom a plan was handed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.create_table(
        "environments",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("approve_agents", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_environments")),
    )
    op.create_table(
        "approvals",
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("realm", sa.Text(), nullable=False),
        sa.Column("token_name", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("approved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("approved_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "environment", "provider", "realm", "token_name", "public_key", name=op.f("pk_approvals")
        ),
    )
    op.add_column("agents", sa.Column("token_name", sa.Text(), nullable=False, server_default=""))
    op.add_column("agents", sa.Column("waiting", sa.JSON(none_as_null=True), nullable=False, server_default="[]"))
    op.add_column("agents", sa.Column("has_news", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("types", sa.Column("owner", sa.Text(), nullable=True))
    op.add_column("plans", sa.Column("handed_to", sa.JSON(none_as_null=True), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Step back."""
    op.drop_column("plans", "handed_to")
    op.drop_column("types", "owner")
    for name in ("has_news", "waiting", "token_name"):
        op.drop_column("agents", name)
    op.drop_table("approvals")
    op.drop_table("environments")
