"""Text that shows what it is: no character in it commands a terminal, breaks a line, or turns the reading direction.

What a cloud or an agent said is checked with ``hidden_character`` where it would name something, and goes through
``visible`` where it is only shown.
"""

from __future__ import annotations

import unicodedata
from typing import Final

# Control characters (C0, DEL, C1), halves of surrogate pairs, line and paragraph separators.
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Marks, embeddings, overrides and isolates of the reading direction: what follows is shown in another order.
_DIRECTION: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def hidden_character(text: str) -> str | None:
    """The first character that no terminal may get and no person would see; None if there is none."""
    if text.isprintable():  # none of them is; and this is what nearly all texts are
        return None
    return next((char for char in text if is_hidden(char)), None)


def is_hidden(char: str) -> bool:
    """Whether a character is one that a terminal acts upon, or that changes how others are shown."""
    return unicodedata.category(char) in _HIDDEN_CATEGORIES or char in _DIRECTION


def visible(text: str, *, keep: str = "") -> str:
    """The same text on one line, with every hidden character as its escape (``\\x1b``, ``\\u202e``).

    ``keep``: those that stay, where a text may have line breaks.
    """
    if hidden_character(text) is None:
        return text
    return "".join(_escape(char) if is_hidden(char) and char not in keep else char for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def escaped_json(text: str) -> str:
    """The same JSON (or one string of it) with hidden characters as ``\\u`` escapes; its own line breaks stay."""
    if text.isprintable():
        return text
    return "".join(f"\\u{ord(char):04x}" if char != "\n" and is_hidden(char) else char for char in text)
