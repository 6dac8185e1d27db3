"""Everything that can go wrong, as a closed set, so that callers can decide by type and never by text.

FractalError
├── DeclarationError        a declaration is refused; carries every error at once
├── RegistrationError       two places register the same component type or link handler
├── PolicyOptionError       rights are asked for in a way that cannot be meant
├── LinkError               a handler breaks a rule of links: nothing of what it returned is published
│   ├── LinkSettingsError   a link's settings are not what its handler asks for
│   └── LinkNotReady        the other side is not as far yet: tried again when something of it changes
├── SecretUnavailable       a secret has no value here: not bound, not allowed, or its store does not answer
└── CloudError              a cloud's answer that is not what was asked for
    ├── Throttled           too many calls; nothing was done; come again later
    ├── Unreadable          a read failed or stayed incomplete (never the same as absent)
    │   └── AwaitsPerson    it stays unreadable until a person acts
    │       └── OtherRealm  another account, project or cluster answers than the one that is meant
    ├── Conflict            the cloud refuses for now: busy, in use
    │   ├── Overtaken       somebody was faster: the precondition no longer holds, nothing was done
    │   └── Protected       it is protected from deletion: a person must switch that off
    ├── Denied              the credentials may not do this
    ├── Invalid             the cloud will never accept this request as it is
    │   └── LimitReached    a quota or limit is used up: a person must raise it, or free something
    ├── NotFound            the thing named is not there
    ├── DependencyMissing   something else that the call refers to is not there
    └── Transient           no answer, or a server error: the effect is unknown
        ├── UnderWay        the cloud took the call and is at work on it: asked for again, it says how far it is
        ├── GivenUp         the call did not return in time: it may still take effect (S24)
        └── Unexpected      the code that made the call failed in a way nobody expected (S24)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from fractal_cloud.model.visible_text import visible


class FractalError(Exception):
    """The root of all errors this product raises on purpose."""


@dataclass(frozen=True, slots=True)
class InputError:
    """One thing wrong with a declaration: where it stands, what is wrong, what to do."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class DeclarationError(FractalError):
    """A declaration is refused as a whole; ``errors`` lists everything that is wrong with it."""

    def __init__(self, errors: list[InputError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors


class RegistrationError(FractalError):
    """Two packages register the same component type or link handler, or one contradicts itself."""


class PolicyOptionError(FractalError):
    """An option of the printed rights means nothing for this provider, or has a value that cannot be meant (A7)."""


class LinkError(FractalError):
    """A link handler breaks a rule: a secret in an output field, a key of somebody else's. Nothing is published."""


class LinkSettingsError(LinkError):
    """A link's settings are not what its handler asks for (L7)."""


class LinkNotReady(LinkError):
    """A half needs something that the other side does not have yet: that is no error, and it waits (L5, L9)."""


class SecretUnavailable(FractalError):
    """A secret has no value for whoever asks; ``is_passing``: its store did not answer, and is asked again (A8)."""

    def __init__(self, message: str, *, is_passing: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_passing = is_passing


_MOST_SAID: Final = 4_000
"""The longest message of a cloud that is passed on, in characters: a report with a longer one would be refused."""


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}…"


class CloudError(FractalError):
    """A cloud's refusal or failure, with what a person needs to look it up at the vendor.

    ``cause``: the message without what usually follows from it. ``needs_person``: trying again changes nothing until a
    person acts (C8).
    """

    needs_person: ClassVar[bool] = False

    def __init__(self, message: str, *, code: str = "", request_id: str = "", cause: str = "") -> None:
        self.message = _clipped(visible(message))  # much of it is what a cloud said (A6)
        super().__init__(self.message)
        self.cause = _clipped(visible(cause)) or self.message
        self.code = visible(code)
        self.request_id = visible(request_id)


class Throttled(CloudError):
    """The cloud asks for fewer calls; the call had no effect. ``after_seconds``: how long it asks to be left alone."""

    after_seconds: float = 0.0


class Unreadable(CloudError):
    """A read failed or stayed incomplete: what it would have shown is unknown, not absent."""


class AwaitsPerson(Unreadable):
    """Nothing can be read until a person acts: several parents of one name, a renamed parent, another realm."""

    needs_person = True


class OtherRealm(AwaitsPerson):
    """Another account, project or cluster answers than the one that is meant: only a person can resolve that (S26)."""


class Conflict(CloudError):
    """The cloud refuses for now: busy, in use by another resource, or a precondition no longer holds."""


class Overtaken(Conflict):
    """The write carried a precondition that no longer holds: somebody was faster, and nothing was done (S16)."""


class Protected(Conflict):
    """The resource is protected from deletion, and that is respected until a person switches it off (O15)."""


class Denied(CloudError):
    """The credentials may not do this."""

    needs_person = True


class Invalid(CloudError):
    """The cloud will never accept this request as it is."""

    needs_person = True


class LimitReached(Invalid):
    """A quota or a limit is used up: the same request is refused until a person raises it, or frees something (S21)."""


class NotFound(CloudError):
    """The resource named in the call is not there."""


class DependencyMissing(CloudError):
    """Something else that a write refers to is not there, and nobody declares it here: nothing was done.

    It may come into being without a new declaration, so the write is tried again until it does.
    """


class Transient(CloudError):
    """No answer or a server error: the call may or may not have had its effect."""


class UnderWay(Transient):
    """The cloud took the call and is at work on it: no failure. Asked for again by its token, it says how far it is."""


class GivenUp(Transient):
    """A write did not return in time and was given up: it counts as sent, and may take effect at any moment (S24)."""


class Unexpected(Transient):
    """The code that made a call raised something it never should: whether the call was sent is unknown (S24)."""
