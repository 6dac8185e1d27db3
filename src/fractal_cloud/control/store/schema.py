"""Every table of the control plane. What a column means is said here; how it changes stands with its noun."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from fractal_cloud.control.store.driver import SEQUENCE_NUMBER, UtcTime, page_fill, partial_index, prefix_index
from fractal_cloud.model.observed import ObservedColumns
from fractal_cloud.model.status import Status

metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


UNSETTLED: Final = (
    "(status NOT IN ('Active', 'ExternallyManaged', 'ManualOverride', 'Deleted')"
    " OR (deleting AND status <> 'Deleted') OR (NOT deleting AND observed_generation < generation))"
)
"""Components that a mutation still waits for, as ``Progress.is_settled`` states it."""
NOT_OVERDUE: Final = "override IS NOT NULL AND NOT overdue"
"""Overrides whose date has not passed, or that have none."""
OVERRIDDEN: Final = "override IS NOT NULL"
"""Components that somebody took over from the agent."""
STATUS_EVENTS: Final = "kind = 'StatusChanged'"
"""Events of a component's status."""
REQUESTED: Final = "request IS NOT NULL"
"""Components for which an operator asked for something that no agent has used up yet."""
UNREAD: Final = "unread"
"""Components that were not read for two cycles though their scope was, or that are in no scope (C11)."""
STALE: Final = "stale_since IS NOT NULL"
"""Scopes that were not read for two cycles (C11)."""


def _text(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Text, nullable=nullable)


def _json(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, JSON(none_as_null=True), nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, UtcTime, nullable=nullable)


def _count(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False, default=0)


def _flag(name: str) -> Column[Any]:
    return Column(name, Boolean, nullable=False, default=False)


_Column = Callable[..., Column[Any]]
_COLUMN: Final[Mapping[object, _Column]] = {
    str: _text,
    int: _count,
    bool: _flag,
    datetime: _time,
    dict: _json,
    list: _json,
}
"""How the types of ``ObservedColumns`` are stored."""


def _observed() -> list[Column[Any]]:
    """Make the columns of the observed half from their definition."""
    made = []
    for name, hint in get_type_hints(ObservedColumns).items():
        is_nullable = isinstance(hint, UnionType)
        kind = get_args(hint)[0] if is_nullable else hint
        column = _COLUMN[get_origin(kind) or kind]
        made.append(column(name, nullable=True) if is_nullable else column(name))
    return made


# ``in_recovery``: the database was restored from a backup, and nothing is written for the LiveSystem until it is
# deployed again or confirmed (C9); ``recovery_plan``: the fingerprint of what was last shown to whoever may confirm it.
# From ``status`` on: what ``summaries`` keeps of its components. ``types``, ``providers``, ``realms``, ``owners`` are
# lists with a line break before and after each; ``realms``: ids and names, ``owners``: without the LiveSystem itself.
live_systems: Final = Table(
    "live_systems",
    metadata,
    Column("id", Text, primary_key=True),
    _text("environment"),
    _text("description"),
    _text("readoption"),
    Column("tags", JSON(none_as_null=True), nullable=False, default={}),
    _count("generation"),
    _time("deployed_at"),
    _flag("deleting"),
    _text("mutation_id"),
    _flag("in_recovery"),
    _json("recovery_plan", nullable=True),
    Column("status", Text, nullable=False, default=Status.ACTIVE.value),
    Column("counts", JSON(none_as_null=True), nullable=False, default={}),
    _count("overrides"),
    _count("overdue"),
    _count("drifted"),
    _time("oldest_override", nullable=True),
    _time("last_updated"),
    Column("types", Text, nullable=False, default=""),
    Column("providers", Text, nullable=False, default=""),
    Column("realms", Text, nullable=False, default=""),
    Column("owners", Text, nullable=False, default=""),
    # No index on what reports change, as with components.
    **page_fill(70),
)

# How many components of a LiveSystem are in each scope.
live_system_scopes: Final = Table(
    "live_system_scopes",
    metadata,
    Column("live_system_id", Text, ForeignKey("live_systems.id", ondelete="CASCADE"), primary_key=True),
    Column("scope_key", Text, primary_key=True),
    _count("components"),
    Index("ix_live_system_scopes_scope_key", "scope_key"),
)

