"""Why the store refuses, as a closed set; the routes turn each into a problem document.

StoreError
├── NotFound            there is no such thing
├── Refused             it cannot be done as things stand (409)
│   └── LeaseLost       the reporter is no longer the holder of the scope
├── Gone                it was there, and is kept no longer (410)
├── Stale               the caller's copy is not the newest (412)
└── Forbidden           this token may not do that
    ├── AgentRefused    what an agent registers lies beyond its token (A1)
    ├── ReportRefused   a report speaks of what is another's, or in words that nobody should print (A3, A6)
    └── TypeOfAnother   a registration changes a type that is another's (A4)
"""

from __future__ import annotations

from fractal_cloud.model.errors import FractalError


class StoreError(FractalError):
    """The root of the store's refusals."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotFound(StoreError):
    """There is no such thing."""


class Refused(StoreError):
    """It cannot be done as things stand."""


class LeaseLost(Refused):
    """The reporter no longer holds the scope, or reports on work that is no longer this scope's."""


class Gone(StoreError):
    """It was there, and is kept no longer."""


class Stale(StoreError):
    """The caller's copy is not the newest."""


class Forbidden(StoreError):
    """This token may not do that."""


class ReportRefused(Forbidden):
    """A report speaks of what does not belong to its lease: nothing of it is applied (A3, A6)."""


class TypeOfAnother(Forbidden):
    """A registration brings other facts of a type than its owner did: the agent is not let in (A4)."""


class AgentRefused(Forbidden):
    """What an agent registers lies beyond its token; nothing of it is stored but an event (A1)."""
