"""How sealing keys are named: by a fingerprint, in events, on the wire and by people (A5). What is sealed, and how, is
the offers' business.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

_FINGERPRINT: Final = re.compile(r"[0-9a-f]{32}")


def fingerprint(public_key: str) -> str:
    """The name of a public key: the first 128 bits of its SHA-256, which nobody finds a second key for."""
    return hashlib.sha256(public_key.encode()).hexdigest()[:32]


def is_fingerprint(text: str) -> bool:
    """Whether a text can name a key."""
    return _FINGERPRINT.fullmatch(text) is not None
