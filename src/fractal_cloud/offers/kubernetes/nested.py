"""Values with an inner structure, as far as they are declared: which part of an object they speak of, and how that part
is written without touching the rest. Pure.

A declared probe, volume or second container names some fields and some entries of lists. Everything else in the same
place is the server's (defaults) or somebody else's (a sidecar that was injected): it is neither compared nor written.
An entry that was declared before, and no longer is, is taken out: that it was ours is known from what was published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.rules.nested.amounts import quantity

Keys = tuple[str, ...]
Object = Mapping[str, Any]

ENTRIES: Final[Mapping[str, tuple[Keys, ...]]] = {
    "containers": (("name",),),
    "initContainers": (("name",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol"), ("name",)),
    "volumes": (("name",),),
    "volumeMounts": (("mountPath",),),
    "items": (("key",),),
    "imagePullSecrets": ((),),
}
"""Lists whose entries are found by some of their fields (the first set of fields that finds one), or by themselves."""

OPEN: Final = frozenset({"envValueFrom", "requests", "limits", "nodeSelector", "podLabels", "podAnnotations"})
"""Maps with keys of people's own: entries that are not declared are left alone."""

_PROBE: Final = frozenset({"exec", "httpGet", "tcpSocket", "grpc"})
_SOURCE: Final = frozenset({"emptyDir", "configMap", "secret", "persistentVolumeClaim", "projected", "hostPath", "csi"})
_VALUE: Final = frozenset({"secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef"})
UNIONS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), _PROBE),
    "volumes": _SOURCE,
    "envValueFrom": _VALUE,
}
"""Where an object has exactly one of several fields: by the name under which it, or the list or map of it, stands."""

DEFAULTS: Final[Mapping[str, Any]] = {
    "protocol": "TCP",
    "scheme": "HTTP",
    "initialDelaySeconds": 0,
    **dict.fromkeys(("medium", "subPath", "prefix", "host"), ""),
    **dict.fromkeys(("readOnly", "optional"), False),
}
"""What a field means that is not there: declaring it is no difference."""

_AMOUNTS: Final = frozenset({"requests", "limits", "sizeLimit"})
_ORDERED: Final = "initContainers"


def as_far_as_declared(name: str, actual: Any, declared: Any, before: Any = None) -> Any:
    """The part of an actual value that a declaration speaks of, spelled as there wherever it means the same.

    ``name``: under which it stands; ``before``: the part that was declared before, of which entries may be left.
    """
    return _part(name, actual, declared, before)


def _part(name: str, actual: Any, declared: Any, before: Any) -> Any:
    if isinstance(actual, Mapping) and isinstance(declared, Mapping) and name != "env":
        return _part_of_map(name, actual, declared, before if isinstance(before, Mapping) else {})
    if name in ENTRIES and isinstance(actual, list) and isinstance(declared, list):
        return _part_of_list(name, actual, declared, before if isinstance(before, list) else [])
    return declared if _is_same(name, actual, declared) else actual


def _part_of_map(name: str, actual: Object, declared: Object, before: Object) -> dict[str, Any]:
    named = [*declared, *(key for key in before if name in OPEN and key not in declared)]
    named += sorted(key for key in _others_of(name, declared) if key in actual and key not in named)
    found: dict[str, Any] = {}
    for key in named:
        inner = _inner(name, key)
        if key in actual:
            found[key] = _part(inner, actual[key], declared.get(key), before.get(key))
        elif key in declared and _is_same(key, None, declared[key]):
            found[key] = declared[key]
    return found


def _part_of_list(name: str, actual: list[Any], declared: list[Any], before: list[Any]) -> list[Any]:
    ours = dict(_matches(name, declared, actual))
    was = dict(_matches(name, declared, before))
    left = {at: index for index, at in _matches(name, before, actual) if at not in ours.values()}
    order = sorted(ours, key=lambda index: ours[index]) if name == _ORDERED else sorted(ours)
    found = [
        _part(name, actual[ours[index]], declared[index], before[was[index]] if index in was else None)
        for index in order
    ]
    return found + [_part(name, actual[at], before[left[at]], None) for at in sorted(left)]


