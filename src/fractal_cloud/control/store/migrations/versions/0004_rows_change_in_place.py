"""What reports change is in no index, and pages keep free space: PostgreSQL then updates a row inside its page.

The progress of a mutation is computed from its components when somebody asks, and what is new in a scope is found among
all of it; an index on either cost every report more than it saved.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_UNSETTLED = (
    "(status NOT IN ('Active', 'ExternallyManaged', 'ManualOverride', 'Deleted')"
    " OR (deleting AND status <> 'Deleted') OR (NOT deleting AND observed_generation < generation))"
)


def upgrade() -> None:
    """Step forward."""
    op.drop_index("ix_components_unsettled", table_name="components")
    op.drop_index("ix_components_scope_key_work_version", table_name="components")
    op.create_index("ix_components_scope_key", "components", ["scope_key"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE components SET (fillfactor = 70)")


def downgrade() -> None:
    """Step back."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE components RESET (fillfactor)")
    op.drop_index("ix_components_scope_key", table_name="components")
    op.create_index("ix_components_scope_key_work_version", "components", ["scope_key", "work_version"])
    where = sa.text(_UNSETTLED)
    op.create_index(
        "ix_components_unsettled", "components", ["live_system_id"], sqlite_where=where, postgresql_where=where
    )
