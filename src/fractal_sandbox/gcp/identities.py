"""Who may use a bucket: service accounts, the HMAC keys with which they sign as for S3, and the policies of buckets."""

from __future__ import annotations

import secrets
from typing import Any

from fractal_sandbox.gcp import NUMBERS
from fractal_sandbox.gcp.common import Service, fingerprint, good, invalid, not_found, now, stated
from fractal_sandbox.rest import Body, Draft, Kind, Place, Refused, Reply, Request, Route

__all__ = ["ACCOUNT", "HMAC_KEY", "IAM_POLICY", "Identities"]

ACCOUNT = Kind("serviceAccount", lambda body: Place(body["email"], ""), mark=lambda body: str(body["description"]))


def _account_of(before: Body | None, after: Body | None) -> list[tuple[str, str]]:
    return [(ACCOUNT.name, (before or after or {})["serviceAccountEmail"])]


def _members(body: Body | None) -> set[tuple[str, str, str]]:
    """Who has which role, under which condition."""
    bindings = (body or {}).get("bindings") or ()
    return {(one["role"], str(one.get("condition")), member) for one in bindings for member in one["members"]}


def _bucket_and_members(before: Body | None, after: Body | None) -> list[tuple[str, str]]:
    """A policy is its bucket's, and each role in it is of whoever has it: only accounts of links come and go."""
    changed = {member for _, _, member in _members(before) ^ _members(after)}
    accounts = [(ACCOUNT.name, member.removeprefix("serviceAccount:")) for member in sorted(changed)]
    return [("bucket", (before or after or {})["bucket"]), *accounts]


HMAC_KEY = Kind("hmacKey", lambda body: Place(body["accessId"], ""), speakers=_account_of)
IAM_POLICY = Kind("iamPolicy", lambda body: Place(body["bucket"], ""), speakers=_bucket_and_members)


