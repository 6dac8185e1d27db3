"""The rights the agent needs in a project, in the terms in which Aruba grants them: a role per service.

Aruba knows no conditions on tags. So what the agent must not touch is kept from it by the project: give it one of its
own where that matters. What each type needs stands on its offer.
"""

from __future__ import annotations

from fractal_cloud.offers.registry import installed


def policy() -> dict[str, object]:
    """The role of the agent's API key: what to tick in Aruba's console, service by service."""
    changed = [(right, ["read", "write", "delete"]) for right in installed("aruba").rights("aruba")]
    return {
        "role": "fractal-cloud-agent",
        "grantedTo": "an API key (client credentials)",
        "permissions": [
            {"resource": resource, "actions": actions} for resource, actions in [("Aruba.Project", ["read"]), *changed]
        ],
    }