# One row per component. ``uid`` is what agents know it by: it is given anew when a deploy moves an identity that was
# not established, so that a report about the old identity cannot land on the new one.
# ``dealt_generation``: the newest generation an agent has reported on. ``work_version``: the version of its scope in
# which its agent last received anything of it; ``declared_version``: in which the desired half last changed.
# ``unread``: it was not read for two cycles though its scope was, or it is in no scope; see ``store.staleness``.
# ``bound``, ``left_dependents``: of one that is being deleted, see ``WorkComponent``. The observed half is explained
# where it is defined, in ``model.observed``.
components: Final = Table(
    "components",
    metadata,
    Column("uid", Text, primary_key=True),
    Column("live_system_id", Text, ForeignKey("live_systems.id", ondelete="CASCADE"), nullable=False),
    _text("component_id"),
    _count("position"),
    _text("type"),
    _text("provider"),
    _text("environment"),
    _json("declaration"),
    _count("generation"),
    _count("dealt_generation"),
    _flag("deleting"),
    _json("bound", nullable=True),
    _json("left_dependents", nullable=True),
    _json("request", nullable=True),
    # the identity it is looked for under, and the one its declaration says
    _text("place"),
    _text("name"),
    _text("parent"),
    _text("declared_place"),
    _text("declared_name"),
    _text("declared_parent"),
    # what declarations call the account (or the like), and the one it really is
    _text("realm_name"),
    _text("declared_realm_name"),
    _text("realm", nullable=True),
    _text("scope_key", nullable=True),
    _text("identity_key", nullable=True),
    *_observed(),
    _flag("overdue"),
    _flag("unread"),
    _time("last_updated"),
    _count("work_version"),
    _count("declared_version"),
    UniqueConstraint("live_system_id", "component_id"),
    # What reports and news change is in no index, and pages have free space: then none of these has to be updated.
    # With the environment: of every scope it is asked which ones are in it (A1).
    Index("ix_components_scope_key_environment", "scope_key", "environment"),
    Index("ix_components_identity_key", "identity_key"),
    # Who serves what is asked of all components at once: the index alone answers it.
    Index("ix_components_served", "environment", "provider", "realm_name", "realm", "type"),
    partial_index("ix_components_overridden", "live_system_id", "component_id", where=OVERRIDDEN),
    prefix_index("ix_components_component_id", "component_id", "live_system_id"),
    partial_index("ix_components_requested", "uid", where=REQUESTED),
    partial_index("ix_components_unread", "scope_key", "type", where=UNREAD),
    **page_fill(70),
)

