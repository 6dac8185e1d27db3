"""The component types of Oracle Cloud; signing.py alone knows how requests are signed, and nothing here decides."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.offers.offer import Provider, RealmsInAFile, Session


def _connect() -> Session:
    from fractal_cloud.offers.oci.cloud import OciSession

    return OciSession()


def _entry() -> type[RealmEntry]:
    from fractal_cloud.offers.oci.realm_entry import OciRealm

    return OciRealm


def _connect_to(entries: Sequence[Any]) -> Session:
    from fractal_cloud.offers.listed_realms import through_one
    from fractal_cloud.offers.oci.cloud import OciSession

    return through_one(OciSession(), entries)


def _is_at_hand() -> bool:
    named = ("OCI_CLI_CONFIG_FILE", "OCI_CONFIG_FILE", "OCI_CLI_USER", "OCI_CLI_AUTH", "OCI_RESOURCE_PRINCIPAL_VERSION")
    return any(os.environ.get(name) for name in named) or (Path.home() / ".oci" / "config").exists()


PROVIDER = Provider(
    name="oci",
    title="Oracle Cloud (OCI)",
    connect=_connect,
    packages=("cryptography",),
    is_at_hand=_is_at_hand,
    realms=RealmsInAFile(_entry, _connect_to),
)
