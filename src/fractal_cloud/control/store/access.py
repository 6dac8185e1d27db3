"""What an agent may serve with its token (A1): what it says to reach is held against what the token is bound to.

A realm is covered by its id, or by the name under which it is reached. An agent may invent both, so a name counts only
as far as it is bound (``realm_bindings``): to the realm of its first contact, and only while every name of that realm,
in every environment, is covered too. Why it must be so stands in decision 0091.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Text, cast, delete, or_, select, update

from fractal_cloud.control.store import approvals, hosts, realm_bindings, scopes, tokens
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import insert_rows, pair_among
from fractal_cloud.control.store.errors import AgentRefused
from fractal_cloud.control.store.realm_bindings import Bound, Name
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.report_words import check_registration
from fractal_cloud.control.store.schema import agent_reaches, agents
from fractal_cloud.control.store.tokens import NewToken
from fractal_cloud.model.host import ANY_HOST, HOST_NAMES
from fractal_cloud.model.wire import Reach, Registration
from fractal_cloud.rules.grants import Grants

_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Access:
    """The token with which an agent speaks: its id, its name, and what it is bound to."""

    token_id: str
    token: str
    grants: Grants


@dataclass(frozen=True, slots=True)
class Said:
    """What an agent says to reach."""

    agent_id: str
    environment: str
    reaches: Sequence[Reach]


@dataclass(frozen=True, slots=True)
class Allowed:
    """What an agent may serve of what it said to reach, and what not yet: names that are bound to another realm (S26).

    ``ignored``: names that stay bound to a realm of others; what they are said to lead to now is not stored.
    ``aliases`` and ``first``: by provider and realm, another name of it, and the token that is fixed to it by its name.
    ``kept``: names that lead to a realm which another token covers and this one does not; only an operator moves them.
    """

    reaches: list[Reach]
    others: list[Reach]
    ignored: list[Reach] = field(default_factory=list)
    aliases: dict[Name, str] = field(default_factory=dict)
    first: dict[Name, str] = field(default_factory=dict)
    kept: set[Name] = field(default_factory=set)


def check(tx: Tx, access: Access, registration: Registration) -> Allowed:
    """Refuse a registration as a whole that goes beyond the token; else return what of it may be served now."""
    check_registration(registration)
    spoken_for = {reach.provider for reach in registration.reaches} | {facts.provider for facts in registration.types}
    wanted = _Wanted(access, registration, spoken_for)
    if not access.grants.is_complete:
        raise AgentRefused(
            f"token {access.token!r} was made before agents' tokens were bound to environments and realms: "
            f"replace it with `{wanted.command(access.token)}`"
        )
    beyond = sorted(provider for provider in spoken_for if not access.grants.has_provider(provider))
    if beyond:
        raise wanted.refused("provider", beyond, "start the agent with fewer providers")
    if not access.grants.has_environment(registration.environment):
        raise wanted.refused("environment", [registration.environment], "start the agent in another environment")
    said = Said(registration.agent_id, registration.environment, registration.reaches)
    return _Check(tx, access, said).allowed(wanted)


def allowed_still(tx: Tx, access: Access, said: Said) -> Allowed:
    """What an agent that registered may serve, with what its reaches are called now that clusters were declared."""
    return _Check(tx, access, said).still_allowed()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a token would have to be bound to for a registration, and how that is said."""

    access: Access
    registration: Registration
    providers: Collection[str]

    def command(self, name: str = "") -> str:
        """The command that makes such a token."""
        realms = sorted({reach.realm for reach in self.registration.reaches if reach.realm}) or ["*"]
        flags = [("--provider", one) for one in sorted(self.providers)]
        flags += [("--environment", self.registration.environment), *(("--realm", realm) for realm in realms)]
        words = ["fractal", "token", "create", "--role", "agent", *(word for flag in flags for word in flag)]
        return _short(shlex.join([*words, *(("--name", name) if name else ())]), 5 * _LONGEST)

    def refused(self, kind: str, values: Iterable[str], or_else: str) -> AgentRefused:
        """That a token is not bound to something, with the flag that would bind it."""
        named = list(values)
        listed = ", ".join(_short(repr(value)) for value in named)
        flags = " ".join(f"--{kind} {_short(shlex.quote(value))}" for value in named)
        return AgentRefused(
            f"token {self.access.token!r} is not bound to {kind} {listed}: make one with "
            f"`fractal token create --role agent … {flags}`, or {or_else}"
        )


