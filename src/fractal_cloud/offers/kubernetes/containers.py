"""The container of a workload and its environment, in which declared values, links and other people meet.

Three kinds of entries stand in ``env``: plain values that are declared (``env``), entries that links brought (their
names stand in the annotation ``fractal.cloud/linked-env`` of the pod template: the mark of L17), and values that
somebody takes from a secret, a config map or the pod itself. Only the first are compared with the declaration; only
the first two are ever written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.offers.kubernetes.container_model import MAIN
from fractal_cloud.offers.kubernetes.kinds import Object
from fractal_cloud.offers.kubernetes.nested import with_declared
from fractal_cloud.offers.offer import LinkFields

MARK: Final = "fractal.cloud/linked-env"
LINKED: Final = "linkedEnv"
_FROM_SECRET: Final = "secret:"
_NOT_SHOWN: Final = frozenset({"secretName", "secretKeys", "received"})

Entry = dict[str, Any]
"""One entry of ``env``: ``{"name": …, "value": …}`` or ``{"name": …, "valueFrom": {"secretKeyRef": {…}}}``."""


def container_of(item: Object, declared: str | None = None) -> Object:
    """Our container among those of a workload: the one of the declared name, else the one called ``main``, or like the
    workload, or the first.
    """
    return main_container(item["spec"]["template"], item["metadata"]["name"], declared)


def main_container(template: Object, workload: str, declared: str | None = None) -> Object:
    """The same in a pod template, wherever it stands; ``workload``: what the object that holds it is called."""
    containers: list[Object] = template["spec"]["containers"]
    for name in (declared, MAIN, workload):
        for container in containers:
            if name is not None and container.get("name") == name:
                return container
    return containers[0]


PLAIN_FIELDS: Final = (
    *("name", "image", "command", "args", "workingDir", "ports", "envFrom"),
    *("livenessProbe", "readinessProbe", "startupProbe"),
    *("securityContext", "volumeMounts", "imagePullPolicy", "restartPolicy"),
)
"""Fields of a container that are declared as they stand there."""


def declarable(container: Object, linked: Collection[str] = ()) -> dict[str, Any]:
    """A container in the form in which one is declared; without what links brought."""
    resources = container.get("resources") or {}
    taken = {one["name"]: one["valueFrom"] for one in container.get("env") or [] if "valueFrom" in one}
    return {
        **{name: container[name] for name in PLAIN_FIELDS if container.get(name) is not None},
        "requests": resources.get("requests") or {},
        "limits": resources.get("limits") or {},
        "env": plain_env(container, without=linked),
        "envValueFrom": {name: source for name, source in taken.items() if name not in linked},
    }


def put_field(container: Object, name: str, value: Any, seen: Any = None, linked: Collection[str] = ()) -> None:
    """Write one declared field into a container; ``seen``: the part of it that was taken for ours."""
    if name in ("requests", "limits"):
        resources = container.get("resources") or {}
        container["resources"] = {**resources, name: with_declared(name, resources.get(name) or {}, value, seen)}
    elif name == "env":
        container["env"] = with_env(container, value, keep=linked)
    elif name == "envValueFrom":
        container["env"] = _with_values_from(container, value, seen or {}, linked)
    else:
        container[name] = with_declared(name, container.get(name) or _nothing_like(value), value, seen)


def _nothing_like(value: Any) -> Any:
    return {} if isinstance(value, Mapping) else [] if isinstance(value, list) else None


def _with_values_from(
    container: Object, declared: Mapping[str, Any], seen: Mapping[str, Any], linked: Collection[str]
) -> list[Entry]:
    """The environment with these values taken from elsewhere, without those that were ours and are no longer.

    New ones come first: plain values may speak of them, as ``$(POD_IP)``.
    """
    entries: list[Entry] = []
    for entry in container.get("env") or []:
        name = entry["name"]
        if name in declared and name not in linked:
            source = with_declared("envValueFrom", entry.get("valueFrom") or {}, {**declared[name]}, seen.get(name))
            entries.append({"name": name, "valueFrom": source})
        elif name in linked or name not in seen or "valueFrom" not in entry:
            entries.append(entry)
    there = {entry["name"] for entry in entries}
    new = [{"name": name, "valueFrom": source} for name, source in declared.items() if name not in there]
    return [*new, *entries]


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
    return linked_in(item["spec"]["template"])


def linked_in(template: Mapping[str, Any]) -> frozenset[str]:
    """The same in a pod template, wherever it stands."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    return frozenset(name for name in annotations.get(MARK, "").split(",") if name)


def env_of_links(links: Sequence[LinkFields]) -> dict[str, str]:
    """What links bring into a container, flat: each published key as a variable named after the target.

    A plain value stands as it is, ``secret:name:key`` for one that is taken from a Secret; a plain value that could be
    mistaken for that has a ``=`` before it.
    """
    found: dict[str, str] = {}
    for link in links:
        prefix = _upper(link.target_id)
        secret = str(link.fields.get("secretName", "")).rpartition("/")[2]
        for key in filter(None, str(link.fields.get("secretKeys", "")).split(",")):
            found[f"{prefix}_{_upper(key)}"] = f"{_FROM_SECRET}{secret}:{key}"
        for key, value in link.fields.items():
            if key not in _NOT_SHOWN:
                found[f"{prefix}_{_upper(key)}"] = _plain(value)
    return dict(sorted(found.items()))


def _plain(value: object) -> str:
    text = str(value)
    return f"={text}" if text.startswith((_FROM_SECRET, "=")) else text


def _upper(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])|-", lambda found: f"_{found[1] or ''}", name).upper()


def flat_linked(item: Object) -> dict[str, str]:
    """The entries that links brought, as they stand in the container, flat."""
    return flat_in(item["spec"]["template"])


def flat_in(template: Mapping[str, Any]) -> dict[str, str]:
    """The same in a pod template, wherever it stands."""
    names = linked_in(template)
    containers = template["spec"]["containers"]
    entries = (one for container in containers for one in container.get("env") or [])
    return dict(sorted((one["name"], _flat(one)) for one in entries if one["name"] in names)) if names else {}


def _flat(entry: Entry) -> str:
    reference = (entry.get("valueFrom") or {}).get("secretKeyRef")
    return f"{_FROM_SECRET}{reference['name']}:{reference['key']}" if reference else _plain(entry.get("value", ""))


def entries_of(flat: Mapping[str, str]) -> list[Entry]:
    """Flat entries as a container has them."""
    entries: list[Entry] = []
    for name, text in flat.items():
        if text.startswith(_FROM_SECRET):
            _, secret, key = text.split(":", 2)
            entries.append({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
        else:
            entries.append({"name": name, "value": text.removeprefix("=")})
    return entries


def put_linked(item: Object, entries: Collection[Entry], declared: str | None = None) -> None:
    """Make these the entries that links brought; nothing is touched where there are none and were none."""
    put_linked_in(item["spec"]["template"], entries, container_of(item, declared))


def put_linked_in(template: Object, entries: Collection[Entry], container: Object) -> None:
    """The same in a pod template, wherever it stands; ``container``: the one of it that gets them."""
    before = linked_in(template)
    if not entries and not before:
        return
    names = {entry["name"] for entry in entries}
    others = [entry for entry in container.get("env") or [] if entry["name"] not in before | names]
    container["env"] = [*others, *entries]
    metadata = template.setdefault("metadata", {})
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != MARK}
    metadata["annotations"] = {**annotations, **({MARK: ",".join(sorted(names))} if names else {})}
