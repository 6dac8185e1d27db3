"""Machines of Compute Engine, with their boot disks: states, labels with fingerprints, and what needs a stopped one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fractal_cloud.sandbox.gcp.common import (
    Service,
    check_labels,
    fingerprint,
    good,
    invalid,
    new_number,
    not_found,
    now,
    precondition_failed,
    taken,
)
from fractal_cloud.sandbox.gcp.compute import begun, operation_by_request, target_path, told_operation
from fractal_cloud.sandbox.gcp.networks import subnetwork_of
from fractal_cloud.sandbox.knobs import Knobs
from fractal_cloud.sandbox.rest import Body, Draft, Kind, Phase, Place, Refused, Reply, Request, Route

__all__ = ["DISK", "INSTANCE", "Instances"]

_AT_WORK = {"RUNNING": "STAGING", "TERMINATED": "STOPPING", "SUSPENDED": "SUSPENDING"}
_COLLECTION = "/compute/v1/projects/{project}/zones/{zone}/instances"
Verb = Callable[[Body, Request, Draft], None]


def _looks(body: Body, phase: Phase) -> Body:
    if phase == "updating":
        return {**body, "status": _AT_WORK[body["status"]]}
    return {**body, "status": "PROVISIONING" if phase == "creating" else "STOPPING"}


INSTANCE = Kind(
    "instance",
    lambda body: Place(body["name"], f"{body['project']}/{body['zone']}"),
    tags=lambda body: body["labels"],
    looks=_looks,
    tag_fields=frozenset({"labels"}),
    replaces_tags=True,
)
DISK = Kind("disk", lambda body: Place(body["name"], f"{body['project']}/{body['zone']}"), judged=False)


class Instances(Service):
    """Machines of all zones."""

    def __init__(self, knobs: Knobs, exhausted_zones: set[str]) -> None:
        super().__init__(knobs)
        self._exhausted_zones = exhausted_zones

    def routes(self) -> list[Route]:
        one = f"{_COLLECTION}/{{name}}"
        verbs: dict[str, Verb] = {
            "setLabels": self._set_labels,
            "setTags": self._set_tags,
            "setMetadata": self._set_metadata,
            "setMachineType": self._set_machine_type,
            "setServiceAccount": self._set_service_account,
            "setDeletionProtection": self._set_deletion_protection,
            "addAccessConfig": self._add_access_config,
            "deleteAccessConfig": self._delete_access_config,
            "start": partial(self._go, "RUNNING", ("TERMINATED",)),
            "stop": partial(self._go, "TERMINATED", ("RUNNING", "SUSPENDED")),
            "suspend": partial(self._go, "SUSPENDED", ("RUNNING",)),
            "resume": partial(self._go, "RUNNING", ("SUSPENDED",)),
        }
        return [
            Route("GET", _COLLECTION, "compute", "listInstances", self._list),
            Route(
                "GET",
                "/compute/v1/projects/{project}/aggregated/instances",
                "compute",
                "listInstancesOfAllZones",
                self._list_all,
            ),
            Route("POST", _COLLECTION, "compute", "insertInstance", self._insert),
            Route("GET", one, "compute", "getInstance", self._get, "name"),
            Route("DELETE", one, "compute", "deleteInstance", self._delete, "name"),
            Route("GET", "/compute/v1/projects/{project}/zones/{zone}/disks/{name}", "compute", "getDisk", self._disk),
            *(
                Route("POST", f"{one}/{name}", "compute", name, partial(self._change, name, verb), "name")
                for name, verb in verbs.items()
            ),
        ]

    # --- reading

    def _list(self, request: Request, draft: Draft) -> Reply:
        here = (request.words["project"], request.words["zone"])
        found, more = self.page(request, draft, "instance", lambda body: (body["project"], body["zone"]) == here, 500)
        items = [_shown(request, body) for _, body in found]
        return good({"kind": "compute#instanceList", **({"items": items} if items else {}), **more})

    def _list_all(self, request: Request, draft: Draft) -> Reply:
        project = request.words["project"]
        found, more = self.page(request, draft, "instance", lambda body: bool(body["project"] == project), 500)
        zones: dict[str, Any] = {}
        for _, body in found:
            zones.setdefault(f"zones/{body['zone']}", {"instances": []})["instances"].append(_shown(request, body))
        return good({"kind": "compute#instanceAggregatedList", "items": zones, **more})

    def _get(self, request: Request, draft: Draft) -> Reply:
        body = draft.find("instance", _id(request))
        if body is None:
            raise not_found(target_path(request))
        return good(_shown(request, body))

    def _disk(self, request: Request, draft: Draft) -> Reply:
        body = draft.find("disk", _id(request))
        if body is None:
            raise not_found(target_path(request))
        api = f"{request.base}/compute/v1"
        return good(
            {**body, "selfLink": f"{api}/{target_path(request)}", "sourceImage": f"{api}/{body['sourceImage']}"}
        )

    # --- making and removing

    def _insert(self, request: Request, draft: Draft) -> Reply:
        before = operation_by_request(draft, request)
        if before is not None:
            return good(told_operation(request, draft, before))
        body = self.body_of(request)
        project, zone = request.words["project"], request.words["zone"]
        resource_id = f"{project}/{zone}/{body['name']}"
        if draft.peek("instance", resource_id) is not None:
            raise taken(f"{target_path(request)}/{body['name']}")
        made, disk = _made(body, project, zone, draft)
        if zone in self._exhausted_zones:
            error = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": f"The zone '{zone}' has not enough room."}
        else:
            error = None
            draft.put("disk", resource_id, disk)
            draft.put("instance", resource_id, made)
        path = f"{target_path(request)}/{body['name']}"
        return begun(request, draft, "insert", ("instance", resource_id), path, error)

    def _delete(self, request: Request, draft: Draft) -> Reply:
        body = self._there(request, draft)
        if body["deletionProtection"]:
            raise invalid("Resource cannot be deleted if it's protected against deletion.")
        resource_id = _id(request)
        draft.remove("instance", resource_id)
        draft.remove("disk", resource_id)
        return begun(request, draft, "delete", ("instance", resource_id), target_path(request))

    def _there(self, request: Request, draft: Draft) -> Body:
        body = draft.peek("instance", _id(request))
        if body is None:
            raise not_found(target_path(request))
        return body

    # --- changing: one verb each

    def _change(self, name: str, verb: Verb, request: Request, draft: Draft) -> Reply:
        body = self._there(request, draft)
        resource_id = _id(request)
        if draft.phase("instance", resource_id) is not None:
            raise Refused(400, "resourceNotReady", f"The resource '{resource_id}' is not ready")
        verb(body, request, draft)
        draft.put("instance", resource_id, body)
        path = target_path(request).rpartition("/")[0]
        return begun(request, draft, name, ("instance", resource_id), path)

    def _set_labels(self, body: Body, request: Request, draft: Draft) -> None:
        asked = self.body_of(request)
        fits = asked.get("labelFingerprint") == fingerprint(body["labels"])
        draft.require(fits, precondition_failed("Labels fingerprint either invalid or resource labels have changed"))
        body["labels"] = check_labels(asked.get("labels") or {})

    def _set_tags(self, body: Body, request: Request, draft: Draft) -> None:
        asked = self.body_of(request)
        fits = asked.get("fingerprint") == fingerprint(body["tags"])
        draft.require(fits, precondition_failed("Supplied fingerprint does not match current tags fingerprint."))
        body["tags"] = {"items": sorted(asked.get("items") or ())}

    def _set_metadata(self, body: Body, request: Request, draft: Draft) -> None:
        asked = self.body_of(request)
        fits = asked.get("fingerprint") == fingerprint(body["metadata"])
        draft.require(fits, precondition_failed("Supplied fingerprint does not match current metadata fingerprint."))
        body["metadata"] = {"items": asked.get("items") or []}

    def _set_machine_type(self, body: Body, request: Request, draft: Draft) -> None:
        del draft
        _must_be_stopped(body)
        body["machineType"] = self.body_of(request)["machineType"].rpartition("/")[2]

    def _set_service_account(self, body: Body, request: Request, draft: Draft) -> None:
        del draft
        _must_be_stopped(body)
        body["serviceAccounts"] = [self.body_of(request)]

    def _set_deletion_protection(self, body: Body, request: Request, draft: Draft) -> None:
        del draft
        body["deletionProtection"] = request.query.get("deletionProtection", "true") == "true"

    def _add_access_config(self, body: Body, request: Request, draft: Draft) -> None:
        del draft
        interface = body["networkInterfaces"][0]
        if interface["accessConfigs"]:
            raise invalid("At most one access config currently supported.")
        interface["accessConfigs"] = [{**self.body_of(request), "natIP": "203.0.113.7"}]

    def _delete_access_config(self, body: Body, request: Request, draft: Draft) -> None:
        del draft
        interface = body["networkInterfaces"][0]
        if request.query.get("accessConfig") not in [one["name"] for one in interface["accessConfigs"]]:
            raise invalid("Invalid access config name.")
        interface["accessConfigs"] = []

    def _go(self, to: str, from_: tuple[str, ...], body: Body, request: Request, draft: Draft) -> None:
        del request, draft
        if body["status"] in from_:
            body["status"] = to
        elif body["status"] != to:
            raise invalid(f"Instance is in state {body['status']}, not in {' or '.join(from_)}.")


def _must_be_stopped(body: Body) -> None:
    if body["status"] != "TERMINATED":
        raise invalid("This operation requires the instance to be stopped: its status is not TERMINATED.")


def _id(request: Request) -> str:
    return f"{request.words['project']}/{request.words['zone']}/{request.words['name']}"


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


def _made(asked: Body, project: str, zone: str, draft: Draft) -> tuple[Body, Body]:
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


def _shown(request: Request, body: Body) -> Body:
    api = f"{request.base}/compute/v1"
    zone = f"{api}/projects/{body['project']}/zones/{body['zone']}"
    told = {key: value for key, value in body.items() if key != "project" and (key != "labels" or value)}
    interface = body["networkInterfaces"][0]
    links = {name: f"{api}/{interface[name]}" for name in ("network", "subnetwork")}
    return {
        "kind": "compute#instance",
        **told,
        "zone": zone,
        "machineType": f"{zone}/machineTypes/{body['machineType']}",
        "selfLink": f"{zone}/instances/{body['name']}",
        "labelFingerprint": fingerprint(body["labels"]),
        "tags": {**body["tags"], "fingerprint": fingerprint(body["tags"])},
        "metadata": {**body["metadata"], "fingerprint": fingerprint(body["metadata"]), "kind": "compute#metadata"},
        "disks": [{**disk, "source": f"{api}/{disk['source']}"} for disk in body["disks"]],
        "networkInterfaces": [{**interface, **links}],
    }
