"""Somebody with `az` in their operator: plain HTTP to Resource Manager, with a person's own token."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from fractal_sandbox.azure import GROUP, LOCATION, PATH, SUBSCRIPTION

Item = dict[str, Any]

VERSIONS = {
    "Microsoft.Network": "2024-05-01",
    "Microsoft.Compute/disks": "2024-03-02",
    "Microsoft.Compute": "2024-11-01",
    "Microsoft.Storage": "2024-01-01",
    "Microsoft.ContainerService": "2025-03-01",
    "Microsoft.DBforPostgreSQL": "2024-08-01",
}
PATIENCE = 200
TAGS = "providers/Microsoft.Resources/tags/default"


class AzurePerson:
    """One person at the sandbox's one subscription, or somebody with the agent's own identity."""

    def __init__(self, url: str, identity: str = "person") -> None:
        self._url = f"{url}{PATH}"
        asked = Request(f"{self._url}/msi/token?resource=x", headers={"X-IDENTITY-HEADER": identity})
        with urlopen(asked, timeout=20) as answer:
            self._token = json.loads(answer.read())["access_token"]

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """One request; raises where it is refused."""
        sign = "&" if "?" in path else "?"
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", **headers}
        is_across = path.endswith("/tags/default")
        version = next((one for name, one in VERSIONS.items() if name in path and not is_across), "2024-11-01")
        address = f"{self._url}{quote(path, safe='/?&=$')}{sign}api-version={version}"
        with urlopen(Request(address, data, sent, method=method), timeout=20) as answer:
            content = answer.read()
            return json.loads(content) if content else None

    def path(self, kind: str, name: str, group: str = GROUP) -> str:
        """Where a resource is: ``kind`` is such as ``Microsoft.Network/virtualNetworks``."""
        return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{kind}/{name}"

    def find(self, path: str) -> Item | None:
        """One resource, or None."""
        try:
            found: Item = self.call("GET", path)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise
        return found

    def tags(self, path: str) -> dict[str, str]:
        """All tags of a resource."""
        found: dict[str, str] = self.call("GET", f"{path}/{TAGS}")["properties"]["tags"]
        return found

    def tag(self, path: str, **tags: str) -> None:
        """Put tags on a resource; underscores stand for dashes."""
        self.write_tags(path, "Merge", {key.replace("_", "-"): value for key, value in tags.items()})

    def untag(self, path: str, *keys: str) -> None:
        """Remove tags from a resource, whatever their value."""
        self.write_tags(path, "Delete", dict.fromkeys(keys, ""))

    def write_tags(self, path: str, operation: str, tags: dict[str, str]) -> None:
        """What `az tag update` sends; again, where Azure is at work on a network and asks for that."""
        for _ in range(PATIENCE):
            try:
                self.call("PATCH", f"{path}/{TAGS}", {"operation": operation, "properties": {"tags": tags}})
            except HTTPError as error:
                if error.code != 429:
                    raise
                self.find(path)
            else:
                return
        raise AssertionError(f"{path} is at work for ever")

    def make_group(self, name: str) -> None:
        """A resource group."""
        self.call("PUT", f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}", {"location": LOCATION})
