"""From one version of a custom kind to another, as its definition says: by nothing but the name, or by a webhook.

A webhook is called as a real server calls it: over HTTPS, its certificate checked against the definition's bundle.
Where it does not answer as it should, nothing is shown and nothing is written. What a version has no field for goes.
"""

from __future__ import annotations

import base64
import json
import ssl
import uuid
from collections.abc import Sequence
from contextlib import closing
from http.client import HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from fractal_sandbox.kubernetes.errors import ApiError
from fractal_sandbox.kubernetes.kinds import Kind, Object
from fractal_sandbox.kubernetes.structure import held_against

__all__ = ["converted", "in_version"]

_SECONDS: Final = 10
_FROM_WEBHOOK: Final = ("labels", "annotations")
"""Of metadata, a webhook may change these."""


def in_version(kind: Kind, item: Object) -> Object:
    """Return one object in a kind's version."""
    return converted(kind, [item])[0]


def converted(kind: Kind, items: Sequence[Object]) -> list[Object]:
    """Return objects in a kind's version; raises the refusal where a webhook does not convert them."""
    others = [item for item in items if item["apiVersion"] != kind.api_version]
    if not others:
        return list(items)
    if kind.conversion.get("strategy") == "Webhook":
        made = iter(_asked(kind, others))
    else:
        made = iter([{**item, "apiVersion": kind.api_version} for item in others])
    return [item if item["apiVersion"] == kind.api_version else _pruned(kind, next(made)) for item in items]


def _pruned(kind: Kind, item: Object) -> Object:
    return held_against(kind.node, item, is_custom=False)[0]


def _asked(kind: Kind, items: list[Object]) -> list[Object]:
    """Ask the definition's webhook, once for all."""
    uid = str(uuid.uuid4())
    asked = {"uid": uid, "desiredAPIVersion": kind.api_version, "objects": items}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": asked}
    try:
        said = _answer(kind.conversion["webhook"]["clientConfig"], review).get("response") or {}
        if said.get("uid") != uid:
            raise ValueError(f"invalid response: expected uid {uid}")
        result = said.get("result") or {}
        if result.get("status") != "Success":
            raise ValueError(result.get("message") or "not converted")
        found: list[Object] = said.get("convertedObjects") or []
        if len(found) != len(items):
            raise ValueError(f"expected {len(items)} converted objects, got {len(found)}")
        return [_restored(kind, before, after) for before, after in zip(items, found, strict=True)]
    except (OSError, HTTPException, KeyError, ValueError) as fault:
        name = f"{kind.group}/{items[0]['apiVersion'].rpartition('/')[2]}, Kind={kind.kind}"
        raise ApiError(500, "", f"conversion webhook for {name} failed: {fault}") from fault


def _answer(where: Object, review: Object) -> Any:
    bundle = base64.b64decode(where.get("caBundle", "")).decode()
    url = where.get("url", "")
    if not url:
        raise ValueError("a cluster without pods has no service that would answer")
    place = urlsplit(url)
    trusted = ssl.create_default_context(cadata=bundle)
    with closing(HTTPSConnection(str(place.hostname), place.port, timeout=_SECONDS, context=trusted)) as connection:
        connection.request("POST", place.path, json.dumps(review), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"Post {url!r}: {answer.status}")
        return json.loads(answer.read())


def _restored(kind: Kind, before: Object, after: Object) -> Object:
    """What a webhook must not change stays: identity and all metadata but labels and annotations."""
    if after.get("apiVersion") != kind.api_version or after.get("kind") != before["kind"]:
        raise ValueError(f"invalid converted object: it is no {kind.kind} of {kind.api_version}")
    metadata = {name: value for name, value in before["metadata"].items() if name not in _FROM_WEBHOOK}
    changed = after.get("metadata") or {}
    kept = {name: changed[name] for name in _FROM_WEBHOOK if changed.get(name)}
    return {**after, "metadata": {**metadata, **kept}}
