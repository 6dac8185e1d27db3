"""What the plays rely on: nothing outlives them, a cut is a cut, and a wrong clock is wrong."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.chaos.faults import missing
from tests.chaos.keeper import working_in
from tests.chaos.processes import Command, Keeper, wait_until
from tests.chaos.proxy import FAIR, Network, Proxy, Weather

START_AND_WAIT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from tests.chaos.processes import Command, Keeper
keeper = Keeper()
sleeper = Command("sleeper", keeper.folder, {}, ["sleep", "600"], {})
sleeper.start()
sleeper.suspend()
print(keeper.folder, flush=True)
time.sleep(600)
"""


def test_nothing_outlives_a_test_that_is_killed() -> None:
    """Not even a process that was paused, which hears no signal but one."""
    root = str(Path(__file__).parents[2])
    started = subprocess.Popen([sys.executable, "-c", START_AND_WAIT, root], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    folder = Path(started.stdout.readline().strip())
    assert working_in(folder)
    started.kill()
    started.wait()
    started.stdout.close()
    wait_until(lambda: not folder.exists(), "the folder is gone")
    assert not working_in(folder)


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that answers with what it is sent; yields its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1024):
                connection.sendall(data)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)


def test_what_was_swallowed_is_never_delivered(echo: int) -> None:
    network = Network()
    try:
        proxy = Proxy(network, "test", [echo])
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
            client.sendall(b"heard")
            assert client.recv(1024) == b"heard"
            proxy.set(Weather(is_stalled=True))
            client.sendall(b"swallowed")
            client.settimeout(0.3)
            with pytest.raises(TimeoutError):
                client.recv(1024)
            client.settimeout(10)
            proxy.set(FAIR)
            assert _rest(client) == b""
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
            client.sendall(b"heard again")
            assert client.recv(1024) == b"heard again"
    finally:
        network.close()


def _rest(client: socket.socket) -> bytes:
    try:
        return client.recv(1024)
    except ConnectionResetError:
        return b""


def test_the_next_server_is_taken_where_one_is_gone(echo: int) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        network = Network()
        try:
            proxy = Proxy(network, "test", [nobody.getsockname()[1], echo])
            for _ in range(3):
                with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
                    client.sendall(b"anybody")
                    assert client.recv(1024) == b"anybody"
        finally:
            network.close()


SHOW = """
import select, time
while True:
    print(time.time(), time.monotonic(), flush=True)
    select.select([], [], [], 0.1)
"""


def _jump(clock: Command) -> float:
    walls = [float(line.split()[0]) for line in clock.log.read_text().splitlines()[:-1]]
    return walls[-1] - walls[0]


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_wall_clock_jumps_and_a_steady_one_does_not() -> None:
    keeper = Keeper()
    try:
        clock = Command("clock", keeper.folder, {}, [sys.executable, "-c", SHOW], {})
        clock.start()
        wait_until(lambda: len(clock.last_lines().splitlines()) > 2, "it shows the time")
        clock.set_clock(3600)
        wait_until(lambda: _jump(clock) > 3500, "the wall clock has jumped")
        steady = [float(line.split()[1]) for line in clock.log.read_text().splitlines()[:-1]]
        assert max(after - before for before, after in pairwise(steady)) < 600
        clock.kill()
    finally:
        keeper.close()