def _short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


class _Check:
    """Holds what an agent says to reach against its token."""

    def __init__(self, tx: Tx, access: Access, said: Said) -> None:
        self._tx = tx
        self._grants = access.grants
        self._access = access
        self._agent = said.agent_id
        self._environment = said.environment
        self._said = said.reaches
        self._bound = {(b.provider, b.name): b for b in realm_bindings.every(tx, said.environment)}
        self._hosts = self._declared_hosts()
        self._of_realm = self._bound_to_realms()

    def _declared_hosts(self) -> dict[Name, list[str]]:
        """The names of declared clusters, by what agents call them."""
        found: dict[Name, list[str]] = defaultdict(list)
        for provider in {r.provider for r in self._said if r.realm and realm_bindings.is_agents_own(r.name)}:
            declared = hosts.declared(self._tx, self._environment, provider)
            for name, host in sorted(hosts.states(self._tx, provider, declared).items()):
                if host.name is not None:
                    found[provider, host.name].append(name)
        return found

    def _bound_to_realms(self) -> dict[Name, list[Bound]]:
        """All names of the realms that are not covered by their ids."""
        unknown: dict[str, set[str]] = defaultdict(set)
        for reach in self._said:
            if reach.realm and not self._grants.has_realm(reach.realm):
                unknown[reach.provider].add(reach.realm)
        return {
            (provider, realm): bound
            for provider, realms in unknown.items()
            for realm, bound in realm_bindings.of_realms(self._tx, provider, realms).items()
        }

    def allowed(self, wanted: _Wanted) -> Allowed:
        """What may be served; raises where anything said lies beyond the token."""
        found = Allowed([], [])
        by_realm: dict[Name, list[Reach]] = defaultdict(list)
        for reach in self._said:
            if not reach.realm and reach.name == ANY_HOST:
                found.reaches.append(reach)
            elif not reach.realm or "/" in reach.realm or reach.name.startswith(HOST_NAMES):
                said = f"{reach.name!r} as {reach.realm!r}"
                raise AgentRefused(f"an agent cannot reach {_short(said)}: a realm has an id without '/'")
            elif self._names(reach):  # else a cluster that is declared no longer, or is where it was no longer
                by_realm[reach.provider, reach.realm].append(reach)
        for realm, of_it in by_realm.items():
            covered = self._is_covered(realm, of_it, wanted)
            is_only_name = len(of_it) == 1
            counting = [reach for reach in of_it if self._counts(reach, wanted, is_only_name=is_only_name)]
            found.ignored.extend(reach for reach in of_it if reach not in counting)
            (found.reaches if covered else found.others).extend(counting)
            found.kept.update((reach.provider, reach.name) for reach in counting if self._is_anothers(reach))
            self._note_names(found, realm, counting)
        return found

    def still_allowed(self) -> Allowed:
        """The same of an agent that was allowed all of it when it registered."""
        found = Allowed(list(self._said), [])
        by_realm: dict[Name, list[Reach]] = defaultdict(list)
        for reach in self._said:
            if reach.realm:
                by_realm[reach.provider, reach.realm].append(reach)
        for realm, of_it in by_realm.items():
            self._note_names(found, realm, of_it)
        return found

    def _note_names(self, found: Allowed, realm: Name, of_it: Sequence[Reach]) -> None:
        found.aliases[realm] = self._alias(realm, of_it)
        if not self._grants.has_realm(realm[1]):
            found.first[realm] = self._access.token

    def _names(self, reach: Reach) -> list[str]:
        """What the bindings call what is reached: the name itself, or the declared clusters that an agent calls so."""
        if realm_bindings.is_agents_own(reach.name):
            return self._hosts.get((reach.provider, reach.name), [])
        return [reach.name]

    def _elsewhere(self, provider: str, name: str, realm: str) -> Bound | None:
        """What a name is bound to, where that is another realm."""
        bound = self._bound.get((provider, name))
        return None if bound is None or bound.realm == realm else bound

    def _stays_elsewhere(self, provider: str, name: str, realm: str) -> bool:
        """Whether a name is bound to another realm, and is not moved by reaching this one (S26)."""
        bound = self._elsewhere(provider, name, realm)
        return bound is not None and not realm_bindings.can_move(self._tx, bound, self._agent)

    def _is_covered(self, realm: Name, of_it: Sequence[Reach], wanted: _Wanted) -> bool:
        """Whether a realm may be served; False where its name is bound to another one for now (S26)."""
        provider, realm_id = realm
        if self._grants.has_realm(realm_id):
            return True
        names = [name for reach in of_it for name in self._names(reach)]
        entitled = [name for name in names if self._grants.has_realm(realm_bindings.shown(name))]
        bound = self._of_realm[realm]
        if not entitled or (bound and not covers_names(self._grants, bound)):
            raise wanted.refused("realm", [realm_id], "start the agent with credentials for another one")
        return bool(bound) or not all(self._stays_elsewhere(provider, name, realm_id) for name in entitled)

    def _counts(self, reach: Reach, wanted: _Wanted, *, is_only_name: bool) -> bool:
        """Whether a name may be bound, or another realm be noted under it (S26); raises where it is another token's.

        A name that is bound to a realm which the token does not cover stays with that, and nothing is noted; but for
        the empty name of a provider that has no others: there an operator decides.
        """
        names = self._names(reach)
        if any(self._grants.has_realm(realm_bindings.shown(name)) for name in names):
            return True
        is_host = realm_bindings.is_agents_own(reach.name)
        elsewhere = [bound for name in names if (bound := self._elsewhere(reach.provider, name, reach.realm))]
        foreign = [bound for bound in elsewhere if not self._covers(bound)]
        if foreign and not is_host:
            return not reach.name and is_only_name
        is_bound_here = any(self._is_bound_to(reach, name) for name in names)
        if foreign or not (elsewhere or is_bound_here or (not is_host and self._may_bind(reach))):
            shown = sorted({realm_bindings.shown(name) for name in names})
            raise wanted.refused("realm", shown, "have the agent reach it by another name")
        return True

    def _is_anothers(self, reach: Reach) -> bool:
        """Whether the realm meant where none is named is one of another token, whose agent may just be away."""
        bound = None if reach.name else self._elsewhere(reach.provider, reach.name, reach.realm)
        if bound is None or self._covers(bound):
            return False
        return any(
            grants.may_serve(bound.provider, self._environment, bound.realm, bound.name)
            for grants in tokens.grants_of_agents(self._tx, but=self._access.token_id)
        )

    def _covers(self, bound: Bound) -> bool:
        """Whether the token covers the realm that a name is bound to."""
        if self._grants.has_realm(bound.realm):
            return True
        of_it = realm_bindings.of_realms(self._tx, bound.provider, [bound.realm])[bound.realm]
        return covers_names(self._grants, of_it)

    def _is_bound_to(self, reach: Reach, name: str) -> bool:
        bound = self._bound.get((reach.provider, name))
        return bound is not None and bound.realm == reach.realm

    def _may_bind(self, reach: Reach) -> bool:
        """Whether a name that is not bound yet is this token's to bind.

        A token that covers the realm by its name binds no other one; one that covers its id, none that another token
        is bound to.
        """
        if reach.name in ("", reach.realm):
            return True
        return self._grants.has_realm(reach.realm) and not any(
            grants.has_provider(reach.provider)
            and grants.has_environment(self._environment)
            and grants.names_realm(reach.name)
            for grants in tokens.grants_of_agents(self._tx, but=self._access.token_id)
        )

    def _alias(self, realm: Name, of_it: Sequence[Reach]) -> str:
        """Another name of a realm for those of its names that say nothing by themselves: one that the token covers."""
        names = sorted({realm_bindings.shown(name) for reach in of_it for name in self._names(reach)} - {"", realm[1]})
        return next((name for name in names if self._grants.has_realm(name)), names[0] if names else "")


