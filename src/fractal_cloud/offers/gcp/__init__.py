"""The component types of Google Cloud; cloud.py alone knows the vendor's auth library, and nothing here decides."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.offers.offer import Provider, RealmsInAFile, Session


def _connect() -> Session:
    from fractal_cloud.offers.gcp.cloud import GcpSession

    return GcpSession()


def _entry() -> type[RealmEntry]:
    from fractal_cloud.offers.gcp.realm_entry import GcpRealm

    return GcpRealm


def _connect_to(entries: Sequence[Any]) -> Session:
    from fractal_cloud.offers.gcp.cloud import GcpSession
    from fractal_cloud.offers.listed_realms import through_one

    return through_one(GcpSession([entry.project for entry in entries]), entries)


def _is_at_hand() -> bool:
    if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or os.environ.get("GOOGLE_CLOUD_PROJECT"):
        return True
    home = os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud"
    return (Path(home) / "application_default_credentials.json").exists()


PROVIDER = Provider(
    name="gcp",
    title="Google Cloud",
    connect=_connect,
    packages=("google.auth",),
    is_at_hand=_is_at_hand,
    realms=RealmsInAFile(_entry, _connect_to),
)