def with_declared(name: str, actual: Any, declared: Any, seen: Any = None) -> Any:
    """An actual value in which what is declared stands; ``seen``: the part of it that was taken for ours."""
    if isinstance(actual, Mapping) and isinstance(declared, Mapping) and name != "env":
        return _map_with(name, actual, declared, seen if isinstance(seen, Mapping) else {})
    if name in ENTRIES and isinstance(actual, list) and isinstance(declared, list):
        return _list_with(name, actual, declared, seen if isinstance(seen, list) else [])
    return actual if actual is not None and _is_same(name, actual, declared) else declared


def _map_with(name: str, actual: Object, declared: Object, seen: Object) -> dict[str, Any]:
    dropped = _others_of(name, declared)
    if name in OPEN:
        dropped |= {key for key in seen if key not in declared}
    if name == "strategy" and declared.get("type") == "Recreate":
        dropped |= {"rollingUpdate"}
    kept = {key: value for key, value in actual.items() if key not in dropped}
    written = {
        key: with_declared(_inner(name, key), kept.get(key), value, seen.get(key))
        for key, value in declared.items()
        if key in kept or not _is_same(key, None, value) or value in ({}, [])
    }
    return {**kept, **written}


def _list_with(name: str, actual: list[Any], declared: list[Any], seen: list[Any]) -> list[Any]:
    ours = dict(_matches(name, declared, actual))
    left = {at for _, at in _matches(name, seen, actual)} - set(ours.values())
    known = dict(_matches(name, declared, seen))
    slots = sorted(ours.values())
    turn = range(len(declared)) if name == _ORDERED else sorted(ours, key=lambda index: ours[index])
    placed = dict(zip(slots, turn, strict=False))

    def written(index: int) -> Any:
        there = actual[ours[index]] if index in ours else None
        return with_declared(name, there, declared[index], seen[known[index]] if index in known else None)

    kept = [written(placed[at]) if at in placed else entry for at, entry in enumerate(actual) if at not in left]
    return [*kept, *(written(index) for index in range(len(declared)) if index not in placed.values())]


def _inner(name: str, key: str) -> str:
    """What decides about a value in a map: its key, but for maps of people's own keys, whose values are alike."""
    return name if name in OPEN else key


def _others_of(name: str, declared: Object) -> set[str]:
    """The fields that cannot stand beside those that are declared."""
    union = UNIONS.get(name, frozenset())
    return set(union - declared.keys()) if union & declared.keys() else set()


def _matches(name: str, wanted: Sequence[Any], there: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Which entry is which: pairs of indexes, each used once; what agrees in more is found first."""
    free = set(range(len(there)))
    missing = set(range(len(wanted)))
    for keys in ENTRIES[name]:
        for index in sorted(missing):
            at = next((at for at in sorted(free) if _is_entry(wanted[index], there[at], keys)), None)
            if at is not None:
                free.discard(at)
                missing.discard(index)
                yield index, at
    if name == "ports" and len(there) == 1 and free and missing:
        yield min(missing), 0  # the only one there is was changed by somebody, and is not one more


def _is_entry(wanted: Any, there: Any, keys: Keys) -> bool:
    if not keys:
        return bool(wanted == there)
    if not (isinstance(wanted, Mapping) and isinstance(there, Mapping)) or keys[0] not in wanted:
        return False
    return all(_key_of(wanted, key) == _key_of(there, key) for key in keys)


def _key_of(entry: Object, key: str) -> Any:
    value = entry.get(key, DEFAULTS.get(key))
    return value.upper() if key == "protocol" and isinstance(value, str) else value


def _is_same(name: str, actual: Any, declared: Any) -> bool:
    """Whether two values mean the same; None stands for what is not there."""
    if actual == declared and isinstance(actual, bool) == isinstance(declared, bool):
        return True
    if actual is None:
        return declared in ({}, []) or (name in DEFAULTS and _is_same("", DEFAULTS[name], declared))
    if name == "protocol" and isinstance(declared, str):
        return bool(actual == declared.upper())
    if name in _AMOUNTS and isinstance(actual, str | int) and isinstance(declared, str | int):
        return bool(quantity(actual) == quantity(declared))
    return False
