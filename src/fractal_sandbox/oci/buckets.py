"""Object Storage: buckets, whose names are unique in the tenancy, and just enough of objects to fill one."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.oci import USERS, common
from fractal_sandbox.oci.core import COMPARTMENT, existing
from fractal_sandbox.rest import Body, Draft, Kind, Place, Refused, Reply, Request, Route

__all__ = ["BUCKET", "NAMESPACE", "OBJECT", "routes"]

NAMESPACE: Final = "frsandbox"
BUCKET: Final = Kind(
    "bucket",
    lambda body: Place(body["name"], body["namespace"]),
    common.monitored_tags,
    passing=frozenset({common.VERSION}),
    tag_fields=frozenset({"freeformTags"}),
    replaces_tags=True,
)
OBJECT: Final = common.plain("object")  # data: never the agent's to write (O15)
_CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "publicAccessType": ("NoPublicAccess", "ObjectRead", "ObjectReadWithoutList"),
    "storageTier": ("Standard", "Archive"),
    "versioning": ("Disabled", "Enabled", "Suspended"),
    "objectEventsEnabled": (False, True),
    "autoTiering": ("Disabled", "InfrequentAccess"),
}
_FREE: Final = ("name", "compartmentId", "metadata", "freeformTags", "definedTags", "kmsKeyId")
_SUMMARY: Final = ("namespace", "name", "compartmentId", "createdBy", "timeCreated", "etag")


def _check(request: Request) -> None:
    if request.words["ns"] != NAMESPACE:
        raise Refused(404, "NamespaceNotFound", f"You do not have authorization to namespace {request.words['ns']!r}.")


def _missing(name: str) -> Refused:
    message = (
        f"Either the bucket named '{name}' does not exist in the namespace '{NAMESPACE}' or you are not authorized"
    )
    return Refused(404, "BucketNotFound", f"{message} to access it")


def _given(request: Request, *fields: str) -> Body:
    given = common.check_fields(request.json(), (*_FREE, *_CHOICES, *fields))
    for name, choices in _CHOICES.items():
        if name in given and given[name] not in choices:
            raise common.invalid(f"{name} is {given[name]!r}, and may be {choices}")
    if "freeformTags" in given:
        given["freeformTags"] = common.tagged(given["freeformTags"])
    return given


def _seen(body: Body) -> Body:
    return {**body, "etag": common.etag_of(body)}


def _create(request: Request, draft: Draft) -> Reply:
    _check(request)
    given = _given(request)
    existing(draft, COMPARTMENT.name, given.get("compartmentId"))
    name = given.get("name")
    if not name:
        raise Refused(400, "InvalidBucketName", "The bucket name is missing.")
    if given.get("versioning") == "Suspended":
        raise common.invalid("versioning of a new bucket is Enabled or Disabled")
    if draft.peek(BUCKET.name, name) is not None:
        taken = f"Either the bucket '{name}' in namespace '{NAMESPACE}' already exists or you are not authorized"
        raise Refused(409, "BucketAlreadyExists", f"{taken} to create it")
    body = {
        **{setting: choices[0] for setting, choices in _CHOICES.items()},
        "namespace": NAMESPACE,
        "createdBy": USERS[request.actor],
        "timeCreated": common.now(),
        "id": f"ocid1.bucket.oc1..{uuid4().hex}",
        "freeformTags": {},
        "definedTags": {},
        "metadata": {},
        "kmsKeyId": None,
        "isReadOnly": False,
        "replicationEnabled": False,
        **given,
    }
    return common.answer(_seen(draft.put(BUCKET.name, name, common.bumped(body))))


def _get(request: Request, draft: Draft) -> Reply:
    _check(request)
    body = draft.find(BUCKET.name, request.words["id"])
    if body is None:
        raise _missing(request.words["id"])
    return common.answer(_seen(body))


def _writable(request: Request, draft: Draft) -> Body:
    _check(request)
    body = draft.peek(BUCKET.name, request.words["id"])
    if body is None:
        raise _missing(request.words["id"])
    common.check_etag(request, draft, body, "IfMatchFailed")
    return body


def _update(request: Request, draft: Draft) -> Reply:
    body = _writable(request, draft)
    given = _given(request, "namespace")
    if "storageTier" in given or given.get("name", body["name"]) != body["name"]:
        raise common.invalid("storageTier cannot be changed, and the sandbox renames no buckets")
    if given.get("versioning") == "Disabled" and body["versioning"] != "Disabled":
        raise common.invalid("versioning that was enabled can only be suspended")
    if given.get("kmsKeyId") == "":
        given["kmsKeyId"] = None
    return common.answer(_seen(draft.put(BUCKET.name, body["name"], common.bumped({**body, **given}))))


def _delete(request: Request, draft: Draft) -> Reply:
    body = _writable(request, draft)
    if any(one["bucket"] == body["name"] for _, one in draft.everything(OBJECT.name)):
        raise Refused(409, "BucketNotEmpty", f"Bucket named '{body['name']}' is not empty. Delete all objects first.")
    draft.remove(BUCKET.name, body["name"])
    return Reply(204)


def _put_object(request: Request, draft: Draft) -> Reply:
    _check(request)
    name, key = request.words["id"], request.words["object"]
    if draft.peek(BUCKET.name, name) is None:
        raise _missing(name)
    draft.put(OBJECT.name, f"{name}/{key}", {"bucket": name, "name": key, "size": len(request.body), common.VERSION: 1})
    return Reply(200, None, (("etag", uuid4().hex),))


def _delete_object(request: Request, draft: Draft) -> Reply:
    _check(request)
    key = f"{request.words['id']}/{request.words['object']}"
    if draft.peek(OBJECT.name, key) is None:
        raise Refused(404, "ObjectNotFound", f"The object '{request.words['object']}' was not found in the bucket")
    draft.remove(OBJECT.name, key)
    return Reply(204)


def routes(knobs: Knobs) -> list[Route]:
    """Everything of Object Storage."""

    def buckets(request: Request, draft: Draft) -> Reply:
        _check(request)
        compartment = request.query.get("compartmentId", "")
        existing(draft, COMPARTMENT.name, compartment)
        with_tags = "tags" in request.query.get("fields", "").split(",")
        names = (*_SUMMARY, *(("freeformTags", "definedTags") if with_tags else ()))
        fitting = [_seen(body) for _, body in draft.all(BUCKET.name) if body["compartmentId"] == compartment]
        # Without tags in it, a list shows the agent nothing to decide by.
        show = (lambda one: draft.shows(BUCKET.name, one["name"])) if with_tags else None
        return common.page(request, knobs, [{name: one[name] for name in names} for one in fitting], show)

    def objects(request: Request, draft: Draft) -> Reply:
        _check(request)
        inside = [one for _, one in draft.everything(OBJECT.name) if one["bucket"] == request.words["id"]]
        return Reply(200, {"objects": [{"name": one["name"], "size": one["size"]} for one in inside], "prefixes": []})

    def namespace(request: Request, draft: Draft) -> Reply:
        del request, draft
        return Reply(200, NAMESPACE)

    store, many, one = "objectstorage", "/n/{ns}/b", "/n/{ns}/b/{id}"
    return [
        Route("GET", "/n", store, "getNamespace", namespace),
        Route("GET", "/n/", store, "getNamespace", namespace),
        *(Route("GET", path, store, "listBuckets", buckets) for path in (many, f"{many}/")),
        *(Route("POST", path, store, "createBucket", _create, kind=BUCKET.name) for path in (many, f"{many}/")),
        *(Route("GET", path, store, "getBucket", _get, "id") for path in (one, f"{one}/")),
        Route("HEAD", one, store, "headBucket", _get, "id"),
        *(Route("POST", path, store, "updateBucket", _update, "id", kind=BUCKET.name) for path in (one, f"{one}/")),
        *(Route("DELETE", path, store, "deleteBucket", _delete, "id", kind=BUCKET.name) for path in (one, f"{one}/")),
        Route("GET", f"{one}/o", store, "listObjects", objects, "id"),
        Route("PUT", f"{one}/o/{{object...}}", store, "putObject", _put_object, "id", kind=OBJECT.name),
        Route("DELETE", f"{one}/o/{{object...}}", store, "deleteObject", _delete_object, "id", kind=OBJECT.name),
    ]
