"""PostgreSQL servers that somebody runs already, and are only ever imported; links make roles inside them."""

from fractal_cloud.offers.offer import Provider, Session


def _connect() -> Session:
    from fractal_cloud.offers.postgres.cloud import PostgresSession

    return PostgresSession()


PROVIDER = Provider(name="postgres", title="PostgreSQL", connect=_connect)
