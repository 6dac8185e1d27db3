"""The rights the agent needs in a project, in the terms in which Aruba grants them: a role per service.

None of them concerns users, keys or roles (A7). Aruba knows no conditions on tags. So what the agent must not touch is
kept from it by the project: give it one of its own. What each type needs stands on its offer.
"""

from __future__ import annotations

from fractal_cloud.offers.policy import PLAIN, PolicyOptions
from fractal_cloud.offers.registry import installed


def policy(options: PolicyOptions = PLAIN) -> dict[str, object]:
    """The role of the agent's API key: what to tick in Aruba's console, service by service."""
    options.check("aruba")
    changed = [(right, ["read", "write", "delete"]) for right in installed("aruba").rights("aruba")]
    return {
        "role": "fractal-cloud-agent",
        "grantedTo": "an API key (client credentials)",
        "permissions": [
            {"resource": resource, "actions": actions} for resource, actions in [("Aruba.Project", ["read"]), *changed]
        ],
    }
