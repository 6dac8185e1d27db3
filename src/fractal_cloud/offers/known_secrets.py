"""The values of secrets that this process has had, so that none of them leaves it in an error text or a log (A8).

A cloud may quote in its refusal what it was given, whole, cut off, or encoded. Every text of a cloud passes here before
anybody decides from it, publishes it or logs it. Structured values do not: they are hidden by what their type says.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from fractal_cloud.offers.secret import Secret

STAND_IN: Final = "(secret)"
MOST: Final = 4096
"""How many values are remembered; those that were used longest ago are forgotten first."""
_RUN: Final = 12
"""So many characters of a value in a row are hidden, too: texts are cut off somewhere."""
_SHORT: Final = 4
"""Shorter values are hidden as whole words only: else nothing would be left of a text."""
_SEPARATOR: Final = "\0"


def forms(value: str) -> Iterator[str]:
    """A value in the forms in which it may stand in a text."""
    raw = value.encode("utf-8", "surrogatepass")
    yield value
    yield " ".join(value.split())
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield html.escape(value)
    yield quote(raw, safe="")
    yield quote_plus(raw)
    yield raw.hex()
    yield raw.hex().upper()
    for shift in range(3):  # wherever it begins in what is encoded as a whole
        whole = base64.b64encode(b"\0" * shift + raw)
        inner = whole.rstrip(b"=").decode()[-(-shift * 8 // 6) :]
        inner = inner if (len(raw) + shift) % 3 == 0 else inner[:-1]
        yield inner
        yield inner.translate(str.maketrans("+/", "-_"))


class KnownSecrets:
    """Values that are known, and texts without them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: OrderedDict[str, None] = OrderedDict()
        self._compiled: tuple[str, re.Pattern[str] | None] | None = None

    def add(self, secret: Secret) -> None:
        """Remember a value."""
        value = secret.reveal()
        with self._lock:
            if value in self._values:
                self._values.move_to_end(value)
                return
            self._values[value] = None
            while len(self._values) > MOST:
                self._values.popitem(last=False)
            self._compiled = None

    def redact(self, text: str) -> str:
        """A text without any of them, or any part of one that is long enough to give it away."""
        if not self._values or not text:
            return text
        runs, exact = self._forms()
        if exact is not None:
            text = exact.sub(STAND_IN, text)
        return _without_runs(text, runs) if runs else text

    def _forms(self) -> tuple[str, re.Pattern[str] | None]:
        with self._lock:
            if self._compiled is None:
                found = {form for value in self._values for form in forms(value) if form}
                whole = sorted((re.escape(form) for form in found if len(form) >= _SHORT), key=len, reverse=True)
                words = [rf"(?<!\w){re.escape(form)}(?!\w)" for form in found if len(form) < _SHORT]
                pattern = "|".join([*whole, *words])
                runs = _SEPARATOR.join(form for form in found if len(form) > _RUN)
                self._compiled = runs, re.compile(pattern) if pattern else None
            return self._compiled


def _without_runs(text: str, runs: str) -> str:
    kept: list[str] = []
    at = 0
    while at < len(text):
        end = at
        while end + _RUN <= len(text) and text[end : end + _RUN] in runs:
            end += 1
        if end == at:
            kept.append(text[at])
            at += 1
            continue
        kept.append(STAND_IN)
        at = end + _RUN - 1
    return "".join(kept)


KNOWN: Final = KnownSecrets()
"""Of this process: what is logged knows no agent."""
