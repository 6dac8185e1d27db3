"""Cloud SQL: instances whose settings have a version, operations, and the final backups of deleted ones."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from fractal_sandbox.gcp.common import (
    Service,
    begin,
    changed,
    check_labels,
    good,
    invalid,
    is_done,
    not_found,
    now,
    precondition_failed,
    taken,
)
from fractal_sandbox.rest import Body, Draft, Kind, Phase, Place, Refused, Reply, Request, Route

__all__ = ["BACKUP", "DATABASE", "Sql"]

_PROJECT = "/sql/v1beta4/projects/{project}"
_COLLECTION = f"{_PROJECT}/instances"


def _in_phase(body: Body, phase: Phase) -> Body:
    words = {"creating": "PENDING_CREATE", "updating": "MAINTENANCE", "deleting": "PENDING_DELETE"}
    return {**body, "state": words[phase]}


DATABASE = Kind(
    "database",
    lambda body: Place(body["name"], body["project"]),
    tags=lambda body: body["userLabels"],
    in_phase=_in_phase,
    passing=frozenset({"settingsVersion"}),
    tag_fields=frozenset({"userLabels"}),
    carries_tags=True,
)
BACKUP = Kind(
    "backup", lambda body: Place(body["name"], body["project"]), unmonitored="made by Google when a database is deleted"
)


class Sql(Service):
    """Instances of all regions: a project has each name once."""

    def routes(self) -> list[Route]:
        one = f"{_COLLECTION}/{{name}}"
        return [
            Route("GET", _COLLECTION, "sql", "listInstances", self._list),
            Route("POST", _COLLECTION, "sql", "insertInstance", self._insert, kind=DATABASE.name),
            Route("GET", one, "sql", "getInstance", self._get, "name"),
            Route("PATCH", one, "sql", "patchInstance", self._patch, "name", kind=DATABASE.name),
            Route("DELETE", one, "sql", "deleteInstance", self._delete, "name", kind=DATABASE.name),
            Route("GET", f"{_PROJECT}/operations/{{operation}}", "sql", "getOperation", self._operation),
            Route("GET", f"{_PROJECT}/backups", "sql", "listBackups", self._backups),
        ]

    def _list(self, request: Request, draft: Draft) -> Reply:
        project = request.words["project"]
        found, more = self.page(request, draft, "database", lambda body: bool(body["project"] == project), 1000)
        items = [_shown(request, body) for _, body in found]
        return good({"kind": "sql#instancesList", **({"items": items} if items else {}), **more})

    def _get(self, request: Request, draft: Draft) -> Reply:
        body = draft.find("database", _id(request))
        if body is None:
            raise _no_instance()
        return good(_shown(request, body))

    def _insert(self, request: Request, draft: Draft) -> Reply:
        asked = self.body_of(request)
        project, name = request.words["project"], asked["name"]
        resource_id = f"{project}/{name}"
        if draft.peek("database", resource_id) is not None:
            raise taken(name)
        settings = dict(asked.get("settings") or {})
        labels = check_labels(settings.pop("userLabels", None) or {})
        public = (settings.get("ipConfiguration") or {}).get("ipv4Enabled", True)
        body = {
            "name": name,
            "project": project,
            "region": asked["region"],
            "databaseVersion": asked["databaseVersion"],
            "state": "RUNNABLE",
            "createTime": now(),
            "userLabels": labels,
            "settingsVersion": 1,
            "settings": changed(
                {
                    "edition": "ENTERPRISE",
                    "dataDiskSizeGb": "10",
                    "storageAutoResize": True,
                    "storageAutoResizeLimit": "0",
                    "availabilityType": "ZONAL",
                    "backupConfiguration": {"enabled": False},
                    "ipConfiguration": {"ipv4Enabled": public},
                    "deletionProtectionEnabled": False,
                    "activationPolicy": "ALWAYS",
                },
                settings,
            ),
        }
        draft.put("database", resource_id, body)
        return self._begun(request, draft, "CREATE", resource_id)

    def _patch(self, request: Request, draft: Draft) -> Reply:
        body = self._idle(request, draft)
        settings = dict(self.body_of(request).get("settings") or {})
        version = settings.pop("settingsVersion", None)
        fits = version is None or str(version) == str(body["settingsVersion"])
        draft.require(fits, precondition_failed("The settingsVersion is not the latest: read the instance again."))
        labels = settings.pop("userLabels", {})
        body["userLabels"] = check_labels(changed(body["userLabels"], labels or {}))
        size = settings.get("dataDiskSizeGb")
        if size is not None and int(size) < int(body["settings"]["dataDiskSizeGb"]):
            raise invalid("Disk size cannot be decreased.")
        body["settings"] = changed(body["settings"], settings)
        body["settingsVersion"] += 1
        draft.put("database", _id(request), body)
        return self._begun(request, draft, "UPDATE", _id(request))

    def _delete(self, request: Request, draft: Draft) -> Reply:
        body = self._idle(request, draft)
        if body["settings"]["deletionProtectionEnabled"]:
            raise Refused(400, "failedPrecondition", "The instance is protected. Please disable deletion protection.")
        if request.query.get("enableFinalBackup") == "true":
            name = f"{body['name']}-{uuid4()}"
            kept_for = request.query.get("finalBackupTtlDays")
            backup = {"name": name, "project": body["project"], "instance": body["name"], "ttlDays": kept_for}
            draft.put("backup", name, {**backup, "type": "FINAL"})
        draft.remove("database", _id(request))
        return self._begun(request, draft, "DELETE", _id(request))

    def _idle(self, request: Request, draft: Draft) -> Body:
        body = draft.peek("database", _id(request))
        if body is None:
            raise _no_instance()
        if draft.phase("database", _id(request)) is not None:
            raise Refused(409, "operationInProgress", "Operation failed because another operation was in progress.")
        return body

    def _begun(self, request: Request, draft: Draft, kind: str, resource_id: str) -> Reply:
        operation = {"name": str(uuid4()), "target": ["database", resource_id], "kind": kind, "insertTime": now()}
        return good({**_operation_form(request, begin(draft, operation)), "status": "PENDING"})

    def _operation(self, request: Request, draft: Draft) -> Reply:
        found = draft.peek("operation", request.words["operation"])
        if found is None:
            raise not_found(request.words["operation"])
        done = {"status": "DONE", "endTime": now()}
        return good({**_operation_form(request, found), **(done if is_done(draft, found) else {"status": "RUNNING"})})

    def _backups(self, request: Request, draft: Draft) -> Reply:
        project = request.words["project"]
        found, more = self.page(request, draft, "backup", lambda body: bool(body["project"] == project), 500)
        backups = [{key: value for key, value in body.items() if key != "project"} for _, body in found]
        return good({"backups": backups, **more})


def _operation_form(request: Request, operation: Body) -> dict[str, Any]:
    project, name = operation["target"][1].split("/")
    api = f"{request.base}/sql/v1beta4/projects/{project}"
    return {
        "kind": "sql#operation",
        "name": operation["name"],
        "operationType": operation["kind"],
        "insertTime": operation["insertTime"],
        "targetId": name,
        "targetProject": project,
        "targetLink": f"{api}/instances/{name}",
        "selfLink": f"{api}/operations/{operation['name']}",
    }


def _no_instance() -> Refused:
    return Refused(404, "instanceDoesNotExist", "The Cloud SQL instance does not exist.")


def _id(request: Request) -> str:
    return f"{request.words['project']}/{request.words['name']}"


def _shown(request: Request, body: Body) -> Body:
    fields = {key: value for key, value in body.items() if key not in ("userLabels", "settingsVersion")}
    public = body["settings"]["ipConfiguration"].get("ipv4Enabled")
    return {
        "kind": "sql#instance",
        **fields,
        "instanceType": "CLOUD_SQL_INSTANCE",
        "backendType": "SECOND_GEN",
        "settings": {
            **body["settings"],
            "kind": "sql#settings",
            "settingsVersion": str(body["settingsVersion"]),
            **({"userLabels": body["userLabels"]} if body["userLabels"] else {}),
        },
        "connectionName": f"{body['project']}:{body['region']}:{body['name']}",
        "selfLink": f"{request.base}/sql/v1beta4/projects/{body['project']}/instances/{body['name']}",
        "ipAddresses": [{"type": "PRIMARY", "ipAddress": "203.0.113.11"}] if public else [],
    }
