"""Aruba Cloud on this machine: two projects, and the token endpoint its own tools ask first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fractal_sandbox.calls import Actor
from fractal_sandbox.registry import Mount

if TYPE_CHECKING:
    from fractal_sandbox.aruba.cloud import ArubaCloud

PATH = "/aruba"
TOKEN_PATH = "/auth/token"
CLIENTS: Mapping[Actor, str] = {"person": "cmp-sandbox-person", "agent": "cmp-sandbox-agent"}
SECRETS: Mapping[Actor, str] = {"person": "secret-of-the-person", "agent": "secret-of-the-agent"}


def _load() -> ArubaCloud:
    from fractal_sandbox.aruba.cloud import ArubaCloud

    return ArubaCloud()


def environment(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """What points `acloud`, the commands that the product prints, and our agent here."""
    del folder
    return {
        "ACLOUD_BASE_URL": f"{url}{PATH}",
        "ACLOUD_TOKEN_ISSUER_URL": f"{url}{PATH}{TOKEN_PATH}",
        "ACLOUD_CLIENT_ID": CLIENTS[actor],
        "ACLOUD_CLIENT_SECRET": SECRETS[actor],
    }


MOUNTS = (Mount("aruba", "aruba", "Aruba Cloud", PATH, _load, environment, clears=("ACLOUD_", "FRACTAL_ARUBA_")),)
