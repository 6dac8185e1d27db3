"""The source of a declaration as places in a text: where each value stands, whatever the language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class ByHand(Exception):
    """A value cannot be written without guessing: a person must."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a text. ``items`` and ``entries`` are its parts where it is a list or a map that is written out.

    ``is_plain``: it is written out to the last part, so that what stands there is what it means. ``end`` is where its
    last part ends. ``is_block``: its items stand behind dashes, on lines of their own.
    """

    start: int
    end: int
    line: int
    items: Sequence[Node] | None = None
    entries: Mapping[str, Node] | None = None
    is_plain: bool = True
    is_block: bool = False
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Put a text in the place of what stands between two positions."""

    start: int
    end: int
    text: str


class Language(Protocol):
    """What differs between the languages a declaration can be written in."""

    comment: str
    """What begins a comment; empty where there are none."""

    def places(self, text: str, live_system: str, component: str, names: Iterable[str]) -> Mapping[str, Node]:
        """Where the parameters of a component stand; raises ``ByHand`` where the component cannot be found."""

    def written(self, value: Any, quote: str = "") -> str:
        """A value on one line."""


@dataclass(slots=True)
class Edits:
    """Changes to one text, made at once."""

    text: str
    edits: list[Edit] = field(default_factory=list)

    def add(self, start: int, end: int, text: str) -> None:
        """Note one change."""
        self.edits.append(Edit(start, end, text))

    def applied(self) -> str:
        """The text with all changes made."""
        made = self.text
        for edit in sorted(self.edits, key=lambda edit: (edit.start, edit.end), reverse=True):
            made = made[: edit.start] + edit.text + made[edit.end :]
        return made
