"""Who set a field of an object last, as far as the cluster records it: from its ``managedFields``. Pure.

A cluster records who owns a field that is there. Who removed one is nowhere to be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from fractal_cloud.offers.history import Author, Record
from fractal_cloud.offers.kubernetes.kinds import Object

MANAGED_FIELDS: Final = Record("managedFields")
OURS: Final = "fractal-cloud"
"""What a cluster calls the agent: the first word of the user agent it signs its calls with."""
_AUTOSCALERS: Final = frozenset({"kube-controller-manager", "horizontal-pod-autoscaler", "keda-operator"})
_REPLICAS: Final = "/spec/replicas"
_SETS_BACK: Final = "an admission policy of the cluster, which changes what is written"


def setter(item: Object, paths: Iterable[str]) -> Author | None:
    """Who set the fields at these JSON pointers last; None where the cluster does not record it.

    A value that differs although the last to write it was the agent was changed on its way: by an admission policy.
    """
    wanted = list(paths)
    entries = item["metadata"].get("managedFields") or []
    owners = [entry for entry in entries if any(_owns(entry, item, path) for path in wanted)]
    if not owners:
        return None
    last = max(owners, key=lambda entry: str(entry.get("time") or ""))
    manager = str(last.get("manager") or "")
    if not manager:
        return None
    if manager.startswith(OURS):
        return Author(_SETS_BACK, is_agent=True)
    by = f"an autoscaler ({manager})" if manager in _AUTOSCALERS and _REPLICAS in wanted else manager
    return Author(by, manager, _time(last.get("time")), str(last.get("operation") or ""))


def _time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return None


def _owns(entry: Mapping[str, Any], item: Object, pointer: str) -> bool:
    """Whether an entry owns the field at a pointer, or the whole of what it is in."""
    here = entry.get("fieldsV1") or {}
    if not here:
        return False
    value: Any = item
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not _inner(here):
            return True
        if isinstance(value, list):
            value = value[int(name)] if name.isdigit() and int(name) < len(value) else None
            keys = [key for key in here if _is_key_of(key, value)]
        else:
            value = value.get(name) if isinstance(value, dict) else None
            keys = [key for key in here if key == f"f:{name}"]
        if not keys:
            return False
        here = here[keys[0]]
    return True


def _inner(fields: Mapping[str, Any]) -> bool:
    """Whether something inside is owned apart; ``.`` stands for the thing itself."""
    return any(key != "." for key in fields)


def _is_key_of(key: str, value: Any) -> bool:
    """Whether a key of ``fieldsV1`` names this item of a list: by fields of it (``k:``), or by itself (``v:``)."""
    kind, _, text = key.partition(":")
    try:
        named = json.loads(text) if kind in ("k", "v") else None
    except ValueError:
        return False
    if kind == "v":
        return bool(named == value)
    if not (named and isinstance(named, dict) and isinstance(value, dict)):
        return False
    return all(value.get(name) == one for name, one in named.items())
