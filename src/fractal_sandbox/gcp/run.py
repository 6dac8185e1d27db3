"""Cloud Run, version 2: services with an etag, a revision for every new template, and long-running operations."""

from __future__ import annotations

from copy import deepcopy
from typing import Any
from uuid import uuid4

from fractal_sandbox.gcp.common import Service, begin, check_labels, fingerprint, good, is_done, now, stated
from fractal_sandbox.rest import Body, Draft, Kind, Phase, Place, Refused, Reply, Request, Route

__all__ = ["RUN_SERVICE", "Run", "etag_of", "kept", "revision_of"]

_COLLECTION = "/v2/projects/{project}/locations/{location}/services"
_MASKED = frozenset({"labels", "annotations", "template", "ingress", "traffic", "scaling", "description"})
_RESERVED = ("run.googleapis.com/", "cloud.googleapis.com/", "serving.knative.dev/", "autoscaling.knative.dev/")


def _in_phase(body: Body, phase: Phase) -> Body:
    if phase == "deleting":
        return {**body, "deleteTime": now(), "reconciling": True}
    ready = "" if phase == "creating" else body["lastReady"]
    return {**body, "reconciling": True, "lastReady": ready}


RUN_SERVICE = Kind(
    "service",
    lambda body: Place(body["name"], f"{body['project']}/{body['location']}"),
    tags=lambda body: body["labels"],
    in_phase=_in_phase,
    passing=frozenset({"generation", "updateTime", "lastReady"}),
    tag_fields=frozenset({"labels"}),
    replaces_tags=True,
)


class Run(Service):
    """Services of all regions."""

    def routes(self) -> list[Route]:
        one = f"{_COLLECTION}/{{name}}"
        operation = "/v2/projects/{project}/locations/{location}/operations/{operation}"
        return [
            Route("GET", _COLLECTION, "run", "listServices", self._list),
            Route("POST", _COLLECTION, "run", "createService", self._create, kind=RUN_SERVICE.name),
            Route("GET", one, "run", "getService", self._get, "name"),
            Route("PATCH", one, "run", "updateService", self._patch, "name", kind=RUN_SERVICE.name),
            Route("DELETE", one, "run", "deleteService", self._delete, "name", kind=RUN_SERVICE.name),
            Route("GET", operation, "run", "getOperation", self._operation),
        ]

    def _list(self, request: Request, draft: Draft) -> Reply:
        here = (request.words["project"], request.words["location"])
        found, more = self.page(
            request, draft, "service", lambda body: (body["project"], body["location"]) == here, 1000
        )
        return good({"services": [_shown(body) for _, body in found], **more})

    def _get(self, request: Request, draft: Draft) -> Reply:
        body = draft.find("service", _id(request))
        if body is None:
            raise _no_service(request)
        return good(_shown(body))

    def _create(self, request: Request, draft: Draft) -> Reply:
        project, location, name = request.words["project"], request.words["location"], request.query["serviceId"]
        resource_id = f"{project}/{location}/{name}"
        if draft.peek("service", resource_id) is not None:
            raise stated(409, "ALREADY_EXISTS", f"Resource '{name}' already exists.")
        asked = self.body_of(request)
        body: Body = {
            "name": name,
            "project": project,
            "location": location,
            "uid": str(uuid4()),
            "ingress": "INGRESS_TRAFFIC_ALL",
            "createTime": now(),
            "generation": 0,
            **{key: value for key, value in asked.items() if key in _MASKED},
        }
        body["labels"] = _labels(asked.get("labels"))
        body["template"] = _template(asked.get("template") or {})
        return self._begun(draft, resource_id, draft.put("service", resource_id, kept(body)))

    def _patch(self, request: Request, draft: Draft) -> Reply:
        body = self._guarded(request, draft, self.body_of(request).get("etag"))
        asked = self.body_of(request)
        mask = [one for one in request.query.get("updateMask", "").split(",") if one] or list(asked)
        for name in mask:
            outer = name.partition(".")[0]
            if outer in _MASKED:
                body[outer] = deepcopy(asked.get(outer))
        body["labels"] = _labels(body.get("labels"))
        body["template"] = _template(body["template"] or {})
        return self._begun(draft, _id(request), draft.put("service", _id(request), kept(body)))

    def _delete(self, request: Request, draft: Draft) -> Reply:
        body = self._guarded(request, draft, request.query.get("etag"))
        draft.remove("service", _id(request))
        return self._begun(draft, _id(request), body)

    def _guarded(self, request: Request, draft: Draft, etag: Any) -> Body:
        body = draft.peek("service", _id(request))
        if body is None:
            raise _no_service(request)
        fits = not etag or etag == etag_of(body)
        draft.require(fits, stated(409, "ABORTED", "Conflict: the service was changed since its etag was read."))
        return body

    def _begun(self, draft: Draft, resource_id: str, body: Body) -> Reply:
        where = f"projects/{body['project']}/locations/{body['location']}"
        name = str(uuid4())
        begin(draft, {"name": name, "target": ["service", resource_id], "last": body})
        return good({"name": f"{where}/operations/{name}", "metadata": _packed(body), "done": False})

    def _operation(self, request: Request, draft: Draft) -> Reply:
        found = draft.peek("operation", request.words["operation"])
        if found is None:
            raise stated(404, "NOT_FOUND", "Operation not found.")
        name = request.path.removeprefix("/v2/")
        if not is_done(draft, found):
            return good({"name": name, "done": False})
        target = draft.peek("service", found["target"][1])
        return good({"name": name, "done": True, "response": _packed(target or found["last"])})


