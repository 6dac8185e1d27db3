"""The provider ``east``: its component types, its offers, and its halves of links."""

from __future__ import annotations

from fractal_cloud.offers.link import inbound, outbound
from fractal_cloud.offers.offer import Provider
from tests.links import clouds
from tests.links import link_handlers as handlers
from tests.links.offers import Database, Gateway, ToyOffer, Workload, WorkloadOffer

east = Provider("east", "East", lambda: clouds.ToySession(clouds.STORES["east"]))


class EastWorkload(Workload):
    """Something that runs in the east."""

    type = "Toy.EastWorkload"
    provider = "east"


class EastDatabase(Database):
    """A database in the east."""

    type = "Toy.EastDatabase"
    provider = "east"


class EastGateway(Gateway):
    """A gateway in the east."""

    type = "Toy.EastGateway"
    provider = "east"


class EastWorkloadOffer(WorkloadOffer[EastWorkload]):
    """How they are run."""

    component = EastWorkload
    title = "Workload"


class EastDatabaseOffer(ToyOffer[EastDatabase]):
    """How they are kept."""

    component = EastDatabase
    title = "Database"


class EastGatewayOffer(ToyOffer[EastGateway]):
    """How they are opened."""

    component = EastGateway
    title = "Gateway"


grant = inbound(source="*", target=EastDatabase, link_type="databaseLink", settings=handlers.DatabaseLink)(
    handlers.grant
)
grant.revokes(handlers.withdraw)
grant.verifies(handlers.granted)

use_east = outbound(
    source=EastWorkload, target="Toy.EastDatabase", link_type="databaseLink", settings=handlers.DatabaseLink
)(handlers.use)
use_west = outbound(
    source=EastWorkload, target="Toy.WestDatabase", link_type="databaseLink", settings=handlers.DatabaseLink
)(handlers.use)
for use in (use_east, use_west):
    use.revokes(handlers.stop_using)
    use.verifies(handlers.used)

open_route = inbound(source="*", target=EastGateway, link_type="routeLink", settings=handlers.RouteLink)(
    handlers.open_route
)
open_route.revokes(handlers.close_route)
open_route.verifies(handlers.routes_open)
know_route_east = outbound(
    source=EastWorkload, target="Toy.EastGateway", link_type="routeLink", settings=handlers.RouteLink
)(handlers.know_route)
know_route_west = outbound(
    source=EastWorkload, target="Toy.WestGateway", link_type="routeLink", settings=handlers.RouteLink
)(handlers.know_route)

greet = outbound(source=EastWorkload, target="*", link_type="greetLink", settings=handlers.Anything)(handlers.greet)
