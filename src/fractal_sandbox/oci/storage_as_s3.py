"""Object Storage as S3 speaks it: a request is signed with a customer secret key, and policies decide about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from xml.sax.saxutils import escape

from fractal_sandbox.oci import REGION, common, identities
from fractal_sandbox.oci.buckets import BUCKET, OBJECT
from fractal_sandbox.oci.core import COMPARTMENT
from fractal_sandbox.oci.policies import Asked, allows, read_statement
from fractal_sandbox.rest import READING, Body, Draft, Reply, Request, Route
from fractal_sandbox.s3_signatures import is_signed_with, key_id_of, refused, xml

__all__ = ["PATH", "routes"]

PATH: Final = "/compat"
Act = Callable[[Request, Draft], Reply]


def _groups_of(draft: Draft, user: str) -> frozenset[str]:
    every = draft.everything(identities.MEMBERSHIP.name)
    return frozenset(one["groupId"] for _, one in every if one["userId"] == user)


def _upwards(draft: Draft, compartment: str) -> frozenset[str]:
    found: list[str] = []
    here: str | None = compartment
    while here:
        found.append(here)
        here = (draft.peek(COMPARTMENT.name, here) or {}).get("compartmentId")
    return frozenset(found)


def _may(draft: Draft, user: str, bucket: Body, permission: str) -> bool:
    statements = (
        read_statement(text) for _, policy in draft.everything(identities.POLICY.name) for text in policy["statements"]
    )
    variables = {
        "target.bucket.name": bucket["name"],
        "request.region": identities.REGION_KEY,
        "request.user.id": user,
    }
    compartments = _upwards(draft, bucket["compartmentId"])
    return allows(statements, Asked(_groups_of(draft, user), compartments, permission, variables))


def _guarded(permissions: Callable[[Request, Draft], tuple[str, ...]], act: Act) -> Act:
    """Let those through who sign with a key of theirs and may do it; nobody else learns what is there."""

    def handle(request: Request, draft: Draft) -> Reply:
        key = draft.peek(identities.SECRET_KEY.name, key_id_of(request))
        if key is None:
            return refused(403, "InvalidAccessKeyId", "The access key is not known.")
        if not is_signed_with(request, key["key"], REGION):
            return refused(403, "SignatureDoesNotMatch", "The signature is not that of the key.")
        bucket = draft.peek(BUCKET.name, request.words["bucket"])
        if bucket is None or not all(_may(draft, key["userId"], bucket, one) for one in permissions(request, draft)):
            return refused(404, "NoSuchBucket", "The bucket does not exist, or you may not do this in it.")
        return act(request, draft)

    return handle


def _needs(*permissions: str) -> Callable[[Request, Draft], tuple[str, ...]]:
    return lambda _, __: permissions


def _to_write(request: Request, draft: Draft) -> tuple[str, ...]:
    return ("OBJECT_CREATE",) if _object(request, draft) is None else ("OBJECT_CREATE", "OBJECT_OVERWRITE")


def _object(request: Request, draft: Draft) -> Body | None:
    return draft.peek(OBJECT.name, f"{request.words['bucket']}/{request.words['object']}")


def _list(request: Request, draft: Draft) -> Reply:
    inside = [one for _, one in draft.everything(OBJECT.name) if one["bucket"] == request.words["bucket"]]
    names = "".join(f"<Contents><Key>{escape(one['name'])}</Key></Contents>" for one in inside)
    return xml(200, f"<ListBucketResult>{names}</ListBucketResult>")


def _head(request: Request, draft: Draft) -> Reply:
    del request, draft
    return Reply(200)


def _get(request: Request, draft: Draft) -> Reply:
    found = _object(request, draft)
    if found is None:
        return refused(404, "NoSuchKey", "The object does not exist.")
    return Reply(200, str(found.get("content", "")).encode("latin-1"))


def _put(request: Request, draft: Draft) -> Reply:
    bucket, name = request.words["bucket"], request.words["object"]
    body = {"bucket": bucket, "name": name, "size": len(request.body), "content": request.body.decode("latin-1")}
    draft.put(OBJECT.name, f"{bucket}/{name}", {**body, common.VERSION: 1})
    return Reply(200)


def _delete(request: Request, draft: Draft) -> Reply:
    draft.remove(OBJECT.name, f"{request.words['bucket']}/{request.words['object']}")
    return Reply(204)


_ACTS: Final[Mapping[tuple[str, str], tuple[str, Act]]] = {
    ("GET", ""): ("listObjectsS3", _guarded(_needs("OBJECT_INSPECT"), _list)),
    ("HEAD", ""): ("headBucketS3", _guarded(_needs("BUCKET_INSPECT"), _head)),
    ("GET", "/{object...}"): ("getObjectS3", _guarded(_needs("OBJECT_READ"), _get)),
    ("PUT", "/{object...}"): ("putObjectS3", _guarded(_to_write, _put)),
    ("DELETE", "/{object...}"): ("deleteObjectS3", _guarded(_needs("OBJECT_DELETE"), _delete)),
}


def routes() -> list[Route]:
    """What of S3 is answered."""
    return [
        Route(
            method,
            f"{PATH}/{{bucket}}{below}",
            "objectstorage",
            operation,
            act,
            "bucket",
            kind="" if method in READING else OBJECT.name,
            is_for_agents=False,
        )
        for (method, below), (operation, act) in _ACTS.items()
    ]
