"""Indexes for a million components: what is unsettled, overdue, requested or old is found without a search."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_UNSETTLED = (
    "(status NOT IN ('Active', 'ExternallyManaged', 'ManualOverride', 'Deleted')"
    " OR (deleting AND status <> 'Deleted') OR (NOT deleting AND observed_generation < generation))"
)
_PARTIAL = {
    "ix_components_unsettled": ("live_system_id", _UNSETTLED),
    "ix_components_not_overdue": ("uid", "override IS NOT NULL AND NOT overdue"),
    "ix_components_requested": ("uid", "request IS NOT NULL"),
}


def upgrade() -> None:
    """Step forward."""
    for name, (column, condition) in _PARTIAL.items():
        where = sa.text(condition)
        op.create_index(name, "components", [column], sqlite_where=where, postgresql_where=where)
    op.create_index("ix_components_served", "components", ["environment", "provider", "realm_name", "realm", "type"])
    op.drop_index("ix_components_environment_provider", table_name="components")
    status = sa.text("kind = 'StatusChanged'")
    named = ["live_system_id", "component_id", "seq"]
    op.create_index("ix_events_status", "events", named, sqlite_where=status, postgresql_where=status)
    op.create_index("ix_journal_at", "journal", ["at"])


def downgrade() -> None:
    """Step back."""
    op.drop_index("ix_journal_at", table_name="journal")
    op.drop_index("ix_events_status", table_name="events")
    op.create_index("ix_components_environment_provider", "components", ["environment", "provider"])
    for name in ("ix_components_served", *_PARTIAL):
        op.drop_index(name, table_name="components")
