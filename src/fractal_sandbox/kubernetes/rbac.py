"""Role-based access control: what a request asks for, and whether roles and their bindings grant it. Pure.

As the API server's own authorizer decides: rules only ever grant, what none grants is refused, and a request is decided
by its method and path alone, before it is known whether there is such a kind or object. Which documents count, and
who is asking, is the cloud's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["AUTHENTICATED", "Asked", "Rbac", "User", "asked_by", "service_account"]

AUTHENTICATED: Final = "system:authenticated"
_GROUP: Final = "rbac.authorization.k8s.io"
_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_COLLECTIONS: Final = {"get": "list", "delete": "deletecollection"}
# Parts of a namespace itself; everything else after its name is a kind inside of it.
_OF_A_NAMESPACE: Final = ("status", "finalize")
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
# What the server lets everybody who is known do (system:discovery, system:public-info-viewer, system:basic-user).
_FOR_ALL: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/"],
        "verbs": ["get"],
    },
    {"nonResourceURLs": ["/healthz", "/livez", "/readyz"], "verbs": ["get"]},
    {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        "verbs": ["create"],
    },
)
Object = Mapping[str, Any]
Rule = Mapping[str, Any]


@dataclass(frozen=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = (AUTHENTICATED,)


def service_account(namespace: str, name: str) -> User:
    """The user as which a service account is known."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups)


@dataclass(frozen=True)
class Asked:
    """What a request asks for: a verb on a resource (or a part of one), or on a path that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def whole(self) -> str:
        """The resource as rules write it: `pods/exec`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def __str__(self) -> str:
        if self.path:
            return f'{self.verb} path "{self.path}"'
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'{self.verb} resource "{self.whole}" in API group "{self.group}" {where}'


def asked_by(method: str, path: str, query: Mapping[str, str]) -> Asked:
    """What a request asks for, by its method, path and query."""
    verb = _VERBS.get(method, method.lower())
    parts = [part for part in path.split("/") if part]
    if len(parts) > 2 and parts[0] == "api":
        group, rest = "", parts[2:]
    elif len(parts) > 3 and parts[0] == "apis":
        group, rest = parts[1], parts[3:]
    else:
        return Asked(verb, path=path)
    if rest[0] in ("watch", "proxy"):  # old paths that name the verb
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_A_NAMESPACE:
            rest = rest[2:]
    resource, name, subresource = (*rest, "", "", "")[:3]
    if not name and verb in _ON_COLLECTIONS:
        verb = _ON_COLLECTIONS[verb]
    if verb in ("get", "list") and query.get("watch") in _TRUE:
        verb = "watch"
    return Asked(verb, group, resource, subresource, namespace, name)


class Rbac:
    """The roles and bindings of a cluster; whatever else is among the documents grants nothing."""

    def __init__(self, documents: Iterable[Object]) -> None:
        found = [one for one in documents if str(one.get("apiVersion", "")).startswith(f"{_GROUP}/")]
        self._roles = {
            (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one.get("rules") or []
            for one in found
            if one["kind"] in ("Role", "ClusterRole")
        }
        self._bindings = [one for one in found if one["kind"] in ("RoleBinding", "ClusterRoleBinding")]

    def allows(self, user: User, asked: Asked) -> bool:
        """Whether anything grants it."""
        if AUTHENTICATED in user.groups and any(_fits(rule, asked) for rule in _FOR_ALL):
            return True
        return any(_fits(rule, asked) for rule in self._rules_of(user, asked.namespace))

    def _rules_of(self, user: User, namespace: str) -> Iterable[Rule]:
        for one in self._bindings:
            place = one["metadata"].get("namespace", "")
            is_everywhere = one["kind"] == "ClusterRoleBinding"
            if (is_everywhere or (place and place == namespace)) and _is_meant(one.get("subjects") or (), user, place):
                kind, name = one["roleRef"]["kind"], one["roleRef"]["name"]
                if is_everywhere and kind != "ClusterRole":
                    continue
                yield from self._roles.get((kind, "" if kind == "ClusterRole" else place, name), ())


def _is_meant(subjects: Sequence[Object], user: User, namespace: str) -> bool:
    for one in subjects:
        if one["kind"] == "ServiceAccount":
            home = one.get("namespace") or namespace
            if home and user.name == f"system:serviceaccount:{home}:{one['name']}":
                return True
        elif (one["kind"] == "User" and one["name"] == user.name) or (
            one["kind"] == "Group" and one["name"] in user.groups
        ):
            return True
    return False


def _fits(rule: Rule, asked: Asked) -> bool:
    if not _holds(rule.get("verbs") or (), asked.verb):
        return False
    if asked.path:
        return any(_is_path(one, asked.path) for one in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _holds(rule.get("apiGroups") or (), asked.group)
        and any(_is_resource(one, asked) for one in rule.get("resources") or ())
        and (not names or asked.name in names)
    )


def _holds(words: Sequence[str], word: str) -> bool:
    return "*" in words or word in words


def _is_resource(granted: str, asked: Asked) -> bool:
    """`*` is every resource with its parts, `*/scale` that part of every one; `pods` is not `pods/exec`."""
    every_part = granted == f"*/{asked.subresource}" and bool(asked.subresource)
    return granted in ("*", asked.whole) or every_part


def _is_path(granted: str, path: str) -> bool:
    return granted in ("*", path) or (granted.endswith("*") and path.startswith(granted.rstrip("*")))
