"""What the API server refuses, in its own words: a `Status` with code, reason and details.

Clients and the guard distinguish refusals by code and reason, people by the message, so all three are the real ones.
When something is refused is decided elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fractal_sandbox.kubernetes.kinds import Kind
from fractal_sandbox.kubernetes.rbac import Asked

__all__ = [
    "ApiError",
    "Cause",
    "PageNotFound",
    "already_exists",
    "bad_request",
    "conflict",
    "failed_precondition",
    "forbidden",
    "gone",
    "invalid",
    "method_not_allowed",
    "no_such_resource",
    "not_acceptable",
    "not_found",
    "not_granted",
    "rejected_patch",
    "stale",
    "unauthorized",
    "unreadable_patch",
    "unsupported_patch",
]


class PageNotFound(Exception):
    """No such kind or path: answered in plain text, which is how clients learn that a CRD is not installed."""


class ApiError(Exception):
    """A refusal, answered as a `Status`."""

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})

    def as_status(self) -> dict[str, Any]:
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        if not self.details and self.code not in (404, 405, 422):
            del status["details"]
        return status


@dataclass(frozen=True)
class Cause:
    """One field at fault; `reason` is one of the API server's words, such as `FieldValueInvalid`."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    @classmethod
    def required(cls, field: str, why: str = "") -> Cause:
        return cls(field, f"Required value{f': {why}' if why else ''}", "FieldValueRequired")

    @classmethod
    def wrong(cls, field: str, value: Any, why: str) -> Cause:
        shown = _as_go(value)
        return cls(field, f"Invalid value: {shown}: {why}")

    @classmethod
    def prohibited(cls, field: str, why: str) -> Cause:
        return cls(field, f"Forbidden: {why}", "FieldValueForbidden")


def _as_go(value: Any) -> str:
    """Return a value as Go's %#v shows it, as far as values come up here."""
    if isinstance(value, dict):
        return "map[string]string{" + ", ".join(f"{_as_go(key)}:{_as_go(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[]string{" + ", ".join(_as_go(inner) for inner in value) + "}"
    return json.dumps(value)


def _about(kind: Kind, name: str) -> dict[str, Any]:
    about = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in about.items() if value}


def not_found(kind: Kind, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{kind.resource} "{name}" not found', _about(kind, name))


def already_exists(kind: Kind, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', _about(kind, name))


def no_such_resource() -> ApiError:
    """Refuse a path inside a built-in group that names none of its kinds; unknown groups are `PageNotFound`."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def conflict(kind: Kind, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, _about(kind, name))


def failed_precondition(kind: Kind, name: str, wanted: Mapping[str, str], found: Mapping[str, Any]) -> ApiError | None:
    """Refuse a deletion whose precondition does not hold; None where all do."""
    whose = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    about = {**_about(kind, name), "kind": kind.kind}
    words = {"uid": ("UID", "deleted and then recreated"), "resourceVersion": ("ResourceVersion", "modified")}
    for field, (word, fate) in words.items():
        if wanted.get(field) and wanted[field] != found[field]:
            message = (
                f'Operation cannot be fulfilled on {whose} "{name}": the {word} in the precondition ({wanted[field]}) '
                f"does not match the {word} in record ({found[field]}). The object might have been {fate}"
            )
            return ApiError(409, "Conflict", message, about)
    return None


def not_acceptable(message: str) -> ApiError:
    return ApiError(406, "NotAcceptable", message)


def stale(kind: Kind, name: str) -> ApiError:
    """Refuse a write that carries an old resourceVersion."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def invalid(kind: Kind, name: str, causes: list[Cause]) -> ApiError:
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    whose = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {
        **({"name": name} if name else {}),
        **({"group": kind.group} if kind.group else {}),
        "kind": kind.kind,
        "causes": [{"reason": one.reason, "message": one.message, "field": one.field} for one in causes],
    }
    return ApiError(422, "Invalid", f'{whose} "{name}" is invalid: {shown}', details)


def rejected_patch() -> ApiError:
    """Refuse a patch that cannot be applied, a failed `test` among them: the real server says no more than this."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request")


def unreadable_patch(fault: str) -> ApiError:
    """Refuse a patch whose outcome cannot be read as an object of its kind."""
    cause = Cause("patch", f"Invalid value: {fault}")
    causes = [{"reason": cause.reason, "message": cause.message, "field": cause.field}]
    return ApiError(422, "Invalid", f' "" is invalid: {cause.field}: {cause.message}', {"causes": causes})


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def gone(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(kind: Kind, name: str, why: str, *causes: dict[str, str]) -> ApiError:
    about = {**_about(kind, name), **({"causes": list(causes)} if causes else {})}
    return ApiError(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}', about)


def not_granted(user: str, asked: Asked) -> ApiError:
    """Refuse what no role grants, whether it is there or not."""
    what = asked.path or f"{asked.whole}.{asked.group}".rstrip(".")
    named = f' "{asked.name}"' if asked.name else ""
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    message = f'{what}{named} is forbidden: User "{user}" cannot {asked}'
    return ApiError(403, "Forbidden", message, {key: value for key, value in details.items() if value})


def terminating(kind: Kind, name: str, namespace: str) -> ApiError:
    """Refuse a creation in a namespace that goes: the same status as a lack of rights, but another cause."""
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    words = f"namespace {namespace} is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": words, "field": "metadata.namespace"}
    return forbidden(kind, name, why, cause)


def invalid_options(why: str) -> ApiError:
    """Refuse a query that asks for what does not go together."""
    cause = {"reason": "FieldValueForbidden", "message": f"Forbidden: {why}", "field": "resourceVersionMatch"}
    message = f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {why}'
    return ApiError(422, "Invalid", message, {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]})


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def unsupported_patch(accepted: list[str]) -> ApiError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return ApiError(415, "UnsupportedMediaType", message)
