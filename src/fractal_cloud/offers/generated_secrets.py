"""Where secrets are made that nobody chooses: the vendor's own store of the cloud that a component lives in (A8).

A store finds, makes and drops one secret in one call each; it never replaces a value. When that is done, and what
follows from what is found, is the agent's business.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import Any, ClassVar, Final

from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.secret import Secret

ENTRY_POINTS: Final = "fractal_cloud.generated_secrets"
"""Packages announce a store under the name of the provider that it belongs to."""
MARK: Final = "fractal-cloud-generated"
LABEL: Final = "fractal.cloud/generated"
"""A tag beside the three: what is made for a component's parameter, and is no component of its own."""

_OURS: Final[Mapping[str, str]] = {
    "aws": "fractal_cloud.offers.aws.generated_secrets:SecretsManager",
    "kubernetes": "fractal_cloud.offers.kubernetes.generated_secrets:SecretsOfANamespace",
}
_SIGN: Final = "-"
_GROUPS: Final = (ascii_lowercase, ascii_uppercase, digits, _SIGN)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")


@dataclass(frozen=True, slots=True)
class Slot:
    """Which secret is meant: whose LiveSystem's, and of which component and parameter (``database/MasterPassword``)."""

    live_system_id: str
    place: str

    @property
    def digest(self) -> str:
        """What no other has, also where a name has to be shortened or spelled otherwise."""
        return hashlib.sha256(f"{self.live_system_id}\0{self.place}".encode()).hexdigest()[:12]

    @property
    def component(self) -> str:
        """The component."""
        return self.place.partition("/")[0]

    @property
    def readable(self) -> str:
        """The parameter in letters, digits, ``_``, ``.`` and ``-``; with the digest where that is not all of it."""
        parameter = self.place.partition("/")[2]
        if _PLAIN.fullmatch(parameter) and len(parameter) <= 100:
            return parameter
        return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', parameter)[:80].strip('-')}-{self.digest}"


@dataclass(frozen=True, slots=True)
class Kept:
    """A secret as it is found in a store. ``secret`` None: there is no value that can be used, and ``why`` says so.

    ``handle``: what the store needs to drop this very one.
    """

    protocol: ProtocolTags
    secret: Secret | None = None
    why: str = ""
    handle: Any = field(default=None, repr=False, compare=False)


class GeneratedSecretStore(ABC):
    """The store of one provider. ``title``: what people call it."""

    title: ClassVar[str]

    @abstractmethod
    def name(self, slot: Slot) -> str:
        """What a secret is called there: the same for every try, and no other's."""

    @abstractmethod
    def find(self, cloud: Any, slot: Slot) -> Kept | None:
        """What is kept under the name now; None where the store says that nothing is."""

    @abstractmethod
    def make(self, cloud: Any, slot: Slot, secret: Secret, tags: ProtocolTags) -> None:
        """Make it with its tags, in ONE writing call; ``Conflict`` where something has that name."""

    @abstractmethod
    def drop(self, cloud: Any, slot: Slot, kept: Kept) -> None:
        """Delete what was found, for good, in ONE writing call; gone already is success."""


def is_made_for_another(tags: Mapping[str, str]) -> bool:
    """Whether a resource is a secret that was generated for a component, and none that a component declares."""
    return MARK in tags or LABEL in tags


@cache
def store_of(provider: str) -> GeneratedSecretStore | None:
    """The store of a provider; None where it has none."""
    path = _known().get(provider)
    if path is None:
        return None
    module, _, attribute = path.partition(":")
    made: GeneratedSecretStore = getattr(import_module(module), attribute)()
    return made


def providers() -> list[str]:
    """The providers that keep generated secrets."""
    return sorted(_known())


def _known() -> dict[str, str]:
    return {**{entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}, **_OURS}


def new_secret(length: int) -> Secret:
    """A value nobody has seen: of letters, digits and ``-``, each of them in it, small and capital; a letter first.

    That is what the passwords of most services may and must hold.
    """
    chooser = secrets.SystemRandom()
    every = ascii_letters + digits + _SIGN
    rest = [chooser.choice(group) for group in _GROUPS]
    rest += [chooser.choice(every) for _ in range(length - len(rest) - 1)]
    chooser.shuffle(rest)
    return Secret(chooser.choice(ascii_letters) + "".join(rest))
