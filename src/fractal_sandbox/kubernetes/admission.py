"""What a cluster does to writes before it stores them: mutating admission policies, and quotas. Pure."""

from __future__ import annotations

import copy
from typing import Any

from fractal_sandbox.kubernetes.kinds import Kind, Object

__all__ = ["Admission"]


class Admission:
    """Mutating admission policies (fields that every write of a kind ends up with, whatever it says), and quotas."""

    def __init__(self) -> None:
        self._overrides: dict[str, dict[str, Any]] = {}
        self._quotas: dict[tuple[str, str], int] = {}

    def override(self, kind: str, **fields: Any) -> None:
        """Have every write of a kind set these fields of its spec: `override("Deployment", replicas=1)`."""
        self._overrides.setdefault(kind, {}).update(fields)

    def reset(self) -> None:
        """Take every policy away."""
        self._overrides.clear()
        self._quotas.clear()

    def limit(self, kind: str, most: int, namespace: str = "default") -> None:
        """Allow at most so many objects of a kind in a namespace, as a ResourceQuota called `small` does."""
        self._quotas[kind, namespace] = most

    def over_quota(self, kind: Kind, namespace: str, used: int) -> str:
        """Return why one more is refused, in the words of a server; nothing where it is not."""
        most = self._quotas.get((kind.kind, namespace))
        if most is None or used < most:
            return ""
        what = f"count/{kind.resource}" if kind.group else kind.plural
        return f"exceeded quota: small, requested: {what}=1, used: {what}={used}, limited: {what}={most}"

    def admitted(self, kind: Kind, item: Object) -> Object:
        """Return the object as the policies leave it."""
        fields = self._overrides.get(kind.kind)
        return {**item, "spec": {**item["spec"], **copy.deepcopy(fields)}} if fields else item
