"""The handlers of the toy links, the same on both clouds, written as a careful author would.

Each counts its runs in the store of its own side. None can see the other side's store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from fractal_cloud.model.component import Component
from fractal_cloud.model.link import LinkSettings
from fractal_cloud.offers.link import Handler, InboundLink, OutboundLink, Published, inbound, outbound
from tests.links.clouds import Role, Store


class DatabaseLink(LinkSettings):
    """How a database is used."""

    database: str
    access: Literal["read", "write"] = "write"


class RouteLink(LinkSettings):
    """Under which path a gateway shows a workload."""

    prefix: str
    port: int = 80


class Anything(LinkSettings):
    """A link that needs no settings."""


def _store(link: InboundLink[DatabaseLink] | OutboundLink[DatabaseLink]) -> Store:
    store: Store = link.cloud.store
    return store


# --- databases, seen from the target


def role_name(link: InboundLink[DatabaseLink]) -> str:
    """The role of a source in one database of the server."""
    return f"{link.source_id}@{link.settings.database}"


def grant(link: InboundLink[DatabaseLink]) -> Published | None:
    """Make a role for the source. Its password stays in the database, in a secret of this cloud, or travels sealed."""
    store = _store(link)
    store.handler_runs["grant"] += 1
    if link.previous is not None and link.previous.database != link.settings.database:
        store.drop_role(link.there.resource_id, f"{link.source_id}@{link.previous.database}")
    name = role_name(link)
    role = link.cloud.store.things[link.there.resource_id].roles.get(name)
    common = {"endpoint": str(link.there.outputs["endpoint"]), "user": name, "access": link.settings.access}
    if not link.is_cross_cloud():
        kept = f"toy-{store.name}:{link.mark}"
        if role is None or kept not in store.secrets:
            secret = link.new_secret()
            store.put_role(link.there.resource_id, name, Role(link.mark, secret.reveal(), link.settings.database))
            store.put_secret(kept, secret.reveal(), link.mark)
        return {**common, "secretName": kept}
    sent = link.fields.get("version")
    if role is not None and sent is not None and link.is_received(sent):
        return {**common, "version": sent}
    if role is not None and "sealed" in link.fields and link.is_sealed_to_all:
        return {**common, **{name: link.fields[name] for name in ("version", "sealed")}}
    secret = link.new_secret()
    sealed = link.seal(secret)
    store.put_role(link.there.resource_id, name, Role(link.mark, secret.reveal(), link.settings.database))
    return {**common, "version": int(sent or 0) + 1, "sealed": sealed}


def withdraw(link: InboundLink[DatabaseLink]) -> None:
    """Drop the role, and the secret of this cloud."""
    store = _store(link)
    store.handler_runs["withdraw"] += 1
    if link.sighting is not None:
        store.drop_role(link.sighting.resource_id, role_name(link))
    store.drop_secret(f"toy-{store.name}:{link.mark}")


def granted(links: Sequence[InboundLink[DatabaseLink]]) -> Iterator[InboundLink[DatabaseLink]]:
    """Those whose role is still there: one call for all."""
    store = _store(links[0])
    store.handler_runs["granted"] += 1
    store.call("list roles")
    for link in links:
        role = store.things[link.there.resource_id].roles.get(str(link.fields["user"]))
        kept = link.fields.get("secretName")
        if role is not None and role.mark == link.mark and (kept is None or kept in store.secrets):
            yield link


# --- databases, seen from the source


def use(link: OutboundLink[DatabaseLink]) -> Published | None:
    """Publish to the workload where the database is; a password that came sealed goes into a secret of this cloud."""
    store = _store(link)
    store.handler_runs["use"] += 1
    published = link.published
    if "user" not in published:
        return None
    common = {"endpoint": published["endpoint"], "user": published["user"]}
    if "secretName" in published:
        return {**common, "secretName": published["secretName"]}
    kept = f"toy-{store.name}:{link.mark}"
    has_it = kept in store.secrets and link.fields.get("received") == published["version"]
    if not has_it and "sealed" not in published:
        return None
    if not has_it:
        store.put_secret(kept, link.open(published["sealed"]).reveal(), link.mark)
    return {**common, "secretName": kept, "received": published["version"]}


def stop_using(link: OutboundLink[DatabaseLink]) -> None:
    """Forget the secret."""
    store = _store(link)
    store.handler_runs["stop_using"] += 1
    store.drop_secret(f"toy-{store.name}:{link.mark}")


def used(links: Sequence[OutboundLink[DatabaseLink]]) -> Iterator[OutboundLink[DatabaseLink]]:
    """Those whose secret is still kept."""
    store = _store(links[0])
    store.handler_runs["used"] += 1
    store.call("list secrets")
    for link in links:
        name = str(link.fields["secretName"])
        if not name.startswith(f"toy-{store.name}:") or name in store.secrets:
            yield link


# --- gateways


def open_route(link: InboundLink[RouteLink]) -> Published:
    """Put a route into the gateway, under the link's mark."""
    store: Store = link.cloud.store
    store.handler_runs["open_route"] += 1
    store.call("put_route")
    route = f"{link.settings.prefix}:{link.settings.port}"
    store.things[link.there.resource_id].routes[link.mark] = route
    return {"url": f"https://{link.there.name}{link.settings.prefix}"}


