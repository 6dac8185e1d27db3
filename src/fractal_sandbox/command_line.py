"""The face of the sandbox that `fractal sandbox` and `fractal up` use; they find it by the package's entry point.

Servers are loaded only when they are started: asking for settings is quick.
"""

from __future__ import annotations

from fractal_sandbox.environment import agent_env, sandbox_env, without_real_clouds
from fractal_sandbox.registry import Mount, mounts

__all__ = ["agent_env", "clouds", "sandbox_env", "serve", "without_real_clouds"]


def serve(host: str, port: int) -> None:
    """Run all clouds on one port until SIGINT or SIGTERM."""
    from fractal_sandbox.server import main

    main(host, port)


def clouds() -> tuple[Mount, ...]:
    """Every cloud there is, by name."""
    return mounts()
