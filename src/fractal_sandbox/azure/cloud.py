"""The sandbox's Azure: which paths there are, who may call, and how it refuses."""

from __future__ import annotations

import base64
from functools import partial
from urllib.parse import urlencode
from uuid import uuid4

from fractal_sandbox.azure import GROUP, LOCATION, SUBSCRIPTION, identity
from fractal_sandbox.azure.arm import PAGE, Arm, show
from fractal_sandbox.azure.compute import COMPUTE_KINDS, switch
from fractal_sandbox.azure.kinds import ArmKind, the_kind
from fractal_sandbox.azure.locks import LOCKS, delete_lock, put_lock
from fractal_sandbox.azure.network import NETWORK_KINDS, delete_subnet, get_subnet, list_subnets, put_subnet
from fractal_sandbox.azure.services import (
    CHILDREN,
    SERVICE_KINDS,
    delete_child,
    list_children,
    put_child,
    user_credential,
)
from fractal_sandbox.azure.tags_and_groups import GROUPS, Across
from fractal_sandbox.calls import Actor
from fractal_sandbox.rest import ANY, Draft, Refused, Reply, Request, RestCloud, Route

__all__ = ["KINDS", "AzureCloud"]

KINDS: tuple[ArmKind, ...] = (*NETWORK_KINDS, *COMPUTE_KINDS, *SERVICE_KINDS)
_IN_SUBSCRIPTION = "/subscriptions/{subscription}"
_IN_GROUP = _IN_SUBSCRIPTION + "/resourceGroups/{group}"
_SPELLED = {
    word.lower(): word
    for kind in KINDS
    for word in (
        *("subscriptions", "resourceGroups", "providers", "subnets", "databases", "locations", "operations", "results"),
        *("Microsoft.Resources", "Microsoft.Authorization", "Microsoft.ResourceGraph", "tags", "default", "locks"),
        *("blobServices", "fileServices", "queueServices", "tableServices", "powerOff", "deallocate"),
        "listClusterUserCredential",
        *(kind.namespace, kind.plural),
    )
}


