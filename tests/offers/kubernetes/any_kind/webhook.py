"""A conversion webhook on this machine, and a definition whose two versions it converts: fields have other names there.

It is what a cluster calls, the sandbox as well as a real server: over HTTPS, with a certificate of an authority that is
made for it.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.offers.kubernetes.any_kind.cases import KindCase

Object = dict[str, Any]
NEWER: Final = {"shade": "color", "boards": "planks"}
"""How fields of ``v1`` are called in ``v2``, where ``width`` lies in ``dimensions``."""
_OLDER: Final = {new: old for old, new in NEWER.items()}


@cache
def _certificates() -> tuple[bytes, bytes]:
    """An authority, and a certificate of its with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "conversion of the tests")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    authority = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return authority, authority + private


class Webhook:
    """``asked``: how often it was called. ``refuses``: it answers that it cannot convert."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked = 0
        self.refuses = False

    def conversion(self) -> Object:
        """What a definition says of it."""
        bundle = base64.b64encode(_certificates()[0]).decode()
        where = {"url": f"https://127.0.0.1:{self.port}/convert", "caBundle": bundle}
        return {"strategy": "Webhook", "webhook": {"clientConfig": where, "conversionReviewVersions": ["v1"]}}

    def answer(self, review: Object) -> Object:
        """Convert what is asked for."""
        self.asked += 1
        request = review["request"]
        said: Object = {"uid": request["uid"], "result": {"status": "Success"}}
        if self.refuses:
            said["result"] = {"status": "Failed", "message": "converts nothing today"}
        else:
            said["convertedObjects"] = [converted(one, request["desiredAPIVersion"]) for one in request["objects"]]
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": said}


def converted(item: Object, api_version: str) -> Object:
    """A shelf in another version."""
    found = {**deepcopy(item), "apiVersion": api_version}
    if item["apiVersion"] == api_version or "spec" not in item:
        return found
    is_newer = api_version.endswith("/v2")
    spec = {(NEWER if is_newer else _OLDER).get(name, name): one for name, one in found["spec"].items()}
    if is_newer and "width" in spec:
        spec["dimensions"] = {"width": spec.pop("width")}
    elif not is_newer and "dimensions" in spec:
        spec |= spec.pop("dimensions")
    return {**found, "spec": spec}


@contextmanager
def serving(folder: Path) -> Iterator[Webhook]:
    """A webhook that answers while inside."""
    file = folder / "webhook.pem"
    file.write_bytes(_certificates()[1])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    webhook = Webhook(0)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 5

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(webhook.answer(review)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def get_request(self) -> tuple[Any, Any]:
            connection, address = super().get_request()
            connection.settimeout(5)
            return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

        def handle_error(self, *_: Any) -> None:
            """Who goes away in the middle does no harm."""

    server = Server(("127.0.0.1", 0), Handler)
    webhook.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="conversion webhook", daemon=True)
    thread.start()
    try:
        yield webhook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def definition(webhook: Webhook, stored: str) -> KindCase:
    """The definition of shelves, kept in one of their two versions."""
    element = {"type": "object", "required": ["name"], "properties": {"name": _TEXT, "load": _NUMBER}}
    named = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    lists = {"type": "array", **named, "items": element}
    older = {"width": _NUMBER, "shade": _TEXT, "boards": lists, "note": _TEXT}
    dimensions = {"type": "object", "properties": {"width": _NUMBER}}
    newer = {"dimensions": dimensions, "color": _TEXT, "planks": lists, "note": _TEXT}
    names = {"kind": "Shelf", "plural": "shelves", "singular": "shelf", "listKind": "ShelfList"}
    spec = {
        "group": "shop.example",
        "scope": "Namespaced",
        "names": names,
        "conversion": webhook.conversion(),
        "versions": [_version("v1", older, stored), _version("v2", newer, stored)],
    }
    kind = "apiextensions.k8s.io/v1/CustomResourceDefinition"
    return KindCase(kind, {"name": "shelves.shop.example", "spec": spec})


_TEXT: Final[Object] = {"type": "string"}
_NUMBER: Final[Object] = {"type": "integer"}
_BOARDS: Final = [{"name": "low", "load": 5}, {"name": "top"}]


def _version(name: str, fields: Object, stored: str) -> Object:
    properties = {"spec": {"type": "object", "properties": fields}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": name, "served": True, "storage": name == stored, "schema": schema}


SHELVES: Final[dict[str, KindCase]] = {
    "v1": KindCase(
        "shop.example/v1/Shelf",
        {
            "name": "wide",
            "spec": {"width": 80, "shade": "oak", "boards": _BOARDS},
        },
        {"path": "spec.boards[name=low].load", "value": 9},
    ),
    "v2": KindCase(
        "shop.example/v2/Shelf",
        {
            "name": "broad",
            "spec": {
                "dimensions": {"width": 80},
                "color": "oak",
                "planks": [{"name": "low", "load": 5}, {"name": "top"}],
            },
        },
        {"path": "spec.dimensions.width", "value": 90},
    ),
}
