"""What every inbound half for a PostgreSQL does alike, whoever runs the server: a role per source, a password that
nobody reads on the way, and one query a cycle that shows whether all roles are still there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fractal_cloud.offers.database_roles import Role, Server, find_roles, grant, leave, revoke
from fractal_cloud.offers.link import InboundLink, Published
from fractal_cloud.offers.link_types import DatabaseLink
from fractal_cloud.offers.secret import Secret
from fractal_cloud.offers.secret_transfer import transfer_secret

ServerOf = Callable[[InboundLink[DatabaseLink]], Server | None]
Keep = Callable[[InboundLink[DatabaseLink], Secret, Server, Role], str]
"""Puts a password into the target's own store, and returns the name by which the source finds it there."""


def role_of(link: InboundLink[DatabaseLink], settings: DatabaseLink | None = None) -> Role:
    """The role of a link."""
    return Role.of(link.mark, link.source_id, settings or link.settings)


def provide(link: InboundLink[DatabaseLink], server: Server, keep: Keep | None) -> Published:
    """Bring the role to what the link says, and publish how it is used; ``keep``: the source can read that store."""
    role = role_of(link)
    if link.previous is not None and link.previous.database != role.database:
        leave(server, role, link.previous.database)
    is_known = role.name in find_roles(server)
    common: dict[str, str | int] = {
        "host": server.host,
        "port": server.port,
        "database": role.database,
        "user": role.name,
        "access": role.access,
    }
    if keep is not None:
        if is_known and "secretName" in link.fields:
            grant(server, role, None)
            return common | {"secretName": link.fields["secretName"]}
        password = link.new_secret()
        grant(server, role, password)
        return common | {"secretName": keep(link, password, server, role)}
    return common | dict(transfer_secret(link, is_known=is_known, bring=lambda password: grant(server, role, password)))


def revoke_access(link: InboundLink[DatabaseLink], server: Server) -> None:
    """Drop the role; whatever it made in the database stays."""
    databases = {link.settings.database} | ({link.previous.database} if link.previous is not None else set())
    revoke(server, role_of(link), databases)


def still_there(links: Sequence[InboundLink[DatabaseLink]], server_of: ServerOf) -> Iterator[InboundLink[DatabaseLink]]:
    """Those whose role is there with its rights: one query per server."""
    by_target: dict[tuple[str, str], list[InboundLink[DatabaseLink]]] = {}
    for link in links:
        by_target.setdefault((link.live_system_id, link.own), []).append(link)
    for group in by_target.values():
        server = server_of(group[0])
        roles = find_roles(server) if server is not None else {}
        for link in group:
            role = role_of(link)
            if server is None or roles.get(role.name) == role.comment:
                yield link
