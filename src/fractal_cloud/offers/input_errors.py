"""All that is wrong with one declaration, collected on the way. What counts as wrong is not decided here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

from fractal_cloud.model.errors import InputError
from fractal_cloud.model.wording import Path, closest, errors_at, unknown

_MAX_GUESSES: Final = 50


class InputErrors:
    """The errors found so far: the first one on each path counts."""

    def __init__(self) -> None:
        self._by_path: dict[str, InputError] = {}
        self._places: set[str] = set()
        self._guesses = _MAX_GUESSES

    @property
    def found(self) -> list[InputError]:
        """Every error, in the order in which they were found."""
        return list(self._by_path.values())

    def add(self, path: str, message: str) -> None:
        """Note what is wrong at a path, unless something was noted there before."""
        self._by_path.setdefault(path, InputError(path, message))
        self._places.update(path[: step.start()] for step in re.finditer(r"[.\[]", path))

    def extend(self, base: str, found: Iterable[tuple[Path, str]]) -> None:
        """Note messages by their paths below a place."""
        for error in errors_at(base, found):
            self.add(error.path.removeprefix("."), error.message)

    def has(self, path: str) -> bool:
        """Whether something is wrong at a path or anywhere below it."""
        return path in self._by_path or path in self._places

    def guess(self, word: str, options: Iterable[str]) -> str:
        """«did you mean», for the first errors only: guessing takes long where there are many options."""
        self._guesses -= 1
        meant = closest(word, options) if self._guesses >= 0 else None
        return f": did you mean {meant!r}?" if meant else ""

    def unknown_keys(self, base: str, given: Iterable[Any], known: Collection[str]) -> None:
        """Note every key that means nothing there."""
        for key in given:
            if isinstance(key, str) and key not in known:
                self.extend(base, [((key,), unknown("known key here", key, known))])
