"""Objects that links make in a namespace: each bears the link's mark, by which it is found, checked and removed (L17).

They are no components, so they bear none of the three tags. An object of the same name without the mark is somebody
else's, and is left alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from copy import deepcopy
from typing import Any, Final

from fractal_cloud.model.errors import Conflict
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.kinds import Object, ObjectKind
from fractal_cloud.offers.kubernetes.patching import difference
from fractal_cloud.offers.kubernetes.tags import escaped
from fractal_cloud.offers.link import Link

LINK: Final = "fractal.cloud/link"
SECRET_PREFIX: Final = "fractal-link-"
"""How the names of links' Secrets begin: by this the cluster distinguishes them from everybody else's (A7)."""
_LONGEST_NAME: Final = 63


def label_of(mark: str) -> str:
    """The mark as a label can hold it; the whole mark stands in the annotation of the same name."""
    return hashlib.sha256(mark.encode()).hexdigest()[:20]


def name_of(link: Link[Any], suffix: str = "", prefix: str = "") -> str:
    """The name of what a link makes: readable, the same for every try, and nobody else's by chance."""
    tail = f"-{label_of(link.mark)[:8]}{suffix}"
    return f"{prefix}{link.own}-{link.other.replace('/', '-')}"[: _LONGEST_NAME - len(tail)].rstrip("-") + tail


def bring(cloud: Kubernetes, kind: ObjectKind, name: str, mark: str, content: Object) -> None:
    """Make the object, or bring it to that content; only fields that are given are compared and written."""
    there = cloud.find(kind, name)
    if there is None:
        metadata = {"name": name, "namespace": cloud.namespace, **_marks(mark)}
        cloud.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content})
        return
    check_ours(there, kind, mark)
    operations = difference(there, {**deepcopy(there), **content})
    if operations:
        cloud.patch(kind, name, [*_guard(there, mark), *operations])


def remove(cloud: Kubernetes, kind: ObjectKind, mark: str, keep: Collection[str] = ()) -> None:
    """Delete what the link made of a kind, but for the names to keep; what is gone already is success."""
    for item in marked(cloud, kind, [mark]):
        metadata = item["metadata"]
        if metadata["name"] not in keep:
            cloud.delete(kind, metadata["name"], metadata["uid"], metadata["resourceVersion"])


def marked(cloud: Kubernetes, kind: ObjectKind, marks: Iterable[str]) -> list[Object]:
    """What links made of a kind in the namespace; one mark is asked for by name, many by one list."""
    wanted = list(marks)
    selector = f"{LINK}={label_of(wanted[0])}" if len(wanted) == 1 else LINK
    found = cloud.list(kind, selector)
    return [item for item in found if _mark_of(item) in wanted]


def mark_of(item: Object) -> str:
    """The mark an object bears; empty where it bears none."""
    return _mark_of(item)


def _mark_of(item: Object) -> str:
    return str((item["metadata"].get("annotations") or {}).get(LINK, ""))


def _marks(mark: str) -> Object:
    return {"labels": {LINK: label_of(mark)}, "annotations": {LINK: mark}}


def _guard(item: Object, mark: str) -> list[Object]:
    expected = {"/metadata/uid": item["metadata"]["uid"], f"/metadata/labels/{escaped(LINK)}": label_of(mark)}
    return [{"op": "test", "path": path, "value": value} for path, value in expected.items()]


def check_ours(item: Object, kind: ObjectKind, mark: str) -> None:
    """Raise ``Conflict`` where an object of that name was not made by this link."""
    if (item["metadata"].get("labels") or {}).get(LINK) != label_of(mark):
        name = item["metadata"]["name"]
        raise Conflict(f"{kind.kind} {name!r} is there and was not made by this link: rename or delete it")
