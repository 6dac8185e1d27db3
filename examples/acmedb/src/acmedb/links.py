"""The target's half of links to a database: a user per source, whoever and wherever the source is.

A user bears the link's mark in its note, by which it is recognised (L17); one without it is somebody else's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from acmedb.cloud import Acme
from acmedb.component import ACMEDB_LINK, AcmeDb, AcmeDbLink
from fractal_cloud.model.errors import Conflict
from fractal_cloud.offers.link import InboundLink, Published, inbound
from fractal_cloud.offers.secret import Secret
from fractal_cloud.offers.secret_transfer import transfer_secret

Inbound = InboundLink[AcmeDbLink]


@inbound(source="*", target=AcmeDb, link_type=ACMEDB_LINK, settings=AcmeDbLink)
def grant_user(link: Inbound) -> Published:
    """Give the source a user of its own; the password travels sealed, and only the source's agent can open it."""
    cloud: Acme = link.cloud
    there, name = link.there, user_name(link)
    known = {user["name"]: user for user in cloud.users() if user["database"] == there.resource_id}
    if name in known and known[name]["note"] != link.mark:
        raise Conflict(f"database {there.name!r} has a user {name!r} that this link did not make: drop it")

    def bring(password: Secret | None) -> None:
        body = _wanted(link) | ({} if password is None else {"password": password.reveal()})
        cloud.put_user(there.resource_id, name, body)

    published = {"host": there.outputs["host"], "port": there.outputs["port"], "database": there.name, "user": name}
    published |= _wanted(link, "keyspace", "access")
    return published | dict(transfer_secret(link, is_known=name in known, bring=bring))


@grant_user.revokes
def drop_user(link: Inbound) -> None:
    """Take the user away; what went with its database is gone already."""
    if link.sighting is not None:
        link.cloud.drop_user(link.sighting.resource_id, user_name(link))


@grant_user.verifies
def users_there(links: Sequence[Inbound]) -> Iterator[Inbound]:
    """Those whose user is there with its rights: one call for all databases."""
    if not links:
        return
    found = {(user["database"], user["name"]): user for user in links[0].cloud.users()}
    for link in links:
        user = found.get((link.there.resource_id, user_name(link)), {})
        if {name: user.get(name) for name in ("keyspace", "access", "note")} == _wanted(link):
            yield link


def user_name(link: Inbound) -> str:
    """The user of a link: readable, the same for every try, and nobody else's by chance."""
    readable = re.sub(r"[^a-z0-9]+", "-", link.source_id)[:40]
    return f"{readable}-{hashlib.sha256(link.mark.encode()).hexdigest()[:10]}"


def _wanted(link: Inbound, *names: str) -> dict[str, Any]:
    wanted = {"keyspace": link.settings.keyspace, "access": link.settings.access, "note": link.mark}
    return {name: wanted[name] for name in names or wanted}