class Identities(Service):
    """Service accounts and keys of all projects, and who has which role in a bucket."""

    def routes(self) -> list[Route]:
        accounts = "/v1/projects/{project}/serviceAccounts"
        keys, policy = "/storage/v1/projects/{project}/hmacKeys", "/storage/v1/b/{name}/iam"
        return [
            Route("GET", accounts, "iam", "listServiceAccounts", self._accounts),
            Route("POST", accounts, "iam", "createServiceAccount", self._create, kind=ACCOUNT.name),
            Route("GET", f"{accounts}/{{email}}", "iam", "getServiceAccount", self._account, "email"),
            Route(
                "DELETE",
                f"{accounts}/{{email}}",
                "iam",
                "deleteServiceAccount",
                self._delete,
                "email",
                kind=ACCOUNT.name,
            ),
            Route("GET", keys, "storage", "listHmacKeys", self._keys),
            Route("POST", keys, "storage", "createHmacKey", self._make_key, kind=HMAC_KEY.name),
            Route("PUT", f"{keys}/{{key}}", "storage", "updateHmacKey", self._update_key, "key", kind=HMAC_KEY.name),
            Route("DELETE", f"{keys}/{{key}}", "storage", "deleteHmacKey", self._drop_key, "key", kind=HMAC_KEY.name),
            Route("GET", policy, "storage", "getBucketIamPolicy", self._policy, "name"),
            Route("PUT", policy, "storage", "setBucketIamPolicy", self._set_policy, "name", kind=IAM_POLICY.name),
        ]

    # --- service accounts

    def _accounts(self, request: Request, draft: Draft) -> Reply:
        project = request.words["project"]
        found, more = self.page(request, draft, ACCOUNT.name, lambda body: bool(body["projectId"] == project), 100)
        return good({"accounts": [body for _, body in found], **more})

    def _create(self, request: Request, draft: Draft) -> Reply:
        asked, project = self.body_of(request), request.words["project"]
        if project not in NUMBERS:
            raise stated(403, "PERMISSION_DENIED", f"Permission denied on project '{project}'.")
        account = asked.get("serviceAccount") or {}
        if (
            not 6 <= len(str(asked.get("accountId", ""))) <= 30
            or len(str(account.get("description", "")).encode()) > 256
        ):
            raise stated(400, "INVALID_ARGUMENT", "The account id or its description is too short or too long.")
        email = f"{asked['accountId']}@{project}.iam.gserviceaccount.com"
        if draft.peek(ACCOUNT.name, email) is not None:
            raise stated(409, "ALREADY_EXISTS", f"Service account {asked['accountId']} already exists.")
        body = {
            "name": f"projects/{project}/serviceAccounts/{email}",
            "projectId": project,
            "email": email,
            "displayName": account.get("displayName", ""),
            "description": account.get("description", ""),
        }
        return good(draft.put(ACCOUNT.name, email, body))

    def _account(self, request: Request, draft: Draft) -> Reply:
        return good(_existing(draft, request.words["email"]))

    def _delete(self, request: Request, draft: Draft) -> Reply:
        email = _existing(draft, request.words["email"])["email"]
        draft.remove(ACCOUNT.name, email)
        for key, body in draft.everything(HMAC_KEY.name):
            if body["serviceAccountEmail"] == email:
                draft.remove(HMAC_KEY.name, key)
        return good({})

    # --- keys

    def _keys(self, request: Request, draft: Draft) -> Reply:
        project, email = request.words["project"], request.query.get("serviceAccountEmail")

        def fits(body: Body) -> bool:
            return bool(body["projectId"] == project and email in (None, body["serviceAccountEmail"]))

        found, more = self.page(request, draft, HMAC_KEY.name, fits, 250)
        return good({"kind": "storage#hmacKeysMetadata", "items": [_shown(body) for _, body in found], **more})

    def _make_key(self, request: Request, draft: Draft) -> Reply:
        account = _existing(draft, request.query.get("serviceAccountEmail", ""))
        if account["projectId"] != request.words["project"]:
            raise invalid(f"The service account {account['email']} is in another project.")
        body = {
            "accessId": f"GOOG1E{secrets.token_hex(24).upper()}",
            "projectId": request.words["project"],
            "serviceAccountEmail": account["email"],
            "state": "ACTIVE",
            "timeCreated": now(),
            "_secret": secrets.token_urlsafe(30),
        }
        draft.put(HMAC_KEY.name, body["accessId"], body)
        return good({"kind": "storage#hmacKey", "metadata": _shown(body), "secret": body["_secret"]})

    def _update_key(self, request: Request, draft: Draft) -> Reply:
        body = _key(draft, request)
        state = self.body_of(request).get("state")
        if state not in ("ACTIVE", "INACTIVE"):
            raise invalid(f"Invalid state {state!r}")
        return good(_shown(draft.put(HMAC_KEY.name, body["accessId"], {**body, "state": state})))

    def _drop_key(self, request: Request, draft: Draft) -> Reply:
        body = _key(draft, request)
        if body["state"] != "INACTIVE":
            raise Refused(400, "invalid", "Cannot delete keys in ACTIVE state.")
        draft.remove(HMAC_KEY.name, body["accessId"])
        return Reply(204)

    # --- who has which role in a bucket

    def _policy(self, request: Request, draft: Draft) -> Reply:
        return good(_policy_of(draft, request.words["name"]))

    def _set_policy(self, request: Request, draft: Draft) -> Reply:
        name, asked = request.words["name"], self.body_of(request)
        before = _policy_of(draft, name)
        fits = asked.get("etag") in (None, before["etag"])
        draft.require(fits, Refused(412, "conditionNotMet", "The policy was changed since it was read."))
        for binding in asked.get("bindings") or ():
            for member in binding["members"]:
                kind, _, email = member.partition(":")
                if kind == "serviceAccount" and draft.peek(ACCOUNT.name, email) is None:
                    raise invalid(f"Service account {email} does not exist.")
        draft.put(IAM_POLICY.name, name, {"bucket": name, "bindings": asked.get("bindings") or []})
        return good(_policy_of(draft, name))


def _existing(draft: Draft, email: str) -> Body:
    found = draft.peek(ACCOUNT.name, email)
    if found is None:
        raise stated(404, "NOT_FOUND", f"Unknown service account {email}")
    return found


def _key(draft: Draft, request: Request) -> Body:
    found = draft.peek(HMAC_KEY.name, request.words["key"])
    if found is None:
        raise not_found(request.words["key"])
    return found


def _shown(body: Body) -> dict[str, Any]:
    return {key: value for key, value in body.items() if not key.startswith("_")}


def _policy_of(draft: Draft, bucket: str) -> dict[str, Any]:
    if draft.peek("bucket", bucket) is None:
        raise Refused(404, "notFound", "The specified bucket does not exist.")
    bindings = (draft.peek(IAM_POLICY.name, bucket) or {}).get("bindings") or []
    return {"kind": "storage#policy", "version": 1, "bindings": bindings, "etag": fingerprint(bindings)}
