"""Which environments and realms a token is bound to, until when it is valid, who made it, and when it was last used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_TABLE = "tokens"


def upgrade() -> None:
    """Step forward."""
    for name in ("environments", "realms"):
        op.add_column(_TABLE, sa.Column(name, sa.JSON(none_as_null=True), nullable=False, server_default="[]"))
    for name in ("expires_at", "last_used_at"):
        op.add_column(_TABLE, sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    op.add_column(_TABLE, sa.Column("created_by", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Step back."""
    for name in ("created_by", "last_used_at", "expires_at", "realms", "environments"):
        op.drop_column(_TABLE, name)
