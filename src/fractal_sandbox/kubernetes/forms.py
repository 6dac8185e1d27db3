"""The forms in which a client may ask for objects: whole, their metadata only, or as a table for people.

Objects in, JSON out, converted where another version is asked for. What a table's columns are is in `tables.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fractal_sandbox.kubernetes.converting import converted, in_version
from fractal_sandbox.kubernetes.errors import not_acceptable
from fractal_sandbox.kubernetes.kinds import Kind, Object
from fractal_sandbox.kubernetes.reading import Page
from fractal_sandbox.kubernetes.tables import table

__all__ = ["Form", "form_of", "shown_list", "shown_object"]

Form = Literal["whole", "metadata", "table"]


def form_of(accept: str, *, is_list: bool) -> Form:
    """Return the first form in an `Accept` header that this server can give; whole objects where none is named."""
    if not accept:
        return "whole"
    for media_range in accept.split(","):
        media, *parameters = (part.strip() for part in media_range.split(";"))
        words = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if media not in ("application/json", "application/*", "*/*", ""):
            continue
        if words.get("as") == "Table" and words.get("v") in ("v1", None):
            return "table"
        if words.get("as") == ("PartialObjectMetadataList" if is_list else "PartialObjectMetadata"):
            return "metadata"
        if "as" not in words:
            return "whole"
    raise not_acceptable("406: Not Acceptable")


def shown_object(kind: Kind, item: Object, form: Form, query: Mapping[str, str]) -> Object:
    if item["kind"] == "Status":
        return item
    item = in_version(kind, item)
    if form == "table":
        return table(kind, [item], {"resourceVersion": item["metadata"].get("resourceVersion", "")}, query)
    return _metadata_only(item) if form == "metadata" else item


def shown_list(kind: Kind, page: Page, form: Form, query: Mapping[str, str]) -> Object:
    items = converted(kind, page.items)
    if form == "table":
        return table(kind, items, page.metadata, query)
    if form == "metadata":
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": page.metadata,
            "items": [_metadata_only(item) for item in items],
        }
    if not kind.is_custom:  # the items of typed lists do not repeat what the list says
        items = [{key: value for key, value in item.items() if key not in ("apiVersion", "kind")} for item in items]
    return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": page.metadata, "items": items}


def _metadata_only(item: Object) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}
