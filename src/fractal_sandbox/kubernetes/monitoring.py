"""Between Kubernetes calls and the safety monitor: what a write would do to the tags and to the rest of an object.

Labels and annotations are given to the monitor under the neutral names of the protocol (SPEC T8), all others under
names of their own, so that touching them shows. What is forbidden is decided in the sandbox's own `monitor_rules.py`.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qsl

from fractal_sandbox.calls import Actor, Call, Origin
from fractal_sandbox.http_server import Environ
from fractal_sandbox.kubernetes import AGENT_TOKEN
from fractal_sandbox.kubernetes.errors import ApiError
from fractal_sandbox.kubernetes.kinds import Kind, Object
from fractal_sandbox.kubernetes.request import KubeRequest
from fractal_sandbox.kubernetes.writing import Plan, Writing
from fractal_sandbox.monitor import Creation, Finding, Monitor, Touch
from fractal_sandbox.monitor_rules import LINK, MANAGED_BY, OWNER, RECONCILE, Change

__all__ = ["Watching", "tags_of"]

_NEUTRAL: Final = {
    ("labels", "app.kubernetes.io/managed-by"): MANAGED_BY,
    ("labels", "fractal.cloud/owner"): OWNER,
    ("annotations", "fractal.cloud/reconcile"): RECONCILE,
    ("annotations", "fractal.cloud/link"): LINK,
}
_UID: Final = "/metadata/uid"
_REVIEW: Final = re.compile(r"/apis/(authorization|authentication)\.k8s\.io/v1(/namespaces/[^/]+)?/[a-z]+reviews")
# Labels and annotations that tests declare: parameters like any other field, and not somebody else's.
DECLARED: Final = ("declared.example.com/", "pod-security.kubernetes.io/")
# What a server itself writes on an object of a kind whenever somebody changes it.
_OF_THE_SERVER: Final = frozenset({"annotations:deprecated.daemonset.template.generation"})
# Metadata that every write changes, or that nobody but the server does.
_NO_CHANGE: Final = ("labels", "annotations", "resourceVersion", "generation", "managedFields")


def tags_of(item: Object) -> dict[str, str]:
    """Return the tags of an object under the monitor's names."""
    return {
        _NEUTRAL.get((carrier, key), f"{carrier}:{key}"): str(value)
        for carrier in ("labels", "annotations")
        for key, value in (item["metadata"].get(carrier) or {}).items()
    }


def reference(kind: Kind, item: Object) -> str:
    """Return the monitor's name of an object; one made anew under the same name is another."""
    metadata = item["metadata"]
    return f"{kind.resource}/{metadata.get('namespace', '')}/{metadata['name']}/{metadata.get('uid', '')}"


class Watching:
    """Reports the agent's calls to the monitor. Runs under the cloud's lock."""

    def __init__(self, monitor: Monitor, writing: Writing) -> None:
        self._monitor = monitor
        self._writing = writing

    def check(self, request: KubeRequest, plan: Plan) -> list[Finding]:
        """Have a write checked right before it is carried out; return the races it would lose."""
        if request.call.actor != "agent" or not request.call.is_write:
            return []
        return self._monitor.check(request.call, _touches(request, plan), _creation(plan))

    def check_refused(self, request: KubeRequest) -> None:
        """Have a write checked that the server refused: had it no precondition, would the agent have been wrong?"""
        if request.call.actor != "agent" or not request.call.is_write:
            return
        try:
            plan = self._writing.plan(_without_preconditions(request))
        except (ApiError, ValueError):
            return
        if _is_about_another(request, plan):
            return
        self._monitor.check(request.call, _touches(request, plan), _creation(plan))

    def report_unknown(self, environ: Environ, path: str, actor: Actor) -> None:
        """Report a write that names no kind, verb or part that is served: nobody knows what it would do.

        Reviews are created, and yet keep nothing: they ask who may do what.
        """
        method = environ["REQUEST_METHOD"]
        query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
        if actor != "agent" or method in ("GET", "HEAD", "OPTIONS") or query.get("dryRun") == "All":
            return
        if method == "POST" and _REVIEW.fullmatch(path):
            return
        origin = Origin.from_user_agent(environ.get("HTTP_USER_AGENT", ""))
        asked = f"{method} {path}"
        call = Call(actor, AGENT_TOKEN, "unknown", asked, "", query, is_write=True, origin=origin, user_agent="")
        self._monitor.unclassified(call, f"the sandbox has no {asked}")

    def note(self, call: Call, kind: Kind, items: list[Object]) -> None:
        """Remember the tags that an answer shows the agent."""
        if call.actor != "agent":
            return
        for item in items:
            if "metadata" in item and "name" in item["metadata"]:
                self._monitor.saw(call, reference(kind, item), tags_of(item))


