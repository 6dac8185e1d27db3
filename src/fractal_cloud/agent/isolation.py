"""Offers as the agent calls them: whatever their code does, a verb ends, and with an error of the closed set (S24).

    offer's verb ──▶ watchdog (it returns, or is given up) ──▶ what it raised or returned, in the closed set

A read that goes wrong in an unexpected way is ``Unreadable``; a write that does so may have been sent. What a verb
returns is checked before anybody decides from it. Which component suffers from what does not belong here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from typing import Any, TypeVar, cast

import structlog

from fractal_cloud.agent.watchdog import Beat, NoReturn, StillOut, Watchdog
from fractal_cloud.model.errors import CloudError, GivenUp, Unexpected, Unreadable
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.model.visible_text import hidden_character, visible
from fractal_cloud.offers.call_context import count_error
from fractal_cloud.offers.history import Asked, Author
from fractal_cloud.offers.known_secrets import KNOWN
from fractal_cloud.offers.offer import AnyOffer, Cloud, Query, Wanted
from fractal_cloud.offers.refusals import describe_unexpected

log = structlog.get_logger()

T = TypeVar("T")
_MOST_TEXT = 512
SESSION_SECONDS = 2.0
"""How long, in seconds, a session may take for what ``try_session`` asks: the agent's own loop waits for it."""


def isolated(offer: AnyOffer, watchdog: Watchdog) -> AnyOffer:
    """The same offer, whose verbs always end, and raise nothing but errors of the closed set."""
    return cast("AnyOffer", _Isolated(offer, watchdog))


def read_safely(
    watchdog: Watchdog, key: Hashable, what: str, run: Callable[[Beat], T], *, seconds: float | None = None
) -> T:
    """Have something read; whatever goes wrong is raised as ``CloudError``. ``what``: who reads, for the message."""
    with _counting_errors():
        try:
            return watchdog.call(key, run, seconds=seconds)
        except CloudError as error:
            redact(error)
            raise
        except NoReturn as error:
            raise Unreadable(
                f"{what} did not return within {error.seconds:g} s and was given up", code="NoReturn"
            ) from error
        except StillOut as error:
            raise Unreadable(f"{what} did not return and is not called again until it does", code="NoReturn") from error
        except Exception as error:
            raise Unreadable(f"{what} failed: {describe_unexpected(error)}", code=type(error).__name__) from error


def write_safely(watchdog: Watchdog, key: Hashable, what: str, run: Callable[[Beat], T]) -> T:
    """Have something written; whatever goes wrong is raised as ``CloudError``: what was begun counts as sent."""
    with _counting_errors():
        try:
            return watchdog.call(key, run)
        except CloudError as error:
            redact(error)
            raise
        except NoReturn as error:
            text = f"{what} did not return within {error.seconds:g} s and was given up: it may still take effect"
            raise GivenUp(text, code="NoReturn") from error
        except StillOut as error:
            raise Unreadable(f"{what} was not called: an earlier call has not returned", code="NoReturn") from error
        except Exception as error:
            text = f"{what} failed: {describe_unexpected(error)}: whether it took effect is unknown"
            raise Unexpected(text, code=type(error).__name__) from error


@contextmanager
def _counting_errors() -> Iterator[None]:
    """Count what goes wrong inside with the calls of the cycle (C11)."""
    try:
        yield
    except CloudError as error:
        count_error(error)
        raise


def redact(error: CloudError) -> None:
    """Take values of secrets out of an error's words: a cloud may quote what it was given (A8)."""
    error.message, error.cause = KNOWN.redact(error.message), KNOWN.redact(error.cause)
    error.args = (error.message,)


def try_session(
    watchdog: Watchdog, key: tuple[str, str], run: Callable[[], T], late: Callable[[T], None] | None = None
) -> T | None:
    """Have a session do something on which nothing depends; returns None, and logs it, where it fails or hangs.

    ``key``: what it does, and for which provider. ``late`` gets what the session returned after it was given up.
    """
    try:
        return watchdog.call(key, lambda _: run(), seconds=SESSION_SECONDS, late=late)
    except Exception as error:  # noqa: BLE001  # somebody else's code
        log.warning("session failed", verb=key[0], provider=key[1], error=describe_unexpected(error))
        return None


