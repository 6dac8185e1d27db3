"""The rights the agent needs at Hetzner. There is no finer one than a token that reads and writes one project.

No condition on labels exists there: that the agent changes only what is managed, its own guard makes sure of (S16).
"""

from __future__ import annotations

from typing import Final

_TEXT: Final = """\
# Hetzner Cloud has no policies: a token reads one project, or reads and writes all of it.
#
# Make a token with "Read & Write" in the project (Console: the project, Security, API Tokens), for this agent alone, so
# that it can be revoked by itself. Give the agent a project that holds nothing it must not reach.
#
# A token with "Read" is enough to see what would be done: every write is then refused, and said so.
export HCLOUD_TOKEN=            # the token; or leave it, and use a context of `hcloud context create`
export FRACTAL_HETZNER_PROJECT= # the project's number, from its address in the Console: it outlives the token
"""


def policy() -> str:
    """What to do instead of a policy, as a file for a shell."""
    return _TEXT
