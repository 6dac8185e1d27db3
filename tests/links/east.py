"""The provider ``east``: its component types, its offers, and its handlers of links."""

from __future__ import annotations

from fractal_cloud.offers.offer import Provider
from tests.links import clouds
from tests.links.link_handlers import link_handlers
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


grant, use_east, use_west, open_route, know_route_east, know_route_west, greet = link_handlers(
    EastWorkload, EastDatabase, EastGateway
)
