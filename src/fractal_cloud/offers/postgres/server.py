"""PostgreSQL servers that exist already: they carry no tags, so they are only ever imported (S1, S5).

Links to one work all the same: they make roles inside it, with credentials that an operator gave the agent for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, ClassVar, Final, Literal, NoReturn

from pydantic import Field, StringConstraints

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.errors import Invalid
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.offer import Offer, Query, Wanted
from fractal_cloud.offers.postgres.cloud import PostgresCloud

NAME: Final = "postgres"
Host = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9._:-]*[a-z0-9])?$", max_length=253)]
SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]


class PostgresServer(Component):
    """A PostgreSQL server that somebody runs: reached by its address, never created, changed or deleted.

    Links to it make roles inside. The agent does so with the connection string that it finds in its environment, in
    `FRACTAL_POSTGRES_DSN_<LIVESYSTEM>_<COMPONENT>`; no credentials stand in a declaration.
    """

    type = "Storage.SelfHosted.Postgres"
    provider = "postgres"

    name: Literal["postgres"] = parameter(
        default=NAME, enforced=True, description="Always `postgres`: host and port find a server."
    )
    host: Host = parameter(immutable=True, description="Host name or address, as the agent and the sources reach it.")
    port: Annotated[int, Field(ge=1, le=65_535)] = parameter(
        default=5432, immutable=True, enforced=True, description="Port it listens on."
    )
    sslmode: SslMode | None = parameter(
        default=None,
        description="How the agent secures its own connection; as its connection string says if not given.",
    )


class PostgresServerOffer(Offer[PostgresServer, PostgresCloud]):
    """How servers are read; there is nothing else to do with them."""

    component = PostgresServer
    title = "PostgreSQL server"
    place = ("host", "port")
    taggable = False
    holds_data = True
    wired_by_declarer = True
    outputs: ClassVar[Mapping[str, str]] = {
        "endpointAddress": "host name or address it is reached at",
        "endpointPort": "port it listens on",
    }
    glass = GlassCommands(
        caveat=(
            "a server carries no tags, so there is nothing to break: it is never changed. To keep links from making "
            "roles in it, say `importOnly: true`, or take the connection string away from the agent"
        )
    )
    guard = "none is needed: the server itself is never written to"
    ids_return = True

    def sightings(self, cloud: PostgresCloud, query: Query) -> Iterator[Sighting]:
        """The one server of the scope, if it answers; one that does not is unreadable, never absent (S0)."""
        del query
        cloud.ping()
        yield _sighting(cloud)

    def read(self, cloud: PostgresCloud, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """The same, asked anew."""
        del sweep
        cloud.ping()
        found = _sighting(cloud)
        return found if found.resource_id == resource_id else None

    def create(self, cloud: PostgresCloud, wanted: Wanted[PostgresServer], tags: ProtocolTags) -> NoReturn:
        """Never: it could not be owned (S1)."""
        del cloud, wanted, tags
        raise _never("created")

    def update(
        self, cloud: PostgresCloud, sighting: Sighting, wanted: Wanted[PostgresServer], drift: Collection[str]
    ) -> NoReturn:
        """Never: it is somebody else's (S5)."""
        del cloud, sighting, wanted, drift
        raise _never("changed")

    def delete(self, cloud: PostgresCloud, sighting: Sighting) -> NoReturn:
        """Nothing to the server: the reference is dropped, after the roles of its links were taken back."""
        del cloud, sighting
        raise _never("deleted")

    def tag(self, cloud: PostgresCloud, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> NoReturn:
        """Never: it has no tags."""
        del cloud, sighting, add, remove
        raise _never("tagged")


def _never(action: str) -> Invalid:
    return Invalid(f"a PostgreSQL server is never {action}: it is only ever imported")


def _sighting(cloud: PostgresCloud) -> Sighting:
    return Sighting(
        type=PostgresServer.type,
        name=NAME,
        resource_id=f"{cloud.host}:{cloud.port}",
        actual={"host": cloud.host, "port": cloud.port},
        outputs={"endpointAddress": cloud.host, "endpointPort": cloud.port},
    )
