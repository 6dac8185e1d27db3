"""The small door between the reconciler and the clouds: what every offer must be able to do, and nothing more.

An offer observes and carries out single calls. It never decides, never waits, never keeps state, and never touches a
tag that is neither one of the three nor among those that it is given as declared.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, Generic, TypeVar

from fractal_cloud.model.catalog import Entry, GlassCommands, TypeFacts
from fractal_cloud.model.component import COMPONENT_FIELDS, Component
from fractal_cloud.model.errors import CloudError, Conflict
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags
from fractal_cloud.model.wire import Host
from fractal_cloud.model.wording import Path
from fractal_cloud.offers.call_context import CallContext, calling_as
from fractal_cloud.offers.cluster_access import Access, Addresses
from fractal_cloud.offers.history import Asked, Author, Record
from fractal_cloud.offers.seen_pages import SeenPages

C = TypeVar("C", bound=Component)
K = TypeVar("K", bound="Cloud")


class Recognition(StrEnum):
    """How a creation whose answer was lost is recognised, so that nothing is made twice (S17)."""

    UNIQUE_NAME = "unique name"
    TOKEN = "client token"
    WINDOW = "visibility window"


class Cloud(ABC):
    """A session at one provider, bound to one scope. Subclasses import the vendor's SDK in their constructor only."""

    scope: Scope

    def calling_as(self, act: CallContext) -> AbstractContextManager[CallContext]:
        """Sign every call made inside with who it is for and why (in the user agent), and collect request ids."""
        return calling_as(act)


class Session(ABC):
    """A connection to one provider with the credentials of this process."""

    @abstractmethod
    def realms(self) -> Mapping[str, str]:
        """The accounts (or the like) really reached, by the names declarations call them; asked of the cloud.

        The empty name is the one that is meant where a declaration names none. Raises where none is reached, unless the
        session accepts hosts.
        """

    def missing(self) -> Mapping[str, str]:
        """The names that could not be reached when ``realms`` was last asked, each with the reason; tried again."""
        return {}

    @property
    def accepts_hosts(self) -> bool:
        """Whether realms of this provider may be components that are declared (a cluster)."""
        return False

    def set_hosts(self, hosts: Sequence[Host]) -> None:
        """These are all hosts that are declared: ``realms`` and ``missing`` speak of them, too, by their names."""
        del hosts

    @abstractmethod
    def at(self, scope: Scope) -> Cloud:
        """The cloud of one scope."""

    def realm_now(self, scope: Scope) -> str:
        """The realm that calls for this scope really reach at this moment, in at most one call (S26).

        It is asked in every cycle that would decide or write anything. Another one than the scope's means that nothing
        of what was read counts. Raises where the cloud does not say. This default asks ``realms`` again: override it
        where that is more than one call.
        """
        found = set(self.realms().values())
        return scope.realm if scope.realm in found else ", ".join(sorted(found))

    def watch(self, scope: Scope, offers: Iterable[AnyOffer], wake: Callable[[], None]) -> Callable[[], None] | None:
        """Call ``wake`` soon after something of these types changed in a scope, from any thread, until it is stopped.

        Returns what stops it, or None where the provider cannot do this. It may miss changes and wake for nothing:
        a cycle is only begun earlier for it, never left out.
        """
        del scope, offers, wake
        return None


@dataclass(frozen=True, slots=True)
class RealmsInAFile:
    """How a provider is reached by a file of realms: the model of one entry, and the session of some."""

    entry: Callable[[], type[RealmEntry]]
    connect: Callable[[Sequence[Any]], Session]


