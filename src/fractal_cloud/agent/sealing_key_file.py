"""The sealing key of an agent on disk, so that an agent that starts anew has the key it had (A5).

One file for each control plane, environment and set of providers, which all such agents of a machine share. Without a
folder, or where it cannot be written, the key lives as long as the agent.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

import structlog

from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.model.errors import LinkError
from fractal_cloud.offers.secret import SealingKey

log = structlog.get_logger()


class SealingKeyFile:
    """Holds the key of an agent. ``key`` is the one in use; one that a setting gave is never replaced.

    ``is_replaceable``: whether ``replace_withdrawn`` has anything to do, or to say for the first time.
    """

    def __init__(self, settings: AgentSettings) -> None:
        self._is_given = bool(settings.sealing_key)
        self.is_replaceable = True
        folder = None if self._is_given else settings.state_dir
        whose = "\n".join((settings.url, settings.environment, *sorted(settings.providers)))
        digest = hashlib.sha256(whose.encode()).hexdigest()[:16]
        self._path = None if folder is None else folder / f"sealing-{digest}.key"
        self.key = SealingKey.from_text(settings.sealing_key) if self._is_given else self._kept() or self._made()

    def replace_withdrawn(self) -> bool:
        """Replace the key, which was withdrawn, by a new one, or by that of an agent that has done so already.

        Returns whether there is another key now.
        """
        if self._is_given:
            self.is_replaceable = False
            log.error(
                "the sealing key was withdrawn, and a setting holds it: nothing is sealed to this agent any more",
                hint="set FRACTAL_SEALING_KEY to a new one (`openssl rand -base64 32`) and start the agent again",
                key=self.key.fingerprint,
            )
            return False
        withdrawn = self.key.fingerprint
        kept = self._kept()
        self.key = kept if kept is not None and kept.fingerprint != withdrawn else self._made()
        log.warning("the sealing key was withdrawn: a new one is in its place", old=withdrawn, new=self.key.fingerprint)
        return True

    def _kept(self) -> SealingKey | None:
        """The key in the file; one that others could have read, or that is none, is refused."""
        if self._path is None:
            return None
        try:
            text = self._path.read_text(encoding="ascii")
            mode = stat.S_IMODE(self._path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise LinkError(
                f"the sealing key in {str(self._path)!r} cannot be read: {error}; delete the file"
            ) from None
        if mode & 0o077:
            raise LinkError(
                f"the sealing key in {str(self._path)!r} can be read by others: delete the file, and withdraw the key"
            )
        return SealingKey.from_text(text.strip(), f"the file {str(self._path)!r}")

    def _made(self) -> SealingKey:
        made = SealingKey()
        if self._path is not None:
            try:
                _write(self._path, made.to_text())
            except OSError as error:
                hint = "this agent has another key when it starts again"
                log.warning("the sealing key cannot be kept on disk", hint=hint, file=str(self._path), error=str(error))
        return made


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".sealing-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
