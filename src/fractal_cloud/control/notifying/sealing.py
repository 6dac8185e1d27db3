"""Seals the addresses and secrets of subscriptions with a key that is not in the database.

A copy of the database alone then neither opens a receiver nor signs anything. The key is a setting, or a file beside
the SQLite database.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Final, NamedTuple

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from fractal_cloud.control.notifying.settings import NotificationSettings

SHORTEST_KEY: Final = 32
KEY_FILE: Final = "notifications.key"
SECRET_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = range(24, 65)


class NoKey(Exception):
    """There is no key to seal with, or it opens nothing; the text says what to do."""


class Opened(NamedTuple):
    """What is sealed of a subscription; ``secret`` is empty where nothing is signed."""

    url: str
    secret: str


class SubscriptionKey:
    """The key, read or made at its first use."""

    def __init__(self, settings: NotificationSettings) -> None:
        self._given = settings.key
        self._file = settings.key_file

    def seal(self, subscription_id: str, opened: Opened) -> str:
        """What may be stored."""
        text = json.dumps([subscription_id, *opened]).encode()
        return base64.b64encode(SecretBox(self._key(make=True)).encrypt(text)).decode()

    def open(self, subscription_id: str, sealed: str) -> Opened:
        """What was sealed for this subscription, or ``NoKey``."""
        try:
            whose, url, secret = json.loads(SecretBox(self._key()).decrypt(base64.b64decode(sealed)))
        except (CryptoError, ValueError, TypeError):
            raise NoKey(_OTHER) from None
        if whose != subscription_id:
            raise NoKey(_OTHER)
        return Opened(url, secret)

    def _key(self, *, make: bool = False) -> bytes:
        if self._given:
            return hashlib.blake2b(self._given.encode(), digest_size=SecretBox.KEY_SIZE).digest()
        if self._file is None:
            raise NoKey(_NONE)
        try:
            return self._read(self._file)
        except FileNotFoundError:
            if not make:
                raise NoKey(_OTHER) from None
        _write_new(self._file)
        return self._read(self._file)

    def _read(self, file: Path) -> bytes:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise NoKey(f"{str(file)!r} can be read by others: chmod 600 closes it")
        key = bytes.fromhex(file.read_text(encoding="ascii").strip())
        if len(key) != SecretBox.KEY_SIZE:
            raise NoKey(f"{str(file)!r} holds no key: restore it, or delete it and add the subscriptions anew")
        return key


_NONE: Final = (
    "there is no key to seal it with: start every control plane with the same FRACTAL_NOTIFY_KEY, such as "
    "`openssl rand -hex 32` prints"
)
_OTHER: Final = "it was sealed with another key: restore FRACTAL_NOTIFY_KEY (or the key file), or add it anew"


def _write_new(file: Path) -> None:
    """Make a key that only its owner can read; of two that make one at the same moment, the first counts."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as opened:
            opened.write(secrets.token_hex(SecretBox.KEY_SIZE) + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        try:
            os.link(half, file)
        except FileExistsError:
            return
    finally:
        half.unlink()


def new_secret() -> str:
    """A secret to sign with that nobody can guess, as Standard Webhooks writes it."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def is_secret(text: str) -> bool:
    """Whether a text is a secret as Standard Webhooks writes it: ``whsec_`` and 24 to 64 bytes in base64."""
    return text.startswith(SECRET_PREFIX) and _decoded(text) is not None


def _decoded(secret: str) -> bytes | None:
    try:
        found = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        return None
    return found if len(found) in _SECRET_BYTES else None


def key_of(secret: str) -> bytes:
    """The bytes to sign with."""
    found = _decoded(secret)
    assert found is not None, "it was checked when it was sealed"
    return found