def _packed(body: Body) -> Body:
    """A service as an operation carries it: with the name of its type."""
    return {"@type": "type.googleapis.com/google.cloud.run.v2.Service", **_shown(body)}


def kept(body: Body) -> Body:
    """A service after a write: one generation further, with the revision that its template makes."""
    generation = body["generation"] + 1
    return {**body, "generation": generation, "updateTime": now(), "lastReady": revision_of(body)}


def revision_of(body: Body) -> str:
    """The name of the revision that a service's template stands for."""
    explicit = body["template"].get("revision")
    return explicit or f"{body['name']}-{fingerprint(body['template']).lower()[:5].translate(_PLAIN)}"


_PLAIN = str.maketrans("-_=", "xyz")


def etag_of(body: Body) -> str:
    return fingerprint(
        {key: value for key, value in body.items() if key not in ("updateTime", "lastReady", "reconciling")}
    )


def _labels(labels: Any) -> dict[str, str]:
    for key in labels or {}:
        if key.startswith(_RESERVED):
            raise stated(400, "INVALID_ARGUMENT", f"Label '{key}' is in a reserved namespace")
    try:
        return check_labels(labels or {})
    except Refused as refused:
        raise stated(400, "INVALID_ARGUMENT", refused.message) from None


def _template(template: Body) -> Body:
    """A template with what Google fills in."""
    containers = [
        {
            **one,
            "ports": one.get("ports") or [{"name": "http1", "containerPort": 8080}],
            "resources": {
                **(one.get("resources") or {}),
                "limits": {"cpu": "1000m", "memory": "512Mi", **((one.get("resources") or {}).get("limits") or {})},
            },
        }
        for one in template.get("containers") or ()
    ]
    if not containers or not all(one.get("image") for one in containers):
        raise stated(400, "INVALID_ARGUMENT", "template.containers: each needs an image")
    return {
        **template,
        "containers": containers,
        "scaling": {"maxInstanceCount": 100, **(template.get("scaling") or {})},
        "timeout": template.get("timeout") or "300s",
        "serviceAccount": template.get("serviceAccount") or "100000000001-compute@developer.gserviceaccount.com",
        "maxInstanceRequestConcurrency": template.get("maxInstanceRequestConcurrency") or 80,
    }


def _no_service(request: Request) -> Refused:
    return stated(404, "NOT_FOUND", f"Resource '{request.words['name']}' was not found")


def _id(request: Request) -> str:
    return f"{request.words['project']}/{request.words['location']}/{request.words['name']}"


def _shown(body: Body) -> Body:
    path = f"projects/{body['project']}/locations/{body['location']}/services/{body['name']}"
    is_ready = not body.get("reconciling")
    fields = {key: value for key, value in body.items() if key not in ("project", "location", "lastReady")}
    return {
        **fields,
        "name": path,
        "generation": str(body["generation"]),
        "observedGeneration": str(body["generation"]),
        "etag": etag_of(body),
        "reconciling": not is_ready,
        "terminalCondition": {"type": "Ready", "state": "CONDITION_SUCCEEDED" if is_ready else "CONDITION_RECONCILING"},
        "latestCreatedRevision": f"{path}/revisions/{revision_of(body)}",
        **({"latestReadyRevision": f"{path}/revisions/{body['lastReady']}"} if body["lastReady"] else {}),
        **({"uri": f"https://{body['name']}-{body['location']}.run.example"} if body["lastReady"] else {}),
    }