@dataclass(frozen=True, slots=True)
class Provider:
    """One cloud: its name, and how to connect to it.

    ``packages``: what must be importable for that. ``is_at_hand``: whether this machine seems to have credentials
    for it; asked only to guess what `fractal up` should serve, and without calling anybody. ``realms``: how a file of
    realms says what to connect to; None where there is no need to choose.
    """

    name: str
    title: str
    connect: Callable[[], Session]
    packages: tuple[str, ...] = ()
    is_at_hand: Callable[[], bool] = bool
    realms: RealmsInAFile | None = None

    def connect_to(self, entries: Sequence[RealmEntry]) -> Session:
        """A session that reaches these realms; without any, what its credentials reach."""
        if not entries or self.realms is None:
            return self.connect()
        return self.realms.connect(entries)

    def can_connect(self) -> bool:
        """Whether the packages it needs are installed."""
        return all(_is_installed(package) for package in self.packages)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it would lie in
        return False


@dataclass(frozen=True, slots=True)
class DeclaredResource:
    """One declared component of the type that is read: what is known of its resource before the cloud is asked.

    ``name``: of a part, the values of its key as far as they are known. ``resource_id``: the last one published.
    ``parameters``: as declared, what references stand for in their places; those that are not known yet are left out.
    """

    name: str
    resource_id: str | None
    parent_id: str | None
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """What to list: the names declared in the scope, and the cloud ids of their parents.

    An offer that can list everything at once ignores them; one that can only ask by name or by parent uses them.
    ``seen_pages``: the pages of the last read, for a session that detects unchanged pages. ``live_systems``: those that
    declare in the scope, for a provider that can store an owner only as a hash. ``declared``: the components, for an
    offer that ``reads_what_is_declared``.
    """

    names: frozenset[str] = frozenset()
    parent_ids: frozenset[str] = frozenset()
    seen_pages: SeenPages = field(default_factory=SeenPages, compare=False)
    live_systems: frozenset[str] = frozenset()
    declared: tuple[DeclaredResource, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class LinkFields:
    """What the outbound half of one link published at this component: its link type, its target, and the keys (L3)."""

    link_type: str
    target_id: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted(Generic[C]):
    """A declared component ready for the cloud: references are resolved to the cloud's own ids.

    ``token`` is the same for every try of one creation and different for every other: the idempotency token.
    ``ignored``: the parameters in `ignoreDrift`: set at creation, and never written afterwards, also not as a means to
    change another one (G15). ``tags``: the user's own tags; those that are written stand beside the protocol's in
    ``create`` and in ``write_tags``, and what a resource brings with it (its volumes) may bear them too. ``secrets``:
    where values of secrets stand in the component, by path; they are for this one call, and for no message or log (A8).
    """

    component: C
    live_system_id: str
    parent_id: str | None = None
    token: str = ""
    ignored: frozenset[str] = frozenset()
    secrets: frozenset[Path] = frozenset()
    tags: Mapping[str, str] = field(default_factory=dict)

    def may_stop_for(self, parameter: str, name: str) -> None:
        """Raise ``Conflict`` where a machine would have to be stopped for a parameter, and its run state is ignored."""
        if "state" in self.ignored:
            raise Conflict(
                f"{parameter} of {name!r} changes only while it is stopped, and its state is in ignoreDrift: "
                "stop it yourself, and it is changed; or take state out of ignoreDrift"
            )


class Offer(ABC, Generic[C, K]):
    """How the cloud is read and changed for one component type.

    Every verb makes calls and returns; none sleeps, polls or retries on its own account. Errors are those of
    ``fractal_cloud.model.errors``. ``short_name``: the SDK's name of the type, where that does
    not follow from its class's. ``title`` and ``guard`` go into the reference page, and ``unique_in``, which says
    where a name is unique that needs neither a place nor a parent. ``service`` is the vendor's service whose budget of
    calls this type shares with others (S23). ``rights``: what the agent must be allowed to do for this type, in the
    provider's own terms; `fractal agent policy` prints them. ``wired_by_declarer``, ``tags_frozen``, ``vendor_type``,
    ``is_part``, ``in_scope_of_parent``, ``key``, ``creates_once`` and ``tag_rules``: see ``TypeFacts``.
    ``blocks_parent_deletion``: the cloud does not delete the parent of such a part while the part is there.
    ``unguarded``: which of ``update``, ``tag`` and ``delete`` carry no precondition though a sighting has a revision; a
    race lost there is reported (S16).

    ``reads_by_parent``: it can list only what lies in given parents, so it is read after all others.
    ``reads_what_is_declared``: nothing lists all of this type with all there is to say of it: what is declared is read
    one by one, by what is known of it (``Query.declared``).
    ``swept_in_bulk``: those of the swept parameters that are read of many resources in one call, though not in the list
    of the resources themselves: they are read in every cycle for all that declare them (``sweep_in_bulk``).

    ``unlisted``: why not all of this type can be listed, in words that follow its name; empty where it can.

    Four facts say what an id proves, for deletions and for what vanished (O17, O19, S19):

    ``ids_return``: a later resource may bear the same id, and nothing the cloud reports distinguishes the two. Where
    this is False, either the id itself never returns, or ``Sighting.incarnation`` distinguishes them.
    ``rename_changes_id``: people can rename or move a resource so that its id changes; ``read`` by the old id then
    finds nothing, though the resource exists.
    ``not_found_may_mean_denied``: the cloud answers «not found» also where the credentials may not see the resource.
    ``read_needs_parent``: the id is an address inside the parent: without the parent nothing can be read there.

    ``record``: the cloud's own record of who changes what, for types whose offer has ``changed_by``.

    ``cluster_addresses``: of a cluster in which other components live, where the vendor's clusters answer: an agent
    sends its credentials nowhere else (A6). Such an offer has ``enter``.
    """

    component: ClassVar[type[Component]]
    title: ClassVar[str]
    short_name: ClassVar[str] = ""
    unique_in: ClassVar[str] = "all regions and accounts"
    service: ClassVar[str] = ""
    rights: ClassVar[tuple[str, ...]] = ()
    place: ClassVar[tuple[str, ...]] = ()
    parent: ClassVar[str | None] = None
    realm: ClassVar[str | None] = None
    taggable: ClassVar[bool] = True
    tags_frozen: ClassVar[bool] = False
    owner_moves: ClassVar[bool] = True
    wired_by_declarer: ClassVar[bool] = False
    holds_data: ClassVar[bool] = False
    vendor_type: ClassVar[str] = ""
    is_part: ClassVar[bool] = False
    in_scope_of_parent: ClassVar[bool] = False
    key: ClassVar[tuple[str, ...]] = ()
    blocks_parent_deletion: ClassVar[bool] = False
    creates_once: ClassVar[bool] = False
    tag_rules: ClassVar[TagRules] = TagRules()
    recognition: ClassVar[Recognition] = Recognition.UNIQUE_NAME
    reads_by_parent: ClassVar[bool] = False
    reads_what_is_declared: ClassVar[bool] = False
    swept_in_bulk: ClassVar[frozenset[str]] = frozenset()
    unlisted: ClassVar[str] = ""
    outputs: ClassVar[Mapping[str, str]] = {}
    glass: ClassVar[GlassCommands] = GlassCommands()
    entry: ClassVar[Entry] = Entry()
    guard: ClassVar[str] = "a fresh read right before the one call"
    unguarded: ClassVar[frozenset[str]] = frozenset()
    ids_return: ClassVar[bool] = False
    rename_changes_id: ClassVar[bool] = False
    not_found_may_mean_denied: ClassVar[bool] = False
    read_needs_parent: ClassVar[bool] = False
    record: ClassVar[Record | None] = None
    cluster_addresses: ClassVar[Addresses | None] = None

    @property
    def type(self) -> str:
        """The component type this offer serves."""
        return self.component.type

    @property
    def provider(self) -> str:
        """The provider this offer belongs to."""
        return self.component.provider

    def enter(self, cloud: K, name: str) -> Access | None:
        """How the cluster of that name is entered, as the cloud says it now; None where there is none (A6).

        Called by agents that reconcile what lives in it, with their own credentials of this cloud.
        """
        raise NotImplementedError(f"{self.type} is nothing to live in, or does not say how it is entered")

    @abstractmethod
    def sightings(self, cloud: K, query: Query) -> Iterable[Sighting | UnreadItem]:
        """Everything of this type in the cloud's scope: in bulk, paged, with tags and actual parameters.

        Swept parameters are left out of ``actual``. Dead remains are left out. Raises ``Unreadable`` (or another
        error of the closed set) rather than end early. One item that cannot be understood is an ``UnreadItem``:
        ``offers.items.read_each`` makes it; what is raised here makes the whole type unreadable (S24).
        """

    def sweep(self, cloud: K, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """The actual values of swept parameters of one resource: only those named (S23)."""
        raise NotImplementedError(f"{self.type} has no swept parameters, but was asked for {sorted(names)}")

    def sweep_calls(self, names: Collection[str]) -> int:
        """How many calls ``sweep`` makes for these parameters."""
        return len(names)

    def sweep_in_bulk(
        self, cloud: K, asked: Sequence[tuple[Sighting, Collection[str]]]
    ) -> Iterable[tuple[str, Mapping[str, Any] | CloudError]]:
        """The values of parameters in ``swept_in_bulk``, by id: all that are asked for, or why they cannot be read.

        One that is left out counts as unreadable (S0). What is raised is said of all.
        """
        raise NotImplementedError(f"{self.type} sweeps nothing in bulk, but was asked for {len(asked)}")

    @abstractmethod
    def read(self, cloud: K, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One resource, fresh, with the swept parameters named, and its precondition where there is one.

        It is found by its id alone, whatever its name, folder, tags or parent's name are by now; where those no longer
        fit the scope, its ``name`` says where it is. None means the cloud says that it does not exist (or only its dead
        remains do); any other answer raises.
        """

    def as_declared(self, sighting: Sighting, declared: Mapping[str, Any], published: Mapping[str, Any]) -> Sighting:
        """The same resource in the light of what one component declares of it, and of what it last published.

        For types of which a component declares a part that is found by its value (one port of several). Pure.
        """
        del declared, published
        return sighting

    @abstractmethod
    def create(self, cloud: K, wanted: Wanted[C], tags: ProtocolTags) -> Sighting:
        """Create it with the tags in the same call, the user's own among them; returns before the cloud is ready.

        ONE writing call: what the create call cannot carry is left to ``update``. Where ``tags_follow``, the tags are
        left out.
        """

    def tags_follow(self, cloud: K) -> bool:
        """Whether this cloud takes no tags in the create call: ``tag`` puts them on afterwards, at most once (S17).

        Only with a ``predicted_id``. Known without a call, and the same for as long as the session lives.
        """
        del cloud
        return False

    def has_creation_failed(self, cloud: K, token: str, resource_id: str) -> bool:
        """Whether a creation that the cloud had accepted is over and came to nothing; asked for again, it says why.

        Known without a call, from what was read.
        """
        del cloud, token, resource_id
        return False

    def why_refused(self, cloud: K, resource_id: str) -> CloudError | None:
        """Why the cloud refused a change that it had accepted, where the last read found that; said once.

        Known without a call, from what was read.
        """
        del cloud, resource_id
        return None

    def predicted_id(self, token: str) -> str | None:
        """The id of the resource that a creation with this token makes, where it is known beforehand (S17)."""
        del token
        return None

    @abstractmethod
    def update(self, cloud: K, sighting: Sighting, wanted: Wanted[C], drift: Collection[str]) -> None:
        """Make ONE writing call, the next one needed to fix the parameters in ``drift``, with the precondition.

        Nothing else is changed: where the cloud wants more to be said, what was just read is said again, never what is
        declared (G15).
        Whoever reads the resource once more before it raises ``Overtaken`` where its tags have changed since (S16).
        """

    def rehearse(self, cloud: K, wanted: Wanted[C], sighting: Sighting | None, drift: Collection[str]) -> None:
        """Ask the cloud whether it would accept a creation, or an update of what was sighted, where it can say so (C6).

        Changes nothing; raises what the write would.
        """
        del cloud, wanted, sighting, drift

    @abstractmethod
    def delete(self, cloud: K, sighting: Sighting) -> None:
        """Make ONE writing call, the next one needed to delete it; absent is success.

        Raises ``Conflict`` naming what blocks it.
        """

    @abstractmethod
    def tag(self, cloud: K, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Add or remove protocol tags in ONE writing call (never both at once); nobody else's tags are touched.

        A removal is compare-and-delete where the provider can.
        """

    def write_tags(self, cloud: K, sighting: Sighting, tags: Mapping[str, str]) -> None:
        """Write these tags of the user's own in ONE writing call, with the precondition where there is one (T1).

        Every other tag stays as it is, byte for byte. Where that takes several calls, the next one is made.
        """
        self.tag(cloud, sighting, add=ProtocolTags(declared=tags), remove=NO_TAGS)

    def transfer(self, cloud: K, sighting: Sighting, owner: str) -> None:
        """Replace the owner tag that was read in ONE writing call, with the precondition where there is one (O8).

        Only where ``owner_moves``. Nothing else is changed, and nobody else's tags are touched.
        """
        self.tag(cloud, sighting, add=ProtocolTags(owner=owner), remove=NO_TAGS)

    def linked_parameters(self, links: Sequence[LinkFields]) -> Mapping[str, Any]:
        """The values of the parameters that links set (``parameter(linked=True)``), from what the links published."""
        del links
        return {}

    def is_provider_default(self, sighting: Sighting) -> bool:
        """Whether the cloud made it by itself (a VPC's default group): it is discovered only if something names it."""
        del sighting
        return False

    def managed_elsewhere(self, sighting: Sighting) -> str:
        """What other tool manages it, so that it is not to be discovered (T7); empty where none is known."""
        del sighting
        return ""

    def changed_by(
        self, cloud: K, sighting: Sighting, wanted: Wanted[C], asked: Collection[Asked]
    ) -> Mapping[str, Author]:
        """Who changed these parameters last, as far as the cloud's ``record`` says; nobody where that is not certain.

        Asked only where there is a ``record``, and only after something was changed. Raises ``Denied`` where the agent
        may not read it, ``Throttled`` where it is to be asked later.
        """
        del cloud, sighting, wanted, asked
        return {}

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What a plan must say about correcting these parameters («stops the machine»)."""
        del drift
        return []

    def facts(self) -> TypeFacts:
        """This offer as plain data."""
        return TypeFacts(
            type=self.type,
            provider=self.provider,
            title=self.title,
            description=inspect.cleandoc(self.component.__doc__ or ""),
            parameter_schema=parameter_schema(self.component),
            outputs=dict(self.outputs),
            place=list(self.place),
            parent=self.parent,
            realm=self.realm,
            taggable=self.taggable,
            tags_frozen=self.tags_frozen,
            owner_moves=self.owner_moves and self.taggable and not self.tags_frozen,
            wired_by_declarer=self.wired_by_declarer,
            holds_data=self.holds_data,
            vendor_type=self.vendor_type,
            is_part=self.is_part,
            in_scope_of_parent=self.in_scope_of_parent,
            key=list(self.key),
            creates_once=self.creates_once,
            tag_rules=self.tag_rules,
            guard=self.guard,
            glass=self.glass,
            entry=self.entry,
        )


@cache
def parameter_schema(component: type[Component]) -> dict[str, Any]:
    """The JSON Schema of a component type's parameters, by their declared names; made once, so not to be changed."""
    schema = component.model_json_schema(by_alias=True)
    hidden = {component.model_fields[name].alias or name for name in COMPONENT_FIELDS}
    properties = {name: value for name, value in schema.get("properties", {}).items() if name not in hidden}
    required = [name for name in schema.get("required", []) if name not in hidden]
    kept = {name: schema[name] for name in ("$defs",) if name in schema}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **kept}


AnyOffer = Offer[Any, Any]
