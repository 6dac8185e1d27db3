"""How the target of a link hands a secret over to a source on another cloud: sealed, and once (L9).

The two halves never meet, so they name what they speak of: the target publishes the `version` of what it sealed, the
source answers with the version it has `received`. A new secret is made only when the thing it opens is new, when nobody
can have received the last one, or when that one was revoked: an agent that starts anew must not lock out what runs.
What was received is published no longer.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from fractal_cloud.offers.link import InboundLink, Published
from fractal_cloud.offers.secret import Secret


def transfer_secret(link: InboundLink[Any], *, is_known: bool, bring: Callable[[Secret | None], None]) -> Published:
    """Bring what the source logs in as to what the link says; return what to publish of its secret.

    ``is_known``: it is there already. ``bring`` makes or repairs it; with a secret, it has that one from now on; with
    None, it keeps the one it has. Raises ``LinkNotReady`` while no agent is there to seal for.
    """
    sent = link.fields.get("version")
    if is_known and sent is not None and link.is_received(sent):
        bring(None)
        return {"version": sent}
    if is_known and sent is not None and "sealed" in link.fields and link.is_sealed_to_all:
        bring(None)
        return {"version": sent, "sealed": link.fields["sealed"]}
    secret = link.new_secret()
    sealed = link.seal(secret)
    bring(secret)
    return {"version": new_version(), "sealed": sealed}


def new_version() -> str:
    """A version that no secret before it had, not even one that nobody remembers: the source may still have that."""
    return secrets.token_hex(6)
