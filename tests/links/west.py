"""The provider ``west``: its component types, its offers, and its halves of links."""

from __future__ import annotations

from fractal_cloud.offers.link import inbound, outbound
from fractal_cloud.offers.offer import Provider
from tests.links import clouds
from tests.links import link_handlers as handlers
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


grant = inbound(source="*", target=WestDatabase, link_type="databaseLink", settings=handlers.DatabaseLink)(
    handlers.grant
)
grant.revokes(handlers.withdraw)
grant.verifies(handlers.granted)

use_east = outbound(
    source=WestWorkload, target="Toy.EastDatabase", link_type="databaseLink", settings=handlers.DatabaseLink
)(handlers.use)
use_west = outbound(
    source=WestWorkload, target="Toy.WestDatabase", link_type="databaseLink", settings=handlers.DatabaseLink
)(handlers.use)
for use in (use_east, use_west):
    use.revokes(handlers.stop_using)
    use.verifies(handlers.used)

open_route = inbound(source="*", target=WestGateway, link_type="routeLink", settings=handlers.RouteLink)(
    handlers.open_route
)
open_route.revokes(handlers.close_route)
open_route.verifies(handlers.routes_open)
know_route_east = outbound(
    source=WestWorkload, target="Toy.EastGateway", link_type="routeLink", settings=handlers.RouteLink
)(handlers.know_route)
know_route_west = outbound(
    source=WestWorkload, target="Toy.WestGateway", link_type="routeLink", settings=handlers.RouteLink
)(handlers.know_route)

greet = outbound(source=WestWorkload, target="*", link_type="greetLink", settings=handlers.Anything)(handlers.greet)
