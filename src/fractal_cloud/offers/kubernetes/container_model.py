"""What can be declared of a container beside its image, and the containers beside the main one.

Names and meanings are Kubernetes' own. How they lie in an object stands in ``containers`` and ``pods``; what is not
here (lifecycle hooks, devices, …) can be declared as the kind itself, `apps/v1/Deployment`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from fractal_cloud.offers.kubernetes.kinds import ContainerName, EnvironmentName, Port, PortName, Quantity

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
Seconds = Annotated[int, Field(ge=0)]
T = TypeVar("T")


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Protocol = Annotated[
    Literal["TCP", "UDP", "SCTP"],
    BeforeValidator(_upper),
    Field(json_schema_extra={"enum": ["TCP", "UDP", "SCTP", "tcp", "udp", "sctp"]}),
]
"""A protocol, in upper or lower case."""


class Nested(BaseModel):
    """A value with fields of its own, as a declaration says it."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    def declared(self) -> dict[str, Any]:
        """The fields that were given, by their declared names, as JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def exactly_one(given: BaseModel, *names: str) -> None:
    """Raise where not exactly one of these fields was given."""
    if sum(getattr(given, name) is not None for name in names) != 1:
        raise ValueError(f"give exactly one of {', '.join(to_camel(name) for name in names)}")


def unique(*keys: str) -> Any:
    """A check of a list: no two entries agree in these fields."""

    def check(entries: list[T]) -> list[T]:
        seen: set[tuple[Any, ...]] = set()
        for entry in entries:
            key = tuple(getattr(entry, name) for name in keys)
            if key in seen and any(part is not None for part in key):
                raise ValueError(f"{' '.join(map(str, key))!r} stands there twice: give each its own")
            seen.add(key)
        return entries

    return AfterValidator(check)


class KubernetesContainerPort(Nested):
    """One port on which a container listens."""

    container_port: Port = Field(description="Its number.")
    name: PortName | None = Field(default=None, description="Its name, by which services and probes may speak of it.")
    protocol: Protocol | None = Field(default=None, description="TCP if not given.")


class KubernetesHttpGet(Nested):
    """A request over HTTP; an answer from 200 to 399 is success."""

    path: str | None = Field(default=None, description="Its path; / if not given.")
    port: Port | PortName = Field(description="Port of the container, by number or name.")
    scheme: Literal["HTTP", "HTTPS"] | None = Field(default=None, description="HTTP if not given.")
    host: str | None = Field(default=None, description="Another host than the pod itself.")
    http_headers: list[dict[str, str]] | None = Field(
        default=None, description="Headers, each with `name` and `value`.", examples=[[{"name": "a", "value": "b"}]]
    )


class KubernetesTcpSocket(Nested):
    """A connection over TCP; that it opens is success."""

    port: Port | PortName = Field(description="Port of the container, by number or name.")


class KubernetesGrpc(Nested):
    """A call of gRPC's health check."""

    port: Port = Field(description="Port of the container.")
    service: str | None = Field(default=None, description="The service asked for.")


class KubernetesCommandCheck(Nested):
    """A command in the container; exit code 0 is success."""

    command: list[str] = Field(min_length=1, description="The command and its arguments.")


class KubernetesProbe(Nested):
    """A check of a container, in exactly one way."""

    http_get: KubernetesHttpGet | None = Field(default=None, description="By a request over HTTP.")
    tcp_socket: KubernetesTcpSocket | None = Field(default=None, description="By a connection.")
    grpc: KubernetesGrpc | None = Field(default=None, description="By gRPC's health check.")
    exec: KubernetesCommandCheck | None = Field(default=None, description="By a command.")
    initial_delay_seconds: Seconds | None = Field(default=None, description="Before the first check; 0 if not given.")
    period_seconds: Annotated[int, Field(ge=1)] | None = Field(default=None, description="10 if not given.")
    timeout_seconds: Annotated[int, Field(ge=1)] | None = Field(default=None, description="1 if not given.")
    success_threshold: Annotated[int, Field(ge=1)] | None = Field(default=None, description="1 if not given.")
    failure_threshold: Annotated[int, Field(ge=1)] | None = Field(default=None, description="3 if not given.")
    termination_grace_period_seconds: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="How long it gets to end after it failed; as the pod's if not given."
    )

    @model_validator(mode="after")
    def _checks_in_one_way(self) -> Self:
        exactly_one(self, "http_get", "tcp_socket", "grpc", "exec")
        return self


class KubernetesCapabilities(Nested):
    """Which of Linux' capabilities a container gets or loses."""

    add: list[str] | None = Field(default=None, description="Given to it.")
    drop: list[str] | None = Field(default=None, description="Taken from it, such as ALL.")


class KubernetesSeccompProfile(Nested):
    """Which system calls are allowed."""

    type: Literal["RuntimeDefault", "Unconfined", "Localhost"] = Field(description="Whose profile it is.")
    localhost_profile: str | None = Field(default=None, description="Its file on the node, for Localhost.")


class KubernetesSecurityContext(Nested):
    """Under which rights a container runs."""

    run_as_user: Seconds | None = Field(default=None, description="Number of the user.")
    run_as_group: Seconds | None = Field(default=None, description="Number of the group.")
    run_as_non_root: bool | None = Field(default=None, description="Refuse to start as root.")
    read_only_root_filesystem: bool | None = Field(default=None, description="Its own files cannot be written.")
    allow_privilege_escalation: bool | None = Field(default=None, description="May processes gain rights.")
    privileged: bool | None = Field(default=None, description="It has the node's rights.")
    capabilities: KubernetesCapabilities | None = Field(default=None, description="Linux' capabilities.")
    seccomp_profile: KubernetesSeccompProfile | None = Field(default=None, description="Allowed system calls.")


