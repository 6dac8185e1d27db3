"""Links to an RDS for PostgreSQL: a role in the database itself, reached with the master password that AWS keeps.

Inside AWS the source's password lies in Secrets Manager; for a source on another cloud it travels sealed (L9).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from fractal_cloud.offers.aws.link_secrets import EC2, ECS, drop_secret, put_secret, tag_of
from fractal_cloud.offers.aws.rds import AwsRdsPostgres
from fractal_cloud.offers.database_links import provide, revoke_access, still_there
from fractal_cloud.offers.database_roles import Role, Server, server_from_setting
from fractal_cloud.offers.link import InboundLink, OutboundLink, Published, inbound, outbound
from fractal_cloud.offers.link_types import DATABASE_LINK, DatabaseLink
from fractal_cloud.offers.secret import Secret


@inbound(source="*", target=AwsRdsPostgres, link_type=DATABASE_LINK, settings=DatabaseLink)
def grant_role(link: InboundLink[DatabaseLink]) -> Published | None:
    """Make a role for the source in the database; its password goes into a secret, never into an output field."""
    server = _server_of(link)
    if server is None:
        return None
    return provide(link, server, None if link.is_cross_cloud() else _keep)


@grant_role.revokes
def drop_role(link: InboundLink[DatabaseLink]) -> None:
    """Drop the role and its secret."""
    server = _server_of(link)
    if server is not None:
        revoke_access(link, server)
    drop_secret(link.cloud, _secret_id(link), tag_of(link.mark))


@grant_role.verifies
def roles_there(links: Sequence[InboundLink[DatabaseLink]]) -> Iterator[InboundLink[DatabaseLink]]:
    """Those whose role is still in its database."""
    return still_there(links, _server_of)


def _server_of(link: InboundLink[DatabaseLink]) -> Server | None:
    """How the database is reached: by the agent's own setting, else with the master user's secret; None: not yet."""
    configured = server_from_setting(link.live_system_id, link.own)
    if configured is not None or link.sighting is None:
        return configured
    outputs = link.sighting.outputs
    arn, host = outputs.get("masterUserSecretArn"), outputs.get("endpointAddress")
    if not arn or not host:
        return None
    kept = json.loads(link.cloud.call("secretsmanager", "get_secret_value", SecretId=arn)["SecretString"])
    password = link.keep_secret(str(kept["password"]))
    return Server(str(host), int(outputs.get("endpointPort", 5432)), str(kept["username"]), password)


def _secret_id(link: InboundLink[DatabaseLink]) -> str:
    source = link.source_id if "/" in link.source_id else f"{link.live_system_id}/{link.source_id}"
    return f"fractal-cloud/{link.live_system_id}/{link.own}/{source}"


def _keep(link: InboundLink[DatabaseLink], password: Secret, server: Server, role: Role) -> str:
    """Put all that is needed to log in into one secret, in the form in which RDS keeps its own."""
    where = {"engine": "postgres", "host": server.host, "port": server.port, "dbname": role.database}
    content = {**where, "username": role.name, "password": password.reveal()}
    return put_secret(link.cloud, _secret_id(link), tag_of(link.mark), content)


def use_database(link: OutboundLink[DatabaseLink]) -> Published | None:
    """Publish where the database is, and which secret opens it."""
    if "secretName" not in link.published:
        return None
    names = ("secretName", "host", "port", "database", "user", "access")
    return {name: link.published[name] for name in names if name in link.published}


ec2_to_database = outbound(
    source=EC2,
    target=AwsRdsPostgres,
    link_type=DATABASE_LINK,
    settings=DatabaseLink,
)(use_database)
ecs_to_database = outbound(source=ECS, target=AwsRdsPostgres, link_type=DATABASE_LINK, settings=DatabaseLink)(
    use_database
)
