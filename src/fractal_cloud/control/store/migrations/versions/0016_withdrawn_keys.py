"""Which sealing keys were withdrawn, and whose key is news; a scope has no key of its own any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_FLAGS = ("key_is_news", "key_withdrawn")


def upgrade() -> None:
    """Step forward."""
    for name in _FLAGS:
        op.add_column("agents", sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "withdrawn_keys",
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("pk_withdrawn_keys")),
        sa.UniqueConstraint("public_key", name=op.f("uq_withdrawn_keys_public_key")),
    )
    op.create_index("ix_approvals_public_key", "approvals", ["public_key"])
    op.drop_column("scopes", "public_key")


def downgrade() -> None:
    """Step back."""
    op.add_column("scopes", sa.Column("public_key", sa.Text(), nullable=False, server_default=""))
    op.drop_index("ix_approvals_public_key", "approvals")
    op.drop_table("withdrawn_keys")
    for name in _FLAGS:
        op.drop_column("agents", name)
