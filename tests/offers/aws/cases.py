"""The examples of all AWS offers as the contract suite takes them.

A third party writes one such module for its own offers.
"""

from __future__ import annotations

from fractal_cloud.model.component import Component
from fractal_cloud.testing import Hazard, OfferExample
from tests.offers.aws.example import Arrange, Clients
from tests.offers.aws.examples import EXAMPLES


def example_of(kind: type[Component], clients: Clients) -> OfferExample:
    """The example of one type, with a person's clients."""
    example = EXAMPLES[kind]

    def hazard(title: str, status: str, arrange: Arrange) -> Hazard:
        return Hazard(title, status, lambda found: arrange(clients, found))

    return OfferExample(
        components=[*example.components[:-1], *example.more_parents, example.components[-1]],
        changes=example.changes,
        immutable_changes=example.immutable_changes,
        operator=example.operator(clients, example.foreign_edit),
        only_up=example.only_up,
        name_tag=example.name_tag,
        is_slow=example.is_slow,
        hazards=[hazard(title, status, arrange) for title, (status, arrange) in example.hazards.items()],
    )


def prepare(kind: type[Component], clients: Clients) -> None:
    """Make what an example takes for granted."""
    EXAMPLES[kind].prepare(clients)
