"""The keys and settings that point the vendors' own tools at the sandbox.

People and the agent use different keys, because the safety monitor judges only the agent. No server code belongs here.
"""

from __future__ import annotations

__all__ = [
    "AGENT_ACCESS_KEY",
    "AGENT_TOKEN",
    "PERSON_ACCESS_KEY",
    "PERSON_TOKEN",
    "REGION",
    "SECRET_KEY",
    "agent_env",
    "sandbox_env",
]

# Twenty capitals and digits each, the shape of a real key id. They open nothing but the sandbox.
PERSON_ACCESS_KEY = "SANDBOXPERSON0000000"
AGENT_ACCESS_KEY = "SANDBOXAGENT00000000"
SECRET_KEY = "sandbox"
REGION = "eu-central-1"
# The bearer tokens of Kubernetes.
PERSON_TOKEN = "sandbox-person"
AGENT_TOKEN = "sandbox-agent"


def sandbox_env(url: str) -> dict[str, str]:
    """Return the environment in which a person's tools (`aws`, boto3) talk to the sandbox at `url`."""
    return _aws_env(url, PERSON_ACCESS_KEY)


def agent_env(url: str) -> dict[str, str]:
    """Return the environment for the agent: as a person's, with the key that the safety monitor watches."""
    return _aws_env(url, AGENT_ACCESS_KEY)


def _aws_env(url: str, access_key: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": REGION,
    }
