"""Secrets inside this process, and how they travel between agents: sealed, so that only they can open them (L9).

A sealed value is one box for each key it is sealed to (A5): ``sealed:<fingerprint>:<box>,<fingerprint>:<box>``. Whoever
opens it finds its own box by the fingerprint of its key.
"""

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
from fractal_cloud.model.sealing import fingerprint, is_fingerprint
from fractal_cloud.model.secret_detection import SHAPES

SEALED_PREFIX: Final = "sealed:"

# Fields that would hold a secret by their very name, whoever writes them. References (secretName, keyId) are none.
_SECRET_NAMES: Final = re.compile(
    r"password|passwd|passphrase|secret(value|key|accesskey|string|data)?$|token$|privatekey|credentials?$|apikey$",
    re.IGNORECASE,
)
_SECRET_SHAPES: Final = re.compile(SHAPES, re.IGNORECASE)
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
    def from_text(cls, text: str, where: str = "the setting") -> SealingKey:
        """The key that a setting or a file holds: 32 bytes in base64."""
        try:
            return cls(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError, TypeError) as error:
            raise LinkError(
                f"the sealing key in {where} is no 32 bytes in base64: make one with `openssl rand -base64 32`"
            ) from error

    @property
    def public(self) -> str:
        """The half that others seal to."""
        return base64.b64encode(bytes(self._private.public_key)).decode()

    @property
    def fingerprint(self) -> str:
        """By what people and sealed values name it."""
        return fingerprint(self.public)

    def to_text(self) -> str:
        """The private half, as ``from_text`` reads it: for the file of its owner."""
        return base64.b64encode(bytes(self._private)).decode()

    def open(self, sealed: str) -> Secret:
        """Open what was sealed to this key; ``LinkNotReady`` if it was sealed to others only."""
        try:
            boxes = dict(_boxes(sealed))
            # A value from before it was sealed to several has one box, and does not say whose.
            box = boxes[self.fingerprint] if self.fingerprint in boxes else boxes[""]
            return Secret(SealedBox(self._private).decrypt(box).decode())
        except (binascii.Error, CryptoError, ValueError, KeyError) as error:
            raise LinkNotReady("what is sealed for it was not sealed to this agent's key: it is sealed anew") from error


def seal(secret: Secret, public_keys: Iterable[str]) -> str:
    """A secret as only the holders of these keys can read it; what is no key is left out, and opens nothing."""
    value = secret.reveal().encode()
    boxes = [f"{fingerprint(key)}:{box}" for key in public_keys if (box := _box(value, key)) is not None]
    if not boxes:
        raise LinkNotReady("there is no key to seal to: restart the agent that reaches the other side")
    return SEALED_PREFIX + ",".join(boxes)


def is_public_key(text: str) -> bool:
    """Whether a value can be sealed to it."""
    return _box(b"", text) is not None


def _box(value: bytes, public_key: str) -> str | None:
    try:
        box = SealedBox(PublicKey(base64.b64decode(public_key, validate=True)))
        return base64.b64encode(box.encrypt(value)).decode()
    except (binascii.Error, CryptoError, ValueError, TypeError):
        return None


def _boxes(sealed: str) -> Iterator[tuple[str, bytes]]:
    """The boxes of a sealed value, each with the fingerprint of the key it is for; ``ValueError`` if it is none."""
    for text in sealed.removeprefix(SEALED_PREFIX).split(","):
        whose, _, box = text.rpartition(":")
        yield whose, base64.b64decode(box, validate=True)


@dataclass(slots=True)
class Watch:
    """The secrets that one run of a handler has had; none of them may be in what it publishes."""

    seen: list[Secret] = field(default_factory=list)

    def note(self, secret: Secret) -> Secret:
        """Remember a secret, for the check at the end."""
        self.seen.append(secret)
        return secret


def is_sealed(value: object) -> bool:
    """Whether a published value is sealed: it begins so, and each of its boxes holds enough to be one."""
    if not isinstance(value, str) or not value.startswith(SEALED_PREFIX):
        return False
    try:
        return all(_is_name(whose) and len(box) > _SEALED_OVERHEAD for whose, box in _boxes(value))
    except (binascii.Error, ValueError):
        return False


def fingerprints_of(values: Iterable[object]) -> frozenset[str]:
    """The keys that can open what is sealed among these values, all of it; nothing sealed: none."""
    sealed = [frozenset(whose for whose, _ in _boxes(str(value))) for value in values if is_sealed(value)]
    return frozenset.intersection(*sealed) if sealed else frozenset()


def _is_name(whose: str) -> bool:
    return not whose or is_fingerprint(whose)


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
