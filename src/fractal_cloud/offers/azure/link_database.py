"""Links to an Azure Database for PostgreSQL: a role in the database itself, its password sealed.

Azure keeps no password of a user who may make roles. A setting of the agent says how to log in; where that names no
password, the agent logs in as an administrator from Entra, with a token of its own instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fractal_cloud.model.errors import LinkNotReady
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.postgres import AzurePostgresDbms
from fractal_cloud.offers.database_links import provide, revoke_access, still_there
from fractal_cloud.offers.database_roles import Server, dsn_setting, server_from_setting
from fractal_cloud.offers.link import InboundLink, Published, inbound
from fractal_cloud.offers.link_types import DATABASE_LINK, DatabaseLink

Link = InboundLink[DatabaseLink]


@inbound(source="*", target=AzurePostgresDbms, link_type=DATABASE_LINK, settings=DatabaseLink)
def grant_role(link: Link) -> Published | None:
    """Make a role for the source in the database; its password travels sealed, and is in no output field."""
    if link.there.actual.get("passwordAuth") != "Enabled":
        raise LinkNotReady(f"{link.own!r} takes identities of Entra alone: declare passwordAuth as 'Enabled'")
    server = _server_of(link)
    if server is None:
        host = link.there.outputs.get("fullyQualifiedDomainName") or "HOST"
        way_in = f"{dsn_setting(link.live_system_id, link.own)}=postgresql://NAME@{host}:5432/postgres?sslmode=require"
        raise LinkNotReady(
            f"no login for {link.own!r} is set: make the agent's identity its administrator in Entra, "
            f"and give the agent {way_in} with the administrator's name"
        )
    return provide(link, server, None)


@grant_role.revokes
def drop_role(link: Link) -> None:
    """Drop the role; without the setting it cannot be reached, and is left to whoever took the setting away."""
    server = _server_of(link)
    if server is not None:
        revoke_access(link, server)


@grant_role.verifies
def roles_there(links: Sequence[Link]) -> Iterator[Link]:
    """Those whose role is still in its database."""
    return still_there(links, _server_of)


def _server_of(link: Link) -> Server | None:
    cloud: Azure = link.cloud
    server = server_from_setting(link.live_system_id, link.own)
    if server is None or server.password.reveal() or cloud.database_token is None:
        return server
    return replace(server, password=link.watch.note(cloud.database_token()))
