"""What a run found, as plain data: assumption by assumption, held or not, with the vendor's request ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fractal_cloud.verifying.assumptions import BY_ID


class Verdict(StrEnum):
    """What became of one assumption. ``NOT_CLAIMED``: the offer does not rely on it for this type."""

    HELD = "held"
    NOT_HELD = "not held"
    NOT_CLAIMED = "not claimed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Finding:
    """One assumption about one type; ``subject``: the parameter it is about, where it is about one."""

    type: str
    assumption: str
    verdict: Verdict
    subject: str = ""
    detail: str = ""
    request_ids: Sequence[str] = ()

    @property
    def text(self) -> str:
        """The assumption in words."""
        return BY_ID[self.assumption].text

    def to_json(self) -> dict[str, Any]:
        """As it stands in the report."""
        return {
            "type": self.type,
            "assumption": self.assumption,
            "text": self.text,
            "parameter": self.subject or None,
            "verdict": str(self.verdict),
            "detail": self.detail,
            "requestIds": list(self.request_ids),
        }


@dataclass(slots=True)
class Report:
    """All that one run found.

    ``unverified``: types without a trial, each with the reason. ``left``: what remains. ``error``: why the run ended
    before its end.
    """

    provider: str
    realm: str
    words: Mapping[str, str]
    run: str
    started_at: str
    findings: list[Finding] = field(default_factory=list)
    unverified: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    interrupted: bool = False
    error: str = ""

    @property
    def all_held(self) -> bool:
        """Whether something was tried, all of it held, and nothing remains."""
        bad = (Verdict.NOT_HELD, Verdict.NOT_TRIED)
        tried = bool(self.findings) and not any(one.verdict in bad for one in self.findings)
        return tried and not (self.left or self.interrupted or self.error)

    def to_json(self) -> dict[str, Any]:
        """As `--output json` prints it."""
        return {
            "provider": self.provider,
            "realm": self.realm,
            "scope": dict(self.words),
            "run": self.run,
            "startedAt": self.started_at,
            "allHeld": self.all_held,
            "interrupted": self.interrupted,
            "error": self.error,
            "findings": [finding.to_json() for finding in self.findings],
            "notVerified": [{"type": name, "reason": why} for name, why in self.unverified.items()],
            "leftBehind": list(self.left),
        }
