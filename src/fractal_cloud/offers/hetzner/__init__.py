"""The component types of Hetzner Cloud; cloud.py alone knows the vendor's client, and nothing here decides."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.offers.offer import Provider, RealmsInAFile, Session


def _connect() -> Session:
    from fractal_cloud.offers.hetzner.cloud import HetznerSession

    return HetznerSession()


def _entry() -> type[RealmEntry]:
    from fractal_cloud.offers.hetzner.realm_entry import HetznerRealm

    return HetznerRealm


def _connect_to(entries: Sequence[Any]) -> Session:
    from fractal_cloud.offers.listed_realms import ListedRealms, Way

    return ListedRealms([Way(partial(_open, entry), [entry]) for entry in entries])


def _open(entry: Any) -> Session:
    from fractal_cloud.offers.hetzner.cloud import HetznerSession

    return HetznerSession(entry.credentials())


def _is_at_hand() -> bool:
    from fractal_cloud.offers.hetzner.credentials import TOKEN, config_path

    return bool(os.environ.get(TOKEN)) or config_path().exists()


PROVIDER = Provider(
    name="hetzner",
    title="Hetzner Cloud",
    connect=_connect,
    packages=("hcloud",),
    is_at_hand=_is_at_hand,
    realms=RealmsInAFile(_entry, _connect_to),
)
