"""GKE: clusters with an etag and a label fingerprint, which take one change at a time."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from fractal_sandbox.gcp import TOKENS
from fractal_sandbox.gcp.common import (
    Service,
    begin,
    check_labels,
    fingerprint,
    good,
    is_done,
    new_number,
    now,
    stated,
)
from fractal_sandbox.managed_clusters import CLUSTERS, address, certificate
from fractal_sandbox.rest import Body, Draft, Kind, Phase, Place, Refused, Reply, Request, Route

__all__ = ["CLUSTER", "Container"]

_COLLECTION = "/v1/projects/{project}/locations/{location}/clusters"
_NEWEST = "1.33"
# What an update may carry: its name there, and its name in the cluster.
_DESIRED = {
    "desiredMasterAuthorizedNetworksConfig": "masterAuthorizedNetworksConfig",
    "desiredReleaseChannel": "releaseChannel",
    "desiredLoggingConfig": "loggingConfig",
}


def _in_phase(body: Body, phase: Phase) -> Body:
    words = {"creating": "PROVISIONING", "updating": "RECONCILING", "deleting": "STOPPING"}
    return {**body, "status": words[phase]}


CLUSTER = Kind(
    "cluster",
    lambda body: Place(body["name"], f"{body['project']}/{body['location']}"),
    tags=lambda body: body["resourceLabels"],
    in_phase=_in_phase,
    tag_fields=frozenset({"resourceLabels"}),
    replaces_tags=True,
)


class Container(Service):
    """Clusters of all locations."""

    def routes(self) -> list[Route]:
        one = f"{_COLLECTION}/{{name}}"
        operation = "/v1/projects/{project}/locations/{location}/operations/{operation}"
        return [
            Route(
                "POST",
                f"{one}:setResourceLabels",
                "container",
                "setResourceLabels",
                self._set_labels,
                "name",
                kind=CLUSTER.name,
            ),
            Route("GET", _COLLECTION, "container", "listClusters", self._list),
            Route("POST", _COLLECTION, "container", "createCluster", self._create, kind=CLUSTER.name),
            Route("GET", one, "container", "getCluster", self._get, "name"),
            Route("PUT", one, "container", "updateCluster", self._update, "name", kind=CLUSTER.name),
            Route("DELETE", one, "container", "deleteCluster", self._delete, "name", kind=CLUSTER.name),
            Route("GET", operation, "container", "getOperation", self._operation),
        ]

    def _list(self, request: Request, draft: Draft) -> Reply:
        project, location = request.words["project"], request.words["location"]

        def fits(body: Body) -> bool:
            return bool(body["project"] == project and location in ("-", body["location"]))

        found = [(one, body) for one, body in draft.all("cluster") if fits(body)]  # Google knows no pages here
        for resource_id, _ in found:
            draft.shows("cluster", resource_id)
        return good({"clusters": [_shown(request, body) for _, body in found]} if found else {})

    def _get(self, request: Request, draft: Draft) -> Reply:
        body = draft.find("cluster", _id(request))
        if body is None:
            raise _no_cluster(request)
        return good(_shown(request, body))

    def _create(self, request: Request, draft: Draft) -> Reply:
        asked = self.body_of(request)["cluster"]
        project, location, name = request.words["project"], request.words["location"], asked["name"]
        resource_id = f"{project}/{location}/{name}"
        if draft.peek("cluster", resource_id) is not None:
            raise stated(409, "ALREADY_EXISTS", f"Already exists: {request.path.removeprefix('/v1/')}/{name}.")
        made = _made(asked, project, location)
        CLUSTERS.open(made["id"], {token: actor for actor, token in TOKENS.items()}.get)
        draft.put("cluster", resource_id, made)
        return self._begun(request, draft, "CREATE_CLUSTER", resource_id)

    def _update(self, request: Request, draft: Draft) -> Reply:
        body = self._idle(request, draft)
        asked = dict(self.body_of(request)["update"])
        etag = asked.pop("etag", None)
        draft.require(
            etag in (None, _etag(body)), stated(409, "ABORTED", "The cluster was changed since its etag was read.")
        )
        if len(asked) != 1:
            raise stated(400, "INVALID_ARGUMENT", "Must specify exactly one field to update.")
        [(name, value)] = asked.items()
        if name == "desiredMasterVersion":
            body["currentMasterVersion"] = _next_version(body["currentMasterVersion"], value)
        elif name in _DESIRED:
            body[_DESIRED[name]] = value
        else:
            raise stated(400, "INVALID_ARGUMENT", f"the sandbox has no {name}")
        draft.put("cluster", _id(request), body)
        return self._begun(request, draft, "UPDATE_CLUSTER", _id(request))

    def _set_labels(self, request: Request, draft: Draft) -> Reply:
        body = self._idle(request, draft)
        asked = self.body_of(request)
        fits = asked.get("labelFingerprint") == fingerprint(body["resourceLabels"])
        draft.require(fits, stated(409, "ABORTED", "Labels could not be set due to fingerprint mismatch."))
        body["resourceLabels"] = _labels(asked.get("resourceLabels"))
        draft.put("cluster", _id(request), body)
        return self._begun(request, draft, "SET_LABELS", _id(request))

    def _delete(self, request: Request, draft: Draft) -> Reply:
        CLUSTERS.close(self._idle(request, draft)["id"])
        draft.remove("cluster", _id(request))
        return self._begun(request, draft, "DELETE_CLUSTER", _id(request))

    def _idle(self, request: Request, draft: Draft) -> Body:
        body = draft.peek("cluster", _id(request))
        if body is None:
            raise _no_cluster(request)
        if draft.phase("cluster", _id(request)) is not None:
            raise stated(400, "FAILED_PRECONDITION", f"Cluster {body['name']} is running incompatible operation.")
        return body

    def _begun(self, request: Request, draft: Draft, kind: str, resource_id: str) -> Reply:
        name = f"operation-{new_number()}"
        where = f"projects/{request.words['project']}/locations/{request.words['location']}"
        operation = {"name": name, "target": ["cluster", resource_id], "kind": kind, "where": where, "startTime": now()}
        return good({**_operation_form(request, begin(draft, operation)), "status": "RUNNING"})

    def _operation(self, request: Request, draft: Draft) -> Reply:
        found = draft.peek("operation", request.words["operation"])
        if found is None:
            raise stated(404, "NOT_FOUND", "Operation not found.")
        done = {"status": "DONE", "endTime": now()}
        return good({**_operation_form(request, found), **(done if is_done(draft, found) else {"status": "RUNNING"})})


def _operation_form(request: Request, operation: Body) -> dict[str, Any]:
    api = f"{request.base}/v1"
    location, name = operation["target"][1].split("/")[1:]
    return {
        "name": operation["name"],
        "operationType": operation["kind"],
        "selfLink": f"{api}/{operation['where']}/operations/{operation['name']}",
        "targetLink": f"{api}/{operation['where']}/clusters/{name}",
        "startTime": operation["startTime"],
        "zone": location,
        "location": location,
    }


def _made(asked: Body, project: str, location: str) -> Body:
    network = asked.get("network") or f"projects/{project}/global/networks/default"
    region = location if location.count("-") == 1 else location.rpartition("-")[0]
    subnetwork = asked.get("subnetwork") or f"projects/{project}/regions/{region}/subnetworks/default"
    return {
        "name": asked["name"],
        "id": uuid4().hex,
        "project": project,
        "location": location,
        "status": "RUNNING",
        "createTime": now(),
        "resourceLabels": _labels(asked.get("resourceLabels")),
        "currentMasterVersion": _whole_version(asked.get("initialClusterVersion") or _NEWEST),
        "releaseChannel": asked.get("releaseChannel") or {"channel": "REGULAR"},
        "autopilot": asked.get("autopilot") or {},
        "autoscaling": asked.get("autoscaling") or {},
        "nodePools": [
            {**pool, "config": {"machineType": "e2-medium", "serviceAccount": "default", **(pool.get("config") or {})}}
            for pool in asked.get("nodePools") or ()
        ],
        "network": network.rpartition("/")[2],
        "subnetwork": subnetwork.rpartition("/")[2],
        "networkConfig": {"network": network, "subnetwork": subnetwork},
        "privateClusterConfig": asked.get("privateClusterConfig") or {},
        "masterAuthorizedNetworksConfig": asked.get("masterAuthorizedNetworksConfig") or {},
        "loggingConfig": asked.get("loggingConfig")
        or {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}},
        "masterAuth": {"clusterCaCertificate": certificate()},
    }


def _labels(labels: Any) -> dict[str, str]:
    try:
        return check_labels(labels or {})
    except Refused as refused:
        raise stated(400, "INVALID_ARGUMENT", refused.message) from None


def _whole_version(version: str) -> str:
    return f"{version}.5-gke.1000000" if version.count(".") == 1 else version


def _next_version(here: str, wanted: str) -> str:
    step = int(wanted.split(".")[1]) - int(here.split(".")[1])
    if step not in (0, 1):
        raise stated(400, "INVALID_ARGUMENT", f"Master cannot be upgraded to {wanted!r}: it is at {here!r}.")
    return _whole_version(wanted)


def _etag(body: Body) -> str:
    return fingerprint({key: value for key, value in body.items() if key != "status"})


def _no_cluster(request: Request) -> Refused:
    return stated(404, "NOT_FOUND", f"Not found: {request.path.removeprefix('/v1/')}.")


def _id(request: Request) -> str:
    return f"{request.words['project']}/{request.words['location']}/{request.words['name'].partition(':')[0]}"


def _shown(request: Request, body: Body) -> Body:
    path = f"projects/{body['project']}/locations/{body['location']}/clusters/{body['name']}"
    shown = {key: value for key, value in body.items() if key != "project" and value not in ({}, [])}
    return {
        **shown,
        "endpoint": address(urlsplit(request.base).netloc, body["id"]),
        "selfLink": f"{request.base}/v1/{path}",
        "zone": body["location"],
        "etag": _etag(body),
        "labelFingerprint": fingerprint(body["resourceLabels"]),
        "currentNodeVersion": body["currentMasterVersion"],
    }
