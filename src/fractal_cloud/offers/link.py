"""How a package wires components: two functions beside its offers, found by the registry like the offers themselves.

    @inbound(source="*", target=PostgresDbms, link_type="databaseLink", settings=DatabaseLink)
    def grant_role(link: InboundLink[DatabaseLink]) -> Published: ...

    @grant_role.revokes
    def drop_role(link: InboundLink[DatabaseLink]) -> None: ...

    @grant_role.verifies
    def roles_there(links: Sequence[InboundLink[DatabaseLink]]) -> Iterable[InboundLink[DatabaseLink]]: ...

    @outbound(source=KubernetesWorkload, target="*", link_type="databaseLink", settings=DatabaseLink)
    def use_database(link: OutboundLink[DatabaseLink]) -> Published | None: ...

Handlers bring things to what the link says, and may be called at any time and any number of times (L5). They never
wait (L11), never reach the other side but through what it published (L4), and choose no key's prefix (L3).
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import ValidationError

from fractal_cloud.model.component import Component
from fractal_cloud.model.declaration import Scalar
from fractal_cloud.model.errors import LinkError, LinkNotReady, LinkSettingsError, RegistrationError
from fractal_cloud.model.link import ANY_TYPE, Half, IfMissing, LinkContract, LinkSettings, is_link_key, is_link_type
from fractal_cloud.model.sealing import fingerprint
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.wording import explain, path_text
from fractal_cloud.offers.secret import SealingKey, Secret, Watch, find_secret, fingerprints_of, seal

S = TypeVar("S", bound=LinkSettings)
Published = Mapping[str, Scalar]


@dataclass(slots=True)
class Link(ABC, Generic[S]):
    """One link as its handler sees it. ``own`` is the component this half runs for, ``other`` the one at the far end.

    ``sighting``: the own resource as it was last seen; None where it is gone, and only something is to be taken back.
    ``outputs``: the other side's own output fields; ``published``: what the other half published for this link;
    ``fields``: what this half published before. ``previous``: the settings under which it did, where they differ.
    """

    own: str
    other: str
    live_system_id: str
    other_type: str
    own_provider: str
    other_provider: str
    settings: S
    cloud: Any
    sighting: Sighting | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Scalar] = field(default_factory=dict)
    fields: Mapping[str, Scalar] = field(default_factory=dict)
    previous: S | None = None
    watch: Watch = field(default_factory=Watch)

    @property
    @abstractmethod
    def mark(self) -> str:
        """What everything made for this link bears, so that it is found again and is nobody's drift (L17)."""

    def is_cross_cloud(self) -> bool:
        """Whether the two sides are on different providers; unknown counts as different (L8)."""
        return not self.own_provider or self.own_provider != self.other_provider

    def new_secret(self) -> Secret:
        """A new password or the like: generated here, watched so that it is never published."""
        return self.watch.note(Secret.new())

    def keep_secret(self, value: str) -> Secret:
        """Adopt a secret that a cloud or a secret store returned."""
        return self.watch.note(Secret(value))

    @property
    def there(self) -> Sighting:
        """The own resource, where the handler cannot do without."""
        if self.sighting is None:
            raise LinkError(f"{self.own!r} is not there")
        return self.sighting


@dataclass(slots=True)
class InboundLink(Link[S]):
    """A link seen from its target: ``own`` is the target, ``other`` the source's id as it stands in keys.

    ``keys``: the public keys of the realm in which the source lives (A5). ``is_revoked``: what was provided before is
    taken back: make a new secret, whatever was published or received. ``has_sealed``: this run sealed one.
    """

    keys: Sequence[str] = ()
    is_revoked: bool = False
    has_sealed: bool = False

    @property
    def source_id(self) -> str:
        """The source's id as it stands in keys."""
        return self.other

    @property
    def mark(self) -> str:
        """What everything made for this link bears, so that it is found again and is nobody's drift (L17)."""
        source = self.other if "/" in self.other else f"{self.live_system_id}/{self.other}"
        return f"{self.live_system_id}/{self.own}<{source}"

    def check_key(self) -> None:
        """Raise ``LinkNotReady`` while nobody could open a sealed value: for those who must not make one in vain."""
        if not self.keys:
            raise LinkNotReady(f"no agent tends {self.other!r} yet: nobody could open a sealed value")

    @property
    def is_sealed_to_all(self) -> bool:
        """Whether every agent of the source's realm can open what is published for it."""
        return not self.is_revoked and {fingerprint(key) for key in self.keys} <= fingerprints_of(self.fields.values())

    def is_received(self, sent: Scalar | None) -> bool:
        """Whether the source has what was sent under that version, or key id, and it is still valid."""
        return not self.is_revoked and sent is not None and sent == self.published.get("received")

    def seal(self, secret: Secret) -> str:
        """A secret as only the agents of the source's realm can open it (A5); ``LinkNotReady`` while there is none."""
        self.check_key()
        self.has_sealed = True
        return seal(self.watch.note(secret), self.keys)


