"""Files for their owner's eyes only: the data folder, logs, and whatever these processes write."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def keep_files_private() -> None:
    """Have everything this process and its children write from now on be their user's alone."""
    os.umask(0o077)


def tighten_folder(folder: Path) -> None:
    """Close a folder that is this user's own to everybody else; one that is others' business too is left."""
    found = folder.stat()
    here = Path.cwd()
    is_shared = found.st_mode & stat.S_ISVTX or folder.resolve() in (here, *here.parents, Path("~").expanduser())
    if found.st_uid == os.geteuid() and not is_shared and found.st_mode & 0o077:
        folder.chmod(PRIVATE_FOLDER)


def open_private(path: Path) -> IO[bytes]:
    """An empty file to write to, readable by its owner alone, also if it was there before."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    os.fchmod(handle, PRIVATE_FILE)
    return os.fdopen(handle, "wb")
