"""The component types of Azure; cloud.py alone knows the vendor's library of credentials, and nothing here decides."""

import os
from pathlib import Path

from fractal_cloud.offers.offer import Provider, Session

_SIGNS = ("AZURE_CLIENT_ID", "AZURE_SUBSCRIPTION_ID", "IDENTITY_ENDPOINT")


def _connect() -> Session:
    from fractal_cloud.offers.azure.cloud import AzureSession

    return AzureSession()


def _is_at_hand() -> bool:
    if any(os.environ.get(name) for name in _SIGNS):
        return True
    folder = Path(os.environ.get("AZURE_CONFIG_DIR") or Path.home() / ".azure")
    return (folder / "azureProfile.json").exists()


PROVIDER = Provider(name="azure", title="Azure", connect=_connect, packages=("azure.identity",), is_at_hand=_is_at_hand)
