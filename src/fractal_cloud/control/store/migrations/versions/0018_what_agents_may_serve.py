"""What agents may serve by their tokens, by which other name a realm was bound, and to whom a plan was handed.

Agents that registered before have no grants, and register again. A name that says nothing by itself (the empty one, or
the realm's own id) is another name of what the same environment calls the same realm.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_ADDED = (("agents", "environments"), ("agents", "others"), ("plans", "environments"))
_ALIASES = """
UPDATE reaches SET alias = COALESCE((
    SELECT MIN(beside.name) FROM reaches AS beside
    WHERE beside.environment = reaches.environment AND beside.provider = reaches.provider
      AND beside.realm = reaches.realm AND beside.name NOT IN ('', beside.realm) AND beside.name NOT LIKE 'declared:%'
), '') WHERE name IN ('', realm)
"""


def upgrade() -> None:
    """Step forward."""
    for table, name in _ADDED:
        op.add_column(table, sa.Column(name, sa.JSON(none_as_null=True), nullable=False, server_default="[]"))
    op.add_column("agents", sa.Column("granted", sa.Text(), nullable=False, server_default=""))
    op.add_column("reaches", sa.Column("alias", sa.Text(), nullable=False, server_default=""))
    op.execute(sa.text(_ALIASES))
    op.create_index("ix_reaches_provider_realm", "reaches", ["provider", "realm"])
    op.create_index("ix_components_scope_key_environment", "components", ["scope_key", "environment"])
    op.drop_index("ix_components_scope_key", "components")


def downgrade() -> None:
    """Step back."""
    op.create_index("ix_components_scope_key", "components", ["scope_key"])
    op.drop_index("ix_components_scope_key_environment", "components")
    op.drop_index("ix_reaches_provider_realm", "reaches")
    op.drop_column("reaches", "alias")
    op.drop_column("agents", "granted")
    for table, name in _ADDED:
        op.drop_column(table, name)
