"""VCNs, subnets, and what comes with them or stands in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.oci import common
from fractal_sandbox.oci.core import BASE, Collection, existing
from fractal_sandbox.rest import Body, Draft, Kind, Phase, Place, Refused, Reply, Request, Route

__all__ = ["GATEWAY", "PARTS", "SUBNET", "VCN", "VNIC", "free_address", "routes"]

_STATES: Final[Mapping[Phase, str]] = {
    "creating": "PROVISIONING",
    "updating": "UPDATING",
    "deleting": "TERMINATING",
}
MOST_BLOCKS: Final = 5
# The parts every VCN is made with: path, word of their ids, noun, and the field of the VCN that names the default one.
PARTS: Final = {
    "routeTables": ("routetable", "RouteTable", "defaultRouteTableId"),
    "securityLists": ("securitylist", "SecurityList", "defaultSecurityListId"),
    "dhcpOptions": ("dhcpoptions", "DhcpOption", "defaultDhcpOptionsId"),
}


def _in_phase(body: Body, phase: Phase) -> Body:
    return {**body, "lifecycleState": _STATES[phase]}


def _tagged_kind(name: str, scope: str) -> Kind:
    return Kind(
        name,
        lambda body: Place(body["displayName"], body[scope]),
        common.monitored_tags,
        _in_phase,
        passing=frozenset({common.VERSION}),
        tag_fields=frozenset({"freeformTags"}),
        replaces_tags=True,
    )


VCN: Final = _tagged_kind("vcn", "compartmentId")
SUBNET: Final = _tagged_kind("subnet", "vcnId")
GATEWAY: Final = common.plain("internetgateway")
VNIC: Final = common.unmonitored("vnic", "made and deleted by OCI along with its instance")


def part_kind(path: str) -> Kind:
    """What OCI makes and deletes along with a VCN; more of them are people's."""
    return common.plain(path, goes_with=lambda body: (str(body["vcnId"]),))


def _block(text: Any, largest: int = 16, smallest: int = 30) -> IPv4Network:
    try:
        block = IPv4Network(text)
    except ValueError:
        raise common.invalid(f"cidrBlock {text!r} is not valid") from None
    if not largest <= block.prefixlen <= smallest:
        raise common.invalid(f"cidrBlock {text!r} must be between /{largest} and /{smallest}")
    return block


def _apart(blocks: list[str]) -> list[str]:
    known: list[IPv4Network] = []
    for text in blocks:
        block = _block(text)
        if any(block.overlaps(other) for other in known):
            raise common.invalid(f"cidrBlock {text} overlaps with another one of the VCN")
        known.append(block)
    if not 0 < len(known) <= MOST_BLOCKS:
        raise Refused(400, "LimitExceeded", f"a VCN has 1 to {MOST_BLOCKS} cidrBlocks")
    return blocks


def _make_vcn(draft: Draft, body: Body) -> Body:
    given = body.pop("cidrBlocks", None) or [body.get("cidrBlock")]
    blocks = _apart(given)
    ipv6 = ["2603:c020:4000::/56"] if body.pop("isIpv6Enabled", False) else []
    for path, (word, _, field) in PARTS.items():
        part = {"id": common.new_id(word), "vcnId": body["id"], "compartmentId": body["compartmentId"]}
        named = {"displayName": f"Default {word} for {body['displayName']}", "lifecycleState": "AVAILABLE"}
        draft.put(path, part["id"], {**part, **named, "freeformTags": {}, common.VERSION: 1})
        body[field] = part["id"]
    domain = {"vcnDomainName": f"{body['dnsLabel']}.oraclevcn.com"} if body.get("dnsLabel") else {}
    return {**body, "cidrBlock": blocks[0], "cidrBlocks": blocks, "ipv6CidrBlocks": ipv6, **domain}


def _inside(draft: Draft, kind: Kind | str, field: str, resource_id: str) -> Iterator[Body]:
    name = kind if isinstance(kind, str) else kind.name
    return (one for _, one in draft.everything(name) if one.get(field) == resource_id)


