"""Clouds for a laptop: they speak the vendors' own HTTP, keep state, fail on demand, and watch over the agent.

For development, tests and demonstrations. Nothing outside the sandbox and the command line may import it: the agent
meets these clouds only over HTTP, as it meets the real ones.
"""

from fractal_cloud.sandbox.env import AGENT_ACCESS_KEY, PERSON_ACCESS_KEY, agent_env, sandbox_env
from fractal_cloud.sandbox.server import Sandbox

__all__ = ["AGENT_ACCESS_KEY", "PERSON_ACCESS_KEY", "Sandbox", "agent_env", "sandbox_env"]