def _is_about_another(request: KubeRequest, plan: Plan) -> bool:
    """Return whether a write names by uid an object that is gone: it was never about what has that name now."""
    content: Any = request.content() if request.body else {}
    if isinstance(content, list):
        meant = next((one["value"] for one in content if one.get("op") == "test" and one["path"] == _UID), None)
    elif request.verb == "delete":
        meant = (content.get("preconditions") or {}).get("uid")
    else:
        meant = (content.get("metadata") or {}).get("uid")
    return meant is not None and plan.before is not None and meant != plan.before["metadata"]["uid"]


def _creation(plan: Plan) -> Creation | None:
    if plan.verb != "create" or plan.after is None:
        return None
    metadata = plan.after["metadata"]
    namespace = metadata.get("namespace", "")
    return Creation(plan.kind.resource, namespace, (metadata["name"], namespace), tags_of(plan.after))


def _touches(request: KubeRequest, plan: Plan) -> list[Touch]:
    if plan.before is None:
        return []
    resource, tags = reference(plan.kind, plan.before), tags_of(plan.before)
    return [Touch(resource, change, tags) for change in _changes(request, plan)]


def _changes(request: KubeRequest, plan: Plan) -> list[Change]:
    if plan.verb == "delete":
        return [Change("delete")]
    assert plan.before is not None
    assert plan.after is not None
    if not plan.is_guarded:
        return [Change("replace-tags")]
    before, after = tags_of(plan.before), tags_of(plan.after)
    changed = {key for key in {*before, *after} - _OF_THE_SERVER if before.get(key) != after.get(key)}
    declared = {key for key in changed if key.partition(":")[2].startswith(DECLARED)}
    added = {key: after[key] for key in changed - declared if key in after}
    removed: dict[str, str | None] = {key: before[key] for key in changed - declared if key not in after}
    found = []
    if added or removed:
        found.append(Change("tag", added, removed))
    if declared or _rest(plan.before) != _rest(plan.after):
        found.append(Change("modify"))
    if found:
        return found
    return [Change("tag" if _is_about_tags(request) else "modify")]


def _rest(item: Object) -> Object:
    metadata = {key: value for key, value in item["metadata"].items() if key not in _NO_CHANGE}
    return {**item, "metadata": metadata}


def _is_about_tags(request: KubeRequest) -> bool:
    """Return whether a write without effect was meant for labels and annotations only."""
    content = request.content()
    if isinstance(content, list):
        paths = [str(one.get("path", "")) for one in content if isinstance(one, dict) and one.get("op") != "test"]
        return all(path.startswith("/metadata/") for path in paths)
    return isinstance(content, dict) and set(content) <= {"metadata", "apiVersion", "kind"}


def _without_preconditions(request: KubeRequest) -> KubeRequest:
    if request.verb == "delete":
        return replace(request, body=b"")
    content: Any = request.content()
    if isinstance(content, list):
        content = [one for one in content if not (isinstance(one, dict) and one.get("op") == "test")]
    elif isinstance(content, dict) and isinstance(content.get("metadata"), dict):
        kept = {key: value for key, value in content["metadata"].items() if key not in ("resourceVersion", "uid")}
        content = {**content, "metadata": kept}
    return replace(request, body=json.dumps(content).encode())
