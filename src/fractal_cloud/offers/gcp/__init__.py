"""The component types of Google Cloud; cloud.py alone knows the vendor's auth library, and nothing here decides."""

import os
from pathlib import Path

from fractal_cloud.offers.offer import Provider, Session


def _connect() -> Session:
    from fractal_cloud.offers.gcp.cloud import GcpSession

    return GcpSession()


def _is_at_hand() -> bool:
    if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or os.environ.get("GOOGLE_CLOUD_PROJECT"):
        return True
    home = os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud"
    return (Path(home) / "application_default_credentials.json").exists()


PROVIDER = Provider(
    name="gcp", title="Google Cloud", connect=_connect, packages=("google.auth",), is_at_hand=_is_at_hand
)