def _in_use(what: str, body: Body, by: str, other: Body) -> Refused:
    message = f"The {what} {body['id']} references the {by} {other['id']}. "
    return Refused(409, "Conflict", message + "You must remove the reference to proceed with this operation.")


def _delete_vcn(draft: Draft, body: Body, query: Mapping[str, str]) -> None:
    del query
    for kind, by in ((SUBNET, "Subnet"), (GATEWAY, "InternetGateway")):
        for other in _inside(draft, kind, "vcnId", body["id"]):
            raise _in_use("VCN", body, by, other)
    own = {body[field] for _, _, field in PARTS.values()}
    for path in PARTS:
        for part in list(_inside(draft, path, "vcnId", body["id"])):
            if part["id"] not in own:
                raise _in_use("VCN", body, path, part)
            draft.remove(path, part["id"])


def _make_subnet(draft: Draft, body: Body) -> Body:
    vcn = existing(draft, VCN.name, body.get("vcnId"))
    block = _block(body.get("cidrBlock"))
    _check_place(draft, vcn, body["id"], block)
    named = f"{body['dnsLabel']}.{vcn['vcnDomainName']}" if body.get("dnsLabel") and vcn.get("vcnDomainName") else None
    made = {
        "routeTableId": vcn["defaultRouteTableId"],
        "dhcpOptionsId": vcn["defaultDhcpOptionsId"],
        "securityListIds": [vcn["defaultSecurityListId"]],
        "availabilityDomain": None,
        "prohibitPublicIpOnVnic": False,
        **body,
        "virtualRouterIp": str(block[1]),
        "virtualRouterMac": "00:00:17:00:00:01",
        "subnetDomainName": named,
    }
    _check_parts(draft, made)
    return made


def _check_place(draft: Draft, vcn: Body, own_id: str, block: IPv4Network) -> None:
    if not any(block.subnet_of(IPv4Network(outer)) for outer in vcn["cidrBlocks"]):
        raise common.invalid(f"The requested CIDR {block} is not within the VCN's CIDRs {vcn['cidrBlocks']}")
    for other in _inside(draft, SUBNET, "vcnId", vcn["id"]):
        if other["id"] != own_id and block.overlaps(ip_network(other["cidrBlock"])):
            raise common.invalid(f"The requested CIDR {block} is invalid: subnet {other['id']} overlaps with it")


def _check_parts(draft: Draft, body: Body) -> None:
    named = [("routeTables", body["routeTableId"]), ("dhcpOptions", body["dhcpOptionsId"])]
    for path, part in [*named, *(("securityLists", one) for one in body["securityListIds"])]:
        existing(draft, path, part)


def _change_subnet(draft: Draft, body: Body, given: Body) -> Body:
    changed = {**body, **given}
    if given.get("cidrBlock", body["cidrBlock"]) != body["cidrBlock"]:
        block, before = _block(given["cidrBlock"]), IPv4Network(body["cidrBlock"])
        if block.network_address != before.network_address:
            raise common.invalid(f"The new CIDR {block} must have the network address of the old one, {before}")
        _check_place(draft, existing(draft, VCN.name, body["vcnId"]), body["id"], block)
        for vnic in _inside(draft, VNIC, "subnetId", body["id"]):
            if ip_network(vnic["privateIp"]).network_address not in block:
                raise common.invalid(f"The new CIDR {block} does not hold {vnic['privateIp']}, which is in use")
    _check_parts(draft, changed)
    return changed


def _delete_subnet(draft: Draft, body: Body, query: Mapping[str, str]) -> None:
    del query
    for vnic in _inside(draft, VNIC, "subnetId", body["id"]):
        raise _in_use("Subnet", body, "VNIC", vnic)


