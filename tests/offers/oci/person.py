"""Somebody with the oci command line in their operator: plain HTTP, signed with a person's own key."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from fractal_sandbox import sandbox_env
from fractal_sandbox.calls import Actor
from fractal_sandbox.oci import key_id
from fractal_sandbox.oci.buckets import NAMESPACE
from fractal_sandbox.oci.cloud import COMPARTMENTS
from fractal_sandbox.oci.keys import private_pem

Item = dict[str, Any]

CORE = "/20160918"
BUCKETS = f"/n/{NAMESPACE}/b"
COMPARTMENT = COMPARTMENTS["team"]


class OciPerson:
    """One person in one compartment; or somebody who has the agent's key."""

    def __init__(self, url: str, folder: Path, actor: Actor = "person") -> None:
        self.env = sandbox_env(url, folder)
        self._url = self.env["OCI_CLI_ENDPOINT"]
        self._actor = actor
        self._key: Any = load_pem_private_key(private_pem(actor).encode(), None)

    def send(
        self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None, **headers: str
    ) -> tuple[Any, dict[str, str]]:
        """One signed request; what it answers, and its headers. Raises where it is refused."""
        url = f"{self._url}{path}" + (f"?{urlencode(query)}" if query else "")
        parts = urlsplit(url)
        data = json.dumps(body).encode() if body is not None else b""
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        signed = {
            "date": formatdate(usegmt=True),
            "(request-target)": f"{method.lower()} {target}",
            "host": parts.netloc,
        }
        if method in ("POST", "PUT"):
            digest = b64encode(hashlib.sha256(data).digest()).decode()
            signed |= {
                "content-length": str(len(data)),
                "content-type": "application/json",
                "x-content-sha256": digest,
            }
        text = "\n".join(f"{name}: {value}" for name, value in signed.items())
        signature = b64encode(self._key.sign(text.encode(), PKCS1v15(), SHA256())).decode()
        said = {
            "algorithm": "rsa-sha256",
            "headers": " ".join(signed),
            "keyId": key_id(self._actor),
            "signature": signature,
            "version": "1",
        }
        authorization = "Signature " + ",".join(f'{name}="{value}"' for name, value in said.items())
        sent = {name: value for name, value in signed.items() if name != "(request-target)"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        whole = data if method in ("POST", "PUT") else None
        request = Request(url, whole, {**sent, "Authorization": authorization}, method=method)
        with urlopen(request, timeout=20) as answer:
            content = answer.read()
            return json.loads(content) if content else None, {key.lower(): v for key, v in answer.headers.items()}

    def call(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """What one request answers."""
        return self.send(method, path, body, query)[0]

    def get(self, path: str) -> Item | None:
        """One resource, or None."""
        try:
            found: Item = self.call("GET", path)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise
        return found

    def list(self, path: str, **query: str) -> list[Item]:
        """What a collection holds."""
        found: list[Item] = self.call("GET", path, compartmentId=COMPARTMENT, **query)
        return found

    def create(self, collection: str, **body: Any) -> Item:
        """Make something in the compartment."""
        path = collection if collection.startswith("/") else f"{CORE}/{collection}"
        made: Item = self.call("POST", path, {"compartmentId": COMPARTMENT, **body})
        return made

    def delete(self, path: str) -> None:
        """Delete something."""
        self.call("DELETE", path)
