"""How the target of a link hands a secret over to a source on another cloud: sealed, and once (L9).

The two halves never meet, so they count: the target publishes the `version` of what it sealed, the source answers with
the version it has `received`. A new secret is made only when the thing it opens is new, or when nobody can have
received the last one: an agent that starts anew must not lock out what runs. What was received is published no longer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from fractal_cloud.offers.link import InboundLink, Published
from fractal_cloud.offers.secret import Secret


def transfer_secret(link: InboundLink[Any], *, is_known: bool, bring: Callable[[Secret | None], None]) -> Published:
    """Bring what the source logs in as to what the link says; return what to publish of its secret.

    ``is_known``: it is there already. ``bring`` makes or repairs it; with a secret, it has that one from now on; with
    None, it keeps the one it has. Raises ``LinkNotReady`` while no agent is there to seal for.
    """
    sent, received = link.fields.get("version"), link.published.get("received")
    if is_known and sent is not None and sent == received:
        bring(None)
        return {"version": sent}
    lock = hashlib.sha256(link.key.encode()).hexdigest()[:12]
    if is_known and sent is not None and link.fields.get("sealedTo") == lock:
        bring(None)
        return {name: link.fields[name] for name in ("version", "sealedTo", "sealed")}
    secret = link.new_secret()
    sealed = link.seal(secret)
    bring(secret)
    return {"version": int(sent or 0) + 1, "sealedTo": lock, "sealed": sealed}
