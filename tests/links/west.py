"""The provider ``west``: its component types, its offers, and its handlers of links."""

from __future__ import annotations

from fractal_cloud.offers.offer import Provider
from tests.links import clouds
from tests.links.link_handlers import link_handlers
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


grant, use_east, use_west, open_route, know_route_east, know_route_west, greet = link_handlers(
    WestWorkload, WestDatabase, WestGateway
)
