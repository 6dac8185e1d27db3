"""SSH keys, which people put there and servers are made with."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5
from typing import Any

from fractal_sandbox.hetzner.collection import Action, Collection, field
from fractal_sandbox.rest import Body, Draft

__all__ = ["SshKeys"]


class SshKeys(Collection):
    """Public keys."""

    kind = "ssh_key"

    def make(self, draft: Draft, given: Mapping[str, Any]) -> tuple[Body, Body]:
        del draft
        key = str(field(given, "public_key"))
        digest = md5(key.encode(), usedforsecurity=False).hexdigest()
        return {"public_key": key, "fingerprint": ":".join(digest[i : i + 2] for i in range(0, 32, 2))}, {}

    def actions(self) -> Mapping[str, Action]:
        return {}
