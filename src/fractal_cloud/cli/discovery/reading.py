"""Reads a cloud with the operator's own credentials, without a declaration: everything of some types, in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby

from fractal_cloud.model.catalog import GLOBAL_PLACE
from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.offers.offer import AnyOffer, Query, Session
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.rules.drift import ComparedType

CALLS_AT_ONCE = 16
REGION = "region"
Listing = list[Sighting | UnreadItem]


@dataclass(frozen=True, slots=True)
class Seen:
    """One resource, with every parameter that could be read; ``unread`` says which could not, and why."""

    offer: AnyOffer
    place: str
    sighting: Sighting
    unread: str = ""


@dataclass(slots=True)
class Survey:
    """What reading some places showed: resources, and errors where a type could not be read to its end."""

    seen: list[Seen] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def with_referenced(chosen: Iterable[AnyOffer], find: Callable[[str], AnyOffer | None]) -> list[AnyOffer]:
    """The offers chosen, and those of everything their components may refer to: targets come before what names them."""
    ordered: dict[str, AnyOffer] = {}

    def add(offer: AnyOffer) -> None:
        for target, _ in offer.facts().references().values():
            found = find(target)
            if found is not None and found.type not in ordered:
                add(found)
        ordered.setdefault(offer.type, offer)

    for offer in chosen:
        add(offer)
    return list(ordered.values())


def survey(session: Session, offers: Sequence[AnyOffer], places: Sequence[Mapping[str, str]]) -> Survey:
    """Read all resources of these types in these places (``{"region": "eu-west-1"}``), with all that can be compared.

    Raises ``CloudError`` where the cloud is not reached at all. A type is read after those its listing needs.
    """
    realms = session.realms()
    if not realms:
        raise Unreadable("; ".join(f"{name!r}: {why}" for name, why in session.missing().items()) or "none is reached")
    realm = realms.get("") or next(iter(realms.values()))
    found = Survey()
    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        for _, group in groupby(offers, key=lambda offer: offer.reads_by_parent and offer.type):
            asked = [(offer, place) for offer in group for place in places_of(offer, places)]
            listings = pool.map(lambda one: _list(session, realm, one, found), asked)
            for (offer, place), listing in zip(asked, list(listings), strict=True):
                if isinstance(listing, CloudError):
                    found.unread.append(f"{offer.type} in {place}: {listing.message}")
                    continue
                unread = [one for one in listing if isinstance(one, UnreadItem)]
                found.unread += [f"{offer.type} in {place}: {one.error.message}" for one in unread]
                seen = [one for one in listing if not isinstance(one, UnreadItem)]
                found.seen += [Seen(offer, place, one) for one in seen if _is_wanted(one, places)]
        found.seen = list(pool.map(lambda one: _sweep(session, realm, one), found.seen))
    return found


def places_of(offer: AnyOffer, places: Sequence[Mapping[str, str]]) -> list[str]:
    """The places in which names of a type are unique; the one of what is unique everywhere is read once."""
    if not offer.place:
        return [GLOBAL_PLACE]
    return ["/".join(words[word] for word in offer.place) for words in places if set(offer.place) <= set(words)]


def _list(session: Session, realm: str, asked: tuple[AnyOffer, str], before: Survey) -> Listing | CloudError:
    offer, place = asked
    cloud = session.at(Scope(offer.provider, realm, place))
    parents: frozenset[str] = frozenset()
    if offer.reads_by_parent and offer.parent is not None:
        target, output = offer.facts().references()[offer.parent]
        here = (one.sighting for one in before.seen if one.offer.type == target and one.place == place)
        known = (one.outputs.get(output, one.actual.get(output)) for one in here)
        parents = frozenset(str(one) for one in known if one is not None)
    try:
        return list(offer.sightings(cloud, Query(parent_ids=parents)))
    except CloudError as error:
        return error
    except Exception as error:  # noqa: BLE001  # one type's trouble stays its own (S24)
        return Unreadable(f"its offer failed: {describe_unexpected(error)}")


def _is_wanted(sighting: Sighting, places: Sequence[Mapping[str, str]]) -> bool:
    """Whether it lives, and lies in one of the regions asked for, also where its name is unique in all of them."""
    region = sighting.actual.get(REGION)
    elsewhere = region is not None and all(words.get(REGION, region) != region for words in places)
    return sighting.condition is not Condition.DYING and not elsewhere


def _sweep(session: Session, realm: str, seen: Seen) -> Seen:
    facts = seen.offer.facts()
    # Texts of many lines are programs, and may hold secrets: they are not copied into a file unasked.
    names = {name for name in ComparedType(facts).swept if not facts.parameter_facts(name).get("lines")}
    if not names:
        return seen
    try:
        values = seen.offer.sweep(session.at(Scope(seen.offer.provider, realm, seen.place)), seen.sighting, names)
    except CloudError as error:
        return replace(seen, unread=f"{', '.join(sorted(names))} could not be read: {error.message}")
    return replace(seen, sighting=replace(seen.sighting, actual={**seen.sighting.actual, **values}))
