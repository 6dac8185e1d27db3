"""Who calls Azure, and where it answers: what azure-identity finds, as the vendor's own tools do.

That is a service principal in the environment, a workload or managed identity, or somebody who has logged in with
``az``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.errors import Denied, Unreadable
from fractal_cloud.offers.rest import CONNECT_SECONDS, READ_SECONDS

ENDPOINT: Final = "FRACTAL_AZURE_ENDPOINT"
AUDIENCE: Final = "FRACTAL_AZURE_AUDIENCE"
CLOUD: Final = "AZURE_CLOUD"
# The vendor's own names of its clouds: where Resource Manager answers, and who vouches for callers.
CLOUDS: Final[Mapping[str, tuple[str, str]]] = {
    "AZURE_PUBLIC_CLOUD": ("https://management.azure.com", "login.microsoftonline.com"),
    "AZURE_US_GOVERNMENT": ("https://management.usgovcloudapi.net", "login.microsoftonline.us"),
    "AZURE_CHINA_CLOUD": ("https://management.chinacloudapi.cn", "login.chinacloudapi.cn"),
}


def credential() -> Any:
    """The vendor's chain of credentials; has connections of its own, to be closed."""
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential(
        authority=os.environ.get("AZURE_AUTHORITY_HOST") or _whereabouts()[1],
        connection_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
    )


def endpoint() -> str:
    """Where Resource Manager answers."""
    return os.environ.get(ENDPOINT) or _whereabouts()[0]


def audience() -> str:
    """For whom tokens for Resource Manager are."""
    return (os.environ.get(AUDIENCE) or endpoint()).rstrip("/")


def token(credential: Any, audience: str) -> str:
    """A token; the library keeps it until shortly before it expires."""
    from azure.core.exceptions import AzureError, ClientAuthenticationError

    try:
        return str(credential.get_token(f"{audience}/.default").token)
    except ClientAuthenticationError as error:
        cause = str(error).strip().splitlines()[0].rstrip(". ")
        raise Denied(f"{cause}: give the agent credentials that azure-identity can find") from error
    except AzureError as error:
        raise Unreadable(f"no token was to be had: {' '.join(str(error).split())}") from error


def _whereabouts() -> tuple[str, str]:
    name = os.environ.get(CLOUD, "") or "AZURE_PUBLIC_CLOUD"
    if name not in CLOUDS:
        raise Denied(
            f"{CLOUD} is {name!r}: it must be one of {', '.join(CLOUDS)}; another cloud is named by {ENDPOINT}"
        )
    return CLOUDS[name]
