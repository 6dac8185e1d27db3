"""Azure on this machine: a Resource Manager of our own, good enough for `az`, the vendor's SDKs and our agent.

`az` and the SDKs send their tokens over TLS only: the sandbox's one port answers TLS too, with its own certificate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from fractal_sandbox.calls import Actor
from fractal_sandbox.config_files import written
from fractal_sandbox.registry import Mount

if TYPE_CHECKING:
    from fractal_sandbox.azure.cloud import AzureCloud

PATH = "/azure"
SUBSCRIPTION = "00000000-0000-0000-0000-00000000a2e0"
TENANT = "00000000-0000-0000-0000-0000000007e0"
GROUP = "sandbox"
LOCATION = "westeurope"
_CLOUD = "fractal-sandbox"


def _load() -> AzureCloud:
    from fractal_sandbox.azure.cloud import AzureCloud

    return AzureCloud()


def environment(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """What points our agent, azure-identity and, with a folder for its files, `az` here.

    Everybody gets tokens from the sandbox's managed identity, whose header says who asks.
    """
    found = {
        "FRACTAL_AZURE_ENDPOINT": f"{url}{PATH}",
        "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
        "IDENTITY_ENDPOINT": f"{url}{PATH}/msi/token",
        "IDENTITY_HEADER": actor,
    }
    if folder is None or actor == "agent":
        return found
    certificate = _certificate(url)
    if not certificate:
        return found
    return {
        **found,
        "AZURE_CONFIG_DIR": str(_az_folder(url, folder)),
        "AZURE_CORE_COLLECT_TELEMETRY": "false",
        "REQUESTS_CA_BUNDLE": str(written(folder, "azure-sandbox.pem", certificate)),
    }


def _certificate(url: str) -> str:
    """The certificate of the sandbox that runs there, made when it started; nothing where none answers."""
    try:
        with urlopen(f"{url}/_sandbox/certificate", timeout=5) as answer:  # noqa: S310
            return str(answer.read().decode())
    except (URLError, OSError):
        return ""


def _az_folder(url: str, folder: Path) -> Path:
    """The settings of `az`: a cloud of its own, and somebody who is logged in to it."""
    address = url.replace("http://", "https://").replace("//127.0.0.1", "//localhost") + PATH
    clouds = [
        f"[{_CLOUD}]",
        f"endpoint_resource_manager = {address}",
        f"endpoint_management = {address}",
        f"endpoint_active_directory = {address}",
        f"endpoint_active_directory_resource_id = {address}",
        f"subscription = {SUBSCRIPTION}",
    ]
    profile = {
        "subscriptions": [
            {
                "id": SUBSCRIPTION,
                "name": "sandbox",
                "state": "Enabled",
                "isDefault": True,
                "tenantId": TENANT,
                "environmentName": _CLOUD,
                "user": {
                    "name": "systemAssignedIdentity",
                    "type": "servicePrincipal",
                    "assignedIdentityInfo": "MSI",
                },
            }
        ]
    }
    written(folder, "azure/config", f"[cloud]\nname = {_CLOUD}\n\n[core]\ninstance_discovery = false\n")
    written(folder, "azure/clouds.config", "\n".join(clouds) + "\n")
    return written(folder, "azure/azureProfile.json", json.dumps(profile, indent=2) + "\n").parent


MOUNTS = (
    Mount(
        "azure",
        "azure",
        "Azure",
        PATH,
        _load,
        environment,
        clears=("AZURE_", "FRACTAL_AZURE_", "IDENTITY_", "MSI_"),
    ),
)
