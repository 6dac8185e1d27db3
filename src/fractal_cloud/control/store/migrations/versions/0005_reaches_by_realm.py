"""What agents reach stands in rows of its own, too: whom a claim concerns is found by realm."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_agents = sa.table("agents", sa.column("id", sa.Text), sa.column("reaches", sa.JSON))


def upgrade() -> None:
    """Step forward."""
    reached = op.create_table(
        "agent_reaches",
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("realm", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_agent_reaches_agent_id_agents", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("agent_id", "provider", "realm", name="pk_agent_reaches"),
    )
    op.create_index("ix_agent_reaches_provider_realm", "agent_reaches", ["provider", "realm"])
    connection = op.get_bind()
    rows = [
        {"agent_id": agent_id, "provider": provider, "realm": realm}
        for agent_id, reaches in connection.execute(sa.select(_agents.c.id, _agents.c.reaches)).all()
        for provider, realm in sorted({(reach["provider"], reach["realm"]) for reach in reaches})
    ]
    if rows:
        connection.execute(sa.insert(reached), rows)


def downgrade() -> None:
    """Step back."""
    op.drop_table("agent_reaches")
