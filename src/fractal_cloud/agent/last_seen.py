"""What an agent remembers of its control plane across its own death: the newest event it knows of, on disk (C9).

A control plane that does not have that event was restored from a backup. One file for each address, which all agents
of a machine share: whoever has seen more has the last word. Nothing here decides anything.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import structlog
from pydantic import ValidationError

from fractal_cloud.model.wire import LastSeen

log = structlog.get_logger()


class LastSeenFile:
    """Keeps the newest event in a folder, readable by its owner alone; without a folder, in memory only.

    An agent that cannot read or write there says so in its log, once, and goes on.
    """

    def __init__(self, folder: Path | None, url: str) -> None:
        digest = hashlib.sha256(url.encode()).hexdigest()[:16]
        self._path = None if folder is None else folder / f"control-plane-{digest}.json"
        self._kept: LastSeen | None = None
        self._has_warned = False
        self.value = self._read()

    def keep(self, seen: LastSeen) -> None:
        """Remember what the control plane said just now."""
        self.value = seen
        if self._path is None or self._is_older(seen, self._kept):
            return
        known = self._read()
        if not self._is_older(seen, known):
            self._write(self._path, seen)
        self._kept = self.value = seen

    @staticmethod
    def _is_older(seen: LastSeen, known: LastSeen | None) -> bool:
        """Whether nothing is new: the same life of the database, and no event that is not known."""
        return known is not None and known.incarnation == seen.incarnation and seen.event <= known.event

    def _read(self) -> LastSeen | None:
        if self._path is None:
            return None
        try:
            return LastSeen.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            self._warn_once("what was remembered of the control plane cannot be read", error)
            return None

    def _write(self, path: Path, seen: LastSeen) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made readable by its owner alone, and put in its place whole: a crash leaves the old one, or the new one.
            handle, name = tempfile.mkstemp(prefix=".last-seen-", dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(seen.model_dump_json(by_alias=True).encode())
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            self._warn_once("what the control plane said cannot be kept on disk", error)

    def _warn_once(self, what: str, error: Exception) -> None:
        if not self._has_warned:
            hint = "a restored backup may go unnoticed when this agent starts again"
            log.warning(what, hint=hint, file=str(self._path), error=str(error))
        self._has_warned = True
