"""The component types of AWS; cloud.py alone knows boto3, and nothing here decides."""

from collections.abc import Sequence
from typing import Any

from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.offers.offer import Provider, RealmsInAFile, Session


def _connect() -> Session:
    from fractal_cloud.offers.aws.cloud import AwsSession

    return AwsSession()


def _entry() -> type[RealmEntry]:
    from fractal_cloud.offers.aws.accounts import AwsRealm

    return AwsRealm


def _connect_to(entries: Sequence[Any]) -> Session:
    from fractal_cloud.offers.aws.cloud import AwsSession

    return AwsSession(entries)


PROVIDER = Provider(
    name="aws",
    title="AWS",
    connect=_connect,
    packages=("boto3",),
    is_at_hand=lambda: True,
    realms=RealmsInAFile(_entry, _connect_to),
)
