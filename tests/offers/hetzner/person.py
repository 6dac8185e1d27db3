"""Somebody with a token of their own: the vendor's Python client, and no line of the offers."""

from __future__ import annotations

from typing import Any

import hcloud

from fractal_sandbox import sandbox_env

Item = dict[str, Any]
SUBNET = {"type": "cloud", "ip_range": "10.9.1.0/24", "network_zone": "eu-central"}


class HetznerPerson:
    """What people do in the project of the sandbox."""

    def __init__(self, url: str) -> None:
        self.env = sandbox_env(url)
        self.client = hcloud.Client(self.env["HCLOUD_TOKEN"], api_endpoint=self.env["HCLOUD_ENDPOINT"])

    def call(self, method: str, path: str, body: Item | None = None) -> Item:
        """One plain request."""
        return self.client.request(method, path, json=body)

    def act(self, plural: str, resource_id: Any, action: str, **body: Any) -> None:
        """Begin an action."""
        self.call("POST", f"/{plural}/{resource_id}/actions/{action}", body)

    def get(self, plural: str, resource_id: Any) -> Item:
        """One resource."""
        found: Item = self.call("GET", f"/{plural}/{resource_id}")[plural.removesuffix("s")]
        return found

    def named(self, plural: str, name: str) -> list[Item]:
        """All that bear a name and are not being deleted."""
        found: list[Item] = self.client.request("GET", f"/{plural}", params={"name": name})[plural]
        return [item for item in found if item.get("status") != "deleting"]

    def create(self, plural: str, name: str, **body: Any) -> Item:
        """Make a resource."""
        made: Item = self.call("POST", f"/{plural}", {"name": name, **body})[plural.removesuffix("s")]
        return made

    def server(self, name: str, **body: Any) -> Item:
        """Make a server."""
        return self.create("servers", name, server_type="cx23", image="debian-13", location="fsn1", **body)

    def network(self, name: str, **body: Any) -> Item:
        """Make a network that servers can be in."""
        return self.create("networks", name, ip_range="10.9.0.0/16", subnets=[SUBNET], **body)

    def labels(self, plural: str, resource_id: Any) -> dict[str, str]:
        """The labels of a resource."""
        return dict(self.get(plural, resource_id)["labels"])

    def relabel(self, plural: str, resource_id: Any, **labels: str | None) -> None:
        """Change labels as the vendor's tools do: read, change, write all. Underscores stand for dashes."""
        kept = self.labels(plural, resource_id)
        for key, value in labels.items():
            name = key.replace("_", "-")
            kept.pop(name, None)
            if value is not None:
                kept[name] = value
        self.call("PUT", f"/{plural}/{resource_id}", {"labels": kept})

    def delete(self, plural: str, resource_id: Any) -> None:
        """Delete a resource."""
        self.call("DELETE", f"/{plural}/{resource_id}")
