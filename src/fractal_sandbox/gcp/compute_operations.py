"""Operations of Compute Engine: what every write there answers with, and what gcloud waits for."""

from __future__ import annotations

from typing import Any

from fractal_sandbox.gcp.common import Service, begin, good, is_done, new_number, now, operation_of
from fractal_sandbox.rest import Body, Draft, Reply, Request, Route

__all__ = ["Compute", "begun", "operation_by_request", "shown_operation", "target_path"]


class Compute(Service):
    """Operations, wherever they are."""

    def routes(self) -> list[Route]:
        found: list[Route] = []
        for where in ("zones/{zone}", "regions/{region}", "global"):
            path = f"/compute/v1/projects/{{project}}/{where}/operations/{{operation}}"
            found += [
                Route("GET", path, "compute", "getOperation", self._get),
                Route("POST", f"{path}/wait", "compute", "waitOperation", self._get, read="waits for what was begun"),
            ]
        return found

    def _get(self, request: Request, draft: Draft) -> Reply:
        return good(shown_operation(request, draft, operation_of(draft, request.words["operation"])))


def target_path(request: Request) -> str:
    """What a request is about, as `projects/…`."""
    return request.path.removeprefix("/compute/v1/")


def begun(
    request: Request,
    draft: Draft,
    verb: str,
    target: tuple[str, str],
    path: str,
    error: dict[str, str] | None = None,
) -> Reply:
    """Begin an operation on a resource (its kind and id, and its path), and answer with it."""
    operation = begin(
        draft,
        {
            "name": f"operation-{new_number()}",
            "id": new_number(),
            "operationType": verb,
            "target": list(target),
            "targetPath": path,
            "requestId": request.query.get("requestId", ""),
            "insertTime": now(),
            "error": {"errors": [error]} if error else None,
        },
    )
    return good({**_operation_form(request, operation), "status": "RUNNING", "progress": 0})


def operation_by_request(draft: Draft, request: Request) -> Body | None:
    """The operation that the same request began before: Google never carries out a request twice."""
    wanted = request.query.get("requestId")
    if not wanted:
        return None
    return next((body for _, body in draft.everything("operation") if body.get("requestId") == wanted), None)


def shown_operation(request: Request, draft: Draft, operation: Body) -> Body:
    """Return an operation as Google shows it now."""
    if not is_done(draft, operation):
        return {**_operation_form(request, operation), "status": "RUNNING", "progress": 50}
    error = {"error": operation["error"], "httpErrorStatusCode": 503} if operation.get("error") else {}
    return {**_operation_form(request, operation), "status": "DONE", "progress": 100, "endTime": now(), **error}


def _operation_form(request: Request, operation: Body) -> dict[str, Any]:
    api = f"{request.base}/compute/v1"
    words = operation["targetPath"].split("/")
    where = "/".join(words[: 3 if words[2] == "global" else 4])
    place = {"zones": "zone", "regions": "region"}.get(words[2])
    return {
        "kind": "compute#operation",
        "id": operation["id"],
        "name": operation["name"],
        "operationType": operation["operationType"],
        "targetLink": f"{api}/{operation['targetPath']}",
        "insertTime": operation["insertTime"],
        "user": "sandbox",
        "selfLink": f"{api}/{where}/operations/{operation['name']}",
        **({place: f"{api}/{where}"} if place else {}),
    }
