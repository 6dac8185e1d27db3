"""Where values of secrets stand in a component's resource, and digests of what was written and never comes back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("types", sa.Column("hidden", sa.JSON(), nullable=True))
    op.add_column("components", sa.Column("secrets", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Step back."""
    op.drop_column("components", "secrets")
    op.drop_column("types", "hidden")
