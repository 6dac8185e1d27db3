"""Instances, their network interfaces and boot volumes, and the images and shapes they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.oci import REGION, common
from fractal_sandbox.oci.core import BASE, Collection, existing
from fractal_sandbox.oci.networks import SUBNET, VNIC, free_address
from fractal_sandbox.rest import Body, Draft, Kind, Phase, Place, Refused, Reply, Request, Route

__all__ = ["ATTACHMENT", "BOOT_VOLUME", "DOMAINS", "IMAGES", "INSTANCE", "REMAINS", "routes"]

DOMAINS: Final = tuple(f"SaND:{REGION.upper()}-AD-{number}" for number in (1, 2, 3))
IMAGES: Final = tuple(f"ocid1.image.oc1.{REGION}.sandbox{name}" for name in ("oraclelinux9", "ubuntu2404"))
SHAPES: Final = ("VM.Standard.E5.Flex", "VM.Standard.A1.Flex", "VM.Standard2.1", "VM.Standard2.2")
_RESERVED: Final = ("ssh_authorized_keys", "user_data")
_ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "START": ("STOPPED", "RUNNING"),
    "STOP": ("RUNNING", "STOPPED"),
    "SOFTSTOP": ("RUNNING", "STOPPED"),
    "RESET": ("RUNNING", "RUNNING"),
    "SOFTRESET": ("RUNNING", "RUNNING"),
}


def _in_phase(body: Body, phase: Phase) -> Body:
    running = body["lifecycleState"] == "RUNNING"
    state = {
        "creating": "PROVISIONING",
        "updating": "STARTING" if running else "STOPPING",
        "deleting": "TERMINATING",
    }
    return {**body, "lifecycleState": state[phase]}


INSTANCE: Final = Kind(
    "instance",
    lambda body: Place(body["displayName"], body["compartmentId"]),
    common.monitored_tags,
    _in_phase,
    passing=frozenset({common.VERSION}),
    tag_fields=frozenset({"freeformTags"}),
    replaces_tags=True,
)
# Terminated instances stay listed for half a day.
REMAINS: Final = common.unmonitored("terminated-instance", "what OCI still lists of an instance that is gone")
BOOT_VOLUME: Final = common.unmonitored("boot-volume", "made and deleted by OCI along with its instance")
ATTACHMENT: Final = common.unmonitored("vnic-attachment", "made and deleted by OCI along with its instance")


def _size(shape: Any, given: Any) -> Body:
    if shape not in SHAPES:
        raise common.invalid(f"shape {shape!r} is not available")
    config = common.check_fields(given or {}, ("ocpus", "memoryInGBs", "baselineOcpuUtilization"))
    if not str(shape).endswith(".Flex"):
        ocpus = float(str(shape).rpartition(".")[2])
        return {"ocpus": ocpus, "memoryInGBs": 15.0 * ocpus}
    ocpus = float(config.get("ocpus") or 1.0)
    return {"ocpus": ocpus, "memoryInGBs": float(config.get("memoryInGBs") or 16.0 * ocpus)}


def _launch(draft: Draft, body: Body) -> Body:
    source = body.get("sourceDetails") or {"sourceType": "image", "imageId": body.get("imageId")}
    if source.get("sourceType") != "image" or source.get("imageId") not in IMAGES:
        raise common.not_found("image")
    if body.get("availabilityDomain") not in DOMAINS:
        raise common.invalid(f"availabilityDomain {body.get('availabilityDomain')!r} is unknown")
    wired = body.pop("createVnicDetails", None) or {"subnetId": body.pop("subnetId", None)}
    subnet = existing(draft, SUBNET.name, wired.get("subnetId"), "subnet")
    made = {
        "faultDomain": "FAULT-DOMAIN-1",
        "metadata": {},
        "extendedMetadata": {},
        "launchMode": "PARAVIRTUALIZED",
        **body,
        "region": REGION,
        "imageId": source["imageId"],
        "sourceDetails": {"bootVolumeSizeInGBs": 50, **source},
        "shapeConfig": _size(body.get("shape"), body.get("shapeConfig")),
        "lifecycleState": "RUNNING",
    }
    _attach(draft, made, subnet, wired)
    volume = common.new_id("bootvolume")
    size = made["sourceDetails"]["bootVolumeSizeInGBs"]
    about = {"id": volume, "instanceId": made["id"], "sizeInGBs": size, "lifecycleState": "AVAILABLE"}
    place = {name: made[name] for name in ("compartmentId", "availabilityDomain")}
    draft.put(BOOT_VOLUME.name, volume, {**about, **place, "displayName": f"{made['displayName']} (Boot Volume)"})
    return made


def _attach(draft: Draft, instance: Body, subnet: Body, wired: Body) -> None:
    wants_public = wired.get("assignPublicIp", not subnet["prohibitPublicIpOnVnic"])
    if wants_public and subnet["prohibitPublicIpOnVnic"]:
        raise common.invalid("assignPublicIp is true, and the subnet prohibits public addresses")
    place = {name: instance[name] for name in ("compartmentId", "availabilityDomain")}
    address = free_address(draft, subnet)
    vnic = {
        **place,
        "id": common.new_id("vnic"),
        "timeCreated": common.now(),
        "displayName": instance["displayName"],
        "isPrimary": True,
        "lifecycleState": "AVAILABLE",
        "privateIp": address,
        "publicIp": f"130.61.{address.split('.', 2)[2]}" if wants_public else None,
        "subnetId": subnet["id"],
        common.VERSION: 1,
    }
    attachment = {
        **place,
        "id": common.new_id("vnicattachment"),
        "instanceId": instance["id"],
        "lifecycleState": "ATTACHED",
        "timeCreated": common.now(),
        "subnetId": subnet["id"],
        "vnicId": vnic["id"],
        common.VERSION: 1,
    }
    draft.put(VNIC.name, vnic["id"], vnic)
    draft.put(ATTACHMENT.name, attachment["id"], attachment)


def _change(draft: Draft, body: Body, given: Body) -> Body:
    del draft
    changed = {**body, **given}
    if "metadata" in given:
        before, after = body["metadata"], given["metadata"]
        if any(before.get(name) != after.get(name) for name in _RESERVED):
            raise common.invalid(f"{' and '.join(_RESERVED)} cannot be changed after launch")
    if "shape" in given or "shapeConfig" in given:
        changed["shapeConfig"] = _size(changed["shape"], {**body["shapeConfig"], **(given.get("shapeConfig") or {})})
    return changed


def _terminate(draft: Draft, body: Body, query: Mapping[str, str]) -> None:
    for attachment_id, attachment in draft.everything(ATTACHMENT.name):
        if attachment["instanceId"] == body["id"]:
            draft.remove(VNIC.name, attachment["vnicId"])
            draft.remove(ATTACHMENT.name, attachment_id)
    for volume_id, volume in draft.everything(BOOT_VOLUME.name):
        if volume["instanceId"] == body["id"] and query.get("preserveBootVolume", "false").lower() != "true":
            draft.remove(BOOT_VOLUME.name, volume_id)
    draft.put(REMAINS.name, body["id"], {**body, "lifecycleState": "TERMINATED"})


def _remains(draft: Draft, living: set[str]) -> list[Body]:
    gone = [body for _, body in draft.everything(REMAINS.name) if body["id"] not in living]
    return [body for body in gone if draft.peek(INSTANCE.name, body["id"]) is None]


_INSTANCES: Final = Collection(
    INSTANCE,
    "instances",
    "instance",
    "Instance",
    made=(
        "availabilityDomain",
        "createVnicDetails",
        "faultDomain",
        "imageId",
        "metadata",
        "shape",
        "shapeConfig",
        "sourceDetails",
        "subnetId",
    ),
    changed=("faultDomain", "metadata", "shape", "shapeConfig"),
    make=_launch,
    change=_change,
    on_delete=_terminate,
    also=_remains,
    filters=("availabilityDomain", "lifecycleState"),
)


def _act(request: Request, draft: Draft) -> Reply:
    body = _INSTANCES.writable(request, draft)
    action = request.query.get("action", "")
    if action not in _ACTIONS:
        raise common.invalid(f"action {action!r} is unknown")
    needed, after = _ACTIONS[action]
    if body["lifecycleState"] != needed:
        message = f"{action} needs the instance to be {needed}, and it is {body['lifecycleState']}"
        raise Refused(409, "IncorrectState", message)
    return _INSTANCES.keep(draft, {**body, "lifecycleState": after})


def routes(knobs: Knobs) -> list[Route]:
    """Everything of instances."""

    def parts(kind: Kind, *filters: str) -> Any:
        def listing(request: Request, draft: Draft) -> Reply:
            names = [name for name in ("compartmentId", *filters) if name in request.query]
            items = [common.shown(body) for _, body in draft.everything(kind.name)]
            fitting = [one for one in items if all(one.get(name) == request.query[name] for name in names)]
            return common.page(request, knobs, fitting)

        return listing

    def part(kind: Kind) -> Any:
        return lambda request, draft: common.answer(existing(draft, kind.name, request.words["id"]))

    def listing_of(items: list[Body]) -> Any:
        return lambda request, _: common.page(request, knobs, items)

    images = [{"id": one, "displayName": one.rpartition("sandbox")[2], "lifecycleState": "AVAILABLE"} for one in IMAGES]
    return [
        *_INSTANCES.routes(knobs),
        Route("POST", f"{BASE}/instances/{{id}}", "core", "actOnInstance", _act, "id", kind=INSTANCE.name),
        Route("GET", f"{BASE}/vnicAttachments", "core", "listVnicAttachments", parts(ATTACHMENT, "instanceId")),
        Route("GET", f"{BASE}/vnics/{{id}}", "core", "getVnic", part(VNIC)),
        Route("GET", f"{BASE}/bootVolumes", "core", "listBootVolumes", parts(BOOT_VOLUME, "availabilityDomain")),
        Route("GET", f"{BASE}/images", "core", "listImages", listing_of(images)),
        Route("GET", f"{BASE}/shapes", "core", "listShapes", listing_of([{"shape": shape} for shape in SHAPES])),
    ]
