"""Who set a field of an object last, as far as the cluster records it: from its ``managedFields``. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fractal_cloud.offers.kubernetes.kinds import Object

OURS: Final = "fractal-cloud"
"""What a cluster calls the agent: the first word of the user agent it signs its calls with."""
_AUTOSCALERS: Final = frozenset({"kube-controller-manager", "horizontal-pod-autoscaler", "keda-operator"})
_REPLICAS: Final = "/spec/replicas"


def setter(item: Object, paths: Iterable[str]) -> str:
    """Who set the fields at these JSON pointers last, in words; empty where the cluster does not record it.

    A value that differs although the last to write it was the agent was changed on its way: by an admission policy.
    """
    wanted = list(paths)
    entries = item["metadata"].get("managedFields") or []
    owners = [entry for entry in entries if any(_owns(entry, item, path) for path in wanted)]
    if not owners:
        return ""
    manager = str(max(owners, key=lambda entry: str(entry.get("time") or "")).get("manager") or "")
    if manager.startswith(OURS):
        return "an admission policy of the cluster, which changes what is written"
    if manager in _AUTOSCALERS and _REPLICAS in wanted:
        return f"an autoscaler ({manager})"
    return repr(manager) if manager else ""


def _owns(entry: Mapping[str, Any], item: Object, pointer: str) -> bool:
    here = entry.get("fieldsV1") or {}
    value: Any = item
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not here:
            return True  # the whole of what it is in
        if isinstance(value, list):
            value = value[int(name)] if name.isdigit() and int(name) < len(value) else {}
            known = value.get("name") if isinstance(value, dict) else None
            keys = [key for key in here if key.startswith("k:") and _name_in(key) == known]
        else:
            value = value.get(name) if isinstance(value, dict) else None
            keys = [key for key in here if key == f"f:{name}"]
        if not keys:
            return False
        here = here[keys[0]]
    return True


def _name_in(key: str) -> Any:
    try:
        found = json.loads(key[2:])
    except ValueError:
        return None
    return found.get("name") if isinstance(found, dict) else None
