"""Claims of storage: they hold data, grow only, and are never deleted where their data would go with them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Conflict, Invalid, Protected, Unreadable
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.errors import NO_SUCH_KIND
from fractal_cloud.offers.kubernetes.kinds import POD, STORAGE_CLASS, VOLUME, Object, ObjectKind, Quantity, object_name
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, SETTLED, ObjectComponent, ObjectOffer, State, readable
from fractal_cloud.offers.kubernetes.tags import glass
from fractal_cloud.offers.offer import Wanted
from fractal_cloud.rules.nested.amounts import quantity

CLAIM: Final = ObjectKind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
_WAITS: str = "WaitForFirstConsumer"


class KubernetesPersistentVolumeClaim(ObjectComponent):
    """Storage that outlives the pods that use it."""

    type = "Storage.CaaS.KubernetesPersistentVolumeClaim"

    storage: Quantity = parameter(compare="quantity", description="Its size, such as 10Gi. It only grows.")
    access_modes: list[AccessMode] = parameter(
        default=["ReadWriteOnce"],
        immutable=True,
        compare="unordered",
        min_length=1,
        description="Who may use it at once.",
    )
    storage_class_name: str | None = parameter(
        default=None, immutable=True, description="The class of storage; the cluster's default if not given."
    )
    volume_mode: Literal["Filesystem", "Block"] | None = parameter(
        default=None, immutable=True, description="Filesystem if not given."
    )

    _check_name = field_validator("name")(object_name)


class KubernetesPersistentVolumeClaimOffer(ObjectOffer[KubernetesPersistentVolumeClaim]):
    """How claims are read and changed."""

    component = KubernetesPersistentVolumeClaim
    title = "Persistent volume claim"
    object_kind = CLAIM
    vendor_type = "v1/PersistentVolumeClaim"
    # Who uses it, what becomes of its volume, and whether it waits for its first user.
    also_reads: ClassVar[Mapping[ObjectKind, str]] = {POD: "list", VOLUME: "get", STORAGE_CLASS: "list"}
    holds_data = True
    outputs: ClassVar[Mapping[str, str]] = {
        **OUTPUTS,
        "phase": "Pending, Bound or Lost",
        "volumeName": "the volume it is bound to",
        "capacity": "how much it really has",
    }
    glass = glass(CLAIM)

    def actual(self, item: Object) -> dict[str, Any]:
        """Its spec."""
        spec = item["spec"]
        return {
            "storage": ((spec.get("resources") or {}).get("requests") or {}).get("storage"),
            "accessModes": spec.get("accessModes") or [],
            "storageClassName": spec.get("storageClassName"),
            "volumeMode": spec.get("volumeMode"),
        }

    def apply(self, item: Object, wanted: Wanted[KubernetesPersistentVolumeClaim], names: Collection[str]) -> None:
        """Write the size, and all of it at creation."""
        declared, spec = wanted.component, item["spec"]
        if "storage" in names:
            before = self.actual(item)["storage"]
            if before is not None and quantity(declared.storage) < quantity(before):
                raise Invalid(
                    f"storage is {before!r} and cannot become {declared.storage!r} in place, because it only grows: "
                    "declare what it has, or a new component"
                )
            resources = spec.get("resources") or {}
            requests = {**(resources.get("requests") or {}), "storage": declared.storage}
            spec["resources"] = {**resources, "requests": requests}
        values = {
            "accessModes": declared.access_modes,
            "storageClassName": declared.storage_class_name,
            "volumeMode": declared.volume_mode,
        }
        spec.update({name: value for name, value in values.items() if name in names})

    def beside(self, cloud: Kubernetes, items: Sequence[Object]) -> frozenset[str]:
        """The classes of storage that are given only when a pod uses them, where a claim may be waiting for that."""
        if all((item.get("status") or {}).get("phase") == "Bound" for item in items):
            return frozenset()
        classes = readable(lambda: cloud.list(STORAGE_CLASS))
        return frozenset(one["metadata"]["name"] for one in classes if one.get("volumeBindingMode") == _WAITS)

    def state(self, item: Object, beside: frozenset[str]) -> State:
        """Bound, or on its way; a class that waits for the first pod that uses it is no error."""
        status = item.get("status") or {}
        phase = status.get("phase", "Pending")
        if phase == "Lost":
            return Condition.BROKEN, "its volume is lost"
        if phase != "Bound":
            if item["spec"].get("storageClassName") in beside:
                return Condition.SETTLED, "is bound once a pod uses it"
            return Condition.CREATING, "is not bound to a volume yet"
        wanted, has = self.actual(item)["storage"], (status.get("capacity") or {}).get("storage")
        pending = [one["type"] for one in status.get("conditions") or [] if one.get("status") == "True"]
        if has is not None and quantity(has) < quantity(wanted) and "FileSystemResizePending" not in pending:
            return Condition.CHANGING, f"grows from {has} to {wanted}"
        return SETTLED

    def shown(self, item: Object, beside: Any) -> dict[str, Any]:
        """What it is bound to."""
        del beside
        status = item.get("status") or {}
        values = {
            "phase": status.get("phase"),
            "volumeName": item["spec"].get("volumeName"),
            "capacity": (status.get("capacity") or {}).get("storage"),
        }
        return {name: value for name, value in values.items() if value is not None}

    def check_deletion(self, cloud: Kubernetes, sighting: Sighting) -> None:
        """Refuse while pods use it, and where its data would go with it (O15).

        A claim that was deleted stays for as long as it is used, and cannot be called back: so it is asked before.
        """
        users = sorted(_users(cloud, sighting.name))
        if users:
            raise Conflict(f"it is used by {', '.join(users)}: it is deleted once they are gone")
        volume = sighting.outputs.get("volumeName")
        if volume and _policy(cloud, str(volume)) == "Delete":
            raise Protected(
                f"the data on volume {volume!r} would be deleted with it, because its reclaim policy is Delete: set it "
                f"to Retain (`kubectl edit {shlex.quote(f'pv/{volume}')}`), or delete the claim yourself"
            )


def _users(cloud: Kubernetes, claim: str) -> Iterator[str]:
    for pod in readable(lambda: cloud.list(POD)):
        volumes = (pod.get("spec") or {}).get("volumes") or []
        if any((one.get("persistentVolumeClaim") or {}).get("claimName") == claim for one in volumes):
            yield f"pod {pod['metadata']['name']!r}"


def _policy(cloud: Kubernetes, volume: str) -> str:
    """What becomes of a volume without its claim; what cannot be read is not taken for harmless."""
    try:
        found = cloud.find(VOLUME, volume)
    except Unreadable as error:
        if error.code != NO_SUCH_KIND:
            raise
        return ""
    return str((found or {}).get("spec", {}).get("persistentVolumeReclaimPolicy", ""))
