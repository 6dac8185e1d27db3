"""The container of a workload and its environment, in which declared values, links and other people meet.

Three kinds of entries stand in ``env``: plain values that are declared (``env``), entries that links brought (their
names stand in the annotation ``fractal.cloud/linked-env`` of the pod template: the mark of L17), and values that
somebody takes from a secret, a config map or the pod itself. Only the first are compared with the declaration; only
the first two are ever written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import StringConstraints

from fractal_cloud.offers.kubernetes.kinds import Object
from fractal_cloud.offers.offer import LinkFields

MARK: Final = "fractal.cloud/linked-env"
LINKED: Final = "linkedEnv"
_NOT_SHOWN: Final = frozenset({"secretName", "secretKeys", "received"})

EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_.-][A-Za-z0-9_.-]*$")]
Entry = dict[str, Any]
"""One entry of ``env``: ``{"name": …, "value": …}`` or ``{"name": …, "valueFrom": {"secretKeyRef": {…}}}``."""


def container_of(item: Object) -> Object:
    """Our container among those of a workload: the one called ``main``, or like the workload, or the first."""
    containers: list[Object] = item["spec"]["template"]["spec"]["containers"]
    for name in ("main", item["metadata"]["name"]):
        for container in containers:
            if container.get("name") == name:
                return container
    return containers[0]


def plain_env(container: Object, without: Collection[str] = ()) -> dict[str, str]:
    """The plain values of the environment, but for those that links brought."""
    entries = container.get("env") or []
    return {
        one["name"]: one.get("value", "") for one in entries if "valueFrom" not in one and one["name"] not in without
    }


def with_env(container: Object, declared: Mapping[str, str], keep: Collection[str] = ()) -> list[Entry]:
    """The environment with these plain values: what links brought and what is taken from elsewhere stays as it is.

    Entries keep their order, because a value may speak of one before it.
    """
    kept: list[Entry] = []
    for entry in container.get("env") or []:
        name = entry["name"]
        if name in declared and name not in keep:
            kept.append({"name": name, "value": declared[name]})
        elif "valueFrom" in entry or name in keep:
            kept.append(entry)
    there = {entry["name"] for entry in kept}
    return kept + [{"name": name, "value": value} for name, value in declared.items() if name not in there]


def linked_names(item: Object) -> frozenset[str]:
    """The names of the entries that links brought."""
    annotations = (item["spec"]["template"].get("metadata") or {}).get("annotations") or {}
    return frozenset(name for name in annotations.get(MARK, "").split(",") if name)


def env_of_links(links: Sequence[LinkFields]) -> dict[str, str]:
    """What links bring into a container, flat: each published key as a variable named after the target.

    ``=text`` is a plain value, ``secret:name:key`` one that is taken from a Secret.
    """
    found: dict[str, str] = {}
    for link in links:
        prefix = _upper(link.target_id)
        secret = str(link.fields.get("secretName", "")).rpartition("/")[2]
        for key in filter(None, str(link.fields.get("secretKeys", "")).split(",")):
            found[f"{prefix}_{_upper(key)}"] = f"secret:{secret}:{key}"
        for key, value in link.fields.items():
            if key not in _NOT_SHOWN:
                found[f"{prefix}_{_upper(key)}"] = f"={value}"
    return dict(sorted(found.items()))


def _upper(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])|-", lambda found: f"_{found[1] or ''}", name).upper()


def flat_linked(item: Object) -> dict[str, str]:
    """The entries that links brought, as they stand in the container, flat."""
    names = linked_names(item)
    return dict(
        sorted((one["name"], _flat(one)) for one in container_of(item).get("env") or [] if one["name"] in names)
    )


def _flat(entry: Entry) -> str:
    reference = (entry.get("valueFrom") or {}).get("secretKeyRef")
    return f"secret:{reference['name']}:{reference['key']}" if reference else f"={entry.get('value', '')}"


def entries_of(flat: Mapping[str, str]) -> list[Entry]:
    """Flat entries as a container has them."""
    entries: list[Entry] = []
    for name, text in flat.items():
        if text.startswith("="):
            entries.append({"name": name, "value": text[1:]})
        else:
            _, secret, key = text.split(":", 2)
            entries.append({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
    return entries


def put_linked(item: Object, entries: Collection[Entry]) -> None:
    """Make these the entries that links brought; nothing is touched where there are none and were none."""
    before = linked_names(item)
    if not entries and not before:
        return
    container = container_of(item)
    names = {entry["name"] for entry in entries}
    others = [entry for entry in container.get("env") or [] if entry["name"] not in before | names]
    container["env"] = [*others, *entries]
    metadata = item["spec"]["template"].setdefault("metadata", {})
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != MARK}
    metadata["annotations"] = {**annotations, **({MARK: ",".join(sorted(names))} if names else {})}
