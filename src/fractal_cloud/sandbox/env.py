"""The keys and settings that point the vendors' own tools at the sandbox.

People and the agent use different keys, because the safety monitor judges only the agent. No server code belongs here.
"""

from __future__ import annotations

import json
from pathlib import Path

from fractal_cloud.sandbox.calls import Actor

__all__ = [
    "AGENT_ACCESS_KEY",
    "AGENT_TOKEN",
    "CLUSTERS",
    "PERSON_ACCESS_KEY",
    "PERSON_TOKEN",
    "REGION",
    "SECRET_KEY",
    "agent_env",
    "kubeconfig",
    "sandbox_env",
]

# Twenty capitals and digits each, the shape of a real key id. They open nothing but the sandbox.
PERSON_ACCESS_KEY = "SANDBOXPERSON0000000"
AGENT_ACCESS_KEY = "SANDBOXAGENT00000000"
SECRET_KEY = "sandbox"
REGION = "eu-central-1"
# The bearer tokens of Kubernetes, and its clusters: contexts of a kubeconfig, and the paths they are mounted at.
PERSON_TOKEN = "sandbox-person"
AGENT_TOKEN = "sandbox-agent"
CLUSTERS = {"sandbox": "/kubernetes", "sandbox-2": "/kubernetes-2"}


def sandbox_env(url: str, folder: Path | None = None) -> dict[str, str]:
    """Return the environment in which a person's tools (`aws`, boto3, `kubectl`) talk to the sandbox at `url`.

    Kubernetes' tools want a file: it is written into `folder`, and left out where none is given.
    """
    return {**_aws_env(url, PERSON_ACCESS_KEY), **_kubernetes_env(url, "person", folder)}


def agent_env(url: str, folder: Path | None = None) -> dict[str, str]:
    """Return the environment for the agent: as a person's, with the key that the safety monitor watches."""
    return {**_aws_env(url, AGENT_ACCESS_KEY), **_kubernetes_env(url, "agent", folder)}


def kubeconfig(url: str, actor: Actor) -> str:
    """Return a kubeconfig whose contexts are the sandbox's clusters; the current one is `sandbox`.

    The path names the caller too: over plain HTTP, kubectl sends no token.
    """
    token = AGENT_TOKEN if actor == "agent" else PERSON_TOKEN
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": f"{url}{path}/as/{actor}"}} for name, path in CLUSTERS.items()
        ],
        "users": [{"name": actor, "user": {"token": token}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": actor, "namespace": "default"}} for name in CLUSTERS
        ],
        "current-context": "sandbox",
    }
    return json.dumps(content, indent=2) + "\n"


def _kubernetes_env(url: str, actor: Actor, folder: Path | None) -> dict[str, str]:
    if folder is None:
        return {}
    path = folder.absolute() / f"kubeconfig-{actor}"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = kubeconfig(url, actor)
    if not path.exists() or path.read_text() != text:  # somebody may be reading it
        path.write_text(text)
        path.chmod(0o600)
    return {"KUBECONFIG": str(path)}


def _aws_env(url: str, access_key: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": REGION,
    }
