"""Component types of the category Storage at Google Cloud.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.gcp.bucket import GcpGcsBucket as bucket
from fractal_cloud.offers.gcp.postgres import GcpPostgresDbms as postgres_dbms

__all__ = ["bucket", "postgres_dbms"]
