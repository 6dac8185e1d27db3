"""The network between two processes: a TCP proxy that can be slow, lose connections, or swallow everything.

All of them share one thread. What a proxy held back when it is repaired is never delivered: a request that arrives long
after its sender gave up is the network's own kind of SIGSTOP, and is tried as that.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

CHUNK: Final = 65_536
T = TypeVar("T")


class Network:
    """The thread in which all proxies run."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._proxies: list[Proxy] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        """Run something in the network's thread, and wait for it."""
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(10)

    def add(self, proxy: Proxy) -> None:
        """A proxy that ends with the network."""
        self._proxies.append(proxy)

    def close(self) -> None:
        """End every connection, and the thread."""
        for proxy in self._proxies:
            proxy.close()
        self.run(_all_done())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


async def _all_done() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if others:
        await asyncio.wait(others, timeout=5)


@dataclass(frozen=True, slots=True)
class Weather:
    """How a connection fares: seconds that every piece of data is late, how likely a piece ends its connection,
    whether nothing arrives at all, whether nobody gets through."""

    delay: float = 0.0
    loss: float = 0.0
    is_stalled: bool = False
    is_closed: bool = False


FAIR: Final = Weather()


class Proxy:
    """One stable address for one or several servers: the next one that can be reached is taken, in turn."""

    def __init__(self, network: Network, name: str, targets: Sequence[int], seed: int = 0) -> None:
        self.name = name
        self._network = network
        self._targets = tuple(targets)
        self._turn = 0
        self._dice = random.Random(seed)
        self._weather = FAIR
        self._writers: set[asyncio.StreamWriter] = set()
        self._server = network.run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        network.add(self)

    @property
    def url(self) -> str:
        """Where to reach it, for those who speak HTTP."""
        return f"http://127.0.0.1:{self.port}"

    def set(self, weather: Weather) -> None:
        """Change the weather; what was held back, or is no longer let through, loses its connection."""
        before, self._weather = self._weather, weather
        if before.is_stalled or weather.is_closed:
            self.cut()

    def cut(self) -> None:
        """End every connection there is, without a word."""
        self._network.run(self._cut())

    def close(self) -> None:
        """Let nobody in any more, and end what is there."""
        self.set(Weather(is_closed=True))
        self._network.run(self._shut())

    async def _shut(self) -> None:
        self._server.close()

    async def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        found = None
        try:
            found = None if self._weather.is_closed else await self._reach()
            if found is not None:
                self._writers.add(found[1])
                await self._join(reader, writer, *found)
        finally:
            ends = [writer] if found is None else [writer, found[1]]
            for end in ends:
                self._writers.discard(end)
                end.transport.abort()

    async def _join(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        ways = [
            asyncio.ensure_future(self._pump(reader, far_writer)),
            asyncio.ensure_future(self._pump(far_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        self._turn += 1
        for number in range(len(self._targets)):
            with suppress(OSError):
                target = self._targets[(self._turn + number) % len(self._targets)]
                return await asyncio.open_connection("127.0.0.1", target)
        return None

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if self._weather.delay:
                    await asyncio.sleep(self._weather.delay)
                while self._weather.is_stalled:
                    await asyncio.sleep(0.05)
                if writer.transport.is_closing() or self._dice.random() < self._weather.loss:
                    return
                writer.write(data)
                await writer.drain()