@dataclass(slots=True)
class OutboundLink(Link[S]):
    """A link seen from its source: ``own`` is the source, ``other`` the target's id."""

    sealing: SealingKey | None = None

    @property
    def target_id(self) -> str:
        """The target's id."""
        return self.other

    @property
    def mark(self) -> str:
        """What everything made for this link bears."""
        return f"{self.live_system_id}/{self.own}>{self.other}"

    def open(self, sealed: Scalar) -> Secret:
        """Open what the target's agent sealed to this one."""
        if self.sealing is None:
            raise LinkError("this agent has no key to open sealed values with")
        return self.watch.note(self.sealing.open(str(sealed)))


Provide = Callable[[Any], "Published | None"]
Revoke = Callable[[Any], None]
Verify = Callable[[Sequence[Any]], Iterable[Any]]
Inspect = Callable[[Any], bool]
F = TypeVar("F", bound=Callable[..., Any])


class Handler(ABC):
    """One half of a link type for one pair of component types (L6)."""

    half: ClassVar[Half]

    if_missing: IfMissing = "retry"

    def __init__(
        self, function: Provide, source: str, target: str, link_type: str, settings: type[LinkSettings]
    ) -> None:
        self.function = function
        self.source = source
        self.target = target
        self.link_type = link_type
        self.settings = settings
        self.revoke: Revoke | None = None
        self.verify: Verify | None = None
        self.inspect: Inspect | None = None
        self.inspect_calls = 1
        self.__doc__ = function.__doc__

    @property
    def where(self) -> str:
        """The place in the code, for messages about registrations."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def claim(self) -> str:
        """The half and the pair it serves, in one line; no two handlers have the same."""
        return f"{self.half} {self.source}>{self.target}"

    def revokes(self, function: F) -> F:
        """Name the function that takes back what this half provided (L10); what is gone already is success."""
        self.revoke = function
        return function

    def verifies(self, function: F) -> F:
        """Name the function that returns, of many links at once, those that are still in place (L14).

        It gets all links of one scope for which this half published something, and returns those that need nothing,
        with as few calls as the cloud allows; it writes nothing. Whoever makes something needs one. A half without it
        only computes: it runs when something it is made from has changed.
        """
        self.verify = function
        return function

    def inspects(self, *, calls: int) -> Callable[[F], F]:
        """Name the function that checks one link for what only a call of its own can show to be in place.

        It is asked in turns, for as many links a cycle as the budget allows (S23); it writes nothing. ``calls``: how
        many it makes. What one call shows for many belongs into ``verifies``.
        """

        def register(function: F) -> F:
            self.inspect, self.inspect_calls = function, calls
            return function

        return register

    def check(self) -> None:
        """Refuse a handler that could not keep the rules."""
        if not is_link_type(self.link_type):
            raise RegistrationError(f"{self.where}: link type {self.link_type!r} is not like 'databaseLink'")
        if self.source == ANY_TYPE and self.target == ANY_TYPE:
            raise RegistrationError(f"{self.where}: one side of a handler must name a component type")
        if self.half == "inbound" and self.revoke is None:
            raise RegistrationError(f"{self.where}: an inbound handler needs a function for @….revokes (L10)")
        if self.revoke is not None and self.verify is None:
            raise RegistrationError(f"{self.where}: what can be taken back needs a function for @….verifies (L14)")
        if self.inspect is not None and self.verify is None:
            raise RegistrationError(f"{self.where}: @….inspects looks closer at what @….verifies found in place")

    def read_settings(self, settings: Mapping[str, Any], source_id: str, target_id: str) -> LinkSettings:
        """The settings as the handler's model; ``LinkSettingsError`` with source, target and key (L7).

        Settings it does not know are the other half's business.
        """
        names = {name for field, item in self.settings.model_fields.items() for name in (field, item.alias or field)}
        try:
            return self.settings.model_validate({key: value for key, value in settings.items() if key in names})
        except ValidationError as error:
            schema = settings_schema(self.settings)
            aliases = {name: item.alias or name for name, item in self.settings.model_fields.items()}
            found = explain(error, settings, schema, aliases)
            errors = "; ".join(f"{path_text(path).lstrip('.')} {text}" for path, text in found)
            raise LinkSettingsError(f"the link from {source_id!r} to {target_id!r}: {errors}") from None

    def contract(self) -> LinkContract:
        """This half as plain data."""
        schema = settings_schema(self.settings)
        return LinkContract(
            half=self.half,
            source=self.source,
            target=self.target,
            link_type=self.link_type,
            settings_schema=schema,
            required=list(schema.get("required", [])),
            if_missing=self.if_missing,
            description=inspect.cleandoc(self.function.__doc__ or ""),
        )

    def __call__(self, link: Link[Any]) -> dict[str, Scalar] | None:
        """Run the half; what it returns is checked before anybody sees it."""
        published = self.function(link)
        return None if published is None else self._checked(published, link.watch)

    def _checked(self, published: Published, watch: Watch) -> dict[str, Scalar]:
        for key, value in published.items():
            if not is_link_key(key):
                raise LinkError(f"{self.where} published {key!r}: a key is one word like 'secretName'")
            if not isinstance(value, (str, int, float, bool)):
                raise LinkError(f"{self.where} published {key!r}, which is no text, number, true or false")
            why = find_secret(key, value, watch.seen)
            if why:
                raise LinkError(
                    f"{self.where} published {key!r}, which {why}: put it into a store, publish its name (L9)"
                )
        return {key: published[key] for key in sorted(published)}


class InboundHandler(Handler):
    """The half that runs when the target is reconciled: it provides access for one source."""

    half = "inbound"


class OutboundHandler(Handler):
    """The half that runs when the source is reconciled: it makes use of what the target published."""

    half = "outbound"


@cache
def settings_schema(settings: type[LinkSettings]) -> dict[str, Any]:
    """The JSON Schema of a handler's settings, by their declared names; made once, so not to be changed."""
    return settings.model_json_schema(by_alias=True)


