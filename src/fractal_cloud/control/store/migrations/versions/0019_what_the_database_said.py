"""The key by which the database recognises what it said of itself to agents."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("incarnations", sa.Column("proof_key", sa.Text(), nullable=True))
    table = sa.table("incarnations", sa.column("number", sa.Integer), sa.column("proof_key", sa.Text))
    op.execute(table.update().where(table.c.number == 1).values(proof_key=secrets.token_hex(32)))


def downgrade() -> None:
    """Step back."""
    op.drop_column("incarnations", "proof_key")
