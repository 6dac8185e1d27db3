"""Somebody with curl in their operator: plain HTTP, with a person's own token."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from fractal_sandbox import sandbox_env
from fractal_sandbox.aruba.cloud import PROJECTS

Item = dict[str, Any]
CLUSTERS = "Aruba.Container/kaas"
SERVERS, ADDRESSES = "Aruba.Compute/cloudServers", "Aruba.Network/elasticIps"
LOCATION = "ITBG-Bergamo"
VPCS, DISKS, SNAPSHOTS = "Aruba.Network/vpcs", "Aruba.Storage/blockStorages", "Aruba.Storage/snapshots"


CHANGEABLE = ("sizeGb", "billingPeriod", "dataCenter", "default")


def requested(properties: dict[str, Any]) -> dict[str, Any]:
    """The properties of an answer as a request says them; clusters spell theirs in two ways."""
    if "nodesPool" not in properties:
        return {name: properties[name] for name in CHANGEABLE if properties.get(name) is not None}
    pools = [
        {
            **{name: pool[name] for name in ("name", "nodes", "autoscaling", "minCount", "maxCount")},
            "instance": pool["instance"]["name"],
            "dataCenter": pool["dataCenter"]["code"],
        }
        for pool in properties["nodesPool"]
    ]
    kept: dict[str, Any] = {
        name: properties[name] for name in ("kubernetesVersion", "ha", "storage") if name in properties
    }
    return {**kept, "nodePools": pools}


class ArubaPerson:
    """One person in one project."""

    def __init__(self, url: str, project: str = "team") -> None:
        self.env = {name: value for name, value in sandbox_env(url).items() if name.startswith("ACLOUD_")}
        self.project = PROJECTS[project]
        form = {
            "grant_type": "client_credentials",
            "client_id": self.env["ACLOUD_CLIENT_ID"],
            "client_secret": self.env["ACLOUD_CLIENT_SECRET"],
        }
        request = Request(self.env["ACLOUD_TOKEN_ISSUER_URL"], urlencode(form).encode(), method="POST")
        with urlopen(request, timeout=20) as answer:
            self.token = json.loads(answer.read())["access_token"]

    def call(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """What one request answers. Raises where it is refused."""
        url = f"{self.env['ACLOUD_BASE_URL']}{path}?{urlencode({'api-version': '1.0', **query})}"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(url, data, headers, method=method), timeout=20) as answer:
            content = answer.read()
            return json.loads(content) if content else None

    def collection(self, path: str) -> str:
        """Where a collection is; what begins with a slash is an address already."""
        return path if path.startswith("/") else f"/projects/{self.project}/providers/{path}"

    def get(self, uri: str) -> Item | None:
        """One resource, or None."""
        try:
            found: Item = self.call("GET", uri)
        except HTTPError as error:
            if error.code == 404:
                error.close()
                return None
            raise
        return found

    def create(self, path: str, name: str, tags: tuple[str, ...] = (), **properties: Any) -> str:
        """Make something; its address."""
        metadata = {"name": name, "location": {"value": LOCATION}, "tags": list(tags)}
        body = {"metadata": metadata, "properties": properties}
        version = "1.1" if path == SERVERS else "1.0"
        made = self.call("POST", self.collection(path), body, **{"api-version": version})
        return str(made["metadata"]["uri"])

    def put(self, uri: str, tags: Any = None, **properties: Any) -> None:
        """Write something again, with other tags or other properties."""
        item = self.get(uri)
        assert item is not None
        now = item["metadata"]
        metadata = {
            "name": now["name"],
            "location": {"value": now["location"]["value"]},
            "tags": list(now["tags"] if tags is None else tags),
        }
        self.call("PUT", uri, {"metadata": metadata, "properties": {**requested(item["properties"]), **properties}})

    def tags(self, uri: str) -> list[str]:
        """The tags of a resource."""
        item = self.get(uri)
        assert item is not None
        found: list[str] = item["metadata"]["tags"]
        return found

    def act(self, uri: str, action: str, **body: Any) -> None:
        """Have a server do something, or change what it is associated with."""
        self.call("POST", f"{uri}/{action}", body or None)

    def delete(self, uri: str) -> None:
        """Delete something, and nothing else with it."""
        kept = {"deleteBootVolumeOnCascade": "false"} if SERVERS in uri else {}
        self.call("DELETE", uri, **kept)

    def list(self, path: str) -> list[Item]:
        """What a collection holds; a person's lists are short."""
        found: list[Item] = []
        while True:
            page = self.call("GET", self.collection(path), offset=str(len(found)))
            found += page["values"]
            if len(found) >= page["total"]:
                return found
