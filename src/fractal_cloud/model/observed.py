"""The observed half of a component, defined once: what its agent found out, and the control plane keeps for it.

It has three forms. ``Observed`` is the one that rules work with, and that travels to agents. ``ObservedReport`` is the
one in which agents publish it. ``ObservedColumns`` is the row of the database. A new field takes a line in
``_Carried`` and one in ``ObservedColumns`` (and a migration): what copies, compares, sends or stores the half goes by
the tables at the end of this module. When a field changes, and what follows from it, belongs to the rules.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar, Final, Literal

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.link import NO_LINKS, LinkStates
from fractal_cloud.model.status import Stance, Status

Json = dict[str, Any]


class Override(Wire):
    """Who took a component over from the agent, why, since and until when (G13); by None: found on the cloud.

    ``readopted_by``: who asked for it to be handed back, until that is done (S9); only where no tag can say it.
    """

    since: datetime
    by: str | None = None
    reason: str | None = None
    until: datetime | None = None
    readopted_by: str | None = None


class Intent(Wire):
    """A creation that was published before it was tried, and that no reading has shown complete yet (S17).

    ``resource_id``: the cloud's answer named it, so it exists although nothing shows it yet. ``tagging``: empty where
    the tags travel in the create call; where they cannot, they are ``owed``, and ``begun`` from before the one call
    that puts them on: what is found without them then was let go by somebody, for all that can be known.
    ``restored``: it stood in a backup (C9). It recognises what it made, and is no reason to create anything.
    """

    id: str
    at: datetime
    attempts: int = 1
    resource_id: str | None = None
    tagging: Literal["", "owed", "begun"] = ""
    restored: bool = False


class Setback(Wire):
    """A parameter that we wrote, and when somebody set it back (S27).

    ``value``: a digest of what was written. ``since``: when a read confirmed it, and it stands; None while it differs.
    ``written``: when it was written and read back otherwise, until it shows or that counts as set back.
    ``given_up``: it is no longer corrected; ``by``: who set it back (None: not asked yet, empty: not known).
    ``calls``: those in a row that changed it, and not to what was written.
    ``in_handshake``: counted in the handshake that is under way (S9), which began anew.
    """

    parameter: str
    at: list[datetime]
    value: str = ""
    since: datetime | None = None
    written: datetime | None = None
    given_up: bool = False
    by: str | None = None
    calls: int = 0
    in_handshake: bool = False


class ChangedBy(Wire):
    """Something that was changed outside of Fractal Cloud, and who did it, as far as the cloud records that.

    ``parameter``: what differs from the declaration; ``MANAGED_BY`` where somebody took the resource over. ``value``: a
    digest of what it was changed to. ``seen``: when the agent first saw it; ``after``: its read before that, where it
    is known, so that the change came later. ``stands``: it still is as it was changed.
    ``state``: ``known`` by whom; ``related``: the cloud names a call to the resource, and not what it set; ``waiting``
    for a record that is written late; ``denied``: the agent may not read the record; or ``unknown``.
    ``by``: who, in short; ``identity``: as the cloud calls them; ``at``, ``how``, ``address``: when, by which call and
    from where; ``source``: the record. It is never the agent itself.
    """

    parameter: str
    value: str = ""
    seen: datetime
    after: datetime | None = None
    stands: bool = True
    state: Literal["known", "related", "waiting", "denied", "unknown"] = "unknown"
    by: str = ""
    identity: str = ""
    at: datetime | None = None
    how: str = ""
    address: str = ""
    source: str = ""


class Found(Wire):
    """What a lookup found when a generation was first reconciled: kept until the next deploy (C12).

    ``lookup``: the lookup as it is declared, as JSON text.
    """

    lookup: str
    generation: int
    values: list[Any]


class Refusal(Wire):
    """A write that failed, how often in a row, and when it is tried again (S21).

    Kept with the component, so that an agent that takes over does not begin again at once; a new declaration, a
    repeated delete and a Force Push clear it. ``failed``: the component is ``Failed`` until a try goes through.
    ``since``: the first of those times. ``blocked``: something that is not part of the deletion is in its way (C8).
    ``until`` None: it is not tried again by itself (a Force Push is used up). ``entry``, ``digest``: the journal entry
    that the next equal refusal of the same step is counted in, and by what it is recognised as equal.
    """

    verb: str
    message: str
    since: datetime
    times: int = 1
    until: datetime | None = None
    failed: bool = True
    blocked: bool = False
    entry: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Carried:
    """The fields that agents are sent and publish in the same form.

    ``established``: a resource was sighted or may have been created under the component's identity; until that ends,
    the identity cannot move (S18). ``incarnation``: of the resource published, see ``Sighting``. ``waits_for``: ids of
    components of the same LiveSystem that must come first (C8). ``setbacks``: when somebody set values of ours back,
    by parameter (S27). ``stuck``: it makes no progress until a person acts, so a mutation does not wait for it (C8).
    ``refusal``: the write that failed last, until one goes through or nothing is left to write (S21).
    ``restored``: all this comes from a backup: what would change is shown for one cycle before it is written (C9).
    ``secrets``: where values of secrets stand, by path; of parameters that the cloud never returns, the keyed digest of
    what was written (A8). ``changed_by``: what was changed outside of Fractal Cloud, the newest first, and by whom.
    ``found``: what its lookups found (C12). ``generated``: which secrets were made for it, as component and
    parameter; after a question mark those that are about to be made (A8).
    """

    __pydantic_config__: ClassVar[ConfigDict] = Wire.model_config

    stance: Stance = Stance.NONE
    status: Status = Status.INSTANTIATING
    message: str = ""
    owner: str | None = None
    resource_id: str | None = None
    incarnation: str = ""
    output_fields: Mapping[str, Any] = field(default_factory=dict)
    observed_generation: int = 0
    established: bool = False
    intent: Intent | None = None
    waits_for: tuple[str, ...] = ()
    setbacks: tuple[Setback, ...] = ()
    stuck: bool = False
    refusal: Refusal | None = None
    restored: bool = False
    links: LinkStates = NO_LINKS
    secrets: Mapping[str, str] = field(default_factory=dict)
    changed_by: tuple[ChangedBy, ...] = ()
    found: tuple[Found, ...] = ()
    generated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(_Carried):
    """The observed half as agents and rules have it: everything that an agent needs after a restart.

    ``absent_since``: when the absence that still stands was published. ``noticed_since``: when what would change was
    first published (S12a).
    """

    absent_since: datetime | None = None
    noticed_since: datetime | None = None
    override: Override | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedReport(_Carried):
    """The observed half as an agent publishes it: whole, because something in it changed.

    ``absent`` and ``noticed`` are stamped with the time of publication by the control plane: where the flag is set
    and no time stands yet, the time of this report; where it is not set, none. The same holds for ``overridden``.
    """

    stance: Stance
    status: Status
    absent: bool = False
    noticed: bool = False
    overridden: bool = False
    override_by: str | None = None
    override_reason: str | None = None
    override_until: datetime | None = None
    readopted_by: str | None = None


def _document(value: Wire | None) -> Json | None:
    return None if value is None else value.to_json()


def _documents(values: tuple[Wire, ...]) -> list[Json] | None:
    return [value.to_json() for value in values] or None


_STORED: Final = "stored"
_EMPTY: Final = "empty"
_TEXTS: Final[Json] = {_STORED: lambda found: list(found) or None, _EMPTY: []}
_VALUE: Final = {_STORED: operator.attrgetter("value")}
_LIST: Final = {_STORED: list}
_DOCUMENT: Final = {_STORED: _document}
_DOCUMENTS: Final[Json] = {_STORED: _documents, _EMPTY: []}
_MAPPING: Final[Json] = {_STORED: lambda found: dict(found) or None, _EMPTY: {}}
_LINKS: Final[Json] = {_STORED: _document, _EMPTY: NO_LINKS.to_json()}


@dataclass
class ObservedColumns:
    """The observed half as it is stored: columns of plain values and JSON documents, named as the fields above.

    Its annotations are the columns' types, and ``| None`` makes one nullable. The metadata of a field says how a value
    is stored, and what is sent to agents where nothing is; without metadata, a value is stored and sent as it is.
    """

    __slots__ = ()

    stance: str = field(default=Stance.NONE.value, metadata=_VALUE)
    status: str = field(default=Status.INSTANTIATING.value, metadata=_VALUE)
    message: str = ""
    owner: str | None = None
    resource_id: str | None = None
    incarnation: str = ""
    output_fields: Json = field(default_factory=dict)
    observed_generation: int = 0
    established: bool = False
    absent_since: datetime | None = None
    noticed_since: datetime | None = None
    intent: Json | None = field(default=None, metadata=_DOCUMENT)
    override: Json | None = None
    waits_for: list[str] = field(default_factory=list, metadata=_LIST)
    setbacks: list[Json] | None = field(default=None, metadata=_DOCUMENTS)
    stuck: bool = False
    refusal: Json | None = field(default=None, metadata=_DOCUMENT)
    restored: bool = False
    links: Json = field(default_factory=dict, metadata=_LINKS)
    secrets: Json | None = field(default=None, metadata=_MAPPING)
    changed_by: list[Json] | None = field(default=None, metadata=_DOCUMENTS)
    found: list[Json] | None = field(default=None, metadata=_DOCUMENTS)
    generated: list[str] | None = field(default=None, metadata=_TEXTS)


STAMPED: Final = {"absent_since": "absent", "noticed_since": "noticed"}
"""The times that the control plane stamps, each with the flag by which an agent publishes it."""

BEGUN_ANEW: Final = ("refusal", "setbacks")
"""Counted attempts: a new declaration, a repeated delete and an operator's request begin them anew (S21, S27)."""

