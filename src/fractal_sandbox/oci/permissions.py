"""Which permissions a call needs, and in which compartment: as Oracle's tables say of each operation.

A call that stands nowhere here needs what nobody can grant: an unknown right is a missing one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fractal_sandbox.oci import TENANCY
from fractal_sandbox.oci.policies import Asked, Statement, allows
from fractal_sandbox.rest import Body, Draft, Request, Route

__all__ = ["missing", "needs_of"]

_ATTACHED: Final = ("ROUTE_TABLE", "SECURITY_LIST", "DHCP")
_MADE_WITH_VCNS: Final = tuple(f"{one}_CREATE" for one in _ATTACHED)
_GONE_WITH_VCNS: Final = tuple(f"{one}_DELETE" for one in _ATTACHED)
# By operation: what it needs where the resource is, or is to be.
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "listCompartments": ("COMPARTMENT_INSPECT",),
    "getCompartment": ("COMPARTMENT_INSPECT",),
    "listAvailabilityDomains": ("COMPARTMENT_INSPECT",),
    "listRegionSubscriptions": ("TENANCY_INSPECT",),
    "listVcns": ("VCN_READ",),
    "createVcn": ("VCN_CREATE", *_MADE_WITH_VCNS),
    "getVcn": ("VCN_READ",),
    "updateVcn": ("VCN_UPDATE",),
    "deleteVcn": ("VCN_DELETE", *_GONE_WITH_VCNS),
    "addVcnCidr": ("VCN_UPDATE",),
    "removeVcnCidr": ("VCN_UPDATE",),
    "modifyVcnCidr": ("VCN_UPDATE",),
    "listSubnets": ("SUBNET_READ",),
    "createSubnet": ("VCN_ATTACH", "SUBNET_CREATE", *(f"{one}_ATTACH" for one in _ATTACHED)),
    "getSubnet": ("SUBNET_READ",),
    "updateSubnet": ("SUBNET_UPDATE", *(f"{one}_{verb}" for one in _ATTACHED for verb in ("ATTACH", "DETACH"))),
    "deleteSubnet": ("VCN_DETACH", "SUBNET_DELETE", *(f"{one}_DETACH" for one in _ATTACHED)),
    "listRouteTables": ("ROUTE_TABLE_READ",),
    "getRouteTable": ("ROUTE_TABLE_READ",),
    "listSecurityLists": ("SECURITY_LIST_READ",),
    "getSecurityList": ("SECURITY_LIST_READ",),
    "listDhcpOptions": ("DHCP_READ",),
    "getDhcpOption": ("DHCP_READ",),
    "listInstances": ("INSTANCE_INSPECT",),
    "createInstance": ("INSTANCE_CREATE", "INSTANCE_IMAGE_READ", "VNIC_CREATE", "VNIC_ATTACH"),
    "getInstance": ("INSTANCE_INSPECT",),
    "updateInstance": ("INSTANCE_UPDATE",),
    "deleteInstance": ("INSTANCE_DELETE", "VNIC_DELETE"),
    "actOnInstance": ("INSTANCE_POWER_ACTIONS",),
    "listVnicAttachments": ("VNIC_ATTACHMENT_READ",),
    "getVnic": ("VNIC_READ",),
    "listBootVolumes": ("VOLUME_INSPECT",),
    "listImages": ("INSTANCE_IMAGE_INSPECT",),
    "listShapes": ("INSTANCE_INSPECT",),
    "getNamespace": ("OBJECTSTORAGE_NAMESPACE_READ",),
    "listBuckets": ("BUCKET_INSPECT",),
    "createBucket": ("BUCKET_CREATE",),
    "getBucket": ("BUCKET_READ",),
    "headBucket": ("BUCKET_INSPECT",),
    "updateBucket": ("BUCKET_UPDATE",),
    "deleteBucket": ("BUCKET_DELETE",),
    "listObjects": ("OBJECT_INSPECT",),
    "putObject": ("OBJECT_CREATE",),
    "deleteObject": ("OBJECT_DELETE",),
    "listUsers": ("USER_INSPECT",),
    "createUser": ("USER_CREATE",),
    "getUser": ("USER_INSPECT",),
    "updateUser": ("USER_UPDATE",),
    "deleteUser": ("USER_DELETE",),
    "listGroups": ("GROUP_INSPECT",),
    "createGroup": ("GROUP_CREATE",),
    "getGroup": ("GROUP_INSPECT",),
    "updateGroup": ("GROUP_UPDATE",),
    "deleteGroup": ("GROUP_DELETE",),
    "listPolicies": ("POLICY_READ",),
    "createPolicy": ("POLICY_CREATE",),
    "getPolicy": ("POLICY_READ",),
    "updatePolicy": ("POLICY_UPDATE",),
    "deletePolicy": ("POLICY_DELETE",),
    "listUserGroupMemberships": ("USER_INSPECT", "GROUP_INSPECT"),
    "addUserToGroup": ("USER_UPDATE", "GROUP_UPDATE"),
    "getUserGroupMembership": ("USER_INSPECT", "GROUP_INSPECT"),
    "removeUserFromGroup": ("USER_UPDATE", "GROUP_UPDATE"),
    "listCustomerSecretKeys": ("USER_READ",),
    "createCustomerSecretKey": ("USER_UPDATE", "USER_SECRETKEY_ADD"),
    "deleteCustomerSecretKey": ("USER_UPDATE", "USER_SECRETKEY_REMOVE"),
}
_OF_THE_TENANCY: Final = ("COMPARTMENT_", "TENANCY_", "USER_", "GROUP_", "OBJECTSTORAGE_NAMESPACE_")
# Which kinds a path's id may name.
_KINDS: Final = ("vcn", "subnet", "instance", "vnic", "routeTables", "securityLists", "dhcpOptions", "policy")


def missing(statements: list[Statement], groups: frozenset[str], request: Request, route: Route, draft: Draft) -> str:
    """The first permission that a call lacks; empty where it lacks none."""
    for permission, compartment in needs_of(request, route, draft):
        asked = Asked(groups, _upwards(draft, compartment), permission, _variables(request, draft))
        if not allows(statements, asked):
            return permission
    return ""


def needs_of(request: Request, route: Route, draft: Draft) -> Iterator[tuple[str, str]]:
    """Everything a call needs, each with the compartment in which."""
    here = _compartment(request, draft)
    for permission in _NEEDS.get(route.operation, (f"unknown permission of {route.operation}",)):
        yield permission, TENANCY if permission.startswith(_OF_THE_TENANCY) else here
    subnet = _subnet(request, route, draft)
    if subnet is not None:
        verb = "ATTACH" if route.operation == "createInstance" else "DETACH"
        yield f"SUBNET_{verb}", str(subnet["compartmentId"])


def _compartment(request: Request, draft: Draft) -> str:
    """Where a call is at work: in the compartment it names, in that of what it names, else in the tenancy itself."""
    if request.path.startswith("/n/") and "id" in request.words:
        return next(
            (one["compartmentId"] for _, one in draft.everything("bucket") if one["name"] == request.words["id"]), ""
        ) or _said(request)
    for kind in _KINDS:
        found = draft.peek(kind, request.words.get("id", ""))
        if found is not None and found.get("compartmentId"):
            return str(found["compartmentId"])
    return _said(request)


def _said(request: Request) -> str:
    body = request.json() if request.body else None
    given = body if isinstance(body, Mapping) else {}
    return str(request.query.get("compartmentId") or given.get("compartmentId") or TENANCY)


def _subnet(request: Request, route: Route, draft: Draft) -> Body | None:
    """The subnet that a machine comes into or leaves: it may lie in another compartment."""
    if route.operation == "createInstance":
        asked: Any = request.json()
        return draft.peek("subnet", (asked.get("createVnicDetails") or {}).get("subnetId") or asked.get("subnetId", ""))
    if route.operation == "deleteInstance":
        machine = request.words["id"]
        attached = [one for _, one in draft.everything("vnic-attachment") if one["instanceId"] == machine]
        return draft.peek("subnet", attached[0]["subnetId"]) if attached else None
    return None


def _variables(request: Request, draft: Draft) -> dict[str, str]:
    """The names of what a call is about; a call that names none has no such variable, and no condition on it holds."""
    body: Any = request.json() if request.body else None
    given = body if isinstance(body, Mapping) else {}
    found: dict[str, str] = {}
    for kind, word in (("user", "users"), ("group", "groups"), ("policy", "policies")):
        named = request.words.get("id") if f"/{word}/" in request.path else None
        if kind == "user":
            named = request.words.get("user") or named
        item = draft.peek(kind, str(named or given.get(f"{kind}Id", "")))
        if item is not None:
            found[f"target.{kind}.name"] = str(item["name"])
        elif request.path.endswith(f"/{word}") and request.method == "POST":
            found[f"target.{kind}.name"] = str(given.get("name", ""))
    member = draft.peek("membership", request.words.get("id", ""))
    for kind in ("user", "group") if member is not None else ():
        item = draft.peek(kind, str((member or {})[f"{kind}Id"]))
        found[f"target.{kind}.name"] = str((item or {}).get("name", ""))
    return found


def _upwards(draft: Draft, compartment: str) -> frozenset[str]:
    """The ids of a compartment and of those above it, and their paths from below the root."""
    ids, names = [], []
    here = draft.peek("compartment", compartment)
    while here is not None:
        ids.append(str(here["id"]))
        names.append(str(here["name"]))
        here = draft.peek("compartment", str(here["compartmentId"] or ""))
    below_root = names[:-1][::-1]
    paths = [":".join(below_root[: end + 1]).lower() for end in range(len(below_root))]
    return frozenset((*ids, *paths))
