"""All connections of a server process: how many there are, which of them wait for their client, and which are given up.

Only connections that wait for something are watched: a request that comes in one piece is in no list but that of idle
connections, before and after it. Times are those of the event loop.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from typing import Final, Protocol

from fractal_cloud.control.limits import ClientLimits, possible_connections

LEAST_BYTES: Final = 16 * 1024
"""A body or an answer of which less moves in ``stall_seconds`` is given up."""
_UNFINISHED_SHARE: Final = 8
"""One of so many connections may wait for the rest of its headers; beyond that, the one that waits longest goes."""
_COMPARED: Final = 32
"""Among so many that wait longest, one of the address with the most connections goes."""
_SEARCHED: Final = 256
"""Among so many that wait longest, one of an address that has too many is searched for."""


class Waits(Enum):
    """What a connection waits for."""

    HEADERS = auto()
    BODY = auto()
    NEXT_REQUEST = auto()
    NOTHING = auto()


class Connection(Protocol):
    """A connection, as it is watched."""

    address: str

    @property
    def received(self) -> int:
        """How many bytes of bodies came so far."""
        ...

    @property
    def unsent(self) -> int:
        """How many bytes of answers wait to be taken."""
        ...

    @property
    def is_held_back(self) -> bool:
        """Whether it is we who do not read just now."""
        ...

    def give_up_headers(self, reason: str) -> None:
        """End it: the headers of its request did not come."""
        ...

    def give_up_body(self) -> None:
        """End it: the body of its request does not come."""
        ...

    def give_up_answer(self) -> None:
        """End it: its answer is not read."""
        ...

    def close_idle(self) -> None:
        """End it: others need its place."""
        ...

    @property
    def is_closing(self) -> bool:
        """Whether it was closed, and only waits for its client to take what was said last."""
        ...

    def abort(self) -> None:
        """End it without waiting for its client."""
        ...


@dataclass(slots=True)
class _Progress:
    """How far a transfer was at a time."""

    at: float
    bytes: int


class Connections:
    """The connections of one process."""

    def __init__(self, limits: ClientLimits) -> None:
        self.limits = limits
        self.most = possible_connections(limits.connections)
        self._most_unfinished = max(8, self.most // _UNFINISHED_SHARE)
        self._interval = max(0.05, min(1.0, limits.header_seconds / 4, limits.stall_seconds / 4))
        self._proxies = _networks(limits.trusted_proxies)
        self._of_address: Counter[str] = Counter()
        self._headers: dict[Connection, float] = {}
        self._idle: dict[Connection, None] = {}
        self._bodies: dict[Connection, _Progress] = {}
        self._answers: dict[Connection, _Progress] = {}
        self._all: dict[Connection, bool] = {}
        self._due = 0.0
        self._sweeping: asyncio.TimerHandle | None = None
        self._sweeping_closed: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._all)

    # --- coming and going

    def admit(self, connection: Connection) -> str:
        """Count a new connection; returns why there is no place for it, empty if there is."""
        self._all[connection] = False
        if self._sweeping_closed is None:
            self._sweep_closed()
        address = connection.address
        self._of_address[address] += 1
        if len(self._all) > self.most and not self._free_a_place(self._headers, self._idle):
            return f"this server holds {self.most} connections, and all are in use"
        most_of_one = self.most // 2
        if self._of_address[address] > most_of_one and not self._is_proxy(address):
            own = (
                [one for one in islice(pool, _SEARCHED) if one.address == address]
                for pool in (self._headers, self._idle)
            )
            if not self._free_a_place(*own):
                return f"{address} holds {most_of_one} connections, and all are in use"
        return ""

    def forget(self, connection: Connection) -> None:
        """Leave out a connection that has ended."""
        self._all.pop(connection, None)
        self._of_address[connection.address] -= 1
        if self._of_address[connection.address] <= 0:
            del self._of_address[connection.address]
        for watched in (self._headers, self._idle, self._bodies, self._answers):
            watched.pop(connection, None)

    def _free_a_place(self, *pools: Iterable[Connection]) -> bool:
        """End a connection that is not at work; returns whether there was one."""
        for pool in pools:
            oldest = list(islice(pool, _COMPARED))
            if oldest:
                greediest = max(oldest, key=lambda one: self._of_address[one.address])
                if greediest in self._idle:
                    greediest.close_idle()
                else:
                    greediest.give_up_headers("others need its place")
                return True
        return False

    # --- waiting

    def waits(self, connection: Connection, before: Waits, now: Waits) -> None:
        """Note what a connection waits for from now on."""
        match before:
            case Waits.HEADERS:
                self._headers.pop(connection, None)
            case Waits.NEXT_REQUEST:
                self._idle.pop(connection, None)
            case Waits.BODY:
                self._bodies.pop(connection, None)
            case Waits.NOTHING:
                pass
        match now:
            case Waits.HEADERS:
                self._headers[connection] = self._begin_sweeping()
                if len(self._headers) > self._most_unfinished:
                    self._free_a_place(self._headers)
            case Waits.NEXT_REQUEST:
                self._idle[connection] = None
            case Waits.BODY:
                self._bodies[connection] = _Progress(self._begin_sweeping(), connection.received)
            case Waits.NOTHING:
                pass

    def answer_is_blocked(self, connection: Connection) -> None:
        """Note that a client does not take its answer as fast as it is written."""
        self._answers[connection] = _Progress(self._begin_sweeping(), connection.unsent)

    def answer_goes_on(self, connection: Connection) -> None:
        """Note that it does again."""
        self._answers.pop(connection, None)

    def _begin_sweeping(self) -> float:
        """Check all that wait from time to time, from now on; returns the time."""
        if self._sweeping is None:
            self._sweep_in(self._interval)
        return asyncio.get_running_loop().time()

    def _sweep_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + seconds
        self._sweeping = loop.call_later(seconds, self._wake)

    def _wake(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._due > self._interval:
            self._sweep_in(0.01)  # this process was busy: what clients sent meanwhile has not been read yet
            return
        self.sweep(now)
        self._sweeping = None
        if self._headers or self._bodies or self._answers:
            self._sweep_in(self._interval)

    def sweep(self, now: float) -> None:
        """Give up what takes longer than the limits say."""
        limits = self.limits
        for connection, since in list(self._headers.items()):
            if now - since < limits.header_seconds:
                break  # those that wait longest come first
            connection.give_up_headers(f"they took longer than {limits.header_seconds:g} s")
        for connection, progress in list(self._bodies.items()):
            if connection.is_held_back:
                progress.at = now
            elif now - progress.at >= limits.stall_seconds:
                moved, progress.bytes, progress.at = connection.received - progress.bytes, connection.received, now
                if moved < LEAST_BYTES:
                    connection.give_up_body()
        for connection, progress in list(self._answers.items()):
            if now - progress.at >= limits.stall_seconds:
                moved, progress.bytes, progress.at = progress.bytes - connection.unsent, connection.unsent, now
                if moved < LEAST_BYTES:
                    connection.give_up_answer()

    def _sweep_closed(self) -> None:
        """End those that were closed a while ago, and whose clients do not take even the last of it."""
        for connection, was_closing in list(self._all.items()):
            if was_closing:
                connection.abort()
            else:
                self._all[connection] = connection.is_closing
        loop = asyncio.get_running_loop()
        seconds = self.limits.stall_seconds
        self._sweeping_closed = loop.call_later(seconds, self._sweep_closed) if self._all else None

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return True  # a socket in the file system, whose folder says who may use it
        return any(found in network for network in self._proxies)


def _networks(text: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    return [ipaddress.ip_network(one.strip(), strict=False) for one in text.split(",") if one.strip()]
