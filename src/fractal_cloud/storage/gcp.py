"""Buckets and databases of Google Cloud under their short names."""

from fractal_cloud.offers.gcp.bucket import GcpGcsBucket as bucket
from fractal_cloud.offers.gcp.postgres import GcpPostgresDbms as postgres_dbms

__all__ = ["bucket", "postgres_dbms"]
