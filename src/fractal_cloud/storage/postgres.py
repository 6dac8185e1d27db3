"""Component types of the category Storage at PostgreSQL.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.postgres.server import PostgresServer as server

__all__ = ["server"]
