"""Finds what a run has left in an account and deletes it, without the agent: by its tags in the bulk lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.offer import AnyOffer
from fractal_cloud.offers.registry import Registry
from fractal_cloud.verifying.account import Account
from fractal_cloud.verifying.checks import Wait
from fractal_cloud.verifying.example import OWNER_OF_A_RUN, PREFIX, Place, VerificationExample, short_type

CLEANING_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Leftover:
    """One resource of a run that is over."""

    offer: AnyOffer
    sighting: Sighting

    def __str__(self) -> str:
        return f"{short_type(self.offer.type)} {self.sighting.name} ({self.sighting.resource_id})"


@dataclass(frozen=True, slots=True)
class Found:
    """``ours``: has managed-by and the owner of a run. ``named``: only its name looks so; it is never deleted."""

    ours: list[Leftover]
    named: list[Leftover]
    unread: list[str]


class _AnyWord(dict[str, str]):
    """Stands for every word of `--scope`, where only the types of what is declared are of interest."""

    def __missing__(self, word: str) -> str:
        return word


def offers_of(registry: Registry, examples: Iterable[VerificationExample], account: Account) -> list[AnyOffer]:
    """The offers of all that runs may have created there: what is needed comes before what needs it."""
    at = Place(_AnyWord())
    declared = [one["type"] for example in examples for one in example.declare(at)]
    offers = [registry[name] for name in dict.fromkeys(declared)]
    return [offer for offer in offers if offer.taggable and account.covers(offer)]


def find(account: Account, offers: Sequence[AnyOffer]) -> Found:
    """Read the bulk lists and sort out what belongs to runs."""
    found = Found([], [], [])
    for offer in offers:
        try:
            listed = account.listed(offer)
        except CloudError as error:
            found.unread.append(f"{short_type(offer.type)}: {error.message}")
            continue
        for one in listed:
            if one.condition is Condition.DYING:
                continue
            if one.protocol.is_managed and OWNER_OF_A_RUN.match(one.protocol.owner or ""):
                found.ours.append(Leftover(offer, one))
            elif OWNER_OF_A_RUN.match(one.name) or _is_compact_name(one.name):
                found.named.append(Leftover(offer, one))
    return found


def delete(
    account: Account,
    offers: Sequence[AnyOffer],
    wanted: Callable[[], Sequence[Leftover]],
    seconds: float = CLEANING_SECONDS,
) -> list[str]:
    """Delete what ``wanted`` finds, what needs others first, until nothing is left or the time is over.

    Returns what is left, each with the reason.
    """
    order = {offer.type: index for index, offer in enumerate(offers)}
    left: list[Leftover] = []
    refusals: dict[str, str] = {}
    unread = ""
    for _ in Wait(seconds):
        try:
            left, unread = sorted(wanted(), key=lambda one: -order[one.offer.type]), ""
        except CloudError as error:
            unread = f"what is left could not be read: {error.message}"
            continue
        if not left:
            return []
        for one in left:
            refusals.pop(one.sighting.resource_id, None)
            try:
                account.delete(one.offer, one.sighting)
            except CloudError as error:
                refusals[one.sighting.resource_id] = error.message
    reasons = [f"{one}: {refusals.get(one.sighting.resource_id, 'still being deleted')}" for one in left]
    return [*reasons, unread] if unread else reasons


def of_run(account: Account, offers: Sequence[AnyOffer], place: Place) -> list[Leftover]:
    """What one run has left, by its owner or its name: the name is random, so nobody else has it."""
    left: list[Leftover] = []
    for offer in offers:
        for one in account.listed(offer):
            owned = (one.protocol.owner or "").startswith(place.run)
            if (owned or place.is_name_of_run(one.name)) and one.condition is not Condition.DYING:
                left.append(Leftover(offer, one))
    return left


def _is_compact_name(name: str) -> bool:
    start = PREFIX.replace("-", "")
    return name.startswith(start) and OWNER_OF_A_RUN.match(f"{PREFIX}{name[len(start) : len(start) + 6]}") is not None
