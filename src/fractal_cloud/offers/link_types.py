"""The link types of this product: their settings, and the typed methods with which they are declared in Python.

What a link does on each cloud stands beside the offers of its two ends.
"""

from __future__ import annotations

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from fractal_cloud.model.component import Component
from fractal_cloud.model.link import LinkSettings

WORKLOAD_LINK: Final = "workloadLink"
API_GATEWAY_LINK: Final = "apiGatewayLink"
DATABASE_LINK: Final = "databaseLink"
STORAGE_LINK: Final = "storageLink"
WITH_A_SECRET: Final = frozenset({DATABASE_LINK, STORAGE_LINK})
"""Those in which the target hands a secret out: without a half at the source, nobody ever has it."""

Protocol = Literal["tcp", "udp"]
Access = Literal["read-only", "read-write"]


class WorkloadLink(LinkSettings):
    """The source may reach the target's ports."""

    from_port: int = Field(description="First port of the target that is opened.", ge=1, le=65_535)
    to_port: int | None = Field(default=None, description="Last port; `fromPort` if not given.", ge=1, le=65_535)
    protocol: Protocol = Field(default="tcp", description="tcp or udp.")

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.to_port is not None and self.to_port < self.from_port:
            raise ValueError(f"toPort {self.to_port} is below fromPort {self.from_port}: swap them")
        return self

    @property
    def last_port(self) -> int:
        """The last port that is opened."""
        return self.to_port or self.from_port


class ApiGatewayLink(LinkSettings):
    """The gateway leads requests for a host and a path to the source."""

    prefix: str = Field(description="Path under which the source is reached.", pattern=r"^/\S*$")
    hostname: str = Field(description="Host name under which the source is reached.", min_length=1)
    port: int | None = Field(default=None, description="Port of the source; its own if not given.", ge=1, le=65_535)
    rewrite: str | None = Field(default=None, description="What the prefix is replaced by; `/` if not given.")
    timeout_ms: int | None = Field(default=None, description="How long the gateway waits for an answer.", ge=1)


class DatabaseLink(LinkSettings):
    """The source gets a role of its own in a database of the target."""

    database: str = Field(description="The database in which the role has its rights.", min_length=1, max_length=63)
    access: Access = Field(default="read-write", description="What the role may do: read-only or read-write.")


class StorageLink(LinkSettings):
    """The source may use a bucket of the target."""

    bucket: str | None = Field(
        default=None, description="The bucket; the target itself where that is one.", min_length=1
    )
    access: Access = Field(default="read-write", description="What the source may do: read-only or read-write.")


class WorkloadSource(Component):
    """A component that runs something, and so can be the source of links."""

    def link_to_workload(
        self,
        target: Component | str,
        *,
        from_port: int,
        to_port: int | None = None,
        protocol: Protocol | None = None,
    ) -> Self:
        """May reach these ports of another workload."""
        return self.link_to(target, WorkloadLink, from_port=from_port, to_port=to_port, protocol=protocol)

    def link_to_api_gateway(
        self,
        target: Component | str,
        *,
        prefix: str,
        hostname: str,
        port: int | None = None,
        rewrite: str | None = None,
        timeout_ms: int | None = None,
    ) -> Self:
        """Is reached through a gateway, under a host name and a path."""
        settings = {"prefix": prefix, "hostname": hostname, "port": port, "rewrite": rewrite, "timeout_ms": timeout_ms}
        return self.link_to(target, ApiGatewayLink, **settings)

    def link_to_database(self, target: Component | str, *, database: str, access: Access | None = None) -> Self:
        """Uses a database, with a role of its own."""
        return self.link_to(target, DatabaseLink, database=database, access=access)

    def link_to_storage(
        self, target: Component | str, *, bucket: str | None = None, access: Access | None = None
    ) -> Self:
        """Uses an object store."""
        return self.link_to(target, StorageLink, bucket=bucket, access=access)
