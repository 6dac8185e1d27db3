"""What only links set stands beside a type's facts: every report asks for it, and for nothing else of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_types = sa.table("types", sa.column("type", sa.Text), sa.column("facts", sa.JSON), sa.column("linked", sa.JSON))


def upgrade() -> None:
    """Step forward."""
    op.add_column("types", sa.Column("linked", sa.JSON(none_as_null=True), nullable=True))
    connection = op.get_bind()
    for name, facts in connection.execute(sa.select(_types.c.type, _types.c.facts)).all():
        parameters = facts.get("parameterSchema", {}).get("properties", {})
        linked = [key for key, schema in parameters.items() if schema.get("x-fractal", {}).get("linked")]
        connection.execute(sa.update(_types).where(_types.c.type == name).values(linked=linked))


def downgrade() -> None:
    """Step back."""
    op.drop_column("types", "linked")