class _Isolated:
    """An offer behind a watchdog. What is no verb is the offer's own."""

    def __init__(self, offer: AnyOffer, watchdog: Watchdog) -> None:
        self._offer = offer
        self._watchdog = watchdog
        self._name = f"{type(offer).__module__}.{type(offer).__qualname__}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._offer, name)

    # --- reading

    def sightings(self, cloud: Cloud, query: Query) -> list[Sighting | UnreadItem]:
        """Everything the offer lists, whole; each item has the whole time of a call."""

        def run(beat: Beat) -> list[Sighting | UnreadItem]:
            found = []
            for item in self._offer.sightings(cloud, query):
                beat()
                found.append(item if query.seen_pages.has_sighting(item) else _checked(item, self._offer.type))
            return found

        return self._read("sightings", cloud, run)

    def read(self, cloud: Cloud, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One resource, and no other than was asked for."""
        found = self._read("read", cloud, lambda _: self._offer.read(cloud, resource_id, sweep))
        if found is None:
            return None
        problem = flaw(found, self._offer.type)
        if not problem and found.resource_id != resource_id:
            problem = f"the answer is about {found.resource_id!r}, and {resource_id!r} was asked for"
        if problem:
            raise Unreadable(f"{self._name}.read: {problem}")
        return _with_visible_protocol(found)

    def sweep(self, cloud: Cloud, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """The swept parameters of one resource."""
        found: Any = self._read("sweep", cloud, lambda _: self._offer.sweep(cloud, sighting, names))
        problem = "" if isinstance(found, Mapping) else f"{surprise_of(found)} instead of values by their names"
        problem = problem or _impure("value", dict(found))
        if problem:
            raise Unreadable(f"{self._name}.sweep: {problem}")
        return {name: value for name, value in found.items() if name in names}

    def sweep_in_bulk(
        self, cloud: Cloud, asked: Sequence[tuple[Sighting, Collection[str]]]
    ) -> dict[str, Mapping[str, Any] | CloudError]:
        """The parameters of many, by id; each of the answer's items has the whole time of a call."""

        def run(beat: Beat) -> dict[str, Mapping[str, Any] | CloudError]:
            found: dict[str, Mapping[str, Any] | CloudError] = {}
            for resource_id, values in self._offer.sweep_in_bulk(cloud, asked):
                beat()
                found[resource_id] = values
            return found

        found = self._read("sweep_in_bulk", cloud, run)
        return {one.resource_id: self._swept(found.get(one.resource_id), names) for one, names in asked}

    def _swept(self, values: Any, names: Collection[str]) -> Mapping[str, Any] | CloudError:
        """What was read of one resource: every parameter asked for, or why not (S0)."""
        if isinstance(values, CloudError):
            redact(values)
            return values
        problem = "" if isinstance(values, Mapping) else f"{surprise_of(values)} instead of values by their names"
        problem = problem or _impure("value", dict(values))
        missing = sorted(set(names) - set(values)) if not problem else []
        if problem or missing:
            return Unreadable(f"{self._name}.sweep_in_bulk: {problem or f'the answer lacks {missing}'}")
        return {name: values[name] for name in names}

    def changed_by(
        self, cloud: Cloud, sighting: Sighting, wanted: Wanted[Any], asked: Collection[Asked]
    ) -> Mapping[str, Author]:
        """Who changed these parameters, in texts that anybody may be shown."""
        found: Any = self._read("changed_by", cloud, lambda _: self._offer.changed_by(cloud, sighting, wanted, asked))
        names = {one.parameter for one in asked}
        authors = dict(found) if isinstance(found, Mapping) else {}
        return {name: _shown(one) for name, one in authors.items() if name in names and isinstance(one, Author)}

    # --- what needs no call, and may fail all the same

    def sweep_calls(self, names: Collection[str]) -> int:
        """How many calls a sweep makes."""
        try:
            return max(1, int(self._offer.sweep_calls(names)))
        except Exception:  # noqa: BLE001  # a budget is no reason to stop reading
            return max(1, len(names))

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What a plan must say of a change."""
        try:
            return [str(one) for one in self._offer.warnings(drift)]
        except Exception as error:  # noqa: BLE001  # the plan itself does not depend on it
            return [f"its offer failed to say what this change does: {describe_unexpected(error)}"]

    def rehearse(self, cloud: Cloud, wanted: Wanted[Any], sighting: Sighting | None, drift: Collection[str]) -> None:
        """Ask the cloud whether it would accept a write."""
        self._read("rehearse", cloud, lambda _: self._offer.rehearse(cloud, wanted, sighting, drift))

    # --- writing

    def create(self, cloud: Cloud, wanted: Wanted[Any], tags: ProtocolTags) -> Sighting:
        """Create it; what the offer returns is believed only if it is what a list would show."""
        made = self._write("create", cloud, lambda _: self._offer.create(cloud, wanted, tags))
        problem = flaw(made, self._offer.type)
        if problem:
            raise Unexpected(f"{self._name}.create: {problem}: what it made is looked for")
        return _with_visible_protocol(made)

    def update(self, cloud: Cloud, sighting: Sighting, wanted: Wanted[Any], drift: Collection[str]) -> None:
        """Make the next call that brings it to its declaration."""
        self._write("update", cloud, lambda _: self._offer.update(cloud, sighting, wanted, drift))

    def delete(self, cloud: Cloud, sighting: Sighting) -> None:
        """Make the next call that deletes it."""
        self._write("delete", cloud, lambda _: self._offer.delete(cloud, sighting))

    def tag(self, cloud: Cloud, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Add or remove protocol tags."""
        self._write("tag", cloud, lambda _: self._offer.tag(cloud, sighting, add, remove))

    def write_tags(self, cloud: Cloud, sighting: Sighting, tags: Mapping[str, str]) -> None:
        """Write tags of the user's own."""
        self._write("write_tags", cloud, lambda _: self._offer.write_tags(cloud, sighting, tags))

    # --- how

    def _read(self, verb: str, cloud: Cloud, run: Callable[[Beat], T]) -> T:
        return read_safely(self._watchdog, self._key(cloud), f"{self._name}.{verb}", run)

    def _write(self, verb: str, cloud: Cloud, run: Callable[[Beat], T]) -> T:
        return write_safely(self._watchdog, self._key(cloud), f"{self._name}.{verb}", run)

    def _key(self, cloud: Cloud) -> tuple[str, str]:
        return cloud.scope.key, self._offer.type


# --- what a verb may return


def flaw(found: object, component_type: str) -> str:
    """What is wrong with what an offer calls a sighting; empty if nothing is."""
    if not isinstance(found, Sighting):
        return f"{surprise_of(found)} instead of a sighting"
    return _flaw_of(found, component_type)


def _flaw_of(found: Any, component_type: str) -> str:
    """The same of a sighting whose fields may hold anything: somebody else's code filled them."""
    if found.type != component_type:
        return f"a sighting of type {found.type!r} instead of {component_type!r}"
    parent_id = "" if found.parent_id is None else found.parent_id
    named = {"name": found.name, "resource id": found.resource_id, "parent's id": parent_id}
    for what, text in {**named, "incarnation": found.incarnation}.items():
        if not isinstance(text, str):
            return f"the {what} is {surprise_of(text)}"
        if hidden_character(text) is not None:
            return f"the {what} is {text!r}, which has control characters in it"
    if not found.resource_id:
        return "the resource id is empty"
    if not isinstance(found.revision, str | None):
        return "the revision is no text"
    if not isinstance(found.protocol, ProtocolTags) or not isinstance(found.condition, Condition):
        return f"the protocol's tags are {surprise_of(found.protocol)}, the condition {surprise_of(found.condition)}"
    if not isinstance(found.tags, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str) for key, value in found.tags.items()
    ):
        return f"the tags are {surprise_of(found.tags)}, or not texts by texts"
    return _impure("actual", found.actual) or _impure("outputs", found.outputs)


