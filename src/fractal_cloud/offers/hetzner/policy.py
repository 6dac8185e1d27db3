"""The rights the agent needs at Hetzner. There is no finer one than a token that reads and writes one project (A7).

No condition on labels exists there: that the agent changes only what is managed, its own guard makes sure of (S16).
"""

from __future__ import annotations

from typing import Final

from fractal_cloud.offers.policy import PLAIN, PolicyOptions

_TEXT: Final = """\
# Hetzner Cloud has no policies: a token is all or nothing. One with "Read & Write" may do everything in its project:
# reset the root password of every server, attach every volume, delete all of it. It cannot make tokens, nor leave it.
#
# So the project is the only bound there is: make one for what the agent manages, with nothing else in it. In it, make a
# token with "Read & Write" (Console: the project, Security, API Tokens) for this agent alone, to be revoked by itself.
#
# A token with "Read" is enough to see what would be done: every write is then refused, and said so.
export HCLOUD_TOKEN=            # the token; or leave it, and use a context of `hcloud context create`
export FRACTAL_HETZNER_PROJECT= # the project's number, from its address in the Console: it outlives the token
"""


def policy(options: PolicyOptions = PLAIN) -> str:
    """What to do instead of a policy, as a file for a shell."""
    options.check("hetzner")
    return _TEXT
