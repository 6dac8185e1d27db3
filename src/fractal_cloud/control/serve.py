"""Runs the control plane until it is stopped; it prints nothing itself."""

from __future__ import annotations

import gc
import math
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from fractal_cloud.control.app import create_app
from fractal_cloud.control.connections.protocol import bounded
from fractal_cloud.control.connections.registry import Connections
from fractal_cloud.control.limits import allow_open_files
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store.signals import Signals
from fractal_cloud.control.tls import Reloader, Tls, make_context

GRACE_SECONDS = 5
SWITCH_SECONDS = 0.001
"""How soon a thread that computes lets the one go on that answers; Python's 5 ms are the time of several requests."""


class _Server(uvicorn.Server):
    """Ends long polls and streams when a signal comes: they would hold the server open otherwise."""

    def __init__(self, config: uvicorn.Config, signals: Signals, tls: Tls | None = None) -> None:
        super().__init__(config)
        self._signals = signals
        self._reloader: Reloader | None = None
        if tls is not None:
            if not config.loaded:
                config.load()
            config.ssl = make_context(tls)
            self._reloader = Reloader(tls, config.ssl)
            self._reloader.start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Load the certificate anew on SIGHUP, too."""
        if self._reloader is None or threading.current_thread() is not threading.main_thread():
            with super().capture_signals():
                yield
            return
        before = signal.signal(signal.SIGHUP, self._reload)
        try:
            with super().capture_signals():
                yield
        finally:
            self._reloader.stop()
            signal.signal(signal.SIGHUP, before)

    def _reload(self, sig: int, frame: FrameType | None) -> None:
        del sig, frame
        assert self._reloader is not None
        self._reloader.reload()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self._signals.close()
        super().handle_exit(sig, frame)


def server_config(app: FastAPI, settings: ControlSettings, **more: Any) -> uvicorn.Config:
    """How an app is served: over connections that are bounded, by whichever loop and parser are the fastest."""
    clients = settings.clients
    return uvicorn.Config(
        app,
        http=bounded(Connections(clients)),
        ws="none",
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        forwarded_allow_ips=clients.trusted_proxies,
        timeout_keep_alive=math.ceil(clients.idle_seconds),
        timeout_graceful_shutdown=GRACE_SECONDS,
        lifespan="on",
        **more,
    )


def make_server(settings: ControlSettings) -> uvicorn.Server:
    """A server for the settings, ready to ``run()`` or ``await serve()``."""
    app = create_app(settings)
    return _Server(server_config(app, settings), app.state.store.signals, settings.tls)


def run(settings: ControlSettings) -> None:
    """Serve until SIGTERM or Ctrl-C, in a process of its own.

    Routes, types and schemas stay for good: set aside, Python's search for garbage does not walk through them again,
    which took two tenths of a second in which nobody was answered.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    allow_open_files()
    server = make_server(settings)
    gc.collect()
    gc.freeze()
    server.run()
