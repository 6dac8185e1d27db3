"""Server-side apply, in its simple form: who applied what last, so that what they no longer name can go.

There are no conflicts between managers here and no managed fields in answers; what matters to the guard is the same as
on the real server: an applied label comes back, and an object that is gone is made again.
"""

from __future__ import annotations

from typing import Any

from fractal_sandbox.kubernetes.kinds import Object
from fractal_sandbox.kubernetes.patching import merge_key, strategic_merge_patch
from fractal_sandbox.kubernetes.request import Target

__all__ = ["Applying"]


class Applying:
    """Remembers each manager's last configuration of each object. Used only under the cloud's lock."""

    def __init__(self) -> None:
        self._applied: dict[tuple[Target, str], Object] = {}

    def note(self, target: Target, manager: str, config: Object) -> None:
        """Remember a configuration that was applied."""
        self._applied[(target, manager)] = config

    def merged(self, target: Target, manager: str, item: Object, config: Object) -> Object:
        """Return the object with a configuration applied to it."""
        left = _without(item, self._applied.get((target, manager), {}), config)
        merged = strategic_merge_patch(left, {key: value for key, value in config.items() if value is not None})
        assert isinstance(merged, dict)
        return merged


def _without(value: Any, before: Any, config: Any, field: str = "") -> Any:
    """Return a value without what was applied before and is no longer named."""
    if isinstance(value, dict) and isinstance(before, dict):
        now_named = config if isinstance(config, dict) else {}
        return {
            key: _without(inner, before.get(key), now_named.get(key), key)
            for key, inner in value.items()
            if key not in before or key in now_named or key in ("apiVersion", "kind", "metadata")
        }
    if isinstance(value, list) and isinstance(before, list):
        key = merge_key(field, before)
        if key:
            named = {item.get(key) for item in config or [] if isinstance(item, dict)}
            gone = {item[key] for item in before} - named
            return [item for item in value if not (isinstance(item, dict) and item.get(key) in gone)]
    return value
