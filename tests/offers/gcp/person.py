"""Somebody with gcloud in their operator: plain HTTP to Google's APIs, with a person's own token."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from fractal_sandbox.gcp import PATH, PROJECT, TOKENS

ZONE, REGION = "europe-west1-b", "europe-west1"
Raw = dict[str, Any]


class GcpPerson:
    """One person in one project."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}{PATH}"

    def call(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """One request; raises where it is refused."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKENS['person']}"}
        address = f"{self._url}{path}" + (f"?{urlencode(query)}" if query else "")
        with urlopen(Request(address, data, headers, method=method), timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def get(self, path: str) -> Raw | None:
        """One resource, or None."""
        try:
            found: Raw = self.call("GET", path)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise
        return found

    # --- where things are

    def instance(self, name: str) -> str:
        return f"/compute/v1/projects/{PROJECT}/zones/{ZONE}/instances/{name}"

    def network(self, name: str) -> str:
        return f"/compute/v1/projects/{PROJECT}/global/networks/{name}"

    def subnet(self, name: str) -> str:
        return f"/compute/v1/projects/{PROJECT}/regions/{REGION}/subnetworks/{name}"

    def firewall(self, name: str) -> str:
        return f"/compute/v1/projects/{PROJECT}/global/firewalls/{name}"

    def bucket(self, name: str) -> str:
        return f"/storage/v1/b/{name}"

    def service(self, name: str) -> str:
        return f"/v2/projects/{PROJECT}/locations/{REGION}/services/{name}"

    def cluster(self, name: str) -> str:
        return f"/v1/projects/{PROJECT}/locations/{REGION}/clusters/{name}"

    def database(self, name: str) -> str:
        return f"/sql/v1beta4/projects/{PROJECT}/instances/{name}"
