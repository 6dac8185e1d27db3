"""Clouds in memory: what is in them, which calls were made, and what a person can change behind the agents' back.

A store is one provider's whole world. Two stores share nothing: what gets from one to the other went through the
control plane.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE, RECONCILE_VALUE
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.offer import Cloud, Session


@dataclass
class Thing:
    """One resource. ``roles`` and ``routes`` are what links made in it, by name; each bears a mark.

    ``place``: the only one in which it is listed; empty for all.
    """

    id: str
    type: str
    name: str
    tags: dict[str, str]
    actual: dict[str, Any]
    roles: dict[str, Role] = field(default_factory=dict)
    routes: dict[str, str] = field(default_factory=dict)
    place: str = ""


@dataclass
class Role:
    """A login of a database; nobody can read its password back."""

    mark: str
    password: str
    database: str


@dataclass
class Store:
    """One provider: its resources, its secrets, and what was called."""

    name: str
    things: dict[str, Thing] = field(default_factory=dict)
    secrets: dict[str, tuple[str, str]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    handler_runs: Counter[str] = field(default_factory=Counter)
    acts: list[CallContext] = field(default_factory=list)
    before: list[Callable[[str], None]] = field(default_factory=list)
    failing: dict[str, CloudError] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    lock: threading.RLock = field(default_factory=threading.RLock)

    def call(self, operation: str) -> None:
        """Every call begins here: it is counted, people may come in between, and it may fail."""
        with self.lock:
            self.calls[operation] += 1
        for hook in list(self.before):
            hook(operation)
        if operation in self.failing:
            raise self.failing[operation]

    def new_id(self) -> str:
        """An id nobody has."""
        return f"{self.name}-{next(self._numbers)}"

    # --- what links make

    def put_role(self, thing_id: str, name: str, role: Role) -> None:
        """Make a role, or change it."""
        self.call("put_role")
        self.things[thing_id].roles[name] = role

    def drop_role(self, thing_id: str, name: str) -> None:
        """Drop a role; gone is gone."""
        self.call("drop_role")
        if thing_id in self.things:
            self.things[thing_id].roles.pop(name, None)

    def put_secret(self, name: str, value: str, mark: str) -> None:
        """Keep a secret."""
        self.call("put_secret")
        self.secrets[name] = (value, mark)

    def drop_secret(self, name: str) -> None:
        """Forget a secret; gone is gone."""
        self.call("drop_secret")
        self.secrets.pop(name, None)

    # --- what people see and do

    def named(self, name: str) -> Thing:
        """The resource of that name."""
        return next(thing for thing in self.things.values() if thing.name == name)

    def has(self, name: str) -> bool:
        """Whether there is a resource of that name."""
        return any(thing.name == name for thing in self.things.values())

    def roles(self, name: str) -> list[str]:
        """The names of all roles in one database."""
        return sorted(self.named(name).roles)

    def break_glass(self, name: str) -> None:
        """What an engineer does at 3 a.m."""
        self.named(name).tags.pop(MANAGED_BY, None)

    def hand_back(self, name: str) -> None:
        """The handshake."""
        self.named(name).tags.update({MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE})

    def give_to(self, name: str, live_system: str) -> None:
        """Move the ownership."""
        self.named(name).tags[OWNER] = live_system

    def marks(self) -> set[str]:
        """The marks of everything that links made here and that is still there."""
        found = {role.mark for thing in self.things.values() for role in thing.roles.values()}
        found |= {mark for thing in self.things.values() for mark in thing.routes}
        return found | {mark for _, mark in self.secrets.values()}


class ToyCloud(Cloud):
    """A session at one store."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self.store = store
        self.scope = scope

    @contextmanager
    def calling_as(self, act: CallContext) -> Iterator[CallContext]:
        """Note in whose name things are done."""
        self.store.acts.append(act)
        act.request_ids.append(f"req-{len(self.store.acts)}")
        yield act


class ToySession(Session):
    """A connection to one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def realms(self) -> Mapping[str, str]:
        """One account."""
        return {"": f"account-{self._store.name}"}

    def at(self, scope: Scope) -> ToyCloud:
        """The cloud of one scope."""
        return ToyCloud(self._store, scope)


STORES: dict[str, Store] = {"east": Store("east"), "west": Store("west")}
"""The two clouds; a world begins by emptying them."""


def empty() -> None:
    """Begin anew."""
    for name in STORES:
        STORES[name] = Store(name)