OBSERVED: Final = tuple(item.name for item in fields(ObservedColumns))
"""The names of all columns of the observed half."""


def _as_it_is(value: Any) -> Any:
    return value


_CARRIED_NAMES: Final = frozenset(item.name for item in fields(_Carried))
CARRIED: Final[Mapping[str, Callable[[Any], Any]]] = {
    item.name: item.metadata.get(_STORED, _as_it_is) for item in fields(ObservedColumns) if item.name in _CARRIED_NAMES
}
"""The columns that a report fills by itself, each with the function that turns a reported value into a stored one."""

_ALIASES: Final = tuple(map(to_camel, OBSERVED))
_SENT_IF_EMPTY: Final = {
    to_camel(item.name): item.metadata[_EMPTY] for item in fields(ObservedColumns) if _EMPTY in item.metadata
}
_columns: Final = operator.attrgetter(*OBSERVED)
_carried: Final = operator.attrgetter(*CARRIED)


def blank_columns() -> Json:
    """Return the columns of a component of which nothing was observed yet."""
    return {
        item.name: item.default if item.default_factory is MISSING else item.default_factory()
        for item in fields(ObservedColumns)
    }


def to_wire(columns: ObservedColumns) -> Json:
    """Return the JSON form of ``Observed`` for a row, without parsing what is stored."""
    sent = dict(zip(_ALIASES, _columns(columns), strict=True))
    for alias, empty in _SENT_IF_EMPTY.items():
        sent[alias] = sent[alias] or empty
    return sent


def to_report(memory: Observed) -> Json:
    """Return the fields of ``ObservedReport`` for what is remembered."""
    override = memory.override
    reported: Json = dict(zip(CARRIED, _carried(memory), strict=True))
    for since, flag in STAMPED.items():
        reported[flag] = getattr(memory, since) is not None
    if override is not None:
        reported |= {
            "overridden": True,
            "override_by": override.by,
            "override_reason": override.reason,
            "override_until": override.until,
            "readopted_by": override.readopted_by,
        }
    return reported
