"""What links remember of the keys that secrets are sealed to: when a half must run because of a key, and what its run
leaves behind (A5). Pure; who runs it is the reconciler's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fractal_cloud.model.declaration import Scalar
from fractal_cloud.model.link import LinkState, LinkWork
from fractal_cloud.model.sealing import fingerprint
from fractal_cloud.offers.link import InboundLink, Link
from fractal_cloud.offers.secret import fingerprints_of, is_sealed


def withdrawn_keys(state: LinkState, work: LinkWork) -> list[str]:
    """The withdrawn keys for which access must be revoked: valid secrets were sealed to them, or may have been."""
    if state.revoked or not state.begun:
        return []
    if state.sealed_to is None:  # from before that was noted
        return list(work.withdrawn)
    return [key for key in work.withdrawn if key in state.sealed_to]


def is_new_key_there(state: LinkState, work: LinkWork) -> bool:
    """Whether something hangs on the keys, and there is one that it was not tried with, or that cannot open it."""
    return state.seen_keys is not None and not set(fingerprints(work)) <= set(state.seen_keys)


def fingerprints(work: LinkWork) -> list[str]:
    """The keys that there are to seal to."""
    return sorted(map(fingerprint, work.keys))


def keys_after(
    state: LinkState, link: Link[Any] | None, work: LinkWork, published: Mapping[str, Scalar] | None
) -> dict[str, Any]:
    """What is remembered of keys after a half ran and published this, or nothing yet."""
    values = list((published or {}).values())
    seen = sorted(fingerprints_of(values)) if any(map(is_sealed, values)) else None
    if published is None:
        seen = fingerprints(work)
    is_void = state.revoked or (published is None and bool(state.fields))  # what was valid before is taken back
    before = [] if is_void else state.sealed_to
    if has_sealed(link):
        before = sorted({*(before or ()), *fingerprints(work)})
    return {"sealed_to": before, "seen_keys": seen}


def has_sealed(link: Link[Any] | None) -> bool:
    """Whether the run of a half sealed a secret."""
    return isinstance(link, InboundLink) and link.has_sealed


def repeats_what_was_revoked(state: LinkState, link: Link[Any] | None, published: Mapping[str, Scalar] | None) -> bool:
    """Whether a handler publishes again what was revoked, instead of a new secret."""
    was_sealed = state.revoked and bool(state.sealed_to)
    return was_sealed and not has_sealed(link) and published is not None and dict(published) == state.fields
