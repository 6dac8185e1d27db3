"""What a benchmark says: one record for every job, subject and size, with the bars it is held to.

How it is printed, stored or drawn does not belong here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Bar:
    """One measured value beside what it is held against. Without ``most`` and ``least``: information, always kept.

    ``most`` and ``least`` bound the ratio of the two. ``exact``: they must be equal; a reference of nothing allows
    nothing.
    """

    what: str
    measured: float
    reference: float
    unit: str = ""
    most: float | None = None
    least: float | None = None
    exact: bool = False

    @property
    def ratio(self) -> float | None:
        """Measured by reference, where that can be said."""
        return self.measured / self.reference if self.reference else None

    @property
    def is_enforced(self) -> bool:
        """Whether it can be missed."""
        return self.exact or self.most is not None or self.least is not None

    @property
    def is_kept(self) -> bool:
        """Whether the bar is kept; information always is."""
        if not self.is_enforced:
            return True
        if self.exact or self.ratio is None:
            return self.measured == self.reference
        return (self.most is None or self.ratio <= self.most) and (self.least is None or self.ratio >= self.least)

    @property
    def allowed(self) -> str:
        """The bar in one word."""
        if self.exact or (self.is_enforced and self.ratio is None):
            return "= 1" if self.reference else "= 0"
        bounds = ((self.most, "≤"), (self.least, "≥"))
        return ", ".join(f"{sign} {bound:g}" for bound, sign in bounds if bound is not None)

    @property
    def verdict(self) -> str:
        """What the last column says."""
        return "info" if not self.is_enforced else "ok" if self.is_kept else "MISSED"

    def to_json(self) -> dict[str, Any]:
        """The bar as it is stored."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "ratio": self.ratio, "allowed": self.allowed, "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Result:
    """What one subject (the agent, a peer, a bare loop) showed at one job with ``count`` things.

    ``figures`` are named with their unit (``CPU s``, ``wall s``, ``memory MB``, ``cloud calls``). A subject that is not
    on this machine has none, and its ``note`` says so: it is listed, never left out.
    """

    job: str
    subject: str
    count: int
    figures: Mapping[str, float] = field(default_factory=dict)
    bars: tuple[Bar, ...] = ()
    note: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether every bar is kept."""
        return all(bar.is_kept for bar in self.bars)

    def to_json(self) -> dict[str, Any]:
        """The result as it is stored."""
        return {
            "job": self.job,
            "subject": self.subject,
            "count": self.count,
            "figures": dict(self.figures),
            "bars": [bar.to_json() for bar in self.bars],
            "kept": self.is_kept,
            "note": self.note,
        }
