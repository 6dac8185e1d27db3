"""Cloud Run, version 1: the same services in Knative's form, which is the one gcloud edits.

gcloud writes whole services, guarded by their resourceVersion, with the labels copied to the template.
"""

from __future__ import annotations

import re
from copy import deepcopy

from fractal_sandbox.gcp.common import Service, check_labels, good, stated
from fractal_sandbox.gcp.run import RUN_SERVICE, etag_of, kept, revision_of
from fractal_sandbox.rest import Body, Draft, Reply, Request, Route

__all__ = ["Knative"]

_API = "serving.knative.dev/v1"
_BASE = "/apis/serving.knative.dev/v1/namespaces/{project}"
_REGION = re.compile(r"([a-z]+-[a-z]+\d+)-")
_INGRESS = {
    "all": "INGRESS_TRAFFIC_ALL",
    "internal": "INGRESS_TRAFFIC_INTERNAL_ONLY",
    "internal-and-cloud-load-balancing": "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER",
}
_INGRESS_KEY = "run.googleapis.com/ingress"
_LOCATION_KEY = "cloud.googleapis.com/location"
_MAX_SCALE, _MIN_SCALE = "autoscaling.knative.dev/maxScale", "autoscaling.knative.dev/minScale"


class Knative(Service):
    """Services and revisions of the region that stands before the host."""

    def routes(self) -> list[Route]:
        return [
            Route("GET", f"{_BASE}/services", "run", "listKnativeServices", self._list),
            Route("GET", f"{_BASE}/services/{{name}}", "run", "getKnativeService", self._get, "name"),
            Route(
                "PUT",
                f"{_BASE}/services/{{name}}",
                "run",
                "replaceKnativeService",
                self._put,
                "name",
                kind=RUN_SERVICE.name,
            ),
            Route("GET", f"{_BASE}/revisions", "run", "listKnativeRevisions", self._revisions),
            Route("GET", f"{_BASE}/revisions/{{revision}}", "run", "getKnativeRevision", self._revision),
        ]

    def _list(self, request: Request, draft: Draft) -> Reply:
        here = f"{request.words['project']}/{_region(request)}/"
        found = [(one, body) for one, body in draft.all("service") if one.startswith(here)]
        for resource_id, _ in found:
            draft.shows("service", resource_id)
        return good({"apiVersion": _API, "kind": "ServiceList", "items": [_service(body) for _, body in found]})

    def _get(self, request: Request, draft: Draft) -> Reply:
        body = draft.find("service", _id(request))
        if body is None:
            raise stated(404, "NOT_FOUND", f"Resource '{request.words['name']}' was not found")
        return good(_service(body))

    def _put(self, request: Request, draft: Draft) -> Reply:
        body = draft.peek("service", _id(request))
        if body is None:
            raise stated(404, "NOT_FOUND", f"Resource '{request.words['name']}' was not found")
        asked = self.body_of(request)
        version = asked["metadata"].get("resourceVersion")
        fits = version in (None, etag_of(body))
        draft.require(fits, stated(409, "ABORTED", f"Conflict: the resourceVersion {version!r} is not the latest."))
        labels = {key: value for key, value in (asked["metadata"].get("labels") or {}).items() if "/" not in key}
        annotations = asked["metadata"].get("annotations") or {}
        body["labels"] = check_labels(labels)
        body["ingress"] = _INGRESS.get(annotations.get(_INGRESS_KEY, "all"), body["ingress"])
        body["template"] = _template(asked["spec"]["template"], body["template"])
        return good(_service(draft.put("service", _id(request), kept(body))))

    def _revisions(self, request: Request, draft: Draft) -> Reply:
        here = f"{request.words['project']}/{_region(request)}/"
        found = [_revision(body) for one, body in draft.everything("service") if one.startswith(here)]
        return good({"apiVersion": _API, "kind": "RevisionList", "items": found, "metadata": {}})

    def _revision(self, request: Request, draft: Draft) -> Reply:
        for _, body in draft.everything("service"):
            if revision_of(body) == request.words["revision"]:
                return good(_revision(body))
        raise stated(404, "NOT_FOUND", f"Revision '{request.words['revision']}' was not found")


def _region(request: Request) -> str:
    found = _REGION.match(request.headers.get("host", ""))
    if found is None:
        raise stated(400, "INVALID_ARGUMENT", "the host names no region: ask at <region>-<host>")
    return found.group(1)