# Who refers to whom inside one LiveSystem: ``kind`` is "dependency" or "link".
refers: Final = Table(
    "refers",
    metadata,
    Column("live_system_id", Text, ForeignKey("live_systems.id", ondelete="CASCADE"), primary_key=True),
    Column("source", Text, primary_key=True),
    Column("target", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    # Whole rows: without statistics SQLite would rather walk all of a LiveSystem's references by the primary key.
    Index("ix_refers_live_system_id_target_kind_source", "live_system_id", "target", "kind", "source"),
)

# What is remembered under a natural identity, whoever declares it.
resources: Final = Table(
    "resources",
    metadata,
    Column("identity_key", Text, primary_key=True),
    _text("scope_key"),
    _text("owner", nullable=True),
    _text("resource_id", nullable=True),
    _text("left_by", nullable=True),
    _flag("overridden"),
    _json("transfer", nullable=True),
    _time("updated_at"),
    Index("ix_resources_scope_key", "scope_key"),
    prefix_index("ix_resources_resource_id", "resource_id"),
)

# Rows are never deleted: a fencing token that began again would let a stale holder in.
scopes: Final = Table(
    "scopes",
    metadata,
    Column("key", Text, primary_key=True),
    _text("provider"),
    _text("realm"),
    _text("place"),
    _text("holder", nullable=True),
    _count("token"),
    _count("version"),
    _count("wake_seq"),
    Index("ix_scopes_provider_realm", "provider", "realm"),
    Index("ix_scopes_holder", "holder"),
)

# What is remembered of reads beside the holder's own row. ``read_at`` and ``unread``: what the
# last holder said when it lost the scope; ``waiting_since``: since when a scope that nobody ever read has components;
# ``stale_since``: when it was found that nobody had read it for two cycles, until somebody does (C11).
scope_reads: Final = Table(
    "scope_reads",
    metadata,
    Column("scope_key", Text, primary_key=True),
    _time("read_at", nullable=True),
    Column("unread", JSON(none_as_null=True), nullable=False, default={}),
    _time("waiting_since", nullable=True),
    _time("stale_since", nullable=True),
    partial_index("ix_scope_reads_stale", "scope_key", where=STALE),
)

# Components that left a scope, until its holder has heard of it.
departures: Final = Table(
    "departures",
    metadata,
    Column("scope_key", Text, primary_key=True),
    Column("uid", Text, primary_key=True),
    _count("version"),
)

# ``reaches``: what it may serve by its token, and was let in at; ``waiting``: what it reaches besides, and waits for
# approval of (A2); ``others``: what it reaches by a name that is bound to another realm, until that is accepted (A1).
# ``has_news``: it was approved or accepted since, and is to register again. ``token_name``: of its token, which
# outlives rotation; ``granted``: the digest of what that was bound to when the agent registered; ``environments``: the
# patterns of environments among it. ``key_is_news``: whoever seals for its sources has not heard of its key yet;
# ``key_withdrawn``: it is to make another. ``read_at``, ``cycles``: by scope, when it last read it, and how its last
# cycle went (``ScopeCycle``).
agents: Final = Table(
    "agents",
    metadata,
    Column("id", Text, primary_key=True),
    _text("environment"),
    _text("token_id"),
    Column("token_name", Text, nullable=False, default=""),
    Column("granted", Text, nullable=False, default=""),
    Column("environments", JSON(none_as_null=True), nullable=False, default=[]),
    _json("reaches"),
    Column("waiting", JSON(none_as_null=True), nullable=False, default=[]),
    Column("others", JSON(none_as_null=True), nullable=False, default=[]),
    _flag("has_news"),
    _json("types"),
    Column("families", JSON(none_as_null=True), nullable=False, default=[]),
    Column("cycle_seconds", Float, nullable=False),
    _text("version"),
    Column("public_key", Text, nullable=False, default=""),
    _flag("key_is_news"),
    _flag("key_withdrawn"),
    _time("registered_at", nullable=True),
    _time("last_seen"),
    _time("deadline"),
    _json("read_at"),
    _json("swept_since"),
    Column("cycles", JSON(none_as_null=True), nullable=False, default={}),
)

# What an agent reaches, as its row says it: here it is found by realm.
agent_reaches: Final = Table(
    "agent_reaches",
    metadata,
    Column("agent_id", Text, ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("realm", Text, primary_key=True),
    Index("ix_agent_reaches_provider_realm", "provider", "realm"),
)

# ``approve_agents``: whoever is new at its realms waits until an operator has approved it (A2).
environments: Final = Table(
    "environments",
    metadata,
    Column("name", Text, primary_key=True),
    _flag("approve_agents"),
)

# Every agent that was ever seen at a realm, by the name of its token and its sealing key. ``approved_at``: none while
# it waits (A2). ``agent_id``: what it was called then.
approvals: Final = Table(
    "approvals",
    metadata,
    Column("environment", Text, primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("realm", Text, primary_key=True),
    Column("token_name", Text, primary_key=True),
    Column("public_key", Text, primary_key=True),
    _text("agent_id"),
    _time("first_at"),
    _time("approved_at", nullable=True),
    Column("approved_by", Text, nullable=False, default=""),
    Index("ix_approvals_public_key", "public_key"),
)

# Sealing keys to which nothing is sealed any more; what was is revoked and provided anew (A5).
withdrawn_keys: Final = Table(
    "withdrawn_keys",
    metadata,
    Column("fingerprint", Text, primary_key=True),
    Column("public_key", Text, nullable=False, unique=True),
    _time("at"),
    _text("by"),
    _text("reason"),
)

# Which realm each name is bound to, since when, and the other one that was reached by it last, by which agent (S26).
# ``alias``: another name of the realm, said by whoever bound this one; empty where there was none (A1).
reaches: Final = Table(
    "reaches",
    metadata,
    Column("environment", Text, primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    _text("realm"),
    _time("first_at", nullable=True),
    _text("other", nullable=True),
    _text("other_by", nullable=True),
    _time("other_at", nullable=True),
    Column("alias", Text, nullable=False, default=""),
    Index("ix_reaches_provider_realm", "provider", "realm"),
)

# ``linked`` and ``hidden``: of the facts, what every report needs: the parameters that only links set, and those that
# may hold secrets (A8). ``owner``: the name of the token that may change them (A4); empty for a package that is
# installed here, none where nobody is known.
types: Final = Table(
    "types",
    metadata,
    Column("type", Text, primary_key=True),
    _text("provider"),
    _json("facts"),
    _json("linked", nullable=True),
    _json("hidden", nullable=True),
    _text("owner", nullable=True),
)

mutations: Final = Table(
    "mutations",
    metadata,
    Column("id", Text, primary_key=True),
    _text("live_system_id"),
    _count("generation"),
    _text("kind"),
    _text("status"),
    _text("by"),
    _time("created_at"),
    _time("updated_at"),
    _flag("frozen"),
    Index("ix_mutations_live_system_id_created_at", "live_system_id", "created_at"),
)

# Components as a mutation last saw them: all of a frozen one's, and of the newest those that are gone.
mutation_components: Final = Table(
    "mutation_components",
    metadata,
    Column("mutation_id", Text, ForeignKey("mutations.id", ondelete="CASCADE"), primary_key=True),
    Column("component_id", Text, primary_key=True),
    _text("type"),
    _text("status"),
    _text("message"),
    _json("output_fields"),
    _count("generation"),
    _count("observed_generation"),
    _json("waits_for"),
    _flag("stuck"),
    _json("links"),
    _text("resource_id", nullable=True),
)

# ``id``: drawn by chance: an event of the same number in a database that was restored since has another one (C9).
events: Final = Table(
    "events",
    metadata,
    Column("seq", SEQUENCE_NUMBER, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, default=""),
    _time("at"),
    _text("live_system_id"),
    _text("component_id", nullable=True),
    _text("kind"),
    _text("by"),
    _text("message"),
    _json("before", nullable=True),
    _json("after", nullable=True),
    Index("ix_events_live_system_id_seq", "live_system_id", "seq"),
    # Whether a component's status has changed since: what is asked of an event before it is forgotten.
    partial_index("ix_events_status", "live_system_id", "component_id", "seq", where=STATUS_EVENTS),
)

journal: Final = Table(
    "journal",
    metadata,
    Column("id", Text, primary_key=True),
    _text("uid"),
    _text("live_system_id"),
    _text("component_id"),
    _text("agent_id"),
    _count("generation"),
    _text("verb"),
    _text("reason"),
    _text("resource_id", nullable=True),
    _json("before"),
    _json("after"),
    _json("tags"),
    _json("request_ids"),
    _text("outcome", nullable=True),
    _text("error"),
    _time("at"),
    _time("finished_at", nullable=True),
    # Equal refusals of one step are one row: how many there were, and when the last was (S21).
    Column("count", BigInteger, nullable=False, default=1),
    _time("last_at", nullable=True),
    Index("ix_journal_live_system_id_component_id_at", "live_system_id", "component_id", "at"),
    Index("ix_journal_at", "at"),
    partial_index("ix_journal_open", "uid", where="outcome IS NULL"),
)

# One task per scope of a plan somebody waits for. ``environments``: those of all that is in the task (A1);
# ``handed_to``: the ids of the tokens whose agents were asked, who alone may answer (A3).
plans: Final = Table(
    "plans",
    metadata,
    Column("id", Text, primary_key=True),
    _text("plan_id"),
    _text("scope_key"),
    _text("provider"),
    _text("realm"),
    _json("environments"),
    _json("task"),
    _json("result", nullable=True),
    _time("created_at"),
    _time("handed_at", nullable=True),
    Column("handed_to", JSON(none_as_null=True), nullable=False, default=[]),
    Index("ix_plans_plan_id", "plan_id"),
    Index("ix_plans_provider_realm", "provider", "realm"),
)

# ``hash`` is all that is kept of a token; the admin's own stands in no table. ``waits``: it stood in a backup, and is
# refused until an admin has confirmed it (C9).
tokens: Final = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),
    _text("name"),
    _text("role"),
    _json("providers"),
    _json("environments"),
    _json("realms"),
    _time("created_at"),
    _text("created_by"),
    _time("expires_at", nullable=True),
    _time("last_used_at", nullable=True),
    _time("refused_at", nullable=True),
    _flag("waits"),
)

# Who is logged in at the dashboard. ``id_hash``: of the name that the browser keeps; ``word``: makes a form theirs.
sessions: Final = Table(
    "sessions",
    metadata,
    Column("id_hash", Text, primary_key=True),
    _text("token_hash"),
    _text("word"),
    _text("by"),
    _time("began_at"),
    _time("used_at"),
)

# The environments in which a LiveSystem of an id was ever deployed: what happened to one that is gone is shown only to
# those who may see all of them.
live_system_environments: Final = Table(
    "live_system_environments",
    metadata,
    Column("live_system_id", Text, primary_key=True),
    Column("environment", Text, primary_key=True),
)

# One row for the first start, and one for every recovery (C9). ``first_event``: the number after which it began.
# ``as_of``: what was deployed up to then was in the backup; empty where that is not known, and all of it was.
# ``proof_key``, of the first row alone: by which the database recognises what it said of itself, also in a backup.
incarnations: Final = Table(
    "incarnations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("number", Integer, nullable=False, unique=True),
    _time("began_at"),
    _text("by"),
    _text("reason"),
    _count("first_event"),
    _time("as_of", nullable=True),
    _text("proof_key", nullable=True),
)

# Where notifications are sent, by name. ``sealed``: the address and the secret, which only a key outside the database
# opens; ``address``: what of it is shown. ``after``: only events of a higher number are for it. ``claimed_by``,
# ``claimed_until``: the process that sends to it right now. ``failures``: in a row, since ``failing_since``, with
# ``last_error``; nothing is sent before ``next_try``. ``test``: how the last test went.
subscriptions: Final = Table(
    "subscriptions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    _text("address"),
    _text("sealed"),
    _text("format"),
    _flag("signed"),
    _json("kinds"),
    _json("environments"),
    _json("live_systems"),
    _count("after"),
    _time("created_at"),
    _text("created_by"),
    _text("claimed_by", nullable=True),
    _time("claimed_until", nullable=True),
    _count("failures"),
    _time("failing_since", nullable=True),
    _time("next_try", nullable=True),
    Column("last_error", Text, nullable=False, default=""),
    _time("last_sent_at", nullable=True),
    _count("sent"),
    _count("given_up"),
    _json("test", nullable=True),
)

# What is still to be sent, oldest first. ``items``: the first of the ``count`` things it names, all of one kind and of
# one LiveSystem, but for those of an overflow (an empty ``live_system_id``). ``tried``: it may have been sent, so it
# does not change any more.
notifications: Final = Table(
    "notifications",
    metadata,
    Column("id", Text, primary_key=True),
    Column("subscription_id", Text, ForeignKey("subscriptions.id", ondelete="CASCADE"), nullable=False),
    _text("kind"),
    _text("live_system_id"),
    _json("items"),
    _count("count"),
    _count("first_event"),
    _time("created_at"),
    _time("due_at"),
    _flag("tried"),
    _count("attempts"),
    Index("ix_notifications_subscription_id_first_event", "subscription_id", "first_event"),
)

# The last notification of each topic, as long as the same is not sent again (``rules.notify``).
notified_topics: Final = Table(
    "notified_topics",
    metadata,
    Column("subscription_id", Text, ForeignKey("subscriptions.id", ondelete="CASCADE"), primary_key=True),
    Column("topic", Text, primary_key=True),
    _text("state"),
    _time("at"),
    Index("ix_notified_topics_at", "at"),
)

# Numbers that must grow in the order of commits; taken last in a transaction, so that nobody waits long for one.
counters: Final = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    _count("value"),
)
