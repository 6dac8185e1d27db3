"""What can be declared of a workload's pods and of its rollout, beside containers: volumes, rights, placement.

Volumes of the kinds that are a pod's own or its namespace's stand here; others (the node's disk, drivers) do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from fractal_cloud.model.component import Component
from fractal_cloud.offers.kubernetes.container_model import (
    KubernetesSeccompProfile,
    Nested,
    Seconds,
    exactly_one,
    unique,
)
from fractal_cloud.offers.kubernetes.kinds import ContainerName, Quantity

Mode = Annotated[int, Field(ge=0, le=0o777)]


def _name_of_claim(value: object) -> object:
    """A claim of the same LiveSystem, by the output that is its name: so it is made before what uses it."""
    return f"${{{value.id}.name}}" if isinstance(value, Component) else value


class KubernetesItem(Nested):
    """One key of a Secret or ConfigMap, as a file."""

    key: str = Field(min_length=1, description="The key.")
    path: str = Field(min_length=1, description="The file, below where the volume is seen.")
    mode: Mode | None = Field(default=None, description="The file's permissions, as a number.")


class KubernetesEmptyDir(Nested):
    """An empty folder that lives as long as the pod."""

    medium: Literal["", "Memory"] | None = Field(default=None, description="Memory: it is kept in memory.")
    size_limit: Quantity | None = Field(default=None, description="How large it may become.")


class KubernetesConfigMapVolume(Nested):
    """The keys of a ConfigMap as files."""

    name: str = Field(min_length=1, description="Its name.")
    items: list[KubernetesItem] | None = Field(default=None, description="Only these keys.")
    default_mode: Mode | None = Field(default=None, description="The files' permissions; 420 (0644) if not given.")
    optional: bool | None = Field(default=None, description="The pod starts without it, too.")


class KubernetesSecretVolume(Nested):
    """The keys of a Secret as files."""

    secret_name: str = Field(min_length=1, description="Its name.")
    items: list[KubernetesItem] | None = Field(default=None, description="Only these keys.")
    default_mode: Mode | None = Field(default=None, description="The files' permissions; 420 (0644) if not given.")
    optional: bool | None = Field(default=None, description="The pod starts without it, too.")


if TYPE_CHECKING:
    ClaimName: TypeAlias = str | Component
else:
    ClaimName = Annotated[str, BeforeValidator(_name_of_claim), Field(min_length=1)]
"""The name of a claim; in Python the claim itself, of which the name is kept."""


class KubernetesClaimVolume(Nested):
    """A claim of storage."""

    claim_name: ClaimName = Field(
        description="Its name, or `${data.name}` for the component `data`; in Python the component itself.",
    )
    read_only: bool | None = Field(default=None, description="It cannot be written.")


class KubernetesVolume(Nested):
    """A volume of the pods, of exactly one kind."""

    name: ContainerName = Field(description="Its name, by which containers mount it.")
    empty_dir: KubernetesEmptyDir | None = Field(default=None, description="An empty folder.")
    config_map: KubernetesConfigMapVolume | None = Field(default=None, description="A ConfigMap.")
    secret: KubernetesSecretVolume | None = Field(default=None, description="A Secret.")
    persistent_volume_claim: KubernetesClaimVolume | None = Field(default=None, description="A claim of storage.")

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        exactly_one(self, "empty_dir", "config_map", "secret", "persistent_volume_claim")
        return self


Volumes = Annotated[list[KubernetesVolume], unique("name")]


class KubernetesPodSecurityContext(Nested):
    """Under which rights all containers of a pod run, unless they say otherwise."""

    run_as_user: Seconds | None = Field(default=None, description="Number of the user.")
    run_as_group: Seconds | None = Field(default=None, description="Number of the group.")
    run_as_non_root: bool | None = Field(default=None, description="Refuse to start as root.")
    fs_group: Seconds | None = Field(default=None, description="Group that owns the volumes.")
    fs_group_change_policy: Literal["Always", "OnRootMismatch"] | None = Field(
        default=None, description="When the volumes' files get that group."
    )
    supplemental_groups: list[Seconds] | None = Field(default=None, description="Further groups.")
    seccomp_profile: KubernetesSeccompProfile | None = Field(default=None, description="Allowed system calls.")


class KubernetesToleration(Nested):
    """A taint of nodes that does not keep the pods away."""

    key: str | None = Field(default=None, description="Its key; all if not given.")
    operator: Literal["Equal", "Exists"] | None = Field(default=None, description="Equal if not given.")
    value: str | None = Field(default=None, description="Its value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Its effect; all if not given."
    )
    toleration_seconds: Seconds | None = Field(default=None, description="For how long.")


class KubernetesRollingUpdate(Nested):
    """How many pods are exchanged at a time: numbers or percentages."""

    max_unavailable: int | str | None = Field(default=None, description="Missing at most; 25% if not given.")
    max_surge: int | str | None = Field(default=None, description="Too many at most; 25% if not given.")


class KubernetesStrategy(Nested):
    """How a change is rolled out."""

    type: Literal["RollingUpdate", "Recreate"] = Field(description="Some at a time, or all at once.")
    rolling_update: KubernetesRollingUpdate | None = Field(default=None, description="How many at a time.")

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        if self.type == "Recreate" and self.rolling_update is not None:
            raise ValueError("rollingUpdate belongs to the type RollingUpdate: leave it out")
        return self
