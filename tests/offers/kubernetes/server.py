"""A real API server: the requests that the tests make of it, and its objects as the sandbox's controllers see them."""

from __future__ import annotations

import base64
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3
import yaml

from fractal_sandbox.kubernetes.errors import ApiError
from fractal_sandbox.kubernetes.kinds import CRD, DEFINITIONS, NAMESPACE, Kind, Kinds, Object
from fractal_sandbox.kubernetes.request import Target
from fractal_sandbox.kubernetes.store import Store

JSON: Final = "application/json"
_SLICE: Final = 0.2
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Reply:
    """What the server answered."""

    status: int
    content_type: str
    body: bytes

    @property
    def is_good(self) -> bool:
        return self.status < 300

    def json(self) -> Any:
        """What it says, or None where it says it in another format."""
        return json.loads(self.body) if self.content_type.startswith(JSON) else None

    def refusal(self) -> ApiError:
        """The refusal it is."""
        status = self.json() or {}
        return ApiError(self.status, status.get("reason", ""), status.get("message", self.body.decode()))


class Server:
    """The server of a kubeconfig, by token. All that is in it is the tests': so it must be on this machine."""

    def __init__(self, path: str) -> None:
        config = yaml.safe_load(Path(path).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        host = urlsplit(cluster["server"]).hostname
        assert host in _LOOPBACK, f"{path} leads to {host}: the tests empty a cluster, so it must be on this machine"
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._url = cluster["server"]
        self._headers = {"Authorization": f"Bearer {user['token']}"}
        self._pool = urllib3.PoolManager(maxsize=32, ca_cert_data=authority, retries=False)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Object | None = None,
        query: Mapping[str, str] | None = None,
        **headers: str,
    ) -> Reply:
        """Send one request."""
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        answer = self._send(method, path, content, query, headers, timeout=60)
        return Reply(answer.status, answer.headers.get("Content-Type", ""), answer.data)

    def follow(self, path: str, query: Mapping[str, str], **headers: str) -> Reply | Generator[bytes, None, None]:
        """Send a request whose answer comes piece by piece, with an empty piece now and then; or its refusal."""
        answer = self._send("GET", path, None, query, headers, timeout=None, preload_content=False)
        if answer.status != 200:
            return Reply(answer.status, answer.headers.get("Content-Type", ""), answer.data)
        pieces: queue.Queue[bytes | None] = queue.Queue()

        def read() -> None:
            try:
                for piece in answer.read_chunked():
                    pieces.put(piece)
            except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
                pass  # closed while it is read
            finally:
                pieces.put(None)

        threading.Thread(target=read, name="follows a real watch", daemon=True).start()
        return _pieces(pieces, answer.shutdown)

    def _send(
        self,
        method: str,
        path: str,
        content: bytes | None,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
        **more: Any,
    ) -> Any:
        given = {name.replace("_", "-"): value for name, value in headers.items() if value}
        sent = {"Accept": JSON, **({"Content-Type": JSON} if content else {}), **given, **self._headers}
        url = f"{self._url}{path}" + (f"?{urlencode(query)}" if query else "")
        return self._pool.request(method, url, body=content, headers=sent, **more)


def _pieces(pieces: queue.Queue[bytes | None], close: Callable[[], None]) -> Generator[bytes, None, None]:
    try:
        while True:
            try:
                piece = pieces.get(timeout=_SLICE)
            except queue.Empty:
                yield b""
                continue
            if piece is None:
                return
            yield piece
    finally:
        with suppress(RuntimeError, OSError):  # it came to its end by itself
            close()


@cache
def minor_version() -> int:
    """The server's minor version; where the sandbox answers, as new as what is tried knows."""
    path = os.environ.get("KUBECONFIG_REAL", "")
    return int(Server(path).ask("GET", "/version").json()["minor"].rstrip("+")) if path else 99


def path_of(target: Target) -> str:
    """Where something is."""
    kind = target.kind
    group = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    namespace = f"/namespaces/{target.namespace}" if target.namespace and kind.is_namespaced else ""
    rest = "".join(f"/{part}" for part in (target.name, target.subresource) if part)
    return f"{group}{namespace}/{kind.plural}{rest}"


