"""Hetzner Cloud on this machine: one project, good enough for `hcloud` and the vendor's Python client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fractal_sandbox.calls import Actor
from fractal_sandbox.registry import Mount

if TYPE_CHECKING:
    from fractal_sandbox.hetzner.cloud import HetznerCloud

# They open nothing but the sandbox; with the last one, everything but reading is refused.
PERSON_TOKEN = "sandbox-person"
AGENT_TOKEN = "sandbox-agent"
READ_ONLY_TOKEN = "sandbox-agent-read-only"
PROJECT = "sandbox"
PATH = "/hetzner"


def _load() -> HetznerCloud:
    from fractal_sandbox.hetzner.cloud import HetznerCloud

    return HetznerCloud()


def environment(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """What points `hcloud` and the Python client here; an agent's leaves no way to a real project."""
    del folder
    found = {
        "HCLOUD_ENDPOINT": f"{url}{PATH}/v1",
        "HCLOUD_TOKEN": AGENT_TOKEN if actor == "agent" else PERSON_TOKEN,
    }
    if actor == "agent":
        found |= {"HCLOUD_CONFIG": os.devnull, "FRACTAL_HETZNER_PROJECT": PROJECT}
    return found


MOUNTS = (Mount("hetzner", "hetzner", "Hetzner Cloud", PATH, _load, environment, clears=("HCLOUD_",)),)
