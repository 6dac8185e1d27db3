"""Starting and stopping the sandbox: one port, the clouds mounted on it, and the control surface beside them.

AWS answers at the root, because its tools know only one endpoint; every other cloud is mounted below a path of its
own. What a cloud answers does not belong here.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Mapping
from types import TracebackType

from fractal_cloud.sandbox.aws import AwsCloud
from fractal_cloud.sandbox.control import PREFIX, Cloud, ControlSurface
from fractal_cloud.sandbox.env import CLUSTERS
from fractal_cloud.sandbox.kubernetes import KubernetesCloud
from fractal_cloud.sandbox.wire import Environ, HttpServer, StartResponse

__all__ = ["Sandbox", "main"]

DEFAULT_PORT = 4566


class Sandbox:
    """All sandbox clouds of this process, served on one port of `host`. Port 0 takes a free one.

    Use it as a context manager, or `start()` and `stop()` it. It starts empty. Clouds beside AWS and the two clusters
    of Kubernetes are mounted with `mount`, before it starts.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.aws = AwsCloud()
        self._clouds: dict[str, Cloud] = {"aws": self.aws}
        self._paths: dict[str, Cloud] = {}
        self.kubernetes = KubernetesCloud()
        self.kubernetes_2 = KubernetesCloud()
        self.mount("kubernetes", CLUSTERS["sandbox"], self.kubernetes)
        self.mount("kubernetes-2", CLUSTERS["sandbox-2"], self.kubernetes_2)
        self._host = host
        self._wanted_port = port
        self._server: HttpServer | None = None

    @property
    def clouds(self) -> Mapping[str, Cloud]:
        return self._clouds

    @property
    def port(self) -> int:
        return self._running.port

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}"

    def mount(self, name: str, path: str, cloud: Cloud) -> None:
        """Serve a cloud below a path such as `/hetzner`; it sees paths without that prefix."""
        self._clouds[name] = cloud
        self._paths[path.rstrip("/")] = cloud

    def start(self) -> Sandbox:
        """Serve from a thread of its own; returns when the port is open."""
        self.reset()
        self._server = HttpServer(self._host, self._wanted_port, _Router(self._clouds, self._paths, self.aws))
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
    """Sends each request to the control surface, to a mounted cloud, or to AWS."""

    def __init__(self, clouds: Mapping[str, Cloud], paths: Mapping[str, Cloud], root: Cloud) -> None:
        self._control = ControlSurface(clouds)
        self._paths = paths
        self._root = root

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path: str = environ["PATH_INFO"]
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
        return self._root(environ, start_response)


def main(host: str = "127.0.0.1", port: int = DEFAULT_PORT) -> None:
    """Serve until the process is told to end (SIGINT or SIGTERM); `fractal sandbox` calls this."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with Sandbox(host, port) as sandbox:
        print(f"sandbox: {sandbox.url}", flush=True)  # noqa: T201
        ended.wait()
