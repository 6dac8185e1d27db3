"""Files that vendors' tools want their settings in."""

from __future__ import annotations

from pathlib import Path

__all__ = ["written"]


def written(folder: Path, name: str, text: str) -> Path:
    """Write a file for this user's eyes only, unless it says this already: somebody may be reading it."""
    path = folder.absolute() / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
        path.chmod(0o600)
    return path
