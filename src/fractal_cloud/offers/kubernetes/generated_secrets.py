"""Secrets that are made for parameters of objects in a namespace: each is a Secret there, with the three tags (A8)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.generated_secrets import LABEL, GeneratedSecretStore, Kept, Slot
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.kinds import SECRET
from fractal_cloud.offers.kubernetes.tags import annotations_of, labels_of, protocol_of
from fractal_cloud.offers.secret import Secret

PREFIX: Final = "fractal-generated-"
"""How their names begin: by this the cluster distinguishes them from everybody else's (A7)."""
KEY: Final = "value"
_LONGEST: Final = 63


class SecretsOfANamespace(GeneratedSecretStore):
    """Secrets of the namespace that the component lives in."""

    title: ClassVar[str] = "a Secret of its namespace"

    def name(self, slot: Slot) -> str:
        """Readable, with a digest that no other has: several LiveSystems may share a namespace."""
        tail = f"-{slot.digest}"
        return f"{PREFIX}{slot.component.lower()}"[: _LONGEST - len(tail)].rstrip("-.") + tail

    def find(self, cloud: Kubernetes, slot: Slot) -> Kept | None:
        """The object as it is now."""
        found = cloud.find(SECRET, self.name(slot))
        if found is None:
            return None
        protocol, handle = protocol_of(found), found["metadata"]
        if not protocol.is_managed or protocol.owner != slot.live_system_id:
            return Kept(protocol, handle=handle)  # whose value is nobody's business here
        if handle.get("deletionTimestamp"):
            return Kept(protocol, why="is about to be deleted: wait until it is gone", handle=handle)
        secret = _value_of(found)
        return Kept(protocol, secret, "" if secret else f"has no text under the key {KEY!r}", handle)

    def make(self, cloud: Kubernetes, slot: Slot, secret: Secret, tags: ProtocolTags) -> None:
        """Make it; an answer that was lost shows in the next read, by the name."""
        metadata = {
            "name": self.name(slot),
            "namespace": cloud.namespace,
            "labels": {**labels_of(tags), LABEL: slot.digest},
            "annotations": {**annotations_of(tags), LABEL: slot.place},
        }
        data = {KEY: base64.b64encode(secret.reveal().encode()).decode()}
        body = {"apiVersion": "v1", "kind": SECRET.kind, "metadata": metadata, "type": "Opaque", "data": data}
        cloud.create(SECRET, body)

    def drop(self, cloud: Kubernetes, slot: Slot, kept: Kept) -> None:
        """Delete the very object that was found, as it was read."""
        cloud.delete(SECRET, self.name(slot), kept.handle["uid"], kept.handle["resourceVersion"])


def _value_of(found: Mapping[str, Any]) -> Secret | None:
    try:
        return Secret(base64.b64decode(found["data"][KEY], validate=True).decode())
    except (KeyError, TypeError, binascii.Error, ValueError):
        return None
