"""AWS on this machine: moto's backends behind our own layer of paging, timing, faults and judgement."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fractal_sandbox.calls import Actor
from fractal_sandbox.registry import Mount

if TYPE_CHECKING:
    from fractal_sandbox.aws.cloud import AwsCloud

# Twenty capitals and digits each, the shape of a real key id. They open nothing but the sandbox.
PERSON_ACCESS_KEY = "SANDBOXPERSON0000000"
AGENT_ACCESS_KEY = "SANDBOXAGENT00000000"
SECRET_KEY = "sandbox"
REGION = "eu-central-1"


def _load() -> AwsCloud:
    from fractal_sandbox.aws.cloud import AwsCloud

    return AwsCloud()


def environment(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """What points `aws` and boto3 here; an agent's leaves no way to a real account."""
    del folder
    found = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": AGENT_ACCESS_KEY if actor == "agent" else PERSON_ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": REGION,
    }
    if actor == "agent":
        found |= {
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    return found


MOUNTS = (Mount("aws", "aws", "AWS", "", _load, environment, clears=("AWS_",)),)