def _name_of(component: type[Component] | str) -> str:
    return component if isinstance(component, str) else component.type


def inbound(
    *, source: type[Component] | str, target: type[Component] | str, link_type: str, settings: type[LinkSettings]
) -> Callable[[Provide], InboundHandler]:
    """Make a function the inbound half for a pair of types; ``"*"`` on one side stands for all (L6)."""
    return lambda function: InboundHandler(function, _name_of(source), _name_of(target), link_type, settings)


def outbound(
    *,
    source: type[Component] | str,
    target: type[Component] | str,
    link_type: str,
    settings: type[LinkSettings],
    if_missing: IfMissing = "retry",
) -> Callable[[Provide], OutboundHandler]:
    """Make a function the outbound half for a pair of types; ``"*"`` on one side stands for all (L6).

    ``if_missing``: what it means that the half returns None, because the target published nothing yet (L7).
    """

    def register(function: Provide) -> OutboundHandler:
        handler = OutboundHandler(function, _name_of(source), _name_of(target), link_type, settings)
        handler.if_missing = if_missing
        return handler

    return register


class Handlers:
    """All link handlers of an installation, and which one serves a pair (L15).

    ``links_as``: the type whose halves serve a type as well that has none of its own; empty for most.
    """

    def __init__(self, links_as: Callable[[str], str] = lambda _: "") -> None:
        self._links_as = links_as
        self._by_claim: dict[tuple[Half, str, str], Handler] = {}

    def add(self, handler: Handler) -> None:
        """Take a handler in; two with the same claim contradict each other."""
        handler.check()
        claim = (handler.half, handler.source, handler.target)
        other = self._by_claim.setdefault(claim, handler)
        if other is not handler:
            raise RegistrationError(
                f"the {handler.half} half from {handler.source!r} to {handler.target!r} is registered twice, "
                f"by {other.where} and by {handler.where}: remove one of them"
            )

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._by_claim.values())

    def find(self, half: Half, source: str, target: str) -> Handler | None:
        """The exact pair first; then the side this half runs for, then the other (L15); then what they are wired as."""
        found = self._found(half, source, target)
        if found is not None:
            return found
        return self._found(half, self._links_as(source) or source, self._links_as(target) or target)

    def _found(self, half: Half, source: str, target: str) -> Handler | None:
        own, far = ((ANY_TYPE, target), (source, ANY_TYPE))
        if half == "outbound":
            own, far = far, own
        for pair in ((source, target), own, far):
            found = self._by_claim.get((half, *pair))
            if found is not None:
                return found
        return None
