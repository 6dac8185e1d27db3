"""Links to a PostgreSQL on Cloud SQL: a role in the database itself, its password sealed.

Google keeps no password of a user who may make roles. So a setting of the agent gives one, and the message says which
where it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fractal_cloud.model.errors import LinkNotReady
from fractal_cloud.offers.database_links import provide, revoke_access, still_there
from fractal_cloud.offers.database_roles import Server, dsn_setting, server_from_setting
from fractal_cloud.offers.gcp.postgres import GcpPostgresDbms
from fractal_cloud.offers.link import InboundLink, Published, inbound
from fractal_cloud.offers.link_types import DATABASE_LINK, DatabaseLink


@inbound(source="*", target=GcpPostgresDbms, link_type=DATABASE_LINK, settings=DatabaseLink)
def grant_role(link: InboundLink[DatabaseLink]) -> Published | None:
    """Make a role for the source in the database; its password travels sealed, and is in no output field."""
    server = _server_of(link)
    if server is None:
        name = dsn_setting(link.live_system_id, link.own)
        raise LinkNotReady(f"Google returns no password for {link.own!r}: give the agent {name}=postgresql://…")
    return provide(link, server, None)


@grant_role.revokes
def drop_role(link: InboundLink[DatabaseLink]) -> None:
    """Drop the role; without the setting it cannot be reached, and is left to whoever took the setting away."""
    server = _server_of(link)
    if server is not None:
        revoke_access(link, server)


@grant_role.verifies
def roles_there(links: Sequence[InboundLink[DatabaseLink]]) -> Iterator[InboundLink[DatabaseLink]]:
    """Those whose role is still in its database."""
    return still_there(links, _server_of)


def _server_of(link: InboundLink[DatabaseLink]) -> Server | None:
    return server_from_setting(link.live_system_id, link.own)
