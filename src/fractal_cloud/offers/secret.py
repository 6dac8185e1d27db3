"""Secrets inside this process, and how they travel between agents: sealed, so that only one can open them (L9)."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from fractal_cloud.model.errors import LinkError, LinkNotReady

SEALED_PREFIX: Final = "sealed:"

# Fields that would hold a secret by their very name, whoever writes them. References (secretName, keyId) are none.
_SECRET_NAMES: Final = re.compile(
    r"password|passwd|passphrase|secret(value|key|accesskey|string|data)?$|token$|privatekey|credentials?$|apikey$",
    re.IGNORECASE,
)
_SECRET_SHAPES: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|\b(?:password|passwd|pwd)[\"']?\s*[=:]\s*[\"']?[^\s\"',;&]+",
    re.IGNORECASE,
)
_SEALED_OVERHEAD: Final = 48
"""Bytes that a sealed box has beside what is in it."""


class Secret:
    """A value that is shown to nobody: it has no text form, and is compared, never printed."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    @classmethod
    def new(cls, bytes_of_chance: int = 24) -> Secret:
        """A secret nobody has seen, of letters, digits, ``-`` and ``_``."""
        return cls(secrets.token_urlsafe(bytes_of_chance))

    def reveal(self) -> str:
        """The value itself: for the one call that needs it."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and secrets.compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(…)"


class SealingKey:
    """The key pair of one agent. What is sealed to its public half, nobody else can open."""

    def __init__(self, private: bytes | None = None) -> None:
        self._private = PrivateKey.generate() if private is None else PrivateKey(private)

    @classmethod
    def from_text(cls, text: str) -> SealingKey:
        """The key that a setting holds: 32 bytes in base64."""
        try:
            return cls(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError, TypeError) as error:
            raise LinkError(
                "the sealing key is no 32 bytes in base64: make one with `openssl rand -base64 32`"
            ) from error

    @property
    def public(self) -> str:
        """The half that others seal to."""
        return base64.b64encode(bytes(self._private.public_key)).decode()

    def open(self, sealed: str) -> Secret:
        """Open what was sealed to this key; ``LinkNotReady`` if it was sealed to another one."""
        try:
            box = base64.b64decode(sealed.removeprefix(SEALED_PREFIX), validate=True)
            return Secret(SealedBox(self._private).decrypt(box).decode())
        except (binascii.Error, CryptoError, ValueError) as error:
            raise LinkNotReady("what is sealed for it was not sealed to this agent's key: it is sealed anew") from error


def seal(secret: Secret, public_key: str) -> str:
    """A secret as only the holder of that key can read it."""
    try:
        box = SealedBox(PublicKey(base64.b64decode(public_key, validate=True)))
    except (binascii.Error, CryptoError, ValueError, TypeError) as error:
        raise LinkNotReady("the other side's agent registered with a key that is none: restart that agent") from error
    return SEALED_PREFIX + base64.b64encode(box.encrypt(secret.reveal().encode())).decode()


@dataclass(slots=True)
class Watch:
    """The secrets that one run of a handler has had; none of them may be in what it publishes."""

    seen: list[Secret] = field(default_factory=list)

    def note(self, secret: Secret) -> Secret:
        """Remember a secret, for the check at the end."""
        self.seen.append(secret)
        return secret


def is_sealed(value: object) -> bool:
    """Whether a published value is a sealed box: it begins like one, and holds enough to be one."""
    if not isinstance(value, str) or not value.startswith(SEALED_PREFIX):
        return False
    try:
        return len(base64.b64decode(value.removeprefix(SEALED_PREFIX), validate=True)) > _SEALED_OVERHEAD
    except (binascii.Error, ValueError):
        return False


def find_secret(key: str, value: object, seen: Iterable[Secret]) -> str:
    """Why a field must not be published, or an empty text (L9)."""
    if isinstance(value, Secret):
        return "is a secret"
    text = str(value)
    if any(form in text for secret in seen for form in _forms(secret)):
        return "holds a secret"
    if is_sealed(value):
        return ""
    if text.startswith(SEALED_PREFIX):
        return "is called sealed, and is not"
    if _SECRET_NAMES.search(key):
        return "is named like a secret"
    return "looks like a secret" if _SECRET_SHAPES.search(text) else ""


def without_secrets(text: str, seen: Iterable[Secret]) -> str:
    """A text for people: the secrets that are known taken out of it, and what looks like one."""
    for secret in seen:
        for form in _forms(secret):
            text = text.replace(form, "…")
    return _SECRET_SHAPES.sub("…", text)


def _forms(secret: Secret) -> Iterator[str]:
    """A secret in the forms in which it may stand in a text."""
    value = secret.reveal()
    if value:
        yield value
        yield quote(value, safe="")
        yield base64.b64encode(value.encode()).decode().rstrip("=")
