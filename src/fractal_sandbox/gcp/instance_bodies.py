"""What a machine of the sandbox consists of, and how Google shows it."""

from __future__ import annotations

from fractal_sandbox.gcp.common import check_labels, fingerprint, new_number, not_found, now
from fractal_sandbox.gcp.networks import subnetwork_of
from fractal_sandbox.rest import Body, Draft, Request

__all__ = ["made_of", "shown"]


def _path(link: str) -> str:
    return link[link.index("projects/") :]


def _interface(asked: Body, project: str, zone: str, draft: Draft) -> Body:
    region = zone.rpartition("-")[0]
    path = _path(asked.get("subnetwork") or f"projects/{project}/regions/{region}/subnetworks/default")
    subnetwork = subnetwork_of(draft, path)
    if subnetwork is None:
        raise not_found(path)
    public = [{"name": "External NAT", "natIP": "203.0.113.7", **one} for one in asked.get("accessConfigs") or ()]
    address = subnetwork["gatewayAddress"].rpartition(".")[0] + ".2"
    return {
        "name": "nic0",
        "network": subnetwork["network"],
        "subnetwork": path,
        "networkIP": address,
        "accessConfigs": public,
    }


def made_of(asked: Body, project: str, zone: str, draft: Draft) -> tuple[Body, Body]:
    """A new machine, and its boot disk."""
    name = asked["name"]
    boot = asked["disks"][0]["initializeParams"]
    size = str(boot.get("diskSizeGb") or "10")
    disk = {"name": name, "project": project, "zone": zone, "sizeGb": size, "sourceImage": _path(boot["sourceImage"])}
    source = f"projects/{project}/zones/{zone}/disks/{name}"
    body = {
        "id": new_number(),
        "name": name,
        "project": project,
        "zone": zone,
        "status": "RUNNING",
        "creationTimestamp": now(),
        "machineType": asked["machineType"].rpartition("/")[2],
        "labels": check_labels(asked.get("labels") or {}),
        "tags": {"items": sorted((asked.get("tags") or {}).get("items") or ())},
        "metadata": {"items": (asked.get("metadata") or {}).get("items") or []},
        "disks": [{"boot": True, "autoDelete": True, "deviceName": name, "diskSizeGb": size, "source": source}],
        "networkInterfaces": [_interface(asked["networkInterfaces"][0], project, zone, draft)],
        "serviceAccounts": asked.get("serviceAccounts") or [],
        "scheduling": {"provisioningModel": "STANDARD", **(asked.get("scheduling") or {})},
        "deletionProtection": bool(asked.get("deletionProtection")),
        "cpuPlatform": "Intel Broadwell",
    }
    return body, disk


def shown(request: Request, body: Body) -> Body:
    """Return a machine as Google shows it."""
    api = f"{request.base}/compute/v1"
    zone = f"{api}/projects/{body['project']}/zones/{body['zone']}"
    fields = {key: value for key, value in body.items() if key != "project" and (key != "labels" or value)}
    interface = body["networkInterfaces"][0]
    links = {name: f"{api}/{interface[name]}" for name in ("network", "subnetwork")}
    return {
        "kind": "compute#instance",
        **fields,
        "zone": zone,
        "machineType": f"{zone}/machineTypes/{body['machineType']}",
        "selfLink": f"{zone}/instances/{body['name']}",
        "labelFingerprint": fingerprint(body["labels"]),
        "tags": {**body["tags"], "fingerprint": fingerprint(body["tags"])},
        "metadata": {**body["metadata"], "fingerprint": fingerprint(body["metadata"]), "kind": "compute#metadata"},
        "disks": [{**disk, "source": f"{api}/{disk['source']}"} for disk in body["disks"]],
        "networkInterfaces": [{**interface, **links}],
    }
