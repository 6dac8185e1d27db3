"""Links to a PostgreSQL server that somebody runs: a role in the database itself, made as the user whom the agent's
environment names for this very component. The password travels sealed: the server has no store for it (L9).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fractal_cloud.model.errors import Invalid, LinkNotReady
from fractal_cloud.offers.database_links import provide, revoke_access, still_there
from fractal_cloud.offers.database_roles import Server, dsn_setting, server_from_setting
from fractal_cloud.offers.link import InboundLink, Published, inbound
from fractal_cloud.offers.link_types import DATABASE_LINK, DatabaseLink
from fractal_cloud.offers.postgres.cloud import PostgresCloud
from fractal_cloud.offers.postgres.server import PostgresServer


@inbound(source="*", target=PostgresServer, link_type=DATABASE_LINK, settings=DatabaseLink)
def grant_role(link: InboundLink[DatabaseLink]) -> Published | None:
    """Make a role for the source in the database; its password travels sealed, and only the source's agent opens it."""
    return provide(link, _server_of(link), keep=None)


@grant_role.revokes
def drop_role(link: InboundLink[DatabaseLink]) -> None:
    """Drop the role; what it made in the database stays."""
    revoke_access(link, _server_of(link))


@grant_role.verifies
def roles_there(links: Sequence[InboundLink[DatabaseLink]]) -> Iterator[InboundLink[DatabaseLink]]:
    """Those whose role is still in its database: one query per component."""
    return still_there(links, _server_of)


def _server_of(link: InboundLink[DatabaseLink]) -> Server:
    """How the server is reached by somebody who may make roles: only the operator of the agent can say."""
    cloud: PostgresCloud = link.cloud
    setting = dsn_setting(link.live_system_id, link.own)
    server = server_from_setting(link.live_system_id, link.own)
    if server is None:
        address = f"postgresql://USER:PASSWORD@{cloud.host}:{cloud.port}/postgres"
        raise LinkNotReady(f"{setting} is not set at the agent: set it to {address}, and restart the agent")
    link.watch.note(server.password)
    if (server.host.lower(), server.port) != (cloud.host.lower(), cloud.port):
        raise Invalid(
            f"{setting} leads to {server.host}:{server.port}, but {link.own!r} is at {cloud.host}:{cloud.port}: "
            "correct one of them"
        )
    declared = link.parameters.get("sslmode")
    return server if declared is None else replace(server, sslmode=str(declared))
