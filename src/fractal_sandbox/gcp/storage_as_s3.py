"""Cloud Storage as S3 speaks it: a request is signed with an HMAC key, and the bucket's policy decides about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from xml.sax.saxutils import escape

from fractal_sandbox.gcp.common import Service
from fractal_sandbox.gcp.identities import HMAC_KEY, IAM_POLICY
from fractal_sandbox.rest import Draft, Refused, Reply, Request, Route
from fractal_sandbox.rest.routes import Handler
from fractal_sandbox.s3_signatures import is_signed_with, key_id_of, refused, xml

__all__ = ["StorageAsS3"]

REGION: Final = "auto"
_READ: Final = frozenset({"get", "list"})
_ROLES: Final[Mapping[str, frozenset[str]]] = {
    "roles/storage.objectViewer": _READ,
    "roles/storage.objectUser": _READ | {"create", "delete"},
}


class StorageAsS3(Service):
    """Objects, by requests that carry no token."""

    def routes(self) -> list[Route]:
        one = "/{bucket}/{object...}"
        return [
            Route("GET", "/{bucket}", "storage", "listObjectsS3", _guarded("list", _list), "bucket"),
            Route("GET", one, "storage", "getObjectS3", _guarded("get", _get), "bucket"),
            Route(
                "PUT",
                one,
                "storage",
                "putObjectS3",
                _guarded("create", _put),
                "bucket",
                kind="object",
                is_for_agents=False,
            ),
            Route(
                "DELETE",
                one,
                "storage",
                "deleteObjectS3",
                _guarded("delete", _delete),
                "bucket",
                kind="object",
                is_for_agents=False,
            ),
        ]


def _guarded(permission: str, act: Handler) -> Handler:
    def handle(request: Request, draft: Draft) -> Reply:
        if not key_id_of(request):
            raise Refused(404, "NotFound", f"the sandbox has no {request.path}")
        key = draft.peek(HMAC_KEY.name, key_id_of(request))
        if key is None or key["state"] != "ACTIVE":
            return refused(403, "InvalidAccessKeyId", "The access key is not known, or switched off.")
        if not is_signed_with(request, key["_secret"], REGION):
            return refused(403, "SignatureDoesNotMatch", "The signature is not that of the key.")
        if draft.peek("bucket", request.words["bucket"]) is None:
            return refused(404, "NoSuchBucket", "The bucket does not exist.")
        if not _may(draft, key["serviceAccountEmail"], request.words["bucket"], permission):
            return refused(403, "AccessDenied", f"The account has no storage.objects.{permission} there.")
        return act(request, draft)

    return handle


def _may(draft: Draft, email: str, bucket: str, permission: str) -> bool:
    bindings = (draft.peek(IAM_POLICY.name, bucket) or {}).get("bindings") or []
    return any(
        f"serviceAccount:{email}" in binding["members"] and permission in _ROLES.get(binding["role"], ())
        for binding in bindings
    )


def _list(request: Request, draft: Draft) -> Reply:
    inside = [one for _, one in draft.everything("object") if one["bucket"] == request.words["bucket"]]
    names = "".join(f"<Contents><Key>{escape(one['name'])}</Key></Contents>" for one in inside)
    return xml(200, f"<ListBucketResult>{names}</ListBucketResult>")


def _get(request: Request, draft: Draft) -> Reply:
    found = draft.peek("object", f"{request.words['bucket']}/{request.words['object']}")
    if found is None:
        return refused(404, "NoSuchKey", "The object does not exist.")
    return Reply(200, str(found.get("content", "")).encode("latin-1"))


def _put(request: Request, draft: Draft) -> Reply:
    bucket, name = request.words["bucket"], request.words["object"]
    body = {"bucket": bucket, "name": name, "size": len(request.body), "content": request.body.decode("latin-1")}
    draft.put("object", f"{bucket}/{name}", body)
    return Reply(200)


def _delete(request: Request, draft: Draft) -> Reply:
    draft.remove("object", f"{request.words['bucket']}/{request.words['object']}")
    return Reply(204)