def covers_names(grants: Grants, bound: Iterable[Bound]) -> bool:
    """Whether a token covers all names of a realm, each with its environment."""
    return all(
        grants.has_environment(one.environment) and (grants.has_realm(one.shown) or grants.has_realm(one.alias))
        for one in bound
    )


# --- what changes while an agent lives


def note_reaches(tx: Tx, agent_id: str, reached: Iterable[Name]) -> None:
    """Have an agent found by the realms it may serve."""
    tx.connection.execute(delete(agent_reaches).where(agent_reaches.c.agent_id == agent_id))
    rows = [{"agent_id": agent_id, "provider": provider, "realm": realm} for provider, realm in sorted(set(reached))]
    insert_rows(tx.connection, agent_reaches, rows)


def refresh(tx: Tx, changed: Collection[Name], *, but: str | None = None) -> None:
    """Names of these realms were bound: agents whose tokens do not cover all of them any more lose them now.

    Whoever may serve more by it is to register again, and is checked anew.
    """
    if not changed:
        return
    reaching = select(agent_reaches.c.agent_id).where(
        pair_among(agent_reaches.c.provider, agent_reaches.c.realm, "realms")
    )
    query = select(agents.c.id, agents.c.token_id, agents.c.reaches, agents.c.others).where(
        or_(agents.c.id.in_(reaching), cast(agents.c.others, Text) != "[]")
    )
    rows = [row for row in tx.connection.execute(query, {"realms": changed}).all() if row.id != but]
    granted = tokens.grants(tx, {row.token_id for row in rows})
    bound = {
        (provider, realm): of_it
        for provider in {provider for provider, _ in changed}
        for realm, of_it in realm_bindings.of_realms(tx, provider, {r for p, r in changed if p == provider}).items()
    }
    for row in rows:
        if row.token_id in granted:
            _refresh_one(tx, row, granted[row.token_id], bound)


