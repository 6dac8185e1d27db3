"""What a session remembers of one account and region: which resource an ARN is, and the requests that are under way.

It spares calls: an identifier never means another type, and what a resource is called and fills in changes rarely.
Nothing is decided from it. Without it (another agent, a restart) the same is asked of AWS again.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.errors import CloudError
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.resources import calls
from fractal_cloud.offers.aws.resources.calls import Progress


@dataclass(frozen=True, slots=True)
class Known:
    """What the last whole read showed of a resource that the lists do not show."""

    identifier: str
    name: str
    parent_id: str | None
    arn: str
    outputs: Mapping[str, Any]
    incarnation: str


@dataclass(slots=True)
class KnownOfType:
    """The resources of one type. ``foreign``: ARNs that are of another one. ``named``: names by identifier.

    ``version`` changes with what is known, and ``listed`` says with which one, and for whom, the list was read last: a
    page is not taken for one that was read with less.
    ``assigned``: by identifier, the name and the parent under which a component declares it.
    """

    by_id: dict[str, Known] = field(default_factory=dict)
    by_arn: dict[str, str] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    named: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    version: int = 0
    listed: tuple[int, frozenset[str]] = (-1, frozenset())

    def note(self, known: Known) -> None:
        """Keep what a whole read showed."""
        if self.by_id.get(known.identifier) == known:
            return
        self.by_id[known.identifier] = known
        if known.arn:
            self.by_arn[known.arn] = known.identifier
        self.version += 1

    def forget(self, identifier: str) -> None:
        """A read did not find it any more."""
        gone = self.by_id.pop(identifier, None)
        self.named.pop(identifier, None)
        if gone is not None:
            self.by_arn.pop(gone.arn, None)
            self.version += 1


@dataclass(frozen=True, slots=True)
class _Failure:
    about: str
    error: CloudError


class Requests:
    """The requests that AWS is at work on: those that this session made, and those it found when it first asked.

    A request that was taken and failed later is remembered until the same write is tried again: that try fails with
    the reason, and AWS is asked once more at the next.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_loaded = False
        self._under_way: dict[tuple[str, str], tuple[Progress, str]] = {}
        self._failed: dict[tuple[str, str, str], _Failure] = {}

    def load(self, cloud: Aws) -> None:
        """Find what an agent before this one, or anybody else, has under way."""
        with self._lock:
            if self._is_loaded:
                return
            for progress in calls.under_way(cloud):
                if progress.identifier:
                    self._under_way.setdefault((progress.type_name, progress.identifier), (progress, ""))
            self._is_loaded = True

    def add(self, progress: Progress, about: str) -> None:
        """A write was taken. ``about``: what it was to do, by which it is recognised when it is tried again."""
        key = progress.type_name, progress.identifier
        if progress.is_under_way:
            self._under_way[key] = progress, about
        else:
            self._end(key, progress, about)

    def of(self, cloud: Aws, type_name: str, identifier: str) -> Progress | None:
        """The request that is under way for a resource, as AWS says it now; None where there is none."""
        key = type_name, identifier
        known = self._under_way.get(key)
        if known is None:
            return None
        now = calls.status(cloud, known[0].token)
        if now is not None and now.is_under_way:
            return now
        self._under_way.pop(key, None)
        if now is not None:
            self._end(key, now, known[1])
        return None

    def has_any(self, type_name: str, identifier: str) -> bool:
        """Whether something may be under way for a resource."""
        return (type_name, identifier) in self._under_way

    def has_failed(self, type_name: str, identifier: str, operation: str, about: str) -> bool:
        """Whether the same write was taken and failed; which one an agent before this one made is not known."""
        failure = self._failed.get((type_name, identifier, operation))
        return failure is not None and failure.about in (about, "")

    def failed_change(self, type_name: str, identifier: str) -> CloudError | None:
        """Why the last change of a resource was refused after it had been taken; said once."""
        failure = self._failed.pop((type_name, identifier, calls.UPDATE), None)
        return None if failure is None else failure.error

    def raise_failure(self, type_name: str, identifier: str, operation: str, about: str) -> None:
        """Raise what became of the same write, once."""
        failure = self._failed.pop((type_name, identifier, operation), None)
        if failure is not None and failure.about == about:
            raise failure.error

    def _end(self, key: tuple[str, str], progress: Progress, about: str) -> None:
        if progress.has_failed:
            self._failed[*key, progress.operation] = _Failure(about, progress.error())


@dataclass(slots=True)
class Memory:
    """Of one account and region: resources by type, and requests."""

    types: dict[str, KnownOfType] = field(default_factory=lambda: defaultdict(KnownOfType))
    requests: Requests = field(default_factory=Requests)

    @classmethod
    def of(cls, cloud: Aws) -> Memory:
        """That of a cloud."""
        return cloud.memory(cls)
