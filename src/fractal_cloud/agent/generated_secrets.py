"""The secrets that are made for components of one scope: found by their names, made once, and dropped at the end (A8).

    publish that it will be made ──▶ make it ──▶ write the component ──▶ … ──▶ delete both ──▶ publish «finished»

A secret is ours where it bears the owner of its LiveSystem and ``managed-by``; every other one is left alone. When
something is written is decided by the waves of a cycle; how a store works, by its provider.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from fractal_cloud.agent.isolation import read_safely, write_safely
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.errors import CloudError, Conflict, SecretUnavailable
from fractal_cloud.model.generated import is_generated, length_of, place_of
from fractal_cloud.model.tags import stamp
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.generated_secrets import GeneratedSecretStore, Kept, Slot, new_secret, providers, store_of
from fractal_cloud.offers.known_secrets import KNOWN
from fractal_cloud.offers.secret import Secret
from fractal_cloud.rules import words

ABOUT_TO_BE_MADE: Final = "?"
"""Stands before what was published before it was made, and not seen in the store since (S17)."""
GUIDE: Final = "docs/declaring.md#generated-secrets"


class NotMade(SecretUnavailable):
    """A generated secret is not there: it was never made, or somebody deleted it."""


class GeneratedSecrets:
    """The generated secrets of one scope."""

    def __init__(self, held: HeldScope, watchdog: Watchdog) -> None:
        self._held = held
        self._watchdog = watchdog

    def find(self, live_system_id: str, name: str) -> Secret | SecretUnavailable:
        """The value that is kept under a generated secret's name now, or why there is none."""
        slot = Slot(live_system_id, place_of(name))
        try:
            store = self._store()
            kept = self._read(store, slot)
        except SecretUnavailable as error:
            return error
        except CloudError as error:
            return SecretUnavailable(f"its generated secret cannot be read: {error.message}", is_passing=True)
        if kept is None:
            return NotMade(_deleted(store, slot))
        why = _refusal(store, slot, kept)
        if why:
            return SecretUnavailable(why)
        assert kept.secret is not None, "what is not refused has a value"
        KNOWN.add(kept.secret)
        return kept.secret

    def make(self, tracked: Tracked, name: str) -> Secret:
        """Make a secret, or take the one that an earlier try made; raises where that is another's."""
        store, slot = self._store(), Slot(tracked.live_system_id, place_of(name))
        made = new_secret(length_of(name))
        KNOWN.add(made)
        tags = stamp(tracked.live_system_id)
        try:
            self._write(store, partial(store.make, self._held.cloud, slot, made, tags))
        except Conflict:
            found = self.find(tracked.live_system_id, name)
            if isinstance(found, Secret):
                return found
            raise Conflict(f"its generated secret cannot be made: {found.message}") from None
        return made

    def drop(self, tracked: Tracked) -> str:
        """Delete what was made for a component; returns why something of it is still there, empty where nothing is.

        What is not ours any more was let go by somebody, and stays.
        """
        context = CallContext(tracked.live_system_id, tracked.component_id, "delete")
        for place in tracked.memory.generated:
            slot = Slot(tracked.live_system_id, place.removeprefix(ABOUT_TO_BE_MADE))
            try:
                store = self._store()
                kept = self._read(store, slot)
                if kept is not None and _is_ours(slot, kept):
                    with self._held.cloud.calling_as(context):
                        self._write(store, partial(store.drop, self._held.cloud, slot, kept))
            except CloudError as error:
                return f"{words.GENERATED_LEFT}: {error.message}"
        return ""

    def _store(self) -> GeneratedSecretStore:
        scope = self._held.scope
        store = store_of(scope.provider)
        if store is None:
            raise SecretUnavailable(f"{scope.provider!r} keeps no generated secrets: only {', '.join(providers())} do")
        return store

    def _read(self, store: GeneratedSecretStore, slot: Slot) -> Kept | None:
        key = ("generated", self._held.scope.key, slot)
        return read_safely(self._watchdog, key, store.title, lambda _: store.find(self._held.cloud, slot))

    def _write(self, store: GeneratedSecretStore, run: Callable[[], None]) -> None:
        key = ("generated", self._held.scope.key, "write")
        write_safely(self._watchdog, key, store.title, lambda _: run())


def with_intents(tracked: Tracked) -> tuple[str, ...]:
    """What is remembered of a component's generated secrets before a write that may make some (S17)."""
    known = tracked.memory.generated
    wanted = (place_of(name) for name in tracked.secrets if is_generated(name))
    more = {ABOUT_TO_BE_MADE + place for place in wanted if place not in known}
    return known if more <= set(known) else tuple(sorted({*known, *more}))


def with_made(tracked: Tracked, made: Collection[str]) -> tuple[str, ...]:
    """What is remembered once these are seen in the store, by component and parameter."""
    known = tracked.memory.generated
    if set(made) <= set(known):
        return known
    begun = {ABOUT_TO_BE_MADE + place for place in made}
    return tuple(sorted({*made, *(one for one in known if one not in begun)}))


def is_lost(tracked: Tracked, name: str) -> bool:
    """Whether a secret that is not there was seen there before: somebody deleted it."""
    return place_of(name) in tracked.memory.generated


def _is_ours(slot: Slot, kept: Kept) -> bool:
    return kept.protocol.is_managed and kept.protocol.owner == slot.live_system_id


def _refusal(store: GeneratedSecretStore, slot: Slot, kept: Kept) -> str:
    """Why what is kept under a name cannot be used; empty where it can."""
    what = f"secret {store.name(slot)!r} ({store.title})"
    owner, manager = kept.protocol.owner, kept.protocol.other_manager
    if owner is not None and owner != slot.live_system_id:
        return f"{what} belongs to LiveSystem {owner!r}: nothing of it is used or changed. Rename the component"
    if manager is not None:
        return f"{what} is managed by {manager!r}: nothing of it is used or changed. Rename the component"
    if not _is_ours(slot, kept):
        return (
            f"{what} is there without our tags: nothing of it is used or changed. Delete or rename it, or tag it "
            f"managed-by: fractal-cloud and fractal-cloud-owner: {slot.live_system_id}, and its value is used ({GUIDE})"
        )
    return f"{what} {kept.why}" if kept.secret is None else ""


def _deleted(store: GeneratedSecretStore, slot: Slot) -> str:
    return (
        f"secret {store.name(slot)!r} ({store.title}), which was made for it, was deleted, and the component still has "
        f"its value: restore it, or make one of that name with the tags managed-by: fractal-cloud and "
        f"fractal-cloud-owner: {slot.live_system_id}, whose value is written then ({GUIDE})"
    )


__all__ = ["GeneratedSecrets", "NotMade", "is_lost", "with_intents", "with_made"]
