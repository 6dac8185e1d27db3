"""Virtual machines of KubeVirt. Whether one runs is its run strategy; what it keeps lies in a claim of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import field_validator, model_validator

from fractal_cloud.model.component import Reference, parameter
from fractal_cloud.model.errors import Protected
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaim
from fractal_cloud.offers.kubernetes.kinds import Object, ObjectKind, Quantity, label_name
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, SETTLED, ObjectComponent, ObjectOffer, State
from fractal_cloud.offers.kubernetes.tags import glass
from fractal_cloud.offers.kubernetes.workload import SELECTED_BY
from fractal_cloud.offers.offer import Wanted

VIRTUAL_MACHINE: Final = ObjectKind("kubevirt.io", "v1", "VirtualMachine", "virtualmachines", "KubeVirt")

DISK: Final = "root"
_AT_REST: Final = frozenset({"Running", "Stopped", "Paused", "Succeeded"})
_BROKEN: Final = ("Error", "ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff", "DataVolumeError", "Unknown")
_AT_NEXT_START: Final = frozenset({"cpu", "memory", "image", "volumeClaim"})


class KubernetesVirtualMachine(ObjectComponent):
    """A virtual machine in a cluster with KubeVirt."""

    type = "NetworkAndCompute.CaaS.KubernetesVirtualMachine"

    run_strategy: Literal["Always", "RerunOnFailure", "Manual", "Halted", "Once"] = parameter(
        default="Always",
        enforced=True,
        description="Whether it runs. `virtctl stop` changes it to Halted, which is drift: break the glass first.",
    )
    cpu: int = parameter(default=1, ge=1, description="Cores.")
    memory: Quantity = parameter(default="1Gi", compare="quantity", description="Memory its guest sees.")
    image: str | None = parameter(
        default=None,
        min_length=1,
        description="Image with its disk, which begins anew with every start; instead of `volumeClaim`.",
    )
    volume_claim: Reference[KubernetesPersistentVolumeClaim] | None = parameter(
        default=None,
        reference=(KubernetesPersistentVolumeClaim.type, "name"),
        description="The claim its disk lies on; instead of `image`.",
    )

    _check_name = field_validator("name")(label_name)

    @model_validator(mode="after")
    def _has_one_disk(self) -> Self:
        if (self.image is None) == (self.volume_claim is None):
            raise ValueError("give either image or volumeClaim, to say what its disk is")
        return self


class KubernetesVirtualMachineOffer(ObjectOffer[KubernetesVirtualMachine]):
    """How virtual machines are read and changed."""

    component = KubernetesVirtualMachine
    title = "Virtual machine"
    object_kind = VIRTUAL_MACHINE
    vendor_type = "kubevirt.io/v1/VirtualMachine"
    holds_data = True
    outputs: ClassVar[Mapping[str, str]] = {
        **OUTPUTS,
        "printableStatus": "what KubeVirt says it is doing",
        "ready": "whether its guest is up",
        "restartRequired": "whether something changed takes effect only at its next start",
        "selector": "labels of the pod it runs in",
    }
    glass = glass(VIRTUAL_MACHINE)

    def new(self, wanted: Wanted[KubernetesVirtualMachine]) -> Object:
        """A machine with one disk in the network of the pods."""
        domain = {
            "cpu": {},
            "memory": {},
            "devices": {
                "disks": [{"name": DISK, "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
        }
        spec = {"domain": domain, "networks": [{"name": "default", "pod": {}}], "volumes": [{"name": DISK}]}
        template = {"metadata": {"labels": {SELECTED_BY: wanted.component.name}}, "spec": spec}
        return {"spec": {"template": template}}

    def actual(self, item: Object) -> dict[str, Any]:
        """Whether it runs, its size, and what its disk is."""
        spec = item["spec"]
        guest = spec["template"].get("spec") or {}
        domain, disk = guest.get("domain") or {}, _disk(guest)
        strategy = spec.get("runStrategy") or ("Always" if spec.get("running") else "Halted")
        return {
            "runStrategy": strategy,
            "cpu": (domain.get("cpu") or {}).get("cores"),
            "memory": (domain.get("memory") or {}).get("guest"),
            "image": (disk.get("containerDisk") or {}).get("image"),
            "volumeClaim": (disk.get("persistentVolumeClaim") or {}).get("claimName"),
        }

    def apply(self, item: Object, wanted: Wanted[KubernetesVirtualMachine], names: Collection[str]) -> None:
        """Write what is declared; the older `running` goes with the first change of the run strategy."""
        declared, spec = wanted.component, item["spec"]
        guest = spec["template"].setdefault("spec", {})
        domain = guest.setdefault("domain", {})
        if "runStrategy" in names:
            spec.pop("running", None)
            spec["runStrategy"] = declared.run_strategy
        if "cpu" in names:
            domain["cpu"] = {**(domain.get("cpu") or {}), "cores": declared.cpu}
        if "memory" in names:
            domain["memory"] = {**(domain.get("memory") or {}), "guest": declared.memory}
        source = {"image": ("containerDisk", "image"), "volumeClaim": ("persistentVolumeClaim", "claimName")}
        for name, (kind, key) in source.items():
            value = declared.image if name == "image" else declared.volume_claim
            if name in names and value is not None:
                _put_disk(guest, {kind: {key: value}})

    def state(self, item: Object, beside: Any) -> State:
        """What KubeVirt says."""
        del beside
        status = item.get("status") or {}
        shown = str(status.get("printableStatus", ""))
        if shown in _AT_REST:
            return SETTLED
        if shown.startswith(_BROKEN):
            return Condition.BROKEN, f"KubeVirt says {shown}{_reason(status)}"
        return (Condition.CHANGING if status.get("created") else Condition.CREATING), shown or "is not taken up yet"

    def shown(self, item: Object, beside: Any) -> dict[str, Any]:
        """How it is doing."""
        del beside
        status = item.get("status") or {}
        restart = any(
            one.get("type") == "RestartRequired" and one.get("status") == "True"
            for one in status.get("conditions") or []
        )
        labels = (item["spec"]["template"].get("metadata") or {}).get("labels") or {}
        return {
            "printableStatus": status.get("printableStatus", ""),
            "ready": bool(status.get("ready")),
            "selector": labels,
            **({"restartRequired": True} if restart else {}),
        }

    def check_deletion(self, cloud: Kubernetes, sighting: Sighting) -> None:
        """Refuse where disks would be deleted with it: those that it made for itself (O15)."""
        item = self.still(cloud, sighting)
        own = [one["metadata"]["name"] for one in item["spec"].get("dataVolumeTemplates") or []]
        if own:
            raise Protected(
                f"its data volumes {', '.join(map(repr, own))} would be deleted with it: keep what is on them, and "
                "delete the machine yourself"
            )

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What takes effect later, and what stops it."""
        found = [name for name in sorted(drift) if name in _AT_NEXT_START]
        later = [f"{', '.join(found)}: takes effect when the machine is started the next time"] if found else []
        return [*later, *(["may stop or start the machine"] if "runStrategy" in drift else [])]


def _disk(guest: Object) -> Object:
    volumes: list[Object] = guest.get("volumes") or [{}]
    return next((one for one in volumes if one.get("name") == DISK), volumes[0])


def _put_disk(guest: Object, source: Object) -> None:
    name = _disk(guest).get("name", DISK)
    others = [one for one in guest.get("volumes") or [] if one.get("name") != name]
    guest["volumes"] = [{"name": name, **source}, *others]


def _reason(status: Object) -> str:
    messages = [one.get("message", "") for one in status.get("conditions") or [] if one.get("status") == "False"]
    return f": {messages[0]}" if messages and messages[0] else ""
