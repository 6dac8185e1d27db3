"""PostgreSQL servers that somebody runs already, under their short name."""

from fractal_cloud.offers.postgres.server import PostgresServer as server

__all__ = ["server"]
