"""Secrets from files: `FRACTAL_TOKEN_FILE` and the like, as Docker, Kubernetes and systemd hand them to programs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Final

from fractal_cloud.cli.errors import CommandError, Exit

NAMES: Final = ("FRACTAL_TOKEN", "FRACTAL_SEALING_KEY", "FRACTAL_DATABASE_URL", "FRACTAL_NOTIFY_KEY")
_LARGEST: Final = 65_536


def read_secret_files(environment: MutableMapping[str, str], warn: Callable[[str], None]) -> None:
    """Put what the files hold where their settings are read from; a secret that is given twice is refused."""
    for name in NAMES:
        file = environment.get(f"{name}_FILE", "")
        if not file:
            continue
        if environment.get(name):
            raise CommandError(f"{name} and {name}_FILE are both set", advice="Set one of them.", code=Exit.USAGE)
        environment[name] = _read(name, Path(file), warn)
        del environment[f"{name}_FILE"]


def _read(name: str, path: Path, warn: Callable[[str], None]) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_LARGEST + 1).decode("utf-8").strip()
    except OSError as error:
        raise _refused(name, path, f"cannot be read: {error.strerror}", "Check its path and its owner.") from None
    except UnicodeDecodeError:
        raise _refused(name, path, "is no text", "Put the secret into it, and nothing else.") from None
    if not text:
        raise _refused(name, path, "is empty", "Put the secret into it, and nothing else.")
    if len(text) > _LARGEST or "\n" in text:
        raise _refused(name, path, "has more than one line", "Put the secret into it, and nothing else.")
    # A secret that Kubernetes mounts is a link to a file that only this container has, whatever its mode.
    if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
        warn(f"{str(path)!r} ({name}_FILE) may be read by others than its owner: chmod 600 closes it")
    return text


def _refused(name: str, path: Path, cause: str, advice: str) -> CommandError:
    return CommandError(f"{name}_FILE: {str(path)!r} {cause}", advice=advice, code=Exit.USAGE)
