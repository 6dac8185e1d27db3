"""The identity service: users, groups, who is in which, policies, and the keys with which users sign as for S3."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.oci import REGION, TENANCY, common
from fractal_sandbox.oci.core import BASE, COMPARTMENT, existing
from fractal_sandbox.oci.policies import read_statement
from fractal_sandbox.rest import Body, Draft, Kind, Refused, Reply, Request, Route

__all__ = ["KINDS", "REGION_KEY", "Domain", "routes"]

REGION_KEY: Final = "FRA"
USER: Final = common.marked("user")
GROUP: Final = common.marked("group")
POLICY: Final = common.marked("policy")


def _user_and_group(before: Body | None, after: Body | None) -> list[tuple[str, str]]:
    body = before or after or {}
    return [(USER.name, body["userId"]), (GROUP.name, body["groupId"])]


def _user(before: Body | None, after: Body | None) -> list[tuple[str, str]]:
    return [(USER.name, (before or after or {})["userId"])]


MEMBERSHIP: Final = common.plain("membership", speakers=_user_and_group)
SECRET_KEY: Final = common.plain("secret-key", speakers=_user)
KINDS: Final = (USER, GROUP, POLICY, MEMBERSHIP, SECRET_KEY)
MOST_KEYS: Final = 2


@dataclass
class Domain:
    """The tenancy's default identity domain; many ask for an address of every user."""

    needs_email: bool = False


@dataclass(frozen=True)
class _Named:
    """One kind of what has a name that is unique in the tenancy."""

    kind: Kind
    path: str
    noun: str
    fields: tuple[str, ...]
    check: Callable[[Draft, Body], None]
    gone: Callable[[Draft, Body], None]

    def routes(self, knobs: Knobs) -> list[Route]:
        many, one = f"{BASE}/{self.path}", f"{BASE}/{self.path}/{{id}}"

        def listing(request: Request, draft: Draft) -> Reply:
            compartment = request.query.get("compartmentId", "")
            existing(draft, COMPARTMENT.name, compartment)
            named = request.query.get("name")
            every = [body for _, body in draft.all(self.kind.name) if body["compartmentId"] == compartment]
            return common.page(request, knobs, [common.shown(one) for one in every if named in (None, one["name"])])

        return [
            Route("GET", many, "identity", f"list{self.path.capitalize()}", listing),
            Route("POST", many, "identity", f"create{self.noun}", self._create, kind=self.kind.name),
            Route("GET", one, "identity", f"get{self.noun}", self._get, "id"),
            Route("PUT", one, "identity", f"update{self.noun}", self._update, "id", kind=self.kind.name),
            Route("DELETE", one, "identity", f"delete{self.noun}", self._delete, "id", kind=self.kind.name),
        ]

    def _create(self, request: Request, draft: Draft) -> Reply:
        fields = ("compartmentId", "name", "description", "freeformTags", "definedTags", *self.fields)
        given = common.check_fields(request.json(), fields)
        for needed in ("compartmentId", "name", "description"):
            if needed not in given:
                raise common.invalid(f"{needed} is missing")
        existing(draft, COMPARTMENT.name, given["compartmentId"])
        if any(one["name"].lower() == given["name"].lower() for _, one in draft.everything(self.kind.name)):
            raise Refused(409, f"{self.noun}AlreadyExists", f"{self.noun} '{given['name']}' already exists.")
        body = {
            "id": f"ocid1.{self.kind.name}.oc1..{uuid4().hex}",
            "timeCreated": common.now(),
            "lifecycleState": "ACTIVE",
            "definedTags": {},
            **({"isMfaActivated": False} if self.kind is USER else {}),
            **given,
            "freeformTags": common.tagged(given.get("freeformTags")),
        }
        self.check(draft, body)
        return common.answer(draft.put(self.kind.name, body["id"], common.bumped(body)))

    def _get(self, request: Request, draft: Draft) -> Reply:
        body = draft.find(self.kind.name, request.words["id"])
        if body is None:
            raise common.not_found()
        return common.answer(body)

    def _update(self, request: Request, draft: Draft) -> Reply:
        body = existing(draft, self.kind.name, request.words["id"])
        common.check_etag(request, draft, body)
        fields = ("description", "freeformTags", "definedTags", *self.fields)
        body |= common.check_fields(request.json(), fields)
        self.check(draft, body)
        return common.answer(draft.put(self.kind.name, body["id"], common.bumped(body)))

    def _delete(self, request: Request, draft: Draft) -> Reply:
        body = existing(draft, self.kind.name, request.words["id"])
        common.check_etag(request, draft, body)
        self.gone(draft, body)
        draft.remove(self.kind.name, body["id"])
        return Reply(204)


def _in_the_tenancy(draft: Draft, body: Body) -> None:
    del draft
    if body["compartmentId"] != TENANCY:
        raise common.invalid("Tenant id is not equal to compartment id")


def _policy(draft: Draft, body: Body) -> None:
    if not body.get("statements"):
        raise common.invalid("statements are missing")
    for text in body["statements"]:
        said = read_statement(text)
        if said.group:
            existing(draft, GROUP.name, said.group, "group")
        if said.named and said.named not in {one["name"] for _, one in draft.everything(GROUP.name)}:
            raise common.not_found("group")
        # A policy says nothing about what lies above or beside its compartment.
        is_of_the_tenancy = body["compartmentId"] == TENANCY
        if not is_of_the_tenancy and (said.path or said.compartment != body["compartmentId"]):
            raise common.invalid(f"{text!r} is about another compartment than the policy's own")


