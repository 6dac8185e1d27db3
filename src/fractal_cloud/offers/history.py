"""What offers are asked about the past of a resource: who changed which parameter, and when, as the cloud records it.

What follows from an answer, and when it is asked for, belongs to the agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Record:
    """A cloud's own record of who changes what. ``name``: what people call it.

    ``is_late``: what happened shows in it after some minutes, and stays. Else it answers at once, and only until
    somebody writes the same field again: it is asked before a correction.
    """

    name: str
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A parameter somebody changed: when that was first seen, and when it was last read otherwise, if that is known.

    ``value``: a digest of what it was changed to (``rules.setbacks.digest``): it may have been corrected since.
    The tag ``managed-by`` is asked for by that name.
    """

    parameter: str
    seen: datetime
    value: str = ""
    after: datetime | None = None


@dataclass(frozen=True, slots=True)
class Author:
    """Who changed something. ``by``: a short name; ``identity``: the cloud's own; ``how``: by which call.

    ``is_certain``: the record says that this very parameter was set; else only that somebody called the resource.
    ``is_agent``: the last who wrote it is the agent itself: never anybody's culprit, and ``by`` says what that means.
    """

    by: str
    identity: str = ""
    at: datetime | None = None
    how: str = ""
    address: str = ""
    is_certain: bool = True
    is_agent: bool = False
