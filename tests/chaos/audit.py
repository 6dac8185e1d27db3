"""What must hold after every fault.

LIVENESS: everything comes to rest within a bounded number of cycles, as declared or as people left it.
SAFETY: the monitor is empty, nothing is there twice, nothing is lost, the journal is complete, events are in order, and
nobody's tags were touched.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import httpx2 as httpx

from tests.chaos.declared import Seen
from tests.chaos.people import GUEST, Owner, People, Thing
from tests.chaos.stage import CYCLE, Stage
from tests.orphans import orphans

AT_MOST: Final = 90
"""Cycles of any scope, as the cloud counts them: on a busy machine they are longer than the second they should take.
What is legal by itself: a dead holder's lease (7, it is never less than 7 s), a creation whose answer was lost (10, its
window is never less than 10 s), PostgreSQL's clock that was a minute ahead (60), back-off after trouble (8), one cycle
of notice (S12a). They can follow each other."""
AT_LATEST: Final = 600.0
"""Seconds, where nobody reads at all."""
MANAGED_BY, OURS = "managed-by", "fractal-cloud"
VERBS: Final = {
    **dict.fromkeys(("CreateVpc", "CreateSubnet", "CreateSecurityGroup"), "create"),
    **dict.fromkeys(("DeleteVpc", "DeleteSubnet", "DeleteSecurityGroup"), "delete"),
    **dict.fromkeys(("CreateTags", "DeleteTags"), "tag"),
}


class NotAtRest(AssertionError):
    """Something is not yet as it must become."""


def _expect(is_so: object, what: str) -> None:
    if not is_so:
        raise NotAtRest(what)


@dataclass
class Auditor:
    """Reads everything after every fault, and remembers how far it has read."""

    stage: Stage
    people: People
    seen_event: int = 0
    statuses: dict[tuple[str, str], str] = field(default_factory=dict)
    journalled: dict[str, int] = field(default_factory=dict)
    cycles: list[int] = field(default_factory=list)
    cloud: dict[str, dict[str, Seen]] = field(default_factory=dict)
    shown: dict[str, dict[str, dict[str, Any]] | None] = field(default_factory=dict)

    def audit(self) -> None:
        """Wait for rest, then read everything that may never have happened."""
        self._wait_for_rest()
        self._check_monitor()
        self._check_resources()
        self._check_journal()
        self._check_events()
        self._settle_what_was_asked()

    # --- LIVENESS

    def _wait_for_rest(self) -> None:
        deadline = time.monotonic() + AT_LATEST
        began = self.stage.reads_by_region()
        while True:
            try:
                writes = len(self.stage.writes())
                self._expect_rest()
                time.sleep(1.2 * CYCLE)
                _expect(len(self.stage.writes()) == writes, "the agents still write")
                self._expect_rest()
                break
            except (NotAtRest, httpx.TransportError) as reason:
                if self._cycles(began) > AT_MOST:
                    raise AssertionError(f"LIVENESS: not at rest after {AT_MOST} cycles: {reason}") from reason
                if time.monotonic() > deadline:
                    raise AssertionError(f"LIVENESS: not at rest after {AT_LATEST:g} s: {reason}") from reason
            time.sleep(0.3 * CYCLE)
        self.cycles.append(self._cycles(began))

    def _cycles(self, began: Counter[str]) -> int:
        """How often the agents have read a region since then, at most."""
        return max((self.stage.reads_by_region() - began).values(), default=0)

    def _expect_rest(self) -> None:
        """The cheap questions first: it is asked again and again."""
        self.shown = {name: self._ask(name) for name in (*self.people.owners, GUEST)}
        for owner in self.people.owners.values():
            shown = self.shown[owner.id]
            _expect(
                (shown is None) == owner.is_deleted, f"{owner.id} is to be deleted: {owner.is_deleted}, and is {shown}"
            )
            for name, item in (shown or {}).items():
                self._expect_status(owner.things[name], item)
        opened = self.stage.rows("SELECT id, live_system_id, component_id, verb FROM journal WHERE outcome IS NULL")
        _expect(not opened, f"intents without an outcome: {opened}")
        asked = self.stage.rows("SELECT live_system_id, component_id FROM components WHERE request::text <> 'null'")
        _expect(not asked, f"requests not carried out: {asked}")
        self.cloud = self.people.read()
        for owner in self.people.owners.values():
            if owner.is_deleted:
                self._expect_gone(owner)
                continue
            for thing in owner.things.values():
                self._expect_resource(thing, (self.shown[owner.id] or {})[thing.id])
            self._expect_mutation(owner.id)
        self._expect_guest()

    def _ask(self, live_system: str) -> dict[str, dict[str, Any]] | None:
        answer = self.stage.api.get(f"/livesystems/{live_system}/components")
        if answer.status_code == 404:
            return None
        _expect(answer.status_code == 200, f"{live_system} is answered {answer.status_code}")
        return {item["componentId"]: item for item in answer.json()["items"]}

    def _expect_status(self, thing: Thing, shown: dict[str, Any]) -> None:
        about = f"{thing} ({thing.state}, declared {thing.declared}) is {shown['status']}: {shown['message']!r}"
        _expect(shown["generation"] == shown["observedGeneration"], f"{about}, of an older generation")
        allowed = {"managed": ("Active",), "taken": ("ManualOverride",), "asked": ("Active", "ManualOverride")}
        _expect(shown["status"] in allowed[thing.state], about)

    def _expect_resource(self, thing: Thing, shown: dict[str, Any]) -> None:
        about = f"{thing} ({thing.state}, declared {thing.declared}) is {shown['status']}: {shown['message']!r}"
        found = self.cloud[str(thing)]
        _expect(len(found) == 1, f"{about}, and there are {sorted(found)} of it")
        (seen,) = found.values()
        _expect("fractal-cloud" not in seen.tags, f"{about}, and still asked for by its tag")
        _expect(seen.tags.get("fractal-cloud-owner") == thing.live_system, f"{about}, owned by {seen.tags}")
        has_drift = thing.kind.parameter in (shown["outputFields"].get("drift") or {})
        _expect(has_drift == (seen.value != thing.declared), f"{about}, actual {seen.value}, drift {has_drift}")
        if shown["status"] == "Active":
            _expect(seen.tags.get(MANAGED_BY) == OURS, f"{about}, without managed-by: {seen.tags}")
            _expect(seen.value == thing.declared, f"{about}, but actual is {seen.value}")

    def _expect_gone(self, owner: Owner) -> None:
        """What people took is left, and what it stands in; the rest is gone."""
        taken = [thing for thing in owner.things.values() if thing.state == "taken"]
        for thing in owner.things.values():
            found = self.cloud[str(thing)]
            is_left = thing in taken or (thing.id == "net" and bool(taken))
            if thing.state != "asked":
                _expect(bool(found) == is_left, f"{thing} of a deleted LiveSystem: {found}")

    def _expect_mutation(self, live_system: str) -> None:
        newest = "SELECT id FROM mutations WHERE live_system_id = :id ORDER BY created_at DESC LIMIT 1"
        ((mutation,),) = self.stage.rows(newest, id=live_system)
        answer = self.stage.api.get(f"/livesystems/{live_system}/mutations/{mutation}")
        _expect(answer.status_code == 200, f"{answer.status_code}")
        _expect(answer.json()["status"] == "Completed", f"the mutation of {live_system} is {answer.json()['status']}")

    def _expect_guest(self) -> None:
        shown = (self.shown[GUEST] or {})["net"]
        wanted = "ExternallyManaged" if self.cloud["ls-a/net"] else "Missing"
        _expect(shown["status"] == wanted, f"the guest's net is {shown['status']}, not {wanted}: {shown['message']}")

    def _settle_what_was_asked(self) -> None:
        """A request may have been carried out or have run out: from here on it is known which.

        What a deletion left only because something in it was taken stays managed: declared again, it is Active (O10).
        """
        for owner in self.people.owners.values():
            for thing in owner.things.values():
                found = self.cloud[str(thing)]
                if owner.is_deleted:
                    thing.state = _left_as(thing, found)
                elif thing.state == "asked":
                    shown = (self.shown[owner.id] or {})[thing.id]
                    thing.state = "managed" if shown["status"] == "Active" else "taken"
                thing.untagged = False
                for resource, seen in found.items() if thing.state == "taken" else ():
                    thing.untagged = MANAGED_BY not in seen.tags
                    thing.left, thing.left_id = seen.value, resource

    # --- SAFETY

    def _check_monitor(self) -> None:
        found = self.stage.findings()
        assert not found["violations"], f"SAFETY: {found['violations']}"
        assert not found["lostRaces"], f"SAFETY: {found['lostRaces']}"

    def _check_resources(self) -> None:
        orphaned = orphans(self.stage.owned(), self.stage.api)
        assert not orphaned, f"SAFETY: {orphaned}"
        for owner in self.people.owners.values():
            for thing in owner.things.values():
                found = self.cloud[str(thing)]
                assert len(found) <= 1, f"SAFETY: {thing} is there twice: {found}"
                if thing.state == "taken" and thing.left_id:
                    _check_taken(thing, found)
                if thing.foreign and thing.foreign_on in found:
                    kept = {key: found[thing.foreign_on].tags.get(key) for key in thing.foreign}
                    assert kept == thing.foreign, f"SAFETY: {thing} lost {thing.foreign}: {kept}"

    def _check_journal(self) -> None:
        """Every writing call has an entry, or is counted in that of an equal refusal; one that says done has a call."""
        made = Counter(
            (call["liveSystem"], call["component"], call["reason"], VERBS.get(call["operation"], "update"))
            for call in self.stage.writes()
        )
        rows = self.stage.rows(
            'SELECT id, live_system_id, component_id, reason, verb, outcome, request_ids, "count" AS many FROM journal'
        )
        new = [row for row in rows for _ in range(row.many - self.journalled.get(row.id, 0))]
        entries = Counter(_about(row) for row in new if row.outcome != "abandoned")
        missing = made - entries
        assert not missing, f"SAFETY: written, and not in the journal: {missing}; there: {entries}"
        answered = Counter(_about(row) for row in new if row.request_ids)
        unseen = answered - made
        assert not unseen, f"SAFETY: answered by the cloud, which has not seen it: {unseen}"
        self.journalled.update({row.id: row.many for row in rows})
        self.stage.forget_calls()

    def _check_events(self) -> None:
        query = (
            "SELECT seq, live_system_id, component_id, kind, before, after FROM events WHERE seq > :seen ORDER BY seq"
        )
        for row in self.stage.rows(query, seen=self.seen_event):
            assert row.seq == self.seen_event + 1, f"SAFETY: event {row.seq} follows {self.seen_event}"
            self.seen_event = row.seq
            if row.kind == "StatusChanged":
                about = (row.live_system_id, row.component_id)
                before = self.statuses.get(about, row.before)
                assert row.before == before, f"SAFETY: event {row.seq} of {about} begins {row.before!r}, not {before!r}"
                self.statuses[about] = row.after
            elif row.kind == "Deleted":
                gone = [about for about in self.statuses if about[0] == row.live_system_id]
                for about in gone:
                    del self.statuses[about]
        for owner in self.people.owners.values():
            for name, item in (self.shown[owner.id] or {}).items():
                last = self.statuses.get((owner.id, name), item["status"])
                assert last == item["status"], (
                    f"SAFETY: {owner.id}/{name} is {item['status']}, and events end at {last}"
                )


def _left_as(thing: Thing, found: dict[str, Seen]) -> Literal["managed", "taken"]:
    """Whose what a deleted LiveSystem left is."""
    if not found:
        return "managed"
    is_untagged = any(MANAGED_BY not in seen.tags for seen in found.values())
    return "taken" if thing.state == "taken" or is_untagged else "managed"


def _check_taken(thing: Thing, found: dict[str, Seen]) -> None:
    assert list(found) == [thing.left_id], f"SAFETY: {thing} was left as {thing.left_id}, and is {found}"
    seen = found[thing.left_id]
    assert (MANAGED_BY not in seen.tags) == thing.untagged, f"SAFETY: managed-by of {thing} changed: {seen}"
    assert seen.value == thing.left, f"SAFETY: {thing} was left {thing.left}, and is {seen}"


def _about(row: Any) -> tuple[str, str, str, str]:
    return row.live_system_id, row.component_id, row.reason, row.verb
