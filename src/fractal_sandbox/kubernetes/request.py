"""Reading a request to the API server: who asks, for what, and how.

kubectl drops its token where a server is reached over plain HTTP (the Python client does not), so the caller can also
be named in the path: `/as/person/api/v1/…`. What is done with a request does not belong here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

import yaml

from fractal_sandbox.calls import Actor, Call, Origin
from fractal_sandbox.http_server import Environ
from fractal_sandbox.kubernetes import AGENT_TOKEN, PERSON_TOKEN
from fractal_sandbox.kubernetes.errors import (
    PageNotFound,
    bad_request,
    method_not_allowed,
    no_such_resource,
    not_found,
    unauthorized,
)
from fractal_sandbox.kubernetes.kinds import BUILT_IN, Kind, Kinds
from fractal_sandbox.kubernetes.protobuf import MEDIA_TYPE, decode

__all__ = ["KubeRequest", "Target", "actor_of", "parse", "split_actor"]

_ACTORS: Final[dict[str, Actor]] = {PERSON_TOKEN: "person", AGENT_TOKEN: "agent"}
_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Target:
    """What a path names: objects of a kind, in a namespace or in all, one of them by name, or a part of that one."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True)
class KubeRequest:
    """A request about objects."""

    target: Target
    call: Call
    query: Mapping[str, str]
    content_type: str
    accept: str
    body: bytes = field(repr=False)

    @property
    def verb(self) -> str:
        return self.call.operation

    def content(self) -> Any:
        """Return what the body says, in JSON or YAML; raises the server's own refusal where it says nothing."""
        try:
            if self.content_type == MEDIA_TYPE:
                return decode(self.body)
            return json.loads(self.body) if "yaml" not in self.content_type else yaml.safe_load(self.body)
        except (ValueError, yaml.YAMLError) as fault:
            raise bad_request(f"the object provided is unrecognized (must be of type {self._kind}): {fault}") from fault

    @property
    def is_strict(self) -> bool:
        """Whether the client wants unknown fields refused, and not only dropped."""
        return self.query.get("fieldValidation") == "Strict"

    @property
    def _kind(self) -> str:
        return self.target.kind.kind

    def number(self, name: str) -> int | None:
        text = self.query.get(name, "")
        try:
            return int(text) if text else None
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def split_actor(path: str) -> tuple[Actor | None, str]:
    """Return whom a path names as its caller, and the path without that."""
    for actor in ("person", "agent"):
        prefix = f"/as/{actor}"
        if path == prefix or path.startswith(f"{prefix}/"):
            return actor, _plain(path.removeprefix(prefix))
    return None, _plain(path)


def _plain(path: str) -> str:
    """Return a path without slashes at its end: the Python client asks for `/version/`."""
    return path.rstrip("/") or "/"


def actor_of(environ: Environ) -> Actor | None:
    """Return who the bearer token says it is; None without a token. A token nobody knows is refused."""
    header = environ.get("HTTP_AUTHORIZATION", "")
    if not header:
        return None
    scheme, _, token = header.partition(" ")
    actor = _ACTORS.get(token.strip()) if scheme.lower() == "bearer" else None
    if actor is None:
        raise unauthorized()
    return actor


def parse(environ: Environ, path: str, actor: Actor, kinds: Kinds) -> KubeRequest:
    """Read a request about objects; raises PageNotFound where the path names no kind that is served."""
    target = _target(path, kinds)
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    verb = _verb(environ["REQUEST_METHOD"], target, query)
    user_agent = environ.get("HTTP_USER_AGENT", "")
    body: bytes = environ["wsgi.input"].read()
    content_type = environ.get("CONTENT_TYPE", "").split(";")[0].strip()
    call = Call(
        actor=actor,
        access_key=AGENT_TOKEN if actor == "agent" else PERSON_TOKEN,
        service=target.kind.resource + (f"/{target.subresource}" if target.subresource else ""),
        operation=verb,
        region=target.namespace,
        parameters={**query, **_shown_body(target, body)},
        is_write=verb in ("create", "update", "patch", "delete") and not query.get("dryRun"),
        origin=Origin.from_user_agent(user_agent),
        user_agent=user_agent,
        resource_ids=(_id(target.namespace, target.name),) if target.name else (),
    )
    return KubeRequest(target, call, query, content_type, environ.get("HTTP_ACCEPT", ""), body)


def _shown_body(target: Target, body: bytes) -> dict[str, Any]:
    """Return what the record of a call shows of its body: nothing of a Secret's, nor of what is no JSON."""
    if not body or target.kind.plural == "secrets":
        return {}
    try:
        return {"body": json.loads(body)}
    except ValueError:
        return {}


def _id(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _target(path: str, kinds: Kinds) -> Target:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise PageNotFound
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (not group and rest[2] == "status"):
        namespace, rest = rest[1], rest[2:]
    kind = kinds.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or (namespace and not kind.is_namespaced):
        raise _unknown(group, version)
    name = rest[1] if len(rest) > 1 else ""
    if kind.is_namespaced and name and not namespace:
        raise _unknown(group, version)
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in kind.subresources:
        raise not_found(kind, name) if kind.is_custom else no_such_resource()
    return Target(kind, namespace, name, subresource)


def _unknown(group: str, version: str) -> Exception:
    is_built_in = any((kind.group, kind.version) == (group, version) for kind in BUILT_IN)
    return no_such_resource() if is_built_in else PageNotFound()


def _verb(method: str, target: Target, query: Mapping[str, str]) -> str:
    verb = _VERBS.get(method, "")
    if verb == "get" and query.get("watch") in ("1", "true"):
        return "watch"
    if verb == "get" and not target.name:
        return "list"
    is_collection = verb == "create" and not target.name and (target.namespace or not target.kind.is_namespaced)
    if is_collection or (verb in ("get", "update", "patch", "delete") and target.name):
        return verb
    raise method_not_allowed()
