"""The component types of Azure; cloud.py alone knows the vendor's library of credentials, and nothing here decides."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.offers.offer import Provider, RealmsInAFile, Session

_SIGNS = ("AZURE_CLIENT_ID", "AZURE_SUBSCRIPTION_ID", "IDENTITY_ENDPOINT")


def _connect() -> Session:
    from fractal_cloud.offers.azure.cloud import AzureSession

    return AzureSession()


def _entry() -> type[RealmEntry]:
    from fractal_cloud.offers.azure.realm_entry import AzureRealm

    return AzureRealm


def _connect_to(entries: Sequence[Any]) -> Session:
    from fractal_cloud.offers.azure.cloud import AzureSession
    from fractal_cloud.offers.listed_realms import through_one

    return through_one(AzureSession(), entries)


def _is_at_hand() -> bool:
    if any(os.environ.get(name) for name in _SIGNS):
        return True
    folder = Path(os.environ.get("AZURE_CONFIG_DIR") or Path.home() / ".azure")
    return (folder / "azureProfile.json").exists()


PROVIDER = Provider(
    name="azure",
    title="Azure",
    connect=_connect,
    packages=("azure.identity",),
    is_at_hand=_is_at_hand,
    realms=RealmsInAFile(_entry, _connect_to),
)
