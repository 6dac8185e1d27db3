"""Starting and stopping the sandbox: one port, the clouds mounted on it, and the control surface beside them.

One cloud answers at the root, because its tools know only one endpoint without a path; every other is mounted below a
path of its own. What a cloud answers does not belong here.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from fractal_sandbox.certificates import Authority, authority
from fractal_sandbox.control_api import PREFIX, Cloud, ControlSurface
from fractal_sandbox.http_server import Environ, HttpServer, StartResponse
from fractal_sandbox.owned_resources import Owned
from fractal_sandbox.registry import mounts

__all__ = ["Sandbox", "main"]

DEFAULT_PORT = 4566


class Sandbox:
    """All sandbox clouds of this process, served on one port of `host`. Port 0 takes a free one.

    Use it as a context manager, or `start()` and `stop()` it. It starts empty. Each cloud is also an attribute by its
    name: `sandbox.aws`, `sandbox.kubernetes_2`. More clouds are mounted with `mount`, before it starts.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._clouds: dict[str, Cloud] = {}
        self._paths: dict[str, Cloud] = {}
        self._whole: dict[str, Cloud] = {}
        for mount in mounts():
            self.mount(mount.name, mount.path, mount.load(), mount.also)
        self._host = host
        self._wanted_port = port
        self._server: HttpServer | None = None

    def __getattr__(self, name: str) -> Any:
        clouds = self.__dict__.get("_clouds", {})
        if name.replace("_", "-") in clouds:
            return clouds[name.replace("_", "-")]
        raise AttributeError(f"the sandbox has no cloud {name!r}; it has: {', '.join(clouds)}")

    @property
    def clouds(self) -> Mapping[str, Cloud]:
        return self._clouds

    @property
    def port(self) -> int:
        return self._running.port

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}"

    def mount(self, name: str, path: str, cloud: Cloud, also: tuple[str, ...] = ()) -> None:
        """Serve a cloud below a path such as `/hetzner`; it sees paths without that prefix. At the root: all others.

        `also`: further paths that are its own, and that it sees whole.
        """
        self._clouds[name] = cloud
        self._paths[path.rstrip("/")] = cloud
        self._whole.update(dict.fromkeys(also, cloud))

    def start(self) -> Sandbox:
        """Serve from a thread of its own; returns when the port is open."""
        self.reset()
        router = _Router(self._clouds, self._paths, self._whole, authority())
        self._server = HttpServer(self._host, self._wanted_port, router, lambda: authority().context)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="sandbox", daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop serving and close all connections. Stopping twice does no harm."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def reset(self) -> None:
        for cloud in self._clouds.values():
            cloud.reset()

    def owned_resources(self) -> list[Owned]:
        """Every resource of every cloud that carries an owner tag at this instant."""
        return [one for cloud in self._clouds.values() for one in cloud.owned_resources()]

    def __enter__(self) -> Sandbox:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _running(self) -> HttpServer:
        if self._server is None:
            raise RuntimeError(
                "the sandbox is not running and has no port yet: call start(), or use it in a with block"
            )
        return self._server


class _Router:
    """Sends each request to the control surface, or to the cloud at its path; the longest path that fits decides."""

    def __init__(
        self,
        clouds: Mapping[str, Cloud],
        paths: Mapping[str, Cloud],
        whole: Mapping[str, Cloud],
        authority: Authority,
    ) -> None:
        self._control = ControlSurface(clouds)
        self._whole = whole
        self._authority = authority
        self._paths = {path: paths[path] for path in sorted(paths, key=len, reverse=True) if path}
        self._root = paths[""]

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path: str = environ["PATH_INFO"]
        if path == f"{PREFIX}/certificate":
            start_response("200 OK", [("Content-Type", "application/x-pem-file")])
            return [self._authority.certificate.encode()]
        if path == PREFIX or path.startswith(f"{PREFIX}/"):
            return self._control(environ, start_response)
        for prefix, cloud in self._paths.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                below = {
                    **environ,
                    "SCRIPT_NAME": prefix,
                    "PATH_INFO": path.removeprefix(prefix) or "/",
                    "RAW_URI": environ["RAW_URI"].removeprefix(prefix) or "/",
                }
                return cloud(below, start_response)
        for prefix, cloud in self._whole.items():
            if path.startswith(f"{prefix}/"):
                return cloud(environ, start_response)
        return self._root(environ, start_response)


def main(host: str = "127.0.0.1", port: int = DEFAULT_PORT) -> None:
    """Serve until SIGINT or SIGTERM; `fractal sandbox` calls this."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with Sandbox(host, port) as sandbox:
        print(f"sandbox: {sandbox.url}", flush=True)  # noqa: T201
        ended.wait()
