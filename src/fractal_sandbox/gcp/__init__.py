"""Google Cloud on this machine: two projects, and those APIs that the agent, gcloud and Google's libraries need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fractal_sandbox.calls import Actor
from fractal_sandbox.config_files import written
from fractal_sandbox.registry import Mount

if TYPE_CHECKING:
    from fractal_sandbox.gcp.cloud import GcpCloud

PATH = "/gcp"
PROJECT, OTHER_PROJECT = "fractal-sandbox", "fractal-sandbox-2"
NUMBERS = {PROJECT: "100000000001", OTHER_PROJECT: "100000000002"}
TOKENS: Mapping[Actor, str] = {"person": "sandbox-person", "agent": "sandbox-agent"}
_OVERRIDES = {
    "COMPUTE": "compute/v1/",
    "STORAGE": "storage/v1/",
    "RUN": "",
    "CONTAINER": "",
    "SQL": "",
    "CLOUDRESOURCEMANAGER": "",
    "IAM": "",
}


def _load() -> GcpCloud:
    from fractal_sandbox.gcp.cloud import GcpCloud

    return GcpCloud()


def credentials(url: str, token_file: Path) -> str:
    """Application default credentials as a workload has them: a token in a file, to be exchanged for another."""
    content = {
        "type": "external_account",
        "audience": "//iam.googleapis.com/locations/global/workforcePools/sandbox/providers/sandbox",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"{url}{PATH}/token",
        "credential_source": {"file": str(token_file)},
    }
    return json.dumps(content, indent=2) + "\n"


def environment(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """What points gcloud and the agent here: files, so there is nothing without a folder. Google's libraries find their
    credentials by it; their clients are given the address.

    gcloud puts the region before the host of Cloud Run, which no name server knows: so it is configured to send
    everything through the sandbox as its proxy.
    """
    if folder is None:
        return {}
    token = written(folder, f"gcp-token-{actor}", TOKENS[actor])
    adc = written(folder, f"gcp-credentials-{actor}.json", credentials(url, token))
    parts = urlsplit(url)
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": str(adc),
        "GOOGLE_CLOUD_PROJECT": PROJECT,
        "FRACTAL_GCP_PROJECTS": f"{PROJECT},{OTHER_PROJECT}",
        "CLOUDSDK_CONFIG": str(folder.absolute() / f"gcloud-{actor}"),
        "CLOUDSDK_CORE_PROJECT": PROJECT,
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token),
        "CLOUDSDK_PROXY_TYPE": "http_no_tunnel",
        "CLOUDSDK_PROXY_ADDRESS": parts.hostname or "",
        "CLOUDSDK_PROXY_PORT": str(parts.port or 80),
        **{
            f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{service}": f"{url}{PATH}/{below}"
            for service, below in _OVERRIDES.items()
        },
    }


MOUNTS = (
    Mount(
        "gcp",
        "gcp",
        "Google Cloud",
        PATH,
        _load,
        environment,
        clears=("CLOUDSDK_", "GOOGLE_", "GCLOUD_", "GCE_METADATA_", "STORAGE_EMULATOR_HOST", "FRACTAL_GCP_"),
    ),
)