def _shown(author: Author) -> Author:
    """The same author, in texts that are bounded and command no terminal (A6)."""
    by, identity, how, address = (
        visible(str(text))[:_MOST_TEXT] for text in (author.by, author.identity, author.how, author.address)
    )
    return replace(author, by=by, identity=identity, how=how, address=address)


def _checked(item: object, component_type: str) -> Sighting | UnreadItem:
    if isinstance(item, UnreadItem):
        redact(item.error)
        return item
    problem = flaw(item, component_type)
    if not problem:
        return _with_visible_protocol(cast("Sighting", item))
    resource_id, name = getattr(item, "resource_id", None), getattr(item, "name", None)
    return UnreadItem(
        Unreadable(f"one item of the list cannot be understood: {problem}"),
        resource_id if isinstance(resource_id, str) and resource_id else None,
        name if isinstance(name, str) else None,
    )


def _with_visible_protocol(found: Sighting) -> Sighting:
    """The same sighting; what others wrote into the protocol's tags is neither ours nor shown as it is (T7, A6)."""
    tags = found.protocol
    texts = (text for text in (tags.managed_by, tags.owner) if isinstance(text, str))
    if all(hidden_character(text) is None for text in texts):
        return found
    managed_by, owner = (text if text is None else visible(text) for text in (tags.managed_by, tags.owner))
    return replace(found, protocol=replace(tags, managed_by=managed_by, owner=owner))


def _impure(what: str, values: object) -> str:
    if not isinstance(values, Mapping):
        return f"{what} is {surprise_of(values)} instead of values by their names"
    for name, value in values.items():
        if not isinstance(name, str) or not _is_plain(value):
            return f"{what} {name!r} is {surprise_of(value)}, which is no plain data"
    return ""


def _is_plain(value: object) -> bool:
    """Whether a value can be published as it is."""
    if value is None or isinstance(value, bool | int):
        return True
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_plain(inner) for name, inner in value.items())
    return isinstance(value, list | tuple) and all(map(_is_plain, value))


def surprise_of(value: object) -> str:
    """What a value is, for a message that must not quote all of it."""
    return "nothing" if value is None else f"a {type(value).__name__}"


__all__ = ["flaw", "isolated", "read_safely", "write_safely"]
