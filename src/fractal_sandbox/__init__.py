"""Clouds for a laptop: they speak the vendors' own HTTP, keep state, fail on demand, and watch over the agent.

For development, tests and demonstrations. Nothing outside the sandbox and the command line may import it: the agent
meets these clouds only over HTTP, as it meets the real ones.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractal_sandbox.env import agent_env, sandbox_env, without_real_clouds
    from fractal_sandbox.server import Sandbox

__all__ = ["Sandbox", "agent_env", "sandbox_env", "without_real_clouds"]


def __getattr__(name: str) -> Any:
    """Load each part only when it is asked for: whoever wants the settings does not wait for the servers."""
    if name == "Sandbox":
        from fractal_sandbox.server import Sandbox

        return Sandbox
    if name in __all__:
        from fractal_sandbox import env

        return getattr(env, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