def _refresh_one(tx: Tx, row: Any, grants: Grants, bound: Mapping[Name, Sequence[Bound]]) -> None:
    def is_lost(item: Json) -> bool:
        of_it = bound.get((item["provider"], item["realm"]))
        return of_it is not None and not grants.has_realm(item["realm"]) and not covers_names(grants, of_it)

    lost = [item for item in row.reaches if is_lost(item)]
    if lost:
        remove_reaches(tx, row, lost, others=[*row.others, *lost])
    if any((item["provider"], item["realm"]) in bound and not is_lost(item) for item in row.others):
        tx.connection.execute(update(agents).where(agents.c.id == row.id).values(has_news=True))


def remove_reaches(tx: Tx, row: Any, lost: Collection[Json], **more: Any) -> None:
    """Remove from an agent, given by its row, some of what it reaches, with all leases there; ``more``: new values."""
    kept = [item for item in row.reaches if item not in lost]
    now = {(item["provider"], item["realm"]) for item in kept}
    gone = {(item["provider"], item["realm"]) for item in lost} - now
    held = scopes.held_by(tx, row.id)
    scopes.release(tx, row.id, [key for key, scope in held.items() if (scope.provider, scope.realm) in gone])
    tx.connection.execute(update(agents).where(agents.c.id == row.id).values(reaches=kept, **more))
    note_reaches(tx, row.id, now)


def create_token(tx: Tx, wanted: NewToken) -> tuple[str, Json]:
    """A new token: the secret, which is shown once, and what is known of it.

    An agent's token of before, which is bound to no realm and serves nothing, is replaced by one of its name.
    """
    before = tokens.find_named(tx, wanted.name)
    if before is not None and before.role == wanted.role == "agent" and not tokens.grants_of(before).is_complete:
        revoke_token(tx, before.id, wanted.created_by)
    return tokens.create(tx, wanted)


def revoke_token(tx: Tx, token: str, by: str) -> None:
    """Make a token, given by its id or its name, worthless, and take from its agents all that they have."""
    row = tokens.require(tx, token)
    withdraw(tx, row.id)
    approvals.forget_waiting(tx, row.name)
    tokens.revoke(tx, row, by)


def rotate_token(tx: Tx, token: str, by: str) -> tuple[str, Json]:
    """Give a token a new secret; whoever has the old one loses all leases now, and must register with the new one."""
    row = tokens.require(tx, token)
    withdraw(tx, row.id)
    approvals.forget_waiting(tx, row.name)
    return tokens.rotate(tx, row, by)


def withdraw(tx: Tx, token_id: str) -> None:
    """Take everything from the agents of a token that is void: leases, reaches and names; they must register anew."""
    for agent_id in tx.connection.execute(select(agents.c.id).where(agents.c.token_id == token_id)).scalars().all():
        scopes.release(tx, agent_id)
        note_reaches(tx, agent_id, ())
        void = {"token_id": "", "granted": "", "reaches": [], "others": [], "deadline": tx.now}
        tx.connection.execute(update(agents).where(agents.c.id == agent_id).values(void))
