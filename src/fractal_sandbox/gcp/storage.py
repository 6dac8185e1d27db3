"""Cloud Storage: buckets with their metageneration, and just enough of objects that a bucket can be full."""

from __future__ import annotations

from fractal_sandbox.gcp import NUMBERS
from fractal_sandbox.gcp.common import (
    Service,
    changed,
    check_labels,
    fingerprint,
    good,
    invalid,
    not_found,
    now,
    precondition_failed,
)
from fractal_sandbox.rest import Body, Draft, Kind, Place, Refused, Reply, Request, Route

__all__ = ["BUCKET", "OBJECT", "Storage"]

BUCKET = Kind(
    "bucket",
    lambda body: Place(body["name"], ""),
    tags=lambda body: body["labels"],
    passing=frozenset({"metageneration", "updated"}),
    tag_fields=frozenset({"labels"}),
)
OBJECT = Kind("object", lambda body: Place(body["name"], body["bucket"]))  # data: never the agent's to write (O15)
_SETTABLE = frozenset(
    {"labels", "storageClass", "versioning", "iamConfiguration", "softDeletePolicy", "retentionPolicy", "lifecycle"}
)


class Storage(Service):
    """Buckets of all projects: their names are unique among all of them."""

    def routes(self) -> list[Route]:
        one = "/storage/v1/b/{name}"
        return [
            Route("GET", "/storage/v1/b", "storage", "listBuckets", self._list),
            Route("POST", "/storage/v1/b", "storage", "insertBucket", self._insert, kind=BUCKET.name),
            Route("GET", one, "storage", "getBucket", self._get, "name"),
            Route("PATCH", one, "storage", "patchBucket", self._patch, "name", kind=BUCKET.name),
            Route("DELETE", one, "storage", "deleteBucket", self._delete, "name", kind=BUCKET.name),
            Route("GET", f"{one}/o", "storage", "listObjects", self._objects, "name"),
            Route(
                "POST",
                "/upload/storage/v1/b/{name}/o",
                "storage",
                "insertObject",
                self._upload,
                "name",
                kind=OBJECT.name,
            ),
            Route(
                "DELETE",
                f"{one}/o/{{object...}}",
                "storage",
                "deleteObject",
                self._delete_object,
                "name",
                kind=OBJECT.name,
            ),
        ]

    def _list(self, request: Request, draft: Draft) -> Reply:
        project = request.query.get("project", "")
        found, more = self.page(request, draft, "bucket", lambda body: bool(body["project"] == project), 1000)
        return good({"kind": "storage#buckets", "items": [_shown(request, body) for _, body in found], **more})

    def _get(self, request: Request, draft: Draft) -> Reply:
        body = draft.find("bucket", request.words["name"])
        if body is None:
            raise _no_bucket()
        return good(_shown(request, body))

    def _insert(self, request: Request, draft: Draft) -> Reply:
        asked = self.body_of(request)
        name = asked["name"]
        if draft.peek("bucket", name) is not None:
            raise Refused(
                409, "conflict", "Your previous request to create the named bucket succeeded, or it is taken."
            )
        body = changed(
            {
                "name": name,
                "project": request.query.get("project", ""),
                "location": str(asked.get("location") or "US").upper(),
                "storageClass": "STANDARD",
                "iamConfiguration": {
                    "uniformBucketLevelAccess": {"enabled": False},
                    "publicAccessPrevention": "inherited",
                },
                "softDeletePolicy": {"retentionDurationSeconds": "604800"},
                "labels": {},
                "timeCreated": now(),
                "updated": now(),
                "metageneration": 1,
            },
            {key: value for key, value in asked.items() if key in _SETTABLE},
        )
        body["labels"] = check_labels(body["labels"])
        _spell_out(body)
        return good(_shown(request, draft.put("bucket", name, body)))

    def _patch(self, request: Request, draft: Draft) -> Reply:
        name = request.words["name"]
        body = self._guarded(request, draft)
        asked = {key: value for key, value in self.body_of(request).items() if key in _SETTABLE}
        body = changed(body, asked)
        body["labels"] = check_labels(body.get("labels") or {})
        _spell_out(body)
        body |= {"metageneration": body["metageneration"] + 1, "updated": now()}
        return good(_shown(request, draft.put("bucket", name, body)))

    def _delete(self, request: Request, draft: Draft) -> Reply:
        name = request.words["name"]
        self._guarded(request, draft)
        if any(body["bucket"] == name for _, body in draft.everything("object")):
            raise Refused(409, "conflict", "The bucket you tried to delete is not empty.")
        draft.remove("bucket", name)
        return Reply(204)

    def _guarded(self, request: Request, draft: Draft) -> Body:
        body = draft.peek("bucket", request.words["name"])
        if body is None:
            raise _no_bucket()
        wanted = request.query.get("ifMetagenerationMatch")
        fits = wanted is None or wanted == str(body["metageneration"])
        draft.require(fits, precondition_failed("At least one of the pre-conditions you specified did not hold."))
        return body

    # --- objects

    def _objects(self, request: Request, draft: Draft) -> Reply:
        name = request.words["name"]
        found, more = self.page(request, draft, "object", lambda body: bool(body["bucket"] == name), 1000)
        return good({"kind": "storage#objects", "items": [body for _, body in found], **more})

    def _upload(self, request: Request, draft: Draft) -> Reply:
        bucket, name = request.words["name"], request.query.get("name", "")
        if draft.peek("bucket", bucket) is None:
            raise _no_bucket()
        if request.query.get("uploadType") != "media" or not name:
            raise invalid("the sandbox takes uploadType=media, with a name")
        return good(
            draft.put("object", f"{bucket}/{name}", {"bucket": bucket, "name": name, "size": str(len(request.body))})
        )

    def _delete_object(self, request: Request, draft: Draft) -> Reply:
        resource_id = f"{request.words['name']}/{request.words['object']}"
        if draft.peek("object", resource_id) is None:
            raise not_found(resource_id)
        draft.remove("object", resource_id)
        return Reply(204)


def _spell_out(body: Body) -> None:
    """Numbers of 64 bits are taken as numbers too, and always answered as text."""
    policy = body.get("softDeletePolicy") or {}
    if "retentionDurationSeconds" in policy:
        body["softDeletePolicy"] = {**policy, "retentionDurationSeconds": str(policy["retentionDurationSeconds"])}


def _no_bucket() -> Refused:
    return Refused(404, "notFound", "The specified bucket does not exist.")


def _shown(request: Request, body: Body) -> Body:
    fields = {key: value for key, value in body.items() if key != "project" and (key != "labels" or value)}
    return {
        "kind": "storage#bucket",
        **fields,
        "id": body["name"],
        "metageneration": str(body["metageneration"]),
        "etag": fingerprint(body["metageneration"]),
        "projectNumber": NUMBERS.get(body["project"], ""),
        "selfLink": f"{request.base}/storage/v1/b/{body['name']}",
    }