def _id(request: Request) -> str:
    return f"{request.words['project']}/{_region(request)}/{request.words['name']}"


def _spec(template: Body) -> Body:
    containers = [
        {
            "image": one["image"],
            "ports": one.get("ports") or [],
            "resources": {"limits": (one.get("resources") or {}).get("limits") or {}},
            **({"env": deepcopy(one["env"])} if one.get("env") else {}),
            **({"command": one["command"]} if one.get("command") else {}),
        }
        for one in template["containers"]
    ]
    return {
        "containerConcurrency": template["maxInstanceRequestConcurrency"],
        "timeoutSeconds": int(template["timeout"].removesuffix("s")),
        "serviceAccountName": template["serviceAccount"],
        "containers": containers,
    }


def _template(asked: Body, before: Body) -> Body:
    """Knative's template as version 2 has it; what Knative cannot say stays."""
    metadata, spec = asked.get("metadata") or {}, asked["spec"]
    annotations = metadata.get("annotations") or {}
    containers = []
    for number, one in enumerate(spec["containers"]):
        old = before["containers"][number] if number < len(before["containers"]) else {}
        given = {key: one[key] for key in ("image", "ports", "resources", "env", "command") if key in one}
        containers.append({**{key: value for key, value in old.items() if key not in ("env", "command")}, **given})
    scaling = {
        name: int(annotations[key])
        for name, key in (("maxInstanceCount", _MAX_SCALE), ("minInstanceCount", _MIN_SCALE))
        if key in annotations
    }
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if not key.startswith("run.google")}
    return {
        **{key: value for key, value in before.items() if key != "revision"},
        **({"revision": metadata["name"]} if metadata.get("name") else {}),
        "labels": labels,
        "containers": containers,
        "scaling": scaling,
        "timeout": f"{spec.get('timeoutSeconds', 300)}s",
        "serviceAccount": spec.get("serviceAccountName") or before["serviceAccount"],
        "maxInstanceRequestConcurrency": spec.get("containerConcurrency") or 80,
    }


def _service(body: Body) -> Body:
    template, scaling = body["template"], body["template"].get("scaling") or {}
    annotations = {_MAX_SCALE: str(scaling.get("maxInstanceCount", 100))}
    if "minInstanceCount" in scaling:
        annotations[_MIN_SCALE] = str(scaling["minInstanceCount"])
    revision = revision_of(body)
    status = "Unknown" if body.get("reconciling") else "True"
    kinds = ("Ready", "ConfigurationsReady", "RoutesReady")
    url = f"https://{body['name']}-{body['location']}.run.example"
    ingress = next(key for key, value in _INGRESS.items() if value == body["ingress"])
    return {
        "apiVersion": _API,
        "kind": "Service",
        "metadata": {
            "name": body["name"],
            "namespace": body["project"],
            "labels": {**body["labels"], _LOCATION_KEY: body["location"]},
            "annotations": {_INGRESS_KEY: ingress},
            "resourceVersion": etag_of(body),
            "generation": body["generation"],
            "uid": body["uid"],
            "creationTimestamp": body["createTime"],
            "selfLink": f"/apis/{_API}/namespaces/{body['project']}/services/{body['name']}",
        },
        "spec": {
            "template": {
                "metadata": {"labels": template.get("labels") or {}, "annotations": annotations},
                "spec": _spec(template),
            },
            "traffic": [{"percent": 100, "latestRevision": True}],
        },
        "status": {
            "observedGeneration": body["generation"],
            "conditions": [{"type": kind, "status": status} for kind in kinds],
            "latestReadyRevisionName": body["lastReady"],
            "latestCreatedRevisionName": revision,
            "traffic": [{"percent": 100, "latestRevision": True, "revisionName": revision}],
            "url": url,
            "address": {"url": url},
        },
    }


def _revision(body: Body) -> Body:
    template = body["template"]
    return {
        "apiVersion": _API,
        "kind": "Revision",
        "metadata": {
            "name": revision_of(body),
            "namespace": body["project"],
            "labels": {**(template.get("labels") or {}), "serving.knative.dev/service": body["name"]},
            "creationTimestamp": body["createTime"],
        },
        "spec": _spec(template),
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "imageDigest": template["containers"][0]["image"],
        },
    }
