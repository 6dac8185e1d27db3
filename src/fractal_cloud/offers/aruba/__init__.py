"""The component types of Aruba Cloud; cloud.py alone knows how its doors are opened, and nothing here decides."""

import os
from pathlib import Path

from fractal_cloud.offers.offer import Provider, Session


def _connect() -> Session:
    from fractal_cloud.offers.aruba.cloud import ArubaSession

    return ArubaSession()


def _is_at_hand() -> bool:
    return bool(os.environ.get("ACLOUD_CLIENT_ID")) or (Path.home() / ".acloud.yaml").exists()


PROVIDER = Provider(name="aruba", title="Aruba Cloud", connect=_connect, packages=("httpx2",), is_at_hand=_is_at_hand)