class ServedKinds(Kinds):
    """The kinds that a server has listed; one whose definition is taken away stays known, so that the server itself
    can say that it is gone."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        groups = server.ask("GET", "/apis").json()["groups"]
        versions = ["/api/v1", *(f"/apis/{one['groupVersion']}" for group in groups for one in group["versions"])]
        for definition in DEFINITIONS:
            self.define(definition)
        listed = [kind for path in versions for kind in _kinds(server.ask("GET", path).json() or {})]
        self._custom["listed"] = [kind for kind in listed if self.find(kind.group, kind.version, kind.plural) is None]
        served = {(kind.group, kind.version, kind.plural) for kind in listed}
        self._not_served = self._built_in.keys() - served

    def undefine(self, name: str) -> list[Kind]:
        del name
        return []

    def of(self, resource: str) -> Kind:
        """The kind whose objects are kept under this name, in a version that the server has."""
        return next(kind for kind in self if kind.resource == resource and self._is_served(kind))

    def _is_served(self, kind: Kind) -> bool:
        return (kind.group, kind.version, kind.plural) not in self._not_served


def _kinds(listed: Object) -> list[Kind]:
    group, _, version = listed.get("groupVersion", "").rpartition("/")
    names = {one["name"] for one in listed.get("resources", ())}
    return [
        Kind(
            group,
            version,
            one["kind"],
            one["name"],
            is_namespaced=one["namespaced"],
            has_status=f"{one['name']}/status" in names,
        )
        for one in listed.get("resources", ())
        if "/" not in one["name"]
    ]


def _is_gone(taken: Reply, name: str) -> bool:
    """Whether an object is not there any more, rather than its kind."""
    return taken.status == 404 and (taken.json() or {}).get("details", {}).get("name") == name


class ServedStore(Store):
    """The objects of a server, as the controllers read and write them."""

    def __init__(self, lock: threading.RLock, server: Server, kinds: ServedKinds) -> None:
        super().__init__(lock)
        self._server = server
        self._kinds = kinds

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        reply = self._server.ask("GET", path_of(Target(kind, namespace, name)))
        if reply.status == 404:
            return None
        return self._good(reply)

    def items(self, kind: Kind, namespace: str = "") -> list[Object]:
        reply = self._server.ask("GET", path_of(Target(kind, namespace)))
        if reply.status in (404, 405):  # 405: of a kind that only answers, such as a review of a token, nothing is kept
            return []
        listed = self._good(reply)["items"] or []
        return [{"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in listed]

    def all_in(self, namespace: str) -> list[tuple[str, Object]]:
        """What is there of a namespace that is gone: nothing, the server has seen to it."""
        del namespace
        return []

    def add(self, kind: Kind, item: Object) -> Object:
        where = path_of(Target(kind, item["metadata"].get("namespace", "")))
        made = self._good(self._server.ask("POST", where, item))
        return self.replace(kind.resource, {**made, "status": item["status"]}) if item.get("status") else made

    def replace(self, resource: str, item: Object) -> Object:
        """Bring an object to a state: status and annotations, as controllers do, and its spec where that differs."""
        kind, metadata = self._kinds.of(resource), item["metadata"]
        target = Target(kind, metadata.get("namespace", ""), metadata["name"])
        shown = self.get(kind, target.namespace, target.name)
        assert shown is not None
        if shown.get("spec") != item.get("spec") or not kind.has_status:
            shown = self._send(target, shown, item)
        if kind.has_status:
            shown = self._send(Target(kind, target.namespace, target.name, "status"), shown, item)
        return shown

    def _send(self, target: Target, shown: Object, item: Object) -> Object:
        metadata = {**item["metadata"], "resourceVersion": shown["metadata"]["resourceVersion"]}
        return self._good(self._server.ask("PUT", path_of(target), {**item, "metadata": metadata}))

    def remove(self, resource: str, item: Object) -> Object:
        """Delete an object, and let nothing hold it back."""
        kind, metadata = self._kinds.of(resource), item["metadata"]
        target = Target(kind, metadata.get("namespace", ""), metadata["name"])
        taken = self._server.ask("DELETE", path_of(target), {"gracePeriodSeconds": 0})
        assert taken.is_good or _is_gone(taken, metadata["name"]), f"{path_of(target)}: {taken}"
        deadline = time.monotonic() + 20
        while (dying := self.get(kind, target.namespace, target.name)) is not None:
            assert time.monotonic() < deadline, f"{path_of(target)} does not go"
            self.let_go(kind, dying)
            time.sleep(0.02)
        return item

    def let_go(self, kind: Kind, dying: Object) -> None:
        """Take away what holds back an object that is being deleted; of definitions the server itself takes care."""
        metadata = dying["metadata"]
        where = path_of(Target(kind, metadata.get("namespace", ""), metadata["name"]))
        if kind != CRD and metadata.get("finalizers"):
            self._server.ask("PUT", where, {**dying, "metadata": {**metadata, "finalizers": []}})
        elif kind == NAMESPACE:
            self._server.ask("PUT", f"{where}/finalize", {**dying, "spec": {"finalizers": []}})

    def _good(self, reply: Reply) -> Object:
        if not reply.is_good:
            raise reply.refusal()
        found: Object = reply.json()
        return found
