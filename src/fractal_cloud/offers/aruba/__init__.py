"""The component types of Aruba Cloud; cloud.py alone knows how its doors are opened, and nothing here decides."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.offers.offer import Provider, RealmsInAFile, Session


def _connect() -> Session:
    from fractal_cloud.offers.aruba.cloud import ArubaSession

    return ArubaSession()


def _entry() -> type[RealmEntry]:
    from fractal_cloud.offers.aruba.realm_entry import ArubaRealm

    return ArubaRealm


def _connect_to(entries: Sequence[Any]) -> Session:
    from fractal_cloud.offers.aruba.cloud import ArubaSession
    from fractal_cloud.offers.listed_realms import through_one

    return through_one(ArubaSession(), entries)


def _is_at_hand() -> bool:
    return bool(os.environ.get("ACLOUD_CLIENT_ID")) or (Path.home() / ".acloud.yaml").exists()


PROVIDER = Provider(
    name="aruba",
    title="Aruba Cloud",
    connect=_connect,
    packages=("httpx2",),
    is_at_hand=_is_at_hand,
    realms=RealmsInAFile(_entry, _connect_to),
)
