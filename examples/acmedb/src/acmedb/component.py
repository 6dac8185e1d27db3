"""What people declare: a database of AcmeDB, and a link to one. How AcmeDB is changed for it, the offer knows."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field, StringConstraints

from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.link import LinkSettings

ACMEDB_LINK: Final = "acmeDbLink"

C = TypeVar("C", bound=Component)
Access = Literal["read-only", "read-write"]
DatabaseName = Annotated[str, StringConstraints(pattern=r"^([a-z0-9][a-z0-9-]{0,62})?$")]


class AcmeDb(Component):
    """A database of AcmeDB."""

    type = "Storage.PaaS.AcmeDb"
    provider = "acme"

    name: DatabaseName = parameter(
        default="", description="Its name, unique in the account; the component's id if not given."
    )
    version: Literal["7", "8"] = parameter(default="8", immutable=True, description="Major version of AcmeDB.")
    size: Literal["small", "medium", "large"] = parameter(default="small", description="How big its machine is.")
    max_connections: int | None = parameter(
        default=None, ge=1, le=10_000, description="How many may be connected at once; AcmeDB starts with 100."
    )
    deletion_protection: bool | None = parameter(default=None, description="Whether AcmeDB refuses to delete it.")


class AcmeDbLink(LinkSettings):
    """The source gets a user of its own in a database."""

    keyspace: str = Field(description="The keyspace in which the user works.", min_length=1, max_length=63)
    access: Access = Field(default="read-write", description="What the user may do: read-only or read-write.")


def link_to_acmedb(source: C, target: AcmeDb | str, *, keyspace: str, access: Access | None = None) -> C:
    """Declare that a component uses a database, with a user of its own."""
    return source.link_to(target, AcmeDbLink, keyspace=keyspace, access=access)