class KubernetesVolumeMount(Nested):
    """Where a container sees a volume of its pod."""

    name: str = Field(description="The volume's name.")
    mount_path: str = Field(min_length=1, description="Where it is seen.")
    sub_path: str | None = Field(default=None, description="The part of the volume that is seen.")
    read_only: bool | None = Field(default=None, description="It cannot be written.")


class KubernetesKey(Nested):
    """One key of a Secret or of a ConfigMap."""

    name: str = Field(min_length=1, description="Name of the object.")
    key: str = Field(min_length=1, description="The key in it.")
    optional: bool | None = Field(default=None, description="The container starts without it, too.")


class KubernetesFieldRef(Nested):
    """A field of the pod itself."""

    field_path: str = Field(min_length=1, description="Such as status.podIP or metadata.name.")


class KubernetesResourceFieldRef(Nested):
    """A limit or request of a container."""

    resource: str = Field(min_length=1, description="Such as limits.cpu.")
    container_name: str | None = Field(default=None, description="Of another container.")
    divisor: Quantity | None = Field(default=None, description="In which unit.")


class KubernetesValueFrom(Nested):
    """Where the value of an environment variable comes from: exactly one source."""

    secret_key_ref: KubernetesKey | None = Field(default=None, description="A key of a Secret.")
    config_map_key_ref: KubernetesKey | None = Field(default=None, description="A key of a ConfigMap.")
    field_ref: KubernetesFieldRef | None = Field(default=None, description="A field of the pod.")
    resource_field_ref: KubernetesResourceFieldRef | None = Field(default=None, description="A limit or request.")

    @model_validator(mode="after")
    def _comes_from_one_place(self) -> Self:
        exactly_one(self, "secret_key_ref", "config_map_key_ref", "field_ref", "resource_field_ref")
        return self


class KubernetesNamed(Nested):
    """An object by its name."""

    name: str = Field(min_length=1, description="Its name.")
    optional: bool | None = Field(default=None, description="The container starts without it, too.")


class KubernetesEnvFrom(Nested):
    """All keys of one Secret or ConfigMap, as environment variables."""

    secret_ref: KubernetesNamed | None = Field(default=None, description="The Secret.")
    config_map_ref: KubernetesNamed | None = Field(default=None, description="The ConfigMap.")
    prefix: str | None = Field(default=None, description="How their names begin.")

    @model_validator(mode="after")
    def _is_of_one_object(self) -> Self:
        exactly_one(self, "secret_ref", "config_map_ref")
        return self


Ports = Annotated[list[KubernetesContainerPort], unique("container_port", "protocol"), unique("name")]
Mounts = Annotated[list[KubernetesVolumeMount], unique("mount_path")]
Values = Mapping[EnvironmentName, KubernetesValueFrom]
Amounts = dict[str, Quantity]


def check_environment(env: Mapping[str, object] | None, value_from: Mapping[str, object] | None) -> None:
    """Raise where a variable has two values."""
    both = sorted((env or {}).keys() & (value_from or {}).keys())
    if both:
        raise ValueError(f"{both[0]} stands in env and in envValueFrom: give it one value")


class KubernetesContainer(Nested):
    """A container beside the main one, or one that runs before it. Its fields are named like the workload's."""

    name: ContainerName = Field(description="Its name, by which it is found.")
    image: str = Field(min_length=1, description="Its image.")
    command: list[str] | None = Field(default=None, description="What it runs instead of the image's entry point.")
    args: list[str] | None = Field(default=None, description="Arguments, instead of the image's.")
    working_dir: str | None = Field(default=None, description="The folder it starts in.")
    ports: Ports | None = Field(default=None, description="Ports it listens on.")
    env: Mapping[EnvironmentName, str] | None = Field(default=None, description="Plain environment variables, whole.")
    env_value_from: Values | None = Field(default=None, description="Environment variables taken from elsewhere.")
    env_from: list[KubernetesEnvFrom] | None = Field(default=None, description="Whole Secrets and ConfigMaps.")
    requests: Amounts | None = Field(default=None, description="What it asks for, such as cpu and memory.")
    limits: Amounts | None = Field(default=None, description="What it may use at most, such as cpu and memory.")
    liveness_probe: KubernetesProbe | None = Field(default=None, description="Fails: it is started anew.")
    readiness_probe: KubernetesProbe | None = Field(default=None, description="Fails: it gets no traffic.")
    startup_probe: KubernetesProbe | None = Field(default=None, description="The other two wait for it.")
    security_context: KubernetesSecurityContext | None = Field(default=None, description="Under which rights it runs.")
    volume_mounts: Mounts | None = Field(default=None, description="Volumes it sees.")
    image_pull_policy: PullPolicy | None = Field(default=None, description="When the image is pulled.")
    restart_policy: Literal["Always"] | None = Field(
        default=None, description="Always: a container that starts first goes on running beside the others."
    )

    @model_validator(mode="after")
    def _has_one_value_each(self) -> Self:
        check_environment(self.env, self.env_value_from)
        return self


Containers = Annotated[list[KubernetesContainer], unique("name")]
MAIN: Final = "main"
"""What the main container is called where nothing else is declared."""
