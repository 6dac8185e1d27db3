"""Any kind of a cluster by its own name; the types that have classes stand in the categories (``custom_workloads``).

from fractal_cloud import kubernetes

nightly = kubernetes.resource("batch/v1/CronJob", "nightly", namespace="shop", spec={...})
config = kubernetes.manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, ...})
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fractal_cloud.model.generic_component import GenericComponent, declared
from fractal_cloud.model.identity import is_id

__all__ = ["manifest", "resource"]

_TYPE: Final = re.compile(r"([a-z0-9.-]+/)?v[a-z0-9]+/[A-Z][A-Za-z0-9]*\Z")
_NO_ID: Final = re.compile(r"[^a-z0-9]+")


def resource(
    component_type: str, /, id: str, *, parameters: Mapping[str, object] | None = None, **given: object
) -> GenericComponent:
    """Declare an object by its kind, ``apiVersion/Kind``, with the fields of its manifest.

    ``given``: ``name``, ``namespace``, ``metadata`` (labels and annotations), ``spec`` and so on, and what every
    component has (``dependencies``, ``ignore_drift``, ``import_only``, …). ``parameters``: the same for names that
    cannot be written so.
    """
    if not _TYPE.match(component_type):
        raise ValueError(f"{component_type!r} is no kind: they look like 'batch/v1/CronJob' or 'v1/ConfigMap'")
    return declared(component_type, "kubernetes", id, given, parameters or {})


def manifest(document: Mapping[str, object], /, id: str = "", **given: object) -> GenericComponent:
    """Declare an object by its manifest. ``id``: the component's; without it, its kind and its name.

    ``given``: what a manifest does not say: ``cluster``, and what every component has (``dependencies``, …).
    """
    from fractal_cloud.offers.kubernetes.any_kind.manifests import parts_of

    component_type, parameters = parts_of(document)
    kind = component_type.rpartition("/")[2]
    found = id or _NO_ID.sub("-", f"{kind}-{parameters.get('name', '')}".casefold()).strip("-")[:63].strip("-")
    if not is_id(found):
        raise ValueError(f"the {kind} has no name of which a component's id could be made: give id=")
    return declared(component_type, "kubernetes", found, given, parameters)
