"""Agents as coroutines: they say to a control plane what real ones say, over HTTP, a thousand of them in one process.

What they find in a cloud is made up; what they send and when is the agents' protocol (``model.wire``, ``agent.main``).
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_core import from_json, to_json

from benchmarks.control_fill import Held
from fractal_cloud.agent.main import LONGEST_WAIT

BEAT_SECONDS: Final = 120.0
"""A third of the lease of two cycles."""


@dataclass(slots=True)
class Times:
    """How long requests took, in milliseconds, by path."""

    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: int = 0

    def percentile(self, path: str, share: float) -> float:
        """So much of the requests took no longer."""
        found = sorted(self.taken[path]) or [0.0]
        return found[min(len(found) - 1, int(share * len(found)))]


class Connection:
    """One connection that stays open: HTTP/1.1 with as little of it as a server needs to see."""

    def __init__(self, url: str, token: str) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._token = token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: Any) -> tuple[int, bytes]:
        """The answer's status and body."""
        if self._streams is None or self._streams[0].at_eof():
            self._streams = await asyncio.open_connection(self._host, self._port, limit=2**20)
        reader, writer = self._streams
        content = to_json(body)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content)
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
        return int(lines[0].split()[1]), await reader.readexactly(length)

    def close(self) -> None:
        """Let go."""
        if self._streams is not None:
            self._streams[1].close()


class Agent:
    """One agent of one account, which has claimed what it holds already."""

    def __init__(self, number: int, url: str, held: Held, times: Times) -> None:
        self.id = f"agent-{number}"
        self._number = number
        self._held = held
        self._talk, self._poll, self._reports = (Connection(url, held.secret) for _ in range(3))
        self._times = times
        self._wake = -1
        self._turn = 0

    def _known(self, path: str) -> dict[str, Any]:
        return {} if path == "/agent/wait" else {"lastSeen": self._held.last_seen}

    async def _say(self, path: str, body: dict[str, Any], by: Connection, since: float | None = None) -> Any:
        started = time.perf_counter() if since is None else since
        status, answer = await by.post(path, {"agentId": self.id, **self._known(path), **body})
        self._times.taken[path].append((time.perf_counter() - started) * 1000)
        if status >= 400:
            self._times.refused += 1
            raise RuntimeError(f"{path} answers {status}: {answer[:300]!r}")
        return from_json(answer)

    async def claim(self) -> None:
        """What an agent asks after every wait."""
        claimed = await self._say("/agent/claim", {"held": self._held.versions, "limit": 1000}, self._talk)
        self._wake = claimed["wake"]
        for lease in claimed["leases"]:
            if lease["work"] is not None:
                self._held.versions[lease["scope"]] = lease["work"]["version"]

    async def beat(self) -> None:
        """What an agent says three times per lease."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        held = self._held.tokens
        await self._say("/agent/heartbeat", {"held": held, "readAt": dict.fromkeys(held, now)}, self._talk)

    async def wait(self, seconds: float) -> None:
        """The long poll."""
        woken = await self._say("/agent/wait", {"wake": self._wake, "seconds": seconds}, self._poll)
        self._wake = woken["wake"]

    async def report(self, many: int, since: float) -> None:
        """Report so many changes in one scope: drift is found on them, and in the next report it is gone.

        Status, message and output fields of each change every time, so every change raises two events.
        """
        turn, is_gone = divmod(self._turn, 2)
        self._turn += 1
        scopes = list(self._held.parts)
        scope = scopes[turn % len(scopes)]
        parts = self._held.parts[scope]
        start = turn // len(scopes) * many % len(parts)
        chosen = (parts + parts)[start : start + many]
        sent = {
            "scope": scope,
            "token": self._held.tokens[scope],
            "version": self._held.versions[scope],
            "changes": [_changed(part, drifts=not is_gone) for part in chosen],
        }
        await self._say("/agent/report", {"scopes": [sent]}, self._reports, since)

    async def idle(self, until: float) -> None:
        """The life of an agent to which nothing happens: wait, claim, and a heartbeat from time to time."""
        beat_at = time.perf_counter() + BEAT_SECONDS * (self._number % 97) / 97
        first = LONGEST_WAIT * (self._number % 89) / 89  # they were not all started at once
        while (left := until - time.perf_counter()) > 0:
            await self.wait(min(first, left))
            first = LONGEST_WAIT
            if time.perf_counter() < until:
                await self.claim()
            if time.perf_counter() >= beat_at:
                beat_at += BEAT_SECONDS
                await self.beat()

    def close(self) -> None:
        """Let the connections go."""
        for connection in (self._talk, self._poll, self._reports):
            connection.close()


def _changed(part: dict[str, Any], *, drifts: bool) -> dict[str, Any]:
    name = f"vpc-{part['uid'][:17]}"
    outputs: dict[str, Any] = {"vpcId": name, "cidrBlock": "10.0.0.0/16", "state": "available"}
    if drifts:
        outputs["drift"] = {"enableDnsSupport": {"declared": True, "actual": False}}
    return {
        "uid": part["uid"],
        "stance": "managed",
        "status": "Mutating" if drifts else "Active",
        "message": "enableDnsSupport: True is declared, False is there" if drifts else "",
        "owner": part["liveSystemId"],
        "resourceId": name,
        "established": True,
        "observedGeneration": part["generation"],
        "outputFields": outputs,
    }


async def begin(agents: list[Agent], at_once: int = 8) -> None:
    """Let every agent claim once, a few at a time: its connections stand then, and it knows what to wait for."""
    places = asyncio.Semaphore(at_once)

    async def one(agent: Agent) -> None:
        async with places:
            await agent.claim()

    await asyncio.gather(*(one(agent) for agent in agents))


async def live_on(agents: list[Agent], seconds: float) -> None:
    """Let all agents be idle for so long."""
    until = time.perf_counter() + seconds
    await asyncio.gather(*(agent.idle(until) for agent in agents))


async def report_steadily(agents: list[Agent], per_second: float, seconds: float, many: int) -> None:
    """So many reports a second, sent at their time whether or not the ones before were answered.

    A report's time runs from when it was due, so that what waits in a queue counts. One agent has one report under way
    at a time, as real ones do in a scope.
    """
    begin = time.perf_counter() + 0.5
    order: dict[int, asyncio.Lock] = {index: asyncio.Lock() for index in range(len(agents))}
    under_way: list[asyncio.Task[None]] = []

    async def one(index: int, due: float) -> None:
        async with order[index]:
            await agents[index].report(many, due)

    for number in range(int(per_second * seconds)):
        due = begin + number / per_second
        early = due - time.perf_counter()
        if early > 0:
            await asyncio.sleep(early)
        under_way.append(asyncio.create_task(one(number % len(agents), due)))
    await asyncio.gather(*under_way)
