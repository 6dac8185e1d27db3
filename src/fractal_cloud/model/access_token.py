"""The form of an access token: known to scanners, checked without a database, and strong enough for its address.

A token is ``fractal_``, 43 random letters and digits (256 bits), and six that are a checksum of them. Scanners find it
by ``fractal_[0-9A-Za-z]{49}``, and the checksum distinguishes one from a text of the same form. What a token may do is
not known here.
"""

from __future__ import annotations

import re
import string
import zlib
from collections.abc import Callable
from typing import Final

PREFIX: Final = "fractal_"
OLD_PREFIX: Final = "fc_"
"""Tokens that were made before there was a checksum; they stay valid until they are rotated."""
_ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH: Final = 43
_CHECKSUM_LENGTH: Final = 6
_FORM: Final = re.compile(rf"{PREFIX}([0-9A-Za-z]{{{_RANDOM_LENGTH}}})([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})")
WEAKEST_LENGTH: Final = 24
FEWEST_CHARACTERS: Final = 10


def new_token(draw: Callable[[str], str]) -> str:
    """A token of letters that ``draw`` draws from an alphabet, one at a call."""
    random = "".join(draw(_ALPHABET) for _ in range(_RANDOM_LENGTH))
    return f"{PREFIX}{random}{_checksum(random)}"


def can_be_a_token(secret: str) -> bool:
    """Whether a text has the form of a token we made: what has not is nobody's, and no database need be asked."""
    if secret.startswith(OLD_PREFIX):
        return True
    match = _FORM.fullmatch(secret)
    return match is not None and _checksum(match[1]) == match[2]


def is_weak(secret: str) -> bool:
    """Whether a token that a person chose can be guessed: too short, or made of too few different characters."""
    return len(secret) < WEAKEST_LENGTH or len(set(secret)) < FEWEST_CHARACTERS


def _checksum(random: str) -> str:
    number = zlib.crc32(random.encode())
    digits = []
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
