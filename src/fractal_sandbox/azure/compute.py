"""Machines and disks: a machine makes its interface and its disk, and takes along what its declaration says."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from fractal_sandbox.azure.arm import Arm
from fractal_sandbox.azure.kinds import ArmKind, Rules, group_of, name_of
from fractal_sandbox.azure.locks import refuse_if_locked
from fractal_sandbox.rest import Body, Draft, Refused, Reply, Request

__all__ = ["COMPUTE_KINDS", "switch"]

_NAMESPACE = "Microsoft.Compute"
_POWER = {"start": "running", "restart": "running", "powerOff": "stopped", "deallocate": "deallocated"}
_FIXED = (
    ("storageProfile", "imageReference"),
    ("osProfile", "adminUsername"),
    ("osProfile", "computerName"),
)


def _view(power: str) -> Body:
    return {"statuses": [{"code": "ProvisioningState/succeeded"}, {"code": f"PowerState/{power}"}]}


def _complete(draft: Draft, body: Body, before: Body | None) -> Body:
    properties = body["properties"]
    body.pop("_version", None)
    properties["provisioningState"] = "Succeeded"
    properties.pop("instanceView", None)
    if "userData" in properties:
        body["_userData"] = properties.pop("userData")
    if before is not None:
        return _changed(body, before)
    body["_instanceView"] = _view("running")
    properties["vmId"] = str(uuid4())
    _make_interfaces(draft, body)
    _make_disk(draft, body)
    return body


def _changed(body: Body, before: Body) -> Body:
    for group, name in _FIXED:
        old = (before["properties"].get(group) or {}).get(name)
        if (body["properties"].get(group) or {}).get(name, old) != old:
            words = f"Changing property '{group}.{name}' is not allowed."
            raise Refused(409, "PropertyChangeNotAllowed", words)
    return body


def _make_interfaces(draft: Draft, body: Body) -> None:
    profile = body["properties"].get("networkProfile") or {}
    made = []
    for configuration in profile.get("networkInterfaceConfigurations") or ():
        settings = configuration["properties"]
        interface_id = (
            f"{_group_path(body['id'])}/providers/Microsoft.Network/networkInterfaces/{configuration['name']}"
        )
        addresses = []
        for number, one in enumerate(settings["ipConfigurations"]):
            subnet_id = one["properties"]["subnet"]["id"]
            _subnet(draft, subnet_id)
            address = {"privateIPAddress": _address(draft, subnet_id), "primary": number == 0}
            addresses.append(
                {
                    "id": f"{interface_id}/ipConfigurations/{one['name']}",
                    "name": one["name"],
                    "properties": {**one["properties"], **address},
                }
            )
        draft.put(
            "networkInterfaces",
            interface_id.lower(),
            {
                "id": interface_id,
                "name": configuration["name"],
                "type": "Microsoft.Network/networkInterfaces",
                "location": body["location"],
                "etag": f'W/"{uuid4()}"',
                "properties": {
                    "provisioningState": "Succeeded",
                    "ipConfigurations": addresses,
                    "virtualMachine": {"id": body["id"]},
                },
            },
        )
        option = settings.get("deleteOption", "Detach")
        made.append({"id": interface_id, "properties": {"primary": True, "deleteOption": option}})
    given = profile.get("networkInterfaces") or []
    if not (made or given):
        raise Refused(400, "InvalidParameter", "Required parameter 'networkProfile' is missing (null).")
    body["properties"]["networkProfile"] = {"networkInterfaces": [*given, *made]}


def _subnet(draft: Draft, subnet_id: str) -> Body:
    network_id, _, name = subnet_id.rpartition("/subnets/")
    network = draft.peek("virtualNetworks", network_id.lower())
    for subnet in (network or {}).get("properties", {}).get("subnets", ()):
        if subnet["name"].lower() == name.lower():
            found: Body = subnet
            return found
    raise Refused(400, "InvalidResourceReference", f"Resource {subnet_id} referenced by the machine was not found.")


def _address(draft: Draft, subnet_id: str) -> str:
    prefix = str(_subnet(draft, subnet_id)["properties"].get("addressPrefix"))
    taken = len(draft.everything("networkInterfaces"))
    return prefix.rpartition(".")[0] + f".{4 + taken % 250}"


def _make_disk(draft: Draft, body: Body) -> None:
    disk: dict[str, Any] = body["properties"]["storageProfile"].setdefault("osDisk", {})
    disk.setdefault("name", f"{body['name']}_OsDisk")
    disk.setdefault("diskSizeGB", 30)
    disk_id = f"{_group_path(body['id'])}/providers/{_NAMESPACE}/disks/{disk['name']}"
    disk["managedDisk"] = {"id": disk_id, "storageAccountType": "Premium_LRS"}
    draft.put(
        "disks",
        disk_id.lower(),
        {
            "id": disk_id,
            "name": disk["name"],
            "type": f"{_NAMESPACE}/disks",
            "location": body["location"],
            "managedBy": body["id"],
            "properties": {"provisioningState": "Succeeded", "diskSizeGB": disk["diskSizeGB"]},
        },
    )


def _leave(draft: Draft, body: Body) -> None:
    for one in body["properties"]["networkProfile"]["networkInterfaces"]:
        if (one.get("properties") or {}).get("deleteOption") == "Delete":
            draft.remove("networkInterfaces", one["id"].lower())
    disk = body["properties"]["storageProfile"]["osDisk"]
    if disk.get("deleteOption") == "Delete":
        draft.remove("disks", disk["managedDisk"]["id"].lower())


def _group_path(resource_id: str) -> str:
    return "/".join(resource_id.split("/")[:5])


def switch(arm: Arm, request: Request, draft: Draft) -> Reply:
    """Start it, stop it, or stop it and give its place away."""
    words = request.words
    machine_id = (
        f"/subscriptions/{words['subscription']}/resourceGroups/{words['group']}/providers/"
        f"{_NAMESPACE}/virtualMachines/{words['name']}"
    )
    body = draft.peek("virtualMachines", machine_id.lower())
    if body is None:
        raise Refused(404, "ResourceNotFound", f"The Resource '{name_of(machine_id)}' was not found.")
    refuse_if_locked(draft, machine_id, deletes=False)
    if words["action"] not in _POWER:
        raise Refused(404, "NotFound", f"There is no action '{words['action']}'.")
    arm.write(draft, machine_id, {**body, "_instanceView": _view(_POWER[words["action"]])}, body)
    return Reply(202, None, arm.work(request, machine_id))


def _shown(_: Draft, body: Body) -> Body:
    """A deallocated machine says neither how large its system disk is nor of which kind."""
    if any(one["code"] == "PowerState/deallocated" for one in body["_instanceView"]["statuses"]):
        disk = body["properties"]["storageProfile"]["osDisk"]
        disk.pop("diskSizeGB", None)
        (disk.get("managedDisk") or {}).pop("storageAccountType", None)
    return body


_MACHINE = ArmKind(_NAMESPACE, "virtualMachines", "compute", etag="etag", rules=Rules(_complete, _shown, _leave))


def _machine_or_group(body: Body) -> tuple[str, ...]:
    """What a disk goes with: the machine that made it, or the group of a cluster's nodes that it lies in."""
    return str(body.get("managedBy") or "").lower(), group_of(body["id"])


_DISK = ArmKind(_NAMESPACE, "disks", "compute", goes_with=_machine_or_group, created=202)
COMPUTE_KINDS = (_MACHINE, _DISK)