class AzureCloud(RestCloud):
    """One subscription with one resource group, to which people add."""

    name = "azure"
    kinds = (*(kind.stored() for kind in KINDS), GROUPS, LOCKS, CHILDREN)

    def begin(self, draft: Draft) -> None:
        """The resource group that is there from the start."""
        body = {
            "id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}",
            "name": GROUP,
            "type": "Microsoft.Resources/resourceGroups",
            "location": LOCATION,
            "tags": {},
            "properties": {"provisioningState": "Succeeded"},
        }
        draft.put("resourceGroups", GROUP, body)

    def actor_of(self, request: Request) -> Actor:
        """Whoever the token was made for; where tokens come from, anybody may ask."""
        if identity.is_public(request.path):
            return "agent" if request.headers.get("x-identity-header") == "agent" else "person"
        actor = identity.actor_of(request)
        if "api-version" not in request.query:
            raise Refused(
                400, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required."
            )
        return actor

    def refusal(self, refused: Refused) -> Reply:
        """In the envelope of every service."""
        return Reply(refused.status, {"error": {"code": refused.code, "message": refused.message}})

    def denied(self, missing: str) -> Refused:
        """As Resource Manager refuses whoever has no role for it."""
        return Refused(403, "AuthorizationFailed", f"The client does not have authorization to perform '{missing}'.")

    def page_of(self, request: Request) -> int:
        """By how far the list has come."""
        return int(request.query.get("$skiptoken") or 0) // (self.knobs.page_size or PAGE) + 1

    def region_of(self, request: Request) -> str:
        """The resource group, but for names that are unique in the world."""
        is_global = any(f"/{kind.plural}" in request.path for kind in KINDS if kind.is_global)
        return "" if is_global else request.words.get("group", "").lower()

    def headers(self) -> tuple[tuple[str, str], ...]:
        """What every answer of Resource Manager carries."""
        return (
            ("x-ms-request-id", str(uuid4())),
            ("x-ms-correlation-request-id", str(uuid4())),
            ("x-ms-ratelimit-remaining-subscription-reads", "249"),
        )

    def path_of(self, path: str) -> str:
        """Resource Manager ignores case, but for names, which are kept as they were given."""
        return "/".join(_SPELLED.get(part.lower(), part) for part in path.split("/"))

    def routes(self) -> list[Route]:
        """Everything there is an answer to."""
        return [*self._across(), *(route for kind in KINDS for route in self._of_kind(kind)), *self._parts()]

    def _across(self) -> list[Route]:
        across = Across(KINDS, self.knobs)
        tags = "/{scope...}/providers/Microsoft.Resources/tags/default"
        lock = "/{scope...}/providers/Microsoft.Authorization/locks/{lock}"
        return [
            Route("GET", "/msi/token", "identity", "getToken", identity.managed_identity),
            Route(
                "POST",
                "/{tenant}/oauth2/v2.0/token",
                "identity",
                "postToken",
                identity.service_principal,
                read="a token, which is no resource",
            ),
            Route("GET", "/{tenant}/v2.0/.well-known/openid-configuration", "identity", "openid", identity.openid),
            Route("GET", "/metadata/endpoints", "identity", "metadata", identity.metadata),
            Route("GET", "/subscriptions", "resources", "subscriptions", identity.subscriptions),
            Route("GET", _IN_SUBSCRIPTION, "resources", "subscription", identity.subscription),
            Route("GET", tags, "resources", "getTags", across.get_tags),
            Route("PATCH", tags, "resources", "updateTags", across.update_tags, kind=ANY),
            Route("PUT", lock, "authorization", "putLock", put_lock, kind=LOCKS.name),
            Route("DELETE", lock, "authorization", "deleteLock", delete_lock, kind=LOCKS.name),
            Route("GET", f"{_IN_SUBSCRIPTION}/resourceGroups", "resources", "groups", across.list_groups),
            Route("GET", _IN_GROUP, "resources", "group", across.get_group),
            Route("PUT", _IN_GROUP, "resources", "putGroup", across.put_group, kind=GROUPS.name),
            Route("DELETE", _IN_GROUP, "resources", "deleteGroup", across.delete_group, kind=GROUPS.name),
            Route("GET", f"{_IN_SUBSCRIPTION}/resources", "resources", "resources", across.list_resources),
            Route("GET", f"{_IN_GROUP}/resources", "resources", "resources", across.list_resources),
            Route(
                "POST",
                "/providers/Microsoft.ResourceGraph/resources",
                "resourcegraph",
                "resources",
                across.graph,
                read="a search",
            ),
            Route(
                "GET",
                _IN_SUBSCRIPTION + "/providers/{namespace}/locations/{location}/operations/{operation}",
                "resources",
                "operation",
                self._operation,
            ),
            Route(
                "GET",
                _IN_SUBSCRIPTION + "/providers/{namespace}/locations/{location}/results/{operation}",
                "resources",
                "operation result",
                self._result,
            ),
        ]

    def _of_kind(self, kind: ArmKind) -> list[Route]:
        arm = Arm(kind, self.knobs)
        collection = f"{_IN_GROUP}/providers/{kind.type}"
        one = collection + "/{name}"
        service = kind.service
        return [
            Route("GET", f"{_IN_SUBSCRIPTION}/providers/{kind.type}", service, f"list {kind.plural}", arm.list),
            Route("GET", collection, service, f"list {kind.plural}", arm.list),
            Route("GET", one, service, f"get {kind.plural}", arm.get, "name"),
            Route("PUT", one, service, f"createOrUpdate {kind.plural}", arm.put, "name", kind=kind.plural),
            Route("PATCH", one, service, f"update {kind.plural}", arm.patch, "name", kind=kind.plural),
            Route("DELETE", one, service, f"delete {kind.plural}", arm.delete, "name", kind=kind.plural),
        ]

    def _parts(self) -> list[Route]:
        """What has an address below a resource."""
        arms = {kind.plural: Arm(kind, self.knobs) for kind in KINDS}
        network, machine = arms["virtualNetworks"], arms["virtualMachines"]
        subnets = f"{_IN_GROUP}/providers/{network.kind.type}/{{network}}/subnets"
        subnet = subnets + "/{name}"
        action = f"{_IN_GROUP}/providers/{machine.kind.type}/{{name}}/{{action}}"
        found = [
            Route("GET", subnets, "network", "list subnets", list_subnets),
            Route("GET", subnet, "network", "get subnets", get_subnet, "name"),
            Route(
                "PUT",
                subnet,
                "network",
                "createOrUpdate subnets",
                partial(put_subnet, network),
                "name",
                kind=network.kind.plural,
            ),
            Route(
                "DELETE",
                subnet,
                "network",
                "delete subnets",
                partial(delete_subnet, network),
                "name",
                kind=network.kind.plural,
            ),
            Route(
                "POST",
                action,
                "compute",
                "switch virtualMachines",
                partial(switch, machine),
                "name",
                kind=machine.kind.plural,
            ),
        ]
        cluster = arms["managedClusters"]
        entry = f"{_IN_GROUP}/providers/{cluster.kind.type}/{{name}}/listClusterUserCredential"
        credential = partial(user_credential, cluster)
        found.append(
            Route(
                "POST",
                entry,
                "containerservice",
                "user credential",
                credential,
                "name",
                read="returns credentials, and keeps nothing",
            )
        )
        for plural, pattern in (
            ("storageAccounts", "{service}/default/{collection}"),
            ("flexibleServers", "{collection}"),
        ):
            arm = arms[plural]
            base = f"{_IN_GROUP}/providers/{arm.kind.type}/{{name}}/{pattern}"
            found += [
                Route("GET", base, arm.kind.service, "children", partial(list_children, arm), "name"),
                Route(
                    "PUT",
                    base + "/{child}",
                    arm.kind.service,
                    "put child",
                    partial(put_child, arm),
                    "name",
                    kind=CHILDREN.name,
                ),
                Route(
                    "DELETE",
                    base + "/{child}",
                    arm.kind.service,
                    "delete child",
                    partial(delete_child, arm),
                    "name",
                    kind=CHILDREN.name,
                ),
            ]
        return found

    def _result(self, request: Request, draft: Draft) -> Reply:
        """What came of the work on a resource: 202 while it goes on, then the resource."""
        plural, resource_id = _subject(request)
        if draft.phase(plural, resource_id) is not None:
            return Reply(202, None, (("Location", f"{request.base}{request.path}?{urlencode(request.query)}"),))
        body = draft.peek(plural, resource_id)
        return Reply(204) if body is None else Reply(200, show(the_kind(KINDS, plural), draft, body))

    def _operation(self, request: Request, draft: Draft) -> Reply:
        """How far the work on a resource is."""
        text = request.words["operation"]
        plural, resource_id = _subject(request)
        is_over = draft.phase(plural, resource_id) is None
        headers = () if is_over else (("Retry-After", "1"),)
        return Reply(
            200, {"id": request.path, "name": text, "status": "Succeeded" if is_over else "InProgress"}, headers
        )


def _subject(request: Request) -> tuple[str, str]:
    """The kind and the id of the resource that an operation works on."""
    text = request.words["operation"]
    plural, _, resource_id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(" ")
    return plural, resource_id
