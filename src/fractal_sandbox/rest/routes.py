"""Requests, replies, and which function answers which path; what they do to resources stands in a vendor's folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from fractal_sandbox.calls import Actor
from fractal_sandbox.http_server import Environ
from fractal_sandbox.rest.store import Draft

__all__ = ["ANY", "READING", "Handler", "Reply", "Request", "Route", "Routes"]

READING = ("GET", "HEAD", "OPTIONS")
ANY = "*"
"""Stands for the kind of a route that writes resources of every kind: each is checked as its own kind is."""


@dataclass(frozen=True)
class Reply:
    """An answer: JSON content (None: an empty body), or bytes as they are."""

    status: int
    content: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Request:
    """One request. `path` is without the cloud's prefix; `base` is the address a client reaches the cloud at; `target`
    is path and query to the letter, as a client signs them."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    actor: Actor
    base: str
    words: Mapping[str, str] = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()
    target: str = ""

    def all(self, name: str) -> list[str]:
        """Every value of a word that the query may hold several times."""
        return [value for key, value in self.pairs if key == name]

    def json(self) -> Any:
        """What the body says; None where it is empty. Raises `ValueError` where it is no JSON."""
        return json.loads(self.body) if self.body else None


Handler: TypeAlias = Callable[[Request, Draft], Reply]


@dataclass(frozen=True)
class Route:
    """`pattern` names words in braces (`/v1/servers/{id}`); `{rest...}` takes slashes too. `id_word`: which of them
    names the resource the call is about. `service` and `operation` are what knobs and tests call it. What is no GET
    says which `kind` of resource it writes, or why it is only a `read`. `is_for_agents`: False where the path may be
    anything, and what an agent's own login asks there is some other API."""

    method: str
    pattern: str
    service: str
    operation: str
    handler: Handler
    id_word: str = ""
    kind: str = ""
    read: str = ""
    is_for_agents: bool = True

    def __post_init__(self) -> None:
        if self.method not in READING and bool(self.kind) == bool(self.read):
            raise ValueError(f"{self.method} {self.pattern} says neither what it writes nor why it writes nothing")

    @property
    def writes(self) -> bool:
        return self.method not in READING and not self.read


class Routes:
    """All routes of a cloud; the first that fits answers."""

    def __init__(self, routes: list[Route]) -> None:
        self._routes = [(route, _compiled(route.pattern)) for route in routes]

    def find(self, method: str, path: str, actor: Actor) -> tuple[Route, dict[str, str]] | None:
        for route, pattern in self._routes:
            fits = route.method == method and (route.is_for_agents or actor != "agent")
            if fits and (found := pattern.fullmatch(path)):
                return route, found.groupdict()
        return None

    def knows(self, path: str) -> bool:
        """Whether any method is served at a path."""
        return any(pattern.fullmatch(path) for _, pattern in self._routes)


def read_request(environ: Environ, actor: Actor) -> Request:
    """Read a request from its WSGI environment."""
    headers = {key[5:].replace("_", "-").lower(): str(v) for key, v in environ.items() if key.startswith("HTTP_")}
    headers["content-type"] = environ.get("CONTENT_TYPE", "")
    pairs = tuple(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    host = headers.get("host") or f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
    return Request(
        method=environ["REQUEST_METHOD"],
        path=environ["PATH_INFO"],
        query=dict(pairs),
        headers=headers,
        body=environ["wsgi.input"].read(),
        actor=actor,
        base=f"{environ['wsgi.url_scheme']}://{host}{environ.get('SCRIPT_NAME', '')}",
        pairs=pairs,
        target=environ.get("REQUEST_URI", ""),
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"\{([A-Za-z_]+(?:\.\.\.)?)\}", pattern)
    text = ""
    for number, part in enumerate(parts):
        if number % 2 == 0:
            text += re.escape(part)
        else:
            name = part.removesuffix("...")
            text += f"(?P<{name}>.+)" if part.endswith("...") else f"(?P<{name}>[^/]+)"
    return re.compile(text)
