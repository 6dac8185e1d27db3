"""A control plane that really listens, in a thread of the test's process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from fractal_cloud.control.serve import server_config


class _Server(uvicorn.Server):
    """A server in a thread: signals are the main thread's business."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serve an app on a free port of the loopback; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = _Server(server_config(app, app.state.settings))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        app.state.store.signals.close()
        server.should_exit = True
        thread.join(10)
