"""Machines of Compute Engine, with their boot disks: states, labels with fingerprints, and what needs a stopped one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.gcp.common import (
    Service,
    check_labels,
    fingerprint,
    good,
    invalid,
    not_found,
    now,
    precondition_failed,
    taken,
)
from fractal_sandbox.gcp.compute_operations import begun, operation_by_request, shown_operation, target_path
from fractal_sandbox.gcp.instance_bodies import made_of, shown
from fractal_sandbox.rest import Body, Draft, Kind, Phase, Place, Refused, Reply, Request, Route

__all__ = ["DISK", "INSTANCE", "Instances"]

_AT_WORK = {"RUNNING": "STAGING", "TERMINATED": "STOPPING", "SUSPENDED": "SUSPENDING"}
_COLLECTION = "/compute/v1/projects/{project}/zones/{zone}/instances"
Verb = Callable[[Body, Request, Draft], None]


def _in_phase(body: Body, phase: Phase) -> Body:
    if phase == "updating":
        return {**body, "status": _AT_WORK[body["status"]]}
    return {**body, "status": "PROVISIONING" if phase == "creating" else "STOPPING"}


INSTANCE = Kind(
    "instance",
    lambda body: Place(body["name"], f"{body['project']}/{body['zone']}"),
    tags=lambda body: body["labels"],
    in_phase=_in_phase,
    tag_fields=frozenset({"labels"}),
    replaces_tags=True,
)
DISK = Kind(
    "disk",
    lambda body: Place(body["name"], f"{body['project']}/{body['zone']}"),
    unmonitored="made and deleted by Google along with its machine",
)


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
            Route("POST", _COLLECTION, "compute", "insertInstance", self._insert, kind=INSTANCE.name),
            Route("GET", one, "compute", "getInstance", self._get, "name"),
            Route("DELETE", one, "compute", "deleteInstance", self._delete, "name", kind=INSTANCE.name),
            Route("GET", "/compute/v1/projects/{project}/zones/{zone}/disks/{name}", "compute", "getDisk", self._disk),
            *(
                Route(
                    "POST",
                    f"{one}/{name}",
                    "compute",
                    name,
                    partial(self._change, name, verb),
                    "name",
                    kind=INSTANCE.name,
                )
                for name, verb in verbs.items()
            ),
        ]

    # --- reading

    def _list(self, request: Request, draft: Draft) -> Reply:
        here = (request.words["project"], request.words["zone"])
        found, more = self.page(request, draft, "instance", lambda body: (body["project"], body["zone"]) == here, 500)
        items = [shown(request, body) for _, body in found]
        return good({"kind": "compute#instanceList", **({"items": items} if items else {}), **more})

    def _list_all(self, request: Request, draft: Draft) -> Reply:
        project = request.words["project"]
        found, more = self.page(request, draft, "instance", lambda body: bool(body["project"] == project), 500)
        zones: dict[str, Any] = {}
        for _, body in found:
            zones.setdefault(f"zones/{body['zone']}", {"instances": []})["instances"].append(shown(request, body))
        return good({"kind": "compute#instanceAggregatedList", "items": zones, **more})

    def _get(self, request: Request, draft: Draft) -> Reply:
        body = draft.find("instance", _id(request))
        if body is None:
            raise not_found(target_path(request))
        return good(shown(request, body))

    def _disk(self, request: Request, draft: Draft) -> Reply:
        body = draft.find("disk", _id(request))
        if body is None:
            raise not_found(target_path(request))
        api = f"{request.base}/compute/v1"
        shown_disk = {key: value for key, value in body.items() if key != "project"}
        return good(
            {**shown_disk, "selfLink": f"{api}/{target_path(request)}", "sourceImage": f"{api}/{body['sourceImage']}"}
        )

    # --- making and removing

    def _insert(self, request: Request, draft: Draft) -> Reply:
        before = operation_by_request(draft, request)
        if before is not None:
            return good(shown_operation(request, draft, before))
        body = self.body_of(request)
        project, zone = request.words["project"], request.words["zone"]
        resource_id = f"{project}/{zone}/{body['name']}"
        if draft.peek("instance", resource_id) is not None:
            raise taken(f"{target_path(request)}/{body['name']}")
        made, disk = made_of(body, project, zone, draft)
        if zone in self._exhausted_zones:
            error = _no_capacity(zone)
        else:
            error = {}
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
        before = operation_by_request(draft, request)
        if before is not None:
            return good(shown_operation(request, draft, before))
        body = self._there(request, draft)
        resource_id, path = _id(request), target_path(request).rpartition("/")[0]
        if draft.phase("instance", resource_id) is not None:
            raise Refused(400, "resourceNotReady", f"The resource '{resource_id}' is not ready")
        if name in ("start", "resume") and body["zone"] in self._exhausted_zones:
            draft.put("instance", resource_id, body)  # as it was: what was tried is checked all the same
            return begun(request, draft, name, ("instance", resource_id), path, _no_capacity(body["zone"]))
        verb(body, request, draft)
        draft.put("instance", resource_id, body)
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
            body["lastStartTimestamp" if to == "RUNNING" else "lastStopTimestamp"] = now()
        elif body["status"] != to:
            raise invalid(f"Instance is in state {body['status']}, not in {' or '.join(from_)}.")


def _no_capacity(zone: str) -> dict[str, str]:
    return {
        "code": "ZONE_RESOURCE_POOL_EXHAUSTED",
        "message": f"The zone '{zone}' does not have enough resources available to fulfill the request.",
    }


def _must_be_stopped(body: Body) -> None:
    if body["status"] != "TERMINATED":
        raise invalid("This operation requires the instance to be stopped: its status is not TERMINATED.")


def _id(request: Request) -> str:
    return f"{request.words['project']}/{request.words['zone']}/{request.words['name']}"
