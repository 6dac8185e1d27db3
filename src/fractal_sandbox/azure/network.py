"""Networks, security groups and network interfaces: what Azure fills in, and what it refuses."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any
from uuid import uuid4

from fractal_sandbox.azure.arm import Arm, show
from fractal_sandbox.azure.kinds import ArmKind, Rules, etag_name, group_of
from fractal_sandbox.azure.locks import refuse_if_locked
from fractal_sandbox.rest import Body, Draft, Refused, Reply, Request

__all__ = ["INTERFACES", "NETWORK_KINDS", "delete_subnet", "get_subnet", "list_subnets", "put_subnet"]

# From this version on, a network that is written without its subnets keeps them; before, it lost them.
_KEEPS_SUBNETS = "2023-09-01"
_NAMESPACE = "Microsoft.Network"


def _complete_network(draft: Draft, body: Body, before: Body | None) -> Body:
    properties = body["properties"]
    old = (before or {}).get("properties", {})
    properties["resourceGuid"] = old.get("resourceGuid") or str(uuid4())
    properties["provisioningState"] = "Succeeded"
    properties.setdefault("virtualNetworkPeerings", [])
    properties.setdefault("enableDdosProtection", False)
    blocks = (properties.get("addressSpace") or {}).get("addressPrefixes") or []
    if not blocks:
        raise Refused(400, "InvalidRequestFormat", "addressSpace.addressPrefixes is missing.")
    keeps = body.pop("_version", _KEEPS_SUBNETS) >= _KEEPS_SUBNETS
    given = properties.get("subnets", old.get("subnets", []) if keeps else [])
    kept = {one["name"].lower(): one for one in old.get("subnets", [])}
    subnets = [_complete_subnet(body["id"], one, kept.get(one["name"].lower())) for one in given]
    gone = {*kept} - {one["name"].lower() for one in subnets}
    for name in sorted(gone):
        _refuse_used_subnet(draft, kept[name], "InUseSubnetCannotBeDeleted")
    _refuse_overlaps(subnets, blocks)
    properties["subnets"] = subnets
    return body


def _complete_subnet(network_id: str, given: Body, old: Body | None) -> Body:
    properties = dict(given.get("properties") or {})
    for computed in ("ipConfigurations", "provisioningState"):
        properties.pop(computed, None)
    properties["provisioningState"] = "Succeeded"
    properties.setdefault("delegations", [])
    properties.setdefault("privateEndpointNetworkPolicies", "Disabled")
    same = old is not None and {**old["properties"]} == properties
    return {
        "name": given["name"],
        "id": f"{network_id}/subnets/{given['name']}",
        "type": "Microsoft.Network/virtualNetworks/subnets",
        "etag": old["etag"] if same and old is not None else f'W/"{uuid4()}"',
        "properties": properties,
    }


def _prefix(subnet: Body) -> str:
    properties = subnet["properties"]
    return str(properties.get("addressPrefix") or next(iter(properties.get("addressPrefixes") or ()), ""))


def _refuse_overlaps(subnets: list[Body], blocks: list[str]) -> None:
    try:
        spaces = [ip_network(block) for block in blocks]
        taken = [(one["name"], ip_network(_prefix(one))) for one in subnets]
    except ValueError as error:
        raise Refused(400, "InvalidAddressPrefixFormat", str(error)) from None
    for number, (name, block) in enumerate(taken):
        if not any(space.version == block.version and block.subnet_of(space) for space in spaces):  # type: ignore[arg-type]
            words = f"Subnet '{name}' is not valid because its IP address range is outside the virtual network."
            raise Refused(400, "NetcfgInvalidSubnet", words)
        for other, there in taken[:number]:
            if block.overlaps(there):
                raise Refused(400, "NetcfgSubnetRangesOverlap", f"Subnet '{name}' overlaps with subnet '{other}'.")


def _users(draft: Draft, subnet_id: str) -> list[Body]:
    """The addresses that network interfaces have in a subnet."""
    return [
        {"id": configuration["id"]}
        for _, interface in draft.everything("networkInterfaces")
        for configuration in interface["properties"]["ipConfigurations"]
        if configuration["properties"]["subnet"]["id"].lower() == subnet_id.lower()
    ]


def _refuse_used_subnet(draft: Draft, subnet: Body, code: str) -> None:
    users = _users(draft, subnet["id"])
    if users:
        words = f"Subnet {subnet['name']} is in use by {users[0]['id']} and cannot be changed or deleted."
        raise Refused(400, code, words)


def _shown_network(draft: Draft, body: Body) -> Body:
    for subnet in body["properties"]["subnets"]:
        _show_subnet(draft, subnet)
    return body


def _show_subnet(draft: Draft, subnet: Body) -> Body:
    users = _users(draft, subnet["id"])
    if users:
        subnet["properties"]["ipConfigurations"] = users
    return subnet


def _leave_network(draft: Draft, body: Body) -> None:
    for subnet in body["properties"]["subnets"]:
        _refuse_used_subnet(draft, subnet, "InUseSubnetCannotBeDeleted")


def _complete_group(_: Draft, body: Body, before: Body | None) -> Body:
    properties = body["properties"]
    body.pop("_version", None)
    for computed in ("subnets", "networkInterfaces", "defaultSecurityRules"):
        properties.pop(computed, None)
    properties["resourceGuid"] = (before or {}).get("properties", {}).get("resourceGuid") or str(uuid4())
    properties["provisioningState"] = "Succeeded"
    seen: set[Any] = set()
    rules = []
    for rule in properties.get("securityRules") or []:
        asked = rule.get("properties") or {}
        key = (asked.get("direction"), asked.get("priority"))
        if None in key or key in seen:
            words = f"Security rule {rule.get('name')} has conflicting or missing priority or direction."
            raise Refused(400, "SecurityRuleConflict", words)
        seen.add(key)
        rules.append({**rule, "id": f"{body['id']}/securityRules/{rule['name']}", "properties": _complete_rule(asked)})
    properties["securityRules"] = rules
    return body


def _complete_rule(rule: Body) -> Body:
    found = {**rule, "provisioningState": "Succeeded"}
    for one in ("sourceAddressPrefix", "sourcePortRange", "destinationAddressPrefix", "destinationPortRange"):
        several = f"{one}es" if one.endswith("Prefix") else f"{one}s"
        found.setdefault(several, [])
        if not found[several] and not found.get(one):
            raise Refused(400, "SecurityRuleParameterMissing", f"Security rule parameter {one} is missing.")
    return found


def _shown_group(draft: Draft, body: Body) -> Body:
    under = [
        {"id": subnet["id"]}
        for _, network in draft.everything("virtualNetworks")
        for subnet in network["properties"]["subnets"]
        if str((subnet["properties"].get("networkSecurityGroup") or {}).get("id")).lower() == body["id"].lower()
    ]
    if under:
        body["properties"]["subnets"] = under
    return body


def _leave_group(draft: Draft, body: Body) -> None:
    users = _shown_group(draft, body)["properties"].get("subnets")
    if users:
        words = f"Network security group {body['name']} cannot be deleted because it is in use by {users[0]['id']}."
        raise Refused(400, "InUseNetworkSecurityGroupCannotBeDeleted", words)


_NETWORK = ArmKind(
    _NAMESPACE,
    "virtualNetworks",
    "network",
    etag="etag",
    rules=Rules(_complete_network, _shown_network, _leave_network),
)
_GROUP = ArmKind(
    _NAMESPACE,
    "networkSecurityGroups",
    "network",
    etag="etag",
    rules=Rules(_complete_group, _shown_group, _leave_group),
)


def _machine(body: Body) -> tuple[str, ...]:
    """What an interface lives and dies with: the machine that made it."""
    return (str((body["properties"].get("virtualMachine") or {}).get("id") or "").lower(),)


INTERFACES = ArmKind(_NAMESPACE, "networkInterfaces", "network", etag="etag", goes_with=_machine)
NETWORK_KINDS = (_NETWORK, _GROUP, INTERFACES)


# --- subnets: parts of their network, at addresses of their own


def _network_of(request: Request, draft: Draft) -> tuple[str, Body]:
    words = request.words
    network_id = (
        f"/subscriptions/{words['subscription']}/resourceGroups/{words['group']}"
        f"/providers/{_NETWORK.type}/{words['network']}"
    )
    body = draft.find("virtualNetworks", network_id.lower())
    if body is None or not group_of(network_id):
        raise Refused(404, "ResourceNotFound", f"The Resource '{network_id}' was not found.")
    return network_id, body


def get_subnet(request: Request, draft: Draft) -> Reply:
    _, network = _network_of(request, draft)
    for subnet in network["properties"]["subnets"]:
        if subnet["name"].lower() == request.words["name"].lower():
            return Reply(200, _show_subnet(draft, subnet))
    raise Refused(404, "NotFound", f"Resource {request.words['name']} not found.")


def list_subnets(request: Request, draft: Draft) -> Reply:
    _, network = _network_of(request, draft)
    return Reply(200, {"value": [_show_subnet(draft, subnet) for subnet in network["properties"]["subnets"]]})


def put_subnet(arm: Arm, request: Request, draft: Draft) -> Reply:
    network_id, network = _network_of(request, draft)
    refuse_if_locked(draft, network_id, deletes=False)
    name = request.words["name"]
    given = {**(request.json() or {}), "name": name}
    others = [one for one in network["properties"]["subnets"] if one["name"].lower() != name.lower()]
    old = next((one for one in network["properties"]["subnets"] if one not in others), None)
    if old is not None and _prefix(old) != _prefix(given):
        _refuse_used_subnet(draft, old, "InUseSubnetCannotBeUpdated")
    wanted = request.headers.get("if-match")
    if wanted and wanted != "*":
        holds = old is not None and etag_name(old) == wanted
        draft.require(holds, Refused(412, "PreconditionFailed", "The etag of the subnet is another one."))
    after = {**network, "properties": {**network["properties"], "subnets": [*others, given]}}
    seen = show(_NETWORK, draft, arm.write(draft, network_id, after, network))
    made = next(one for one in seen["properties"]["subnets"] if one["name"].lower() == name.lower())
    return Reply(201 if old is None else 200, made)


def delete_subnet(arm: Arm, request: Request, draft: Draft) -> Reply:
    network_id, network = _network_of(request, draft)
    refuse_if_locked(draft, network_id, deletes=True)
    subnets = network["properties"]["subnets"]
    others = [one for one in subnets if one["name"].lower() != request.words["name"].lower()]
    if len(others) == len(subnets):
        return Reply(204)
    arm.write(draft, network_id, {**network, "properties": {**network["properties"], "subnets": others}}, network)
    return Reply(200)
