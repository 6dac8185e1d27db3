"""Runs the control plane until it is stopped; it prints nothing itself."""

from __future__ import annotations

import gc
from types import FrameType

import uvicorn

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store.signals import Signals

GRACE_SECONDS = 5
KEEP_ALIVE_SECONDS = 75
"""Longer than clients and balancers keep an idle connection (60 s): it is they who close it, never under a request."""


class _Server(uvicorn.Server):
    """Ends long polls and streams when a signal comes: they would hold the server open otherwise."""

    def __init__(self, config: uvicorn.Config, signals: Signals) -> None:
        super().__init__(config)
        self._signals = signals

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self._signals.close()
        super().handle_exit(sig, frame)


def make_server(settings: ControlSettings) -> uvicorn.Server:
    """A server for the settings, ready to ``run()`` or ``await serve()``."""
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        lifespan="on",
    )
    return _Server(config, app.state.store.signals)


def run(settings: ControlSettings) -> None:
    """Serve until SIGTERM or Ctrl-C, in a process of its own.

    Routes, types and schemas stay for good: set aside, Python's search for garbage does not walk through them again,
    which took two tenths of a second in which nobody was answered.
    """
    server = make_server(settings)
    gc.collect()
    gc.freeze()
    server.run()
