"""The provider ``west``: its component types, its offers, and its halves of links."""

from __future__ import annotations

from fractal_cloud.offers.link import inbound, outbound
from fractal_cloud.offers.offer import Provider
from tests.links import clouds, halves
from tests.links.offers import Database, Gateway, ToyOffer, Workload, WorkloadOffer

west = Provider("west", "West", lambda: clouds.ToySession(clouds.STORES["west"]))


class WestWorkload(Workload):
    """Something that runs in the west."""

    type = "Toy.WestWorkload"
    provider = "west"


class WestDatabase(Database):
    """A database in the west."""

    type = "Toy.WestDatabase"
    provider = "west"


class WestGateway(Gateway):
    """A gateway in the west."""

    type = "Toy.WestGateway"
    provider = "west"


class WestWorkloadOffer(WorkloadOffer[WestWorkload]):
    """How they are run."""

    component = WestWorkload
    title = "Workload"


class WestDatabaseOffer(ToyOffer[WestDatabase]):
    """How they are kept."""

    component = WestDatabase
    title = "Database"


class WestGatewayOffer(ToyOffer[WestGateway]):
    """How they are opened."""

    component = WestGateway
    title = "Gateway"


grant = inbound(source="*", target=WestDatabase, link_type="databaseLink", settings=halves.DatabaseLink)(halves.grant)
grant.revokes(halves.withdraw)
grant.verifies(halves.granted)

use_east = outbound(
    source=WestWorkload, target="Toy.EastDatabase", link_type="databaseLink", settings=halves.DatabaseLink
)(halves.use)
use_west = outbound(
    source=WestWorkload, target="Toy.WestDatabase", link_type="databaseLink", settings=halves.DatabaseLink
)(halves.use)
for use in (use_east, use_west):
    use.revokes(halves.stop_using)
    use.verifies(halves.used)

open_route = inbound(source="*", target=WestGateway, link_type="routeLink", settings=halves.RouteLink)(
    halves.open_route
)
open_route.revokes(halves.close_route)
open_route.verifies(halves.routes_open)
know_route_east = outbound(
    source=WestWorkload, target="Toy.EastGateway", link_type="routeLink", settings=halves.RouteLink
)(halves.know_route)
know_route_west = outbound(
    source=WestWorkload, target="Toy.WestGateway", link_type="routeLink", settings=halves.RouteLink
)(halves.know_route)

greet = outbound(source=WestWorkload, target="*", link_type="greetLink", settings=halves.Anything)(halves.greet)
