"""What a deletion is bound to, how often values of ours were set back, and who waits for a person.

A deletion that is under way is bound to what is published of its component now.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TABLE = "components"


def upgrade() -> None:
    """Step forward."""
    op.add_column(_TABLE, sa.Column("bound", sa.JSON(none_as_null=True), nullable=True))
    op.add_column(_TABLE, sa.Column("left_dependents", sa.JSON(none_as_null=True), nullable=True))
    op.add_column(_TABLE, sa.Column("incarnation", sa.Text(), nullable=False, server_default=""))
    op.add_column(_TABLE, sa.Column("setbacks", sa.JSON(none_as_null=True), nullable=True))
    op.add_column(_TABLE, sa.Column("stuck", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Step back."""
    for name in ("stuck", "setbacks", "incarnation", "left_dependents", "bound"):
        op.drop_column(_TABLE, name)
