"""What links add to a component: when a half has something to do, and what people read of it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from fractal_cloud.model.link import LinkStates, LinkWork
from fractal_cloud.model.status import Status
from fractal_cloud.model.visible_text import visible

_MAY_FAIL = frozenset({Status.ACTIVE, Status.MUTATING, Status.INSTANTIATING})


def digest(handler: str, link: LinkWork, own: Sequence[Any]) -> str:
    """Stands for everything one half of a link is made from: where it is the same, there is nothing to do (L5).

    ``own``: what the half sees of its own side. The keys of the other side are not in it: see ``LinkState.seen_keys``.
    """
    made_from = (handler, *own, link.type, link.settings, link.outputs, link.published)
    text = json.dumps(made_from, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def link_status(status: Status, links: LinkStates) -> Status:
    """A source whose link cannot be carried out as it is declared is ``Failed`` (L7)."""
    failed = any(state.failed for state in links.outbound.values())
    return Status.FAILED if failed and status in _MAY_FAIL else status


def link_message(message: str, links: LinkStates) -> str:
    """A component's message, with the links that still wait and why; what a cloud said in it is escaped (A6)."""
    waiting = links.waiting()
    if not waiting:
        return visible(message)
    shown = "; ".join(f"link {text}" for text in waiting[:3])
    more = f"; and {len(waiting) - 3} more links wait" if len(waiting) > 3 else ""
    return visible(f"{message}; {shown}{more}" if message else f"{shown}{more}")
