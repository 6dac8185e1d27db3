"""Clouds for a laptop: they speak the vendors' own HTTP, keep state, fail on demand, and watch over the agent.

For development, tests and demonstrations. Nothing outside the sandbox and the command line may import it: the agent
meets these clouds only over HTTP, as it meets the real ones.
"""

from typing import TYPE_CHECKING, Any

from fractal_cloud.sandbox.env import AGENT_ACCESS_KEY, PERSON_ACCESS_KEY, agent_env, kubeconfig, sandbox_env

if TYPE_CHECKING:
    from fractal_cloud.sandbox.server import Sandbox

__all__ = ["AGENT_ACCESS_KEY", "PERSON_ACCESS_KEY", "Sandbox", "agent_env", "kubeconfig", "sandbox_env"]


def __getattr__(name: str) -> Any:
    """Load the server, and moto with it, only when somebody starts one: who asks for the settings does not wait."""
    if name == "Sandbox":
        from fractal_cloud.sandbox.server import Sandbox

        return Sandbox
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
