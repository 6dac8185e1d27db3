"""From a manifest, as people and `helm template` write it, to the type and the parameters of a component. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.offers.kubernetes.any_kind.kind_facts import type_name
from fractal_cloud.offers.kubernetes.tags import MANAGED_BY, OWNER, RECONCILE

_OF_THE_PROTOCOL: Final[Mapping[str, tuple[str, ...]]] = {"labels": (MANAGED_BY, OWNER), "annotations": (RECONCILE,)}
_DROPPED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


class ManifestError(ValueError):
    """A document is no manifest of one object; the text says why."""


def parts_of(manifest: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The type of the component that a manifest becomes, and its parameters.

    Its name and namespace become parameters; of its other metadata labels and annotations stay, without those by which
    it would say who manages it. Status and nulls are dropped.
    """
    named = f"{manifest.get('apiVersion')}/{manifest.get('kind')}"
    if type_name(named) is None:
        raise ManifestError(f"it is no manifest: apiVersion and kind say {named!r}, not like apps/v1 and Deployment")
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(name, str) or not name:
        raise ManifestError(f"the {manifest['kind']} has no metadata.name: give it one (generateName is not enough)")
    found: dict[str, Any] = {"name": name}
    if metadata.get("namespace"):
        found["namespace"] = metadata["namespace"]
    kept = {part: _without(metadata.get(part), keys) for part, keys in _OF_THE_PROTOCOL.items()}
    if any(kept.values()):
        found["metadata"] = {part: entries for part, entries in kept.items() if entries}
    found |= {key: _said(value) for key, value in manifest.items() if key not in _DROPPED and value is not None}
    return named, found


def _without(entries: Any, keys: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, value in entries.items() if key not in keys} if isinstance(entries, Mapping) else {}


def _said(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _said(one) for key, one in value.items() if one is not None}
    return [_said(one) for one in value] if isinstance(value, list) else value
