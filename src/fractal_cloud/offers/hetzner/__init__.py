"""The component types of Hetzner Cloud; cloud.py alone knows the vendor's client, and nothing here decides."""

import os

from fractal_cloud.offers.offer import Provider, Session


def _connect() -> Session:
    from fractal_cloud.offers.hetzner.cloud import HetznerSession

    return HetznerSession()


def _is_at_hand() -> bool:
    from fractal_cloud.offers.hetzner.credentials import TOKEN, config_path

    return bool(os.environ.get(TOKEN)) or config_path().exists()


PROVIDER = Provider(
    name="hetzner", title="Hetzner Cloud", connect=_connect, packages=("hcloud",), is_at_hand=_is_at_hand
)
