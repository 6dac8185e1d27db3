"""Component types of the category Storage at Azure.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.azure.postgres import AzurePostgresDbms as postgres_dbms
from fractal_cloud.offers.azure.storage_account import AzureStorageAccount as storage_account

__all__ = ["postgres_dbms", "storage_account"]
