"""The component types of VMware vSphere; soap.py and specs.py know the vendor's client, and nothing here decides."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.offers.offer import Provider, RealmsInAFile, Session


def _connect() -> Session:
    from fractal_cloud.offers.vsphere.cloud import VsphereSession

    return VsphereSession()


def _entry() -> type[RealmEntry]:
    from fractal_cloud.offers.vsphere.realm_entry import VsphereRealm

    return VsphereRealm


def _connect_to(entries: Sequence[Any]) -> Session:
    from fractal_cloud.offers.listed_realms import ListedRealms, Way

    return ListedRealms([Way(partial(_open, entry), [entry]) for entry in entries])


def _open(entry: Any) -> Session:
    from fractal_cloud.offers.vsphere.cloud import VsphereSession

    return VsphereSession(entry.credentials())


def _is_at_hand() -> bool:
    from fractal_cloud.offers.vsphere.credentials import is_at_hand

    return is_at_hand()


PROVIDER = Provider(
    name="vsphere",
    title="VMware vSphere",
    connect=_connect,
    packages=("pyVmomi",),
    is_at_hand=_is_at_hand,
    realms=RealmsInAFile(_entry, _connect_to),
)
