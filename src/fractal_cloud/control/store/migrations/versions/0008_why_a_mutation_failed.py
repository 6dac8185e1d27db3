"""Which components of a mutation that has ended waited for a person, and since when an agent is registered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("mutation_components", sa.Column("stuck", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("agents", sa.Column("registered_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Step back."""
    op.drop_column("agents", "registered_at")
    op.drop_column("mutation_components", "stuck")
