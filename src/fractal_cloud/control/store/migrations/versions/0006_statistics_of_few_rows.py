"""PostgreSQL samples six thousand rows, not at thirty thousand, to know what columns are like.

Rows are found by their keys, for which that is plenty; and it samples again whenever a tenth of them has changed, which
took a second of a core each time.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TABLES = ("components", "events")
_FEW = 20
_DEFAULT = -1


def upgrade() -> None:
    """Step forward."""
    _set_statistics(_FEW)


def downgrade() -> None:
    """Step back."""
    _set_statistics(_DEFAULT)


def _set_statistics(target: int) -> None:
    bind = op.get_bind()
    if bind.dialect.name != "postgresql":
        return
    for table in _TABLES:
        names = [column["name"] for column in sa.inspect(bind).get_columns(table)]
        op.execute(f"ALTER TABLE {table} " + ", ".join(f'ALTER "{name}" SET STATISTICS {target}' for name in names))
