"""The sandbox's own HTTP surface, for tests whose sandbox is another process.

    GET  /_sandbox                     the clouds that are mounted
    GET  /_sandbox/<cloud>/knobs       all settings as JSON
    PUT  /_sandbox/<cloud>/knobs       replace all settings; what is left out returns to its default
    GET  /_sandbox/<cloud>/calls       the calls so far (filters: service, operation, actor, resource, writesOnly)
    DELETE /_sandbox/<cloud>/calls     forget the calls so far
    GET  /_sandbox/<cloud>/monitor     violations and lost races
    GET  /_sandbox/<cloud>/owned       every resource that carries an owner tag
    POST /_sandbox/<cloud>/reset       remove all resources, calls, findings and knobs
    POST /_sandbox/reset               the same for every cloud
    GET  /_sandbox/certificate         what a client must trust that speaks TLS to the sandbox (answered by the server)

It holds no state and knows no cloud by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qsl

from pydantic import ValidationError

from fractal_sandbox.calls import CallLog
from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.fault_settings import Settings
from fractal_sandbox.http_server import Environ, StartResponse
from fractal_sandbox.owned_resources import Owned

__all__ = ["PREFIX", "Cloud", "ControlSurface", "MonitorView"]

PREFIX = "/_sandbox"
_Reply: TypeAlias = tuple[int, Any]


class MonitorView(Protocol):
    """What the surface shows of a monitor."""

    def as_json(self) -> dict[str, Any]: ...


class Cloud(Protocol):
    """What every cloud of the sandbox offers to it."""

    knobs: Knobs
    calls: CallLog

    @property
    def monitor(self) -> MonitorView: ...

    def reset(self) -> None: ...

    def owned_resources(self) -> list[Owned]: ...

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]: ...


class ControlSurface:
    """A WSGI application for everything below `/_sandbox`."""

    def __init__(self, clouds: Mapping[str, Cloud]) -> None:
        self._clouds = clouds

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        status, content = self._reply(environ)
        phrase = {200: "OK", 400: "Bad Request", 404: "Not Found"}[status]
        start_response(f"{status} {phrase}", [("Content-Type", "application/json")])
        return [json.dumps(content).encode()]

    def _reply(self, environ: Environ) -> _Reply:
        method = environ["REQUEST_METHOD"]
        parts = environ["PATH_INFO"].removeprefix(PREFIX).strip("/").split("/")
        if parts == [""] and method == "GET":
            return 200, {"clouds": sorted(self._clouds)}
        if parts == ["reset"] and method == "POST":
            for cloud in self._clouds.values():
                cloud.reset()
            return 200, {}
        actions = _ACTIONS.get((method, parts[-1]))
        if len(parts) != 2 or parts[0] not in self._clouds or actions is None:
            return 404, {"error": f"the sandbox has no {method} {environ['PATH_INFO']!r}: see `GET {PREFIX}`"}
        return actions(self._clouds[parts[0]], environ)


def _get_knobs(cloud: Cloud, _: Environ) -> _Reply:
    return 200, cloud.knobs.settings.model_dump(mode="json", by_alias=True)


def _put_knobs(cloud: Cloud, environ: Environ) -> _Reply:
    try:
        cloud.knobs.settings = Settings.model_validate_json(environ["wsgi.input"].read())
    except ValidationError as invalid:
        return 400, {"error": str(invalid)}
    return _get_knobs(cloud, environ)


def _get_calls(cloud: Cloud, environ: Environ) -> _Reply:
    query = dict(parse_qsl(environ["QUERY_STRING"]))
    actor = query.get("actor")
    found = cloud.calls.find(
        query.get("service", "*"),
        query.get("operation", "*"),
        actor=actor if actor in ("agent", "person") else None,
        resource=query.get("resource", "*"),
        writes_only=query.get("writesOnly", "") in ("1", "true"),
    )
    return 200, {"calls": [recorded.as_json() for recorded in found]}


def _delete_calls(cloud: Cloud, _: Environ) -> _Reply:
    cloud.calls.clear()
    return 200, {}


def _get_monitor(cloud: Cloud, _: Environ) -> _Reply:
    return 200, cloud.monitor.as_json()


def _get_owned(cloud: Cloud, _: Environ) -> _Reply:
    return 200, {"owned": [one.as_json() for one in cloud.owned_resources()]}


def _post_reset(cloud: Cloud, _: Environ) -> _Reply:
    cloud.reset()
    return 200, {}


_ACTIONS: dict[tuple[str, str], Callable[[Cloud, Environ], _Reply]] = {
    ("GET", "knobs"): _get_knobs,
    ("PUT", "knobs"): _put_knobs,
    ("GET", "calls"): _get_calls,
    ("DELETE", "calls"): _delete_calls,
    ("GET", "monitor"): _get_monitor,
    ("GET", "owned"): _get_owned,
    ("POST", "reset"): _post_reset,
}
