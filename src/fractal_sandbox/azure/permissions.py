"""Which actions of Azure's access control a call needs: they follow from its method and path, and from what it joins.

GET is ``read``, PUT and PATCH are ``write``, DELETE is ``delete``, and POST is the action that the path ends with. What
a resource is put under (a subnet, a security group, an identity) asks for an action of its own on that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from fractal_sandbox.rest import Draft, Request, Route

__all__ = ["missing", "needs_of"]

_VERBS: Final = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}
_ID: Final = re.compile(r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/.+", re.IGNORECASE)
# What it takes to refer to a resource of a type in the body of another one.
_JOINED: Final[Mapping[str, str]] = {
    "microsoft.network/virtualnetworks/subnets": "join/action",
    "microsoft.network/networksecuritygroups": "join/action",
    "microsoft.network/networkinterfaces": "join/action",
    "microsoft.network/publicipaddresses": "join/action",
    "microsoft.managedidentity/userassignedidentities": "assign/action",
}


def missing(granted: Collection[str], request: Request, route: Route, draft: Draft) -> str:
    """The first action that a call lacks; empty where it lacks none. Actions are the same whatever their case."""
    del draft
    if route.service == "identity" and "/providers/" not in request.path and "/subscriptions" not in request.path:
        return ""  # where tokens come from, nobody has a role yet
    has = {one.lower() for one in granted}
    needed = needs_of(request.method, request.path, _body(request))
    return next((need for need in needed if need.lower() not in has), "")


def needs_of(method: str, path: str, body: Any = None) -> Iterator[str]:
    """Everything a call needs."""
    kind, rest = _kind_of(path)
    if method == "POST":
        yield f"{kind}/{rest}/action" if rest else f"{kind}/action"
    else:
        yield f"{kind}/{_VERBS.get(method, 'unknown')}"
    own = path.lower()
    for joined in _ids_in(body):
        whole = joined.lower()
        if whole.startswith(own):
            continue  # a part of the resource itself
        other, _ = _kind_of(joined)
        if other.lower() in _JOINED:
            yield f"{other}/{_JOINED[other.lower()]}"


def _kind_of(path: str) -> tuple[str, str]:
    """The type that a path names, and what follows the name of a resource of it (an action)."""
    _, found, tail = path.rpartition("/providers/")
    if not found:
        words = [word for word in path.split("/") if word]
        kinds = words[::2]
        return {
            ("subscriptions",): "Microsoft.Resources/subscriptions",
            ("subscriptions", "resourceGroups"): "Microsoft.Resources/subscriptions/resourceGroups",
            ("subscriptions", "resources"): "Microsoft.Resources/subscriptions/resources",
        }.get(tuple(kinds), f"unknown type of {path}"), ""
    namespace, *words = tail.split("/")
    is_whole = len(words) % 2 == 0
    kinds, last = words[::2], ""
    if not is_whole and len(words) > 1 and words[-1] and _is_action(words[-1], words):
        kinds, last = words[:-1:2], words[-1]
    return "/".join([namespace, *kinds]), last


def _is_action(word: str, words: list[str]) -> bool:
    """Whether the last word is an action on a resource, and no collection inside it."""
    return len(words) % 2 == 1 and word in _ACTIONS


_ACTIONS: Final = frozenset(
    {
        *("start", "deallocate", "powerOff", "restart", "runCommand", "generalize", "capture"),
        *("listKeys", "regenerateKey", "listAccountSas", "listServiceSas"),
        *("listClusterUserCredential", "listClusterAdminCredential", "runCommand", "resetAADProfile", "accessProfiles"),
    }
)


def _ids_in(value: Any) -> Iterator[str]:
    """Every id of a resource that a body names, as a value or as a key."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str) and _ID.fullmatch(key):
                yield key
            yield from _ids_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _ids_in(inner)
    elif isinstance(value, str) and _ID.fullmatch(value):
        yield value


def _body(request: Request) -> Any:
    try:
        return request.json()
    except ValueError:
        return None
