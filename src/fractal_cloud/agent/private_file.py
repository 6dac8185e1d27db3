"""Small files that only this user may read, written once and as a whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def read_private(path: Path) -> bytes | None:
    """What a file holds; None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def write_private(path: Path, content: bytes) -> bytes:
    """Keep something in a new file; returns what stands there, which is another's if somebody was faster."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # readable by its owner alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(name, path)  # whole, and only where there is none yet
        except FileExistsError:
            return path.read_bytes()
    finally:
        Path(name).unlink(missing_ok=True)
    return content