def close_route(link: InboundLink[RouteLink]) -> None:
    """Take the route out."""
    store: Store = link.cloud.store
    store.handler_runs["close_route"] += 1
    store.call("drop_route")
    if link.sighting is not None and link.sighting.resource_id in store.things:
        store.things[link.sighting.resource_id].routes.pop(link.mark, None)


def routes_open(links: Sequence[InboundLink[RouteLink]]) -> Iterator[InboundLink[RouteLink]]:
    """Those whose route stands."""
    store: Store = links[0].cloud.store
    store.handler_runs["routes_open"] += 1
    for link in links:
        wanted = f"{link.settings.prefix}:{link.settings.port}"
        if store.things[link.there.resource_id].routes.get(link.mark) == wanted:
            yield link


def know_route(link: OutboundLink[RouteLink]) -> Published | None:
    """Publish the workload's address to it: nothing is made, so there is nothing to revoke."""
    store: Store = link.cloud.store
    store.handler_runs["know_route"] += 1
    return {"url": link.published["url"]} if "url" in link.published else None


# --- what any two things may do


def greet(link: OutboundLink[Anything]) -> Published:
    """Know another thing by its endpoint: needs nothing of the other half."""
    store: Store = link.cloud.store
    store.handler_runs["greet"] += 1
    return {"endpoint": str(link.outputs.get("endpoint", "")), "cross": link.is_cross_cloud()}


# --- all of one provider


def link_handlers(
    workload: type[Component], database: type[Component], gateway: type[Component]
) -> tuple[Handler, ...]:
    """The handlers of a provider with these types, for links inside it and to the other provider."""
    grants = inbound(source="*", target=database, link_type="databaseLink", settings=DatabaseLink)(grant)
    grants.revokes(withdraw)
    grants.verifies(granted)
    uses = [
        outbound(source=workload, target=target, link_type="databaseLink", settings=DatabaseLink)(use)
        for target in ("Toy.EastDatabase", "Toy.WestDatabase")
    ]
    for one in uses:
        one.revokes(stop_using)
        one.verifies(used)
    opens = inbound(source="*", target=gateway, link_type="routeLink", settings=RouteLink)(open_route)
    opens.revokes(close_route)
    opens.verifies(routes_open)
    knows = [
        outbound(source=workload, target=target, link_type="routeLink", settings=RouteLink)(know_route)
        for target in ("Toy.EastGateway", "Toy.WestGateway")
    ]
    greets = outbound(source=workload, target="*", link_type="greetLink", settings=Anything)(greet)
    return (grants, *uses, opens, *knows, greets)
