"""Storage accounts and databases of Azure under their short names."""

from fractal_cloud.offers.azure.postgres import AzurePostgresDbms as postgres_dbms
from fractal_cloud.offers.azure.storage_account import AzureStorageAccount as storage_account

__all__ = ["postgres_dbms", "storage_account"]
