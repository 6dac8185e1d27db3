"""Simulated clouds for a laptop: they speak the vendors' own HTTP, keep state, fail on demand, and monitor the agent.

For development, tests and demonstrations. The product does not import this package, and this package does not import
the product: the agent meets these clouds only over HTTP, as it meets the real ones.

    aruba, aws, azure, gcp, hetzner, kubernetes, oci, vsphere    one simulated cloud each
    rest                      what the clouds that speak JSON over HTTP have in common

    server, http_server       all clouds on one port, and the HTTP server below them
    registry                  which clouds there are, found by walking this folder
    control_api               the sandbox's own HTTP surface, below /_sandbox
    command_line              what `fractal sandbox` and `fractal up` call
    environment, config_files the variables and files that point vendors' tools and the agent at the sandbox

    calls                     the record of what was asked, by whom, and how it was answered
    fault_injection           the knobs: latency, throttling, failures, lost answers, late visibility
    fault_settings            the same as plain data
    monitor, monitor_rules    finds every write of the agent that the protocol forbids
    owned_resources           which resources carry an owner tag, for tests

    managed_clusters          the API servers behind EKS, AKS, GKE and KaaS
    real_postgres             the real server behind managed databases
    s3_signatures             requests signed as for S3, at clouds that accept them
    certificates              the certificate with which the one port answers TLS
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractal_sandbox.environment import agent_env, sandbox_env, without_real_clouds
    from fractal_sandbox.server import Sandbox

__all__ = ["Sandbox", "agent_env", "sandbox_env", "without_real_clouds"]


def __getattr__(name: str) -> Any:
    """Load each part only when it is asked for: whoever wants the settings does not wait for the servers."""
    if name == "Sandbox":
        from fractal_sandbox.server import Sandbox

        return Sandbox
    if name in __all__:
        from fractal_sandbox import environment

        return getattr(environment, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
