"""Conditions of a status, as controllers write them. Pure, but for the time."""

from __future__ import annotations

from fractal_sandbox.kubernetes.kinds import Object
from fractal_sandbox.kubernetes.store import now

__all__ = ["condition", "with_status"]


def condition(item: Object, kind: str, status: str, reason: str, message: str = "") -> Object:
    """Return a condition, with the time of its last change kept where it did not change."""
    for old in item.get("status", {}).get("conditions", []):
        if (old["type"], old["status"], old["reason"]) == (kind, status, reason):
            return dict(old)
    when = now()
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message or reason,
        "lastTransitionTime": when,
        **({"lastUpdateTime": when} if kind in ("Available", "Progressing") else {}),
    }


def with_status(item: Object, status: Object) -> Object:
    """Return the object with another status."""
    return {**item, "status": status}