def free_address(draft: Draft, subnet: Body) -> str:
    """The next address of a subnet that nobody has; OCI keeps the first two and the last for itself."""
    taken = {vnic["privateIp"] for vnic in _inside(draft, VNIC, "subnetId", subnet["id"])}
    block = IPv4Network(subnet["cidrBlock"])
    for number in range(2, block.num_addresses - 1):
        if str(block[number]) not in taken:
            return str(block[number])
    raise Refused(400, "LimitExceeded", f"subnet {subnet['id']} has no free address")


def _make_part(draft: Draft, body: Body) -> Body:
    existing(draft, VCN.name, body.get("vcnId"))
    return body


_VCNS: Final = Collection(
    VCN,
    "vcns",
    "vcn",
    "Vcn",
    made=("cidrBlock", "cidrBlocks", "dnsLabel", "isIpv6Enabled"),
    make=_make_vcn,
    on_delete=_delete_vcn,
)
_SUBNETS: Final = Collection(
    SUBNET,
    "subnets",
    "subnet",
    "Subnet",
    made=(
        "vcnId",
        "cidrBlock",
        "availabilityDomain",
        "dnsLabel",
        "prohibitPublicIpOnVnic",
        "prohibitInternetIngress",
        "routeTableId",
        "securityListIds",
        "dhcpOptionsId",
    ),
    changed=("cidrBlock", "routeTableId", "securityListIds", "dhcpOptionsId"),
    make=_make_subnet,
    change=_change_subnet,
    on_delete=_delete_subnet,
    filters=("vcnId",),
)
_GATEWAYS: Final = Collection(
    GATEWAY,
    "internetGateways",
    "internetgateway",
    "InternetGateway",
    made=("vcnId", "isEnabled"),
    changed=("isEnabled",),
    make=_make_part,
    filters=("vcnId",),
)
_RULES: Final = ("vcnId", "routeRules", "ingressSecurityRules", "egressSecurityRules", "options")


def _change_blocks(action: str) -> Any:
    """How blocks of a VCN are added, taken away or replaced."""

    def handle(request: Request, draft: Draft) -> Reply:
        body = _VCNS.writable(request, draft)
        given = common.check_fields(request.json(), ("cidrBlock", "originalCidrBlock", "newCidrBlock"))
        blocks: list[str] = body["cidrBlocks"]
        leaving = given.get("originalCidrBlock") or (given.get("cidrBlock") if action == "removeCidr" else None)
        coming = given.get("newCidrBlock") or (given.get("cidrBlock") if action == "addCidr" else None)
        if leaving is not None and leaving not in blocks:
            raise common.invalid(f"{leaving} is no cidrBlock of the VCN")
        blocks = _apart([*(one for one in blocks if one != leaving), *([coming] if coming else [])])
        for subnet in _inside(draft, SUBNET, "vcnId", body["id"]):
            if not any(IPv4Network(subnet["cidrBlock"]).subnet_of(IPv4Network(block)) for block in blocks):
                raise _in_use("VCN", body, "Subnet", subnet)
        _VCNS.keep(draft, {**body, "cidrBlock": blocks[0], "cidrBlocks": blocks})
        return Reply(202, None, (("opc-work-request-id", common.new_id("coreservicesworkrequest")),))

    return handle


def routes(knobs: Knobs) -> list[Route]:
    """Everything of networks."""
    found = [*_VCNS.routes(knobs), *_SUBNETS.routes(knobs), *_GATEWAYS.routes(knobs)]
    for action in ("addCidr", "removeCidr", "modifyCidr"):
        path = f"{BASE}/vcns/{{id}}/actions/{action}"
        found.append(Route("POST", path, "core", f"{action[:-4]}VcnCidr", _change_blocks(action), "id", kind=VCN.name))
    for path, (word, noun, _) in PARTS.items():
        part = Collection(
            part_kind(path), path, word, noun, made=_RULES, changed=_RULES[1:], make=_make_part, filters=("vcnId",)
        )
        found += part.routes(knobs)
    return found
