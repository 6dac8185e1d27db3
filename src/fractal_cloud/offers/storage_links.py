"""What every inbound half for an object store does alike where the source gets a key: made by the cloud, shown once,
sealed, and replaced only when nobody can have received the last one, or it was revoked (L9).

The id of the key is the version by which the two halves count; clouds allow two keys at a time, so the one in use stays
until the new one has arrived.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fractal_cloud.model.errors import Conflict
from fractal_cloud.offers.link import InboundLink, Published
from fractal_cloud.offers.link_types import StorageLink
from fractal_cloud.offers.secret import Secret


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a link's identity: the ids of those there are, the oldest first, and how one is made and dropped.

    ``make`` returns the id and the secret; the cloud shows the secret this once.
    """

    there: Sequence[str]
    make: Callable[[], tuple[str, Secret]]
    drop: Callable[[str], None]


def transfer_key(link: InboundLink[StorageLink], keys: Keys) -> Published:
    """What to publish of the key with which the source signs; raises ``LinkNotReady`` while nobody could open it."""
    sent = link.fields.get("accessKeyId")
    if sent in keys.there and link.is_received(sent):
        _drop_others(keys, str(sent))
        return {"accessKeyId": str(sent)}
    if sent in keys.there and "sealed" in link.fields and link.is_sealed_to_all:
        return {"accessKeyId": str(sent), "sealed": link.fields["sealed"]}
    link.check_key()
    _drop_others(keys, "" if link.is_revoked else str(link.published.get("received") or ""))
    key_id, secret = keys.make()
    return {"accessKeyId": key_id, "sealed": link.seal(link.watch.note(secret))}


def _drop_others(keys: Keys, keep: str) -> None:
    for stale in keys.there:
        if stale != keep:
            keys.drop(stale)


def bucket_of(link: InboundLink[StorageLink]) -> str:
    """The name of the bucket that the target is; a link that asks for another one is refused."""
    own = str(link.there.outputs["bucketName"])
    asked = link.settings.bucket
    if asked not in (None, own):
        raise Conflict(f"the link asks for bucket {asked!r}, but {link.own!r} is {own!r}: leave bucket out")
    return own


def identity_name(link: InboundLink[StorageLink], longest: int) -> str:
    """The name of a link's identity: readable, the same for every try, and nobody else's by chance."""
    digest = hashlib.sha256(link.mark.encode()).hexdigest()[:10]
    readable = re.sub(r"[^A-Za-z0-9-]+", "-", f"{link.own}-{link.source_id}")
    return f"{readable[: longest - len(digest) - 1]}-{digest}"
