"""What can be declared: every component type with the schema of its parameters and its link contracts.

Families have thousands of types: those are searched and asked for by name, and listed nowhere in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Response

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, in_pages, page_of
from fractal_cloud.control.store import offers
from fractal_cloud.control.store.records import Json
from fractal_cloud.offers.family import TypeSummary
from fractal_cloud.offers.installed_types import Catalog

router = APIRouter(tags=["offers"], route_class=StrictRoute)

_MOST_NAMES = 50

Search = Annotated[
    str | None,
    Query(max_length=200, description="Words that stand in a type's name, title or description; families' types too."),
]
OfProvider = Annotated[str | None, Query(max_length=63, description="Types of this provider alone.")]
Named = Annotated[
    list[str] | None,
    Query(alias="type", max_length=_MOST_NAMES, description="These types in full, those of families too."),
]


@router.get("/offers", responses={200: {"model": views.OfferPage}})
def list_all(
    store: TheStore,
    search: Search = None,
    provider: OfProvider = None,
    named: Named = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """All component types that are installed here, or that an agent brought along, by type.

    Of families there are too many types: `search` finds them, in short, and `type` gives them by name, in full.
    """
    with store.read() as tx:
        catalog = store.catalog(tx)
    found: Iterator[Json]
    if named:
        found = (facts.to_json() for name in dict.fromkeys(named) if (facts := catalog.get(name)) is not None)
    elif search is not None:
        found = _searched(catalog, search)
    else:
        found = (facts.to_json() for facts in catalog.values())
    wanted = (one for one in found if provider is None or one["provider"] == provider)
    families = [
        {"name": family.name, "provider": family.provider, "title": family.title, "asOf": family.as_of()}
        for family in catalog.installed.families()
        if provider is None or family.provider == provider
    ]
    return in_pages(wanted, limit, cursor, "type", families=families)


def _searched(catalog: Catalog, search: str) -> Iterator[Json]:
    """Every type in whose name, title or description all words stand, in short."""
    words = search.casefold().split()
    for family, found in _summaries(catalog):
        text = f"{found.type} {found.title} {found.description}".casefold()
        if all(word in text for word in words):
            short = {"type": found.type, "provider": found.provider, "title": found.title}
            yield {**short, "description": found.description, "family": family}


def _summaries(catalog: Catalog) -> Iterator[tuple[str, TypeSummary]]:
    for facts in catalog.values():
        yield facts.family, TypeSummary(facts.type, facts.provider, facts.title, facts.description)
    for family in catalog.installed.families():
        yield from ((family.name, found) for found in family.types())


@router.get("/types", responses={200: {"model": views.TypeOwnerPage}})
def list_owners(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All component types, and whose each of them is."""
    with store.read() as tx:
        catalog, owners = store.catalog(tx), offers.owners(tx)
    found = (
        {
            "type": name,
            "provider": facts.provider,
            "installed": name in store.installed_types,
            "owner": None if name in store.installed_types else owners.get(name),
        }
        for name, facts in catalog.items()
    )
    return page_of(found, limit, cursor, "type")
