"""How a command ends when it cannot do what was asked. Nothing is printed here."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of the program."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    CHANGES = 3


class CommandError(Exception):
    """A command failed: the cause in one line, details a line each, and what to do next."""

    def __init__(self, cause: str, *, details: Sequence[str] = (), advice: str = "", code: Exit = Exit.FAILED) -> None:
        super().__init__(cause)
        self.cause = cause
        self.details = list(details)
        self.advice = advice
        self.code = code


class Unreachable(CommandError):
    """Nobody answered, or not to the end: another try may go better."""


class Broken(Unreachable):
    """Somebody was there, but could not, or not to the end: what only reads is tried again."""