def _without_members(field: str) -> Callable[[Draft, Body], None]:
    def gone(draft: Draft, body: Body) -> None:
        if any(one[field] == body["id"] for _, one in draft.everything(MEMBERSHIP.name)):
            raise Refused(409, "Conflict", f"{body['name']} still has memberships: remove them first.")
        for key, one in draft.everything(SECRET_KEY.name):
            if one["userId"] == body["id"]:
                draft.remove(SECRET_KEY.name, key)

    return gone


def _just_gone(draft: Draft, body: Body) -> None:
    del draft, body


def _memberships(request: Request, draft: Draft) -> Reply:
    wanted = {name: request.query[name] for name in ("userId", "groupId") if name in request.query}
    if not wanted:
        raise common.invalid("userId or groupId must be given")
    every = [common.shown(one) for _, one in draft.everything(MEMBERSHIP.name)]
    return Reply(200, [one for one in every if all(one[name] == value for name, value in wanted.items())])


def _join(request: Request, draft: Draft) -> Reply:
    given = common.check_fields(request.json(), ("userId", "groupId"))
    existing(draft, USER.name, given.get("userId"))
    existing(draft, GROUP.name, given.get("groupId"))
    for _, one in draft.everything(MEMBERSHIP.name):
        if all(one[name] == value for name, value in given.items()):
            raise Refused(409, "MembershipAlreadyExists", "The user is already a member of the group.")
    about = {"compartmentId": TENANCY, "lifecycleState": "ACTIVE", "timeCreated": common.now()}
    body = {"id": common.new_id("groupmembership"), **about, **given}
    return common.answer(draft.put(MEMBERSHIP.name, body["id"], common.bumped(body)))


def _leave(request: Request, draft: Draft) -> Reply:
    body = existing(draft, MEMBERSHIP.name, request.words["id"])
    common.check_etag(request, draft, body)
    draft.remove(MEMBERSHIP.name, body["id"])
    return Reply(204)


def _membership(request: Request, draft: Draft) -> Reply:
    return common.answer(existing(draft, MEMBERSHIP.name, request.words["id"]))


def _of_user(draft: Draft, user: str) -> list[Body]:
    existing(draft, USER.name, user)
    return [one for _, one in draft.everything(SECRET_KEY.name) if one["userId"] == user]


def _shown_key(body: Body) -> Body:
    return {name: value for name, value in common.shown(body).items() if name != "key"}


def _keys(request: Request, draft: Draft) -> Reply:
    return Reply(200, [_shown_key(one) for one in _of_user(draft, request.words["user"])])


def _make_key(request: Request, draft: Draft) -> Reply:
    given = common.check_fields(request.json(), ("displayName",))
    user = request.words["user"]
    if len(_of_user(draft, user)) >= MOST_KEYS:
        raise Refused(400, "LimitExceeded", f"A user has at most {MOST_KEYS} customer secret keys.")
    body = {
        "id": secrets.token_hex(20),
        "key": secrets.token_urlsafe(32),
        "userId": user,
        "displayName": given.get("displayName", ""),
        "lifecycleState": "ACTIVE",
        "timeCreated": common.now(),
    }
    # The one answer that holds the secret.
    return common.answer(draft.put(SECRET_KEY.name, body["id"], common.bumped(body)))


def _drop_key(request: Request, draft: Draft) -> Reply:
    body = existing(draft, SECRET_KEY.name, request.words["id"])
    if body["userId"] != request.words["user"]:
        raise common.not_found()
    draft.remove(SECRET_KEY.name, body["id"])
    return Reply(204)


def _subscriptions(request: Request, draft: Draft) -> Reply:
    del request, draft
    here = {"regionKey": REGION_KEY, "regionName": REGION, "status": "READY", "isHomeRegion": True}
    return Reply(200, [here])


def routes(knobs: Knobs, domain: Domain) -> list[Route]:
    """Everything of identity, but for compartments."""

    def user(draft: Draft, body: Body) -> None:
        _in_the_tenancy(draft, body)
        if domain.needs_email and not body.get("email"):
            words = 'Post request failed{"detail":"The primary email must be specified.","status":"400"}'
            raise Refused(400, "IdcsConversionError", words)

    service, of_user = "identity", f"{BASE}/users/{{user}}/customerSecretKeys"
    kinds = (
        _Named(USER, "users", "User", ("email",), user, _without_members("userId")),
        _Named(GROUP, "groups", "Group", (), _in_the_tenancy, _without_members("groupId")),
        _Named(POLICY, "policies", "Policy", ("statements", "versionDate"), _policy, _just_gone),
    )
    member = f"{BASE}/userGroupMemberships"
    return [
        *(route for kind in kinds for route in kind.routes(knobs)),
        Route("GET", member, service, "listUserGroupMemberships", _memberships),
        Route("POST", member, service, "addUserToGroup", _join, kind=MEMBERSHIP.name),
        Route("GET", f"{member}/{{id}}", service, "getUserGroupMembership", _membership, "id"),
        Route("DELETE", f"{member}/{{id}}", service, "removeUserFromGroup", _leave, "id", kind=MEMBERSHIP.name),
        *(Route("GET", path, service, "listCustomerSecretKeys", _keys) for path in (of_user, f"{of_user}/")),
        *(
            Route("POST", path, service, "createCustomerSecretKey", _make_key, kind=SECRET_KEY.name)
            for path in (of_user, f"{of_user}/")
        ),
        Route("DELETE", f"{of_user}/{{id}}", service, "deleteCustomerSecretKey", _drop_key, "id", kind=SECRET_KEY.name),
        Route(
            "GET", f"{BASE}/tenancies/{{id}}/regionSubscriptions", service, "listRegionSubscriptions", _subscriptions
        ),
    ]
