"""The rights the agent needs in a project, in the terms in which Aruba grants them: a role per service.

Aruba knows no conditions on tags. So what the agent must not touch is kept from it by the project: give it one of its
own where that matters.
"""

from __future__ import annotations

from typing import Final

# What each service is asked for: reading a project tells which there are; everything else the agent makes and deletes.
_NEEDS: Final = (
    ("Aruba.Project", ("read",)),
    ("Aruba.Network/vpcs", ("read", "write", "delete")),
    ("Aruba.Network/subnets", ("read", "write", "delete")),
    ("Aruba.Network/securityGroups", ("read", "write", "delete")),
    ("Aruba.Network/securityRules", ("read", "write", "delete")),
    ("Aruba.Storage/blockStorages", ("read", "write", "delete")),
    ("Aruba.Compute/cloudServers", ("read", "write", "delete")),
    ("Aruba.Container/kaas", ("read", "write", "delete")),
)


def policy() -> dict[str, object]:
    """The role of the agent's API key: what to tick in Aruba's console, service by service."""
    return {
        "role": "fractal-cloud-agent",
        "grantedTo": "an API key (client credentials)",
        "permissions": [{"resource": resource, "actions": list(actions)} for resource, actions in _NEEDS],
    }
