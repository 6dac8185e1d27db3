"""What needs a person, as the first page begins with it: each kind with its number, the first few, and where all are.

What it is and how it is found stands in ``store.attention``; here it gets words and a place on the page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fractal_cloud.control.auth.sensitive_texts import SensitiveTexts
from fractal_cloud.control.store.attention import Attention
from fractal_cloud.control.store.listing import Page
from fractal_cloud.control.store.records import Json

FEW: Final = 3


@dataclass(frozen=True, slots=True)
class Need:
    """One reason to look. ``words``: for one and for several; ``tone`` and ``sign``: how it looks."""

    name: str
    forms: tuple[str, str]
    tone: str
    sign: str
    all_at: str
    total: int = 0
    items: list[Json] = field(default_factory=list)

    @property
    def words(self) -> str:
        """What there are so many of."""
        return self.forms[self.total != 1]


_FAILED: Final = Need(
    "failed", ("failed component", "failed components"), "s-Failed", "✕", "/ui/components?status=Failed"
)
_MISSING: Final = Need(
    "missing", ("missing component", "missing components"), "s-Missing", "?", "/ui/components?status=Missing"
)
_OVERDUE: Final = Need(
    "overdue", ("overdue override", "overdue overrides"), "s-Failed", "!", "/ui/overrides?override=overdue"
)
_OVERRIDES: Final = Need("overrides", ("override", "overrides, oldest first"), "s-ManualOverride", "!", "/ui/overrides")
_UNREAD: Final = Need(
    "unread", ("scope not being read", "scopes not being read"), "unread", "○", "/ui/scopes?stale=true"
)


def worded(found: Attention, seen: SensitiveTexts) -> list[Need]:
    """What needs a person, the gravest first; empty where nothing does."""
    of_components = (
        (_FAILED, found.failed),
        (_MISSING, found.missing),
        (_OVERDUE, found.overdue),
        (_OVERRIDES, found.overrides),
    )
    needs = [_filled(need, page, seen.components(page.items)) for need, page in of_components]
    needs.append(_filled(_UNREAD, found.stale_scopes, found.stale_scopes.items))
    return [need for need in needs if need.total]


def _filled(need: Need, page: Page, items: list[Json]) -> Need:
    total = page.total if page.total is not None else len(items)
    return Need(need.name, need.forms, need.tone, need.sign, need.all_at, total, items)
