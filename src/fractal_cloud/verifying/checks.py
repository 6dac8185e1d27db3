"""Tries one type on an account, assumption by assumption, with the whole product in this process.

A step that does not come out as assumed ends the trial of the type, unless the resource is as it was before: the
assumptions after it are «not tried». What is left of it then is for ``cleaning``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from fractal_cloud.model.errors import CloudError, Conflict, Denied, Overtaken, Throttled, Transient, Unexpected
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.tags import OURS, ProtocolTags, stamp
from fractal_cloud.offers.offer import AnyOffer, Cloud, Query, Wanted
from fractal_cloud.offers.registry import Registry
from fractal_cloud.rules.drift import ComparedType, Drift, find_drift
from fractal_cloud.testing.environment import Write
from fractal_cloud.testing.product import Product
from fractal_cloud.verifying.account import Account
from fractal_cloud.verifying.example import Place, VerificationExample
from fractal_cloud.verifying.report import Finding, Verdict

SHORTEST, LONGEST = 0.02, 5.0
"""How long, in seconds, a wait for the cloud lasts at first and at most: it doubles in between."""
LISTED_SECONDS = 60.0
"""How long a bulk list may lag behind a creation or a deletion."""
AGREEMENT_SECONDS = 20.0
"""How long a value may differ from what the agent has written, before the cloud counts as of another opinion."""
END_SECONDS: Final = 30.0
QUIET_CYCLES: Final = 2
WRITES_PER_CHANGE: Final = 8
MOST_WRITES: Final = 12
"""More writes than any step needs: the agent and the cloud do not agree."""
_STUCK: Final = 4
_MANAGED: Final = ProtocolTags(managed_by=OURS)
_BOTH: Final = ProtocolTags(managed_by=OURS, reconcile=True)
_SAYS_NOTHING: Final = (Denied, Throttled, Transient)
"""Errors of a person's call that say nothing about an assumption: it could not be tried."""
_LEAVES_IT_AS_IT_WAS: Final = frozenset({"read-by-id", "guarded-update"})
"""What may fail without an effect on the assumptions after it."""
_Step = tuple[str, str, Callable[[], str]]
"""A trial of one assumption: its name, what of the type it is about, and what tries it."""
_AT_REST: Final = ("Active", "ExternallyManaged")
_AT_AN_END: Final = frozenset({"Failed", "ManualOverride", "Missing", "ExternallyManaged"})


class NotHeld(Exception):
    """An assumption does not hold; the text says what was found instead."""


class Wait:
    """A wait for the cloud: iterate over it to sleep ever longer until the time is over, at least once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = time.monotonic()

    @property
    def passed(self) -> float:
        """How many seconds it has lasted."""
        return time.monotonic() - self._began

    def __iter__(self) -> Iterator[None]:
        delay = SHORTEST
        while True:
            yield
            if self.passed >= self._seconds:
                return
            time.sleep(min(delay, self._seconds))
            delay = min(2 * delay, LONGEST)

    def __str__(self) -> str:
        return f"after {self.passed:.1f} s"


@dataclass
class Trial:
    """One type on its way through all assumptions; ``findings`` grows with every one of them."""

    example: VerificationExample
    place: Place
    product: Product
    account: Account
    registry: Registry
    findings: list[Finding] = field(default_factory=list)
    resource_id: str = ""

    def __post_init__(self) -> None:
        declared = list(self.example.declare(self.place))
        self._parents, self._declared = declared[:-1], declared[-1]
        self._own_ids: list[str] = []

    # --- names

    @property
    def offer(self) -> AnyOffer:
        """The offer that is tried."""
        return self.registry[self.example.kind.type]

    @property
    def live_system(self) -> str:
        """The LiveSystem of this trial: the owner of all it creates."""
        return self.place.name(self.example.short_type.lower())

    @property
    def _id(self) -> str:
        return str(self._declared["id"])

    @property
    def _seconds(self) -> float:
        return self.example.minutes * 60

    # --- the trial

    def run(self) -> list[Finding]:
        """Try everything, as far as it goes; raises nothing but what ends the whole run."""
        steps = self._written() if self.offer.taggable else self._of_part() if self.offer.is_part else self._only_read()
        pending = [(name, subject) for name, subject, _ in steps]
        for name, subject, step in steps:
            finding = self._tried(name, subject, step)
            self.findings.append(finding)
            pending.pop(0)
            is_over = finding.verdict is Verdict.NOT_HELD and name not in _LEAVES_IT_AS_IT_WAS
            if is_over or finding.verdict is Verdict.NOT_TRIED:
                why = f"{name}: {finding.verdict}"
                self.findings += [
                    Finding(self.example.short_type, one, Verdict.NOT_TRIED, about, why) for one, about in pending
                ]
                break
        return self.findings

    def end(self) -> None:
        """Have everything deleted that a trial left which did not come to its end; what stays is for ``cleaning``."""
        if self.product.api.get(f"/livesystems/{self.live_system}").status_code == 200:
            try:
                self.product.delete(self.live_system)
                for _ in Wait(END_SECONDS):
                    self.product.agent.run_once()
                    if self.product.api.get(f"/livesystems/{self.live_system}").status_code != 200:
                        return
            except (AssertionError, CloudError):  # it is being deleted already
                return

    def _only_read(self) -> list[_Step]:
        return [*self._seen(), ("deleted", "", self._is_deleted)]

    def _of_part(self) -> list[_Step]:
        """What carries no tags of its own is changed while its parent may be (S25)."""
        return [*self._seen(), *self._changed(), ("deleted", "", self._is_deleted), ("gone", "", self._is_gone)]

    def _seen(self) -> list[_Step]:
        return [
            ("created", "", self._exists),
            ("listed", "", self._is_listed),
            ("read-by-id", "", self._is_read_by_id),
            ("echoed", "", self._is_echoed),
            ("quiet", "", self._is_quiet),
        ]

    def _changed(self) -> Iterator[_Step]:
        for name in self.example.changes:
            yield "drifts-alone", name, partial(self._drifts_alone, name)
            yield "comes-back", name, partial(self._comes_back, name)

    def _written(self) -> list[_Step]:
        created, *seen = self._seen()
        return [
            created,
            ("tags-in-call", "", self._was_tagged_in_call),
            *seen,
            *self._changed(),
            ("left-alone", "", self._is_left_alone),
            ("handed-back", "", self._is_handed_back),
            ("guarded-update", self.example.guarded, self._refuses_late_update),
            ("guarded-deletion", "", self._refuses_late_deletion),
            ("deleted", "", self._is_deleted),
            ("gone", "", self._is_gone),
        ]

    def _tried(self, name: str, subject: str, step: Callable[[], str]) -> Finding:
        ids: list[str] = []
        verdict, detail = Verdict.HELD, ""
        try:
            with self._collecting(ids):
                detail = step()
        except _NotClaimed as reason:
            verdict, detail = Verdict.NOT_CLAIMED, str(reason)
        except NotHeld as reason:
            verdict, detail = Verdict.NOT_HELD, str(reason)
        except CloudError as error:
            says_nothing = isinstance(error, _SAYS_NOTHING) and not isinstance(error, Unexpected)
            verdict = Verdict.NOT_TRIED if says_nothing else Verdict.NOT_HELD
            detail = f"{type(error).__name__}: {error.message}"
            ids += [error.request_id] if error.request_id else []
        except Exception as error:  # noqa: BLE001  # whatever it is: the offer or the product did not cope with the answer
            verdict, detail = Verdict.NOT_HELD, f"{type(error).__name__}: {error}"
        return Finding(self.example.short_type, name, verdict, subject, detail, tuple(dict.fromkeys(ids)))

    @contextmanager
    def _collecting(self, ids: list[str]) -> Iterator[None]:
        """Collect the request ids of all writes of a step: ours as a person, and the agent's from its journal."""
        self._own_ids = []
        before = len(self._journal())
        try:
            yield
        finally:
            ids += self._own_ids
            for entry in reversed(self._journal()[: len(self._journal()) - before]):
                ids += entry["requestIds"]

    # --- created, listed, read

    def _exists(self) -> str:
        self.product.deploy(self.live_system, *self._parents, self._declared)
        wait = Wait(self._seconds)
        stuck = 0
        for _ in wait:
            results = self.product.agent.run_once()
            self.resource_id = str(self._shown()["resourceId"] or "")
            seen = self.account.read(self.offer, self.resource_id) if self.resource_id else None
            if seen is not None and seen.condition is not Condition.CREATING:
                break
            is_over = self._shown()["status"] in _AT_AN_END and all(result.settled for result in results)
            stuck = stuck + 1 if is_over else 0
            if stuck >= _STUCK:
                raise NotHeld(self._status())
        created = [entry for entry in self._journal() if entry["verb"] == "create"]
        if not self.resource_id or (self.offer.taggable and len(created) != 1):
            raise NotHeld(f"{len(created)} creations {wait}: {self._status()}")
        return f"{self.resource_id}, {wait}"

    def _was_tagged_in_call(self) -> str:
        if self.offer.tags_follow(self.account.cloud(self.offer)):
            raise _NotClaimed("this cloud takes no tags in the call")
        late = [entry["verb"] for entry in self._journal() if entry["verb"] == "tag"]
        if late:
            raise NotHeld("tags were written after the creation")
        self._has_tags(self._fresh())
        return ""

    def _is_listed(self) -> str:
        found: list[Sighting] = []
        wait = Wait(LISTED_SECONDS)
        for _ in wait:
            found = [one for one in self._listed() if one.resource_id == self.resource_id]
            if found and (not self.offer.taggable or found[0].protocol == stamp(self.live_system)):
                break
        if len(found) != 1:
            raise NotHeld(f"the list shows it {len(found)} times {wait}")
        if self.offer.taggable:
            self._has_tags(found[0])
        return str(wait)

    def _is_read_by_id(self) -> str:
        [listed] = [one for one in self._listed() if one.resource_id == self.resource_id]
        read = self._fresh()
        for fact in ("name", "parent_id", "protocol"):
            if getattr(read, fact) != getattr(listed, fact):
                raise NotHeld(f"{fact}: the list shows {getattr(listed, fact)!r}, the read {getattr(read, fact)!r}")
        other = {name for name, value in listed.actual.items() if name in read.actual and read.actual[name] != value}
        if other:
            raise NotHeld(f"the list and the read differ in {', '.join(sorted(other))}")
        return ""

    def _is_echoed(self) -> str:
        wait = Wait(self._seconds)
        lasting, since = frozenset[str](), wait.passed
        for _ in wait:
            results = self.product.agent.run_once()
            seen, status = self._fresh(), self._shown()["status"]
            drift = frozenset(self._drift(seen))
            if not drift and status in _AT_REST and all(result.settled for result in results):
                return f"{len(self._declared['parameters'])} declared values"
            if drift != lasting or seen.condition is not Condition.SETTLED:
                lasting, since = drift, wait.passed
            elif wait.passed - since > AGREEMENT_SECONDS:
                break
        self._has_no_drift()
        raise NotHeld(self._status())

    def _is_quiet(self) -> str:
        self._until(*_AT_REST)
        before = len(self._writes())
        for _ in range(QUIET_CYCLES):
            self.product.agent.run_once()
        written = self._writes()[before:]
        if written:
            raise NotHeld(f"written: {', '.join(f'{one.operation} of {one.component}' for one in written)}")
        drift = self._shown()["outputFields"].get("drift")
        if drift:
            raise NotHeld(f"drift is shown: {drift}")
        return f"{QUIET_CYCLES} cycles"

    # --- changed by a person

    def _drifts_alone(self, name: str) -> str:
        self._change(name)
        drift = self._drift(self._fresh())
        if set(drift) != {name}:
            raise NotHeld(f"changed was {name}, different are {', '.join(sorted(drift)) or 'none'}")
        return ""

    def _comes_back(self, name: str) -> str:
        before = len(self._journal())
        wait = Wait(self._seconds)
        for _ in wait:
            self.product.agent.run_once()
            if self._shown()["status"] in _AT_AN_END:
                break
            if self._shown()["status"] == "Active" and not self._drift(self._fresh()):
                break
        self._has_no_drift()
        if self._shown()["status"] != "Active":
            raise NotHeld(self._status())
        reasons = {entry["reason"] for entry in self._journal()[: len(self._journal()) - before]}
        if "drift" not in reasons:
            raise NotHeld(f"the agent did not correct {name}: its journal names {sorted(reasons)}")
        return str(wait)

    def _is_left_alone(self) -> str:
        self._own_ids += self.account.untag(self.offer, self._fresh(), _MANAGED)
        changed = next(iter(self.example.changes), "")
        if changed:
            self._change(changed)
        before = len(self._own_writes())
        self._until("ManualOverride")
        for _ in range(QUIET_CYCLES):
            self.product.agent.run_once()
        if len(self._own_writes()) != before:
            raise NotHeld("the agent wrote to it while managed-by was absent")
        if changed and changed not in self._drift(self._fresh()):
            raise NotHeld(f"{changed} is no longer what the person made it")
        return f"{QUIET_CYCLES} cycles, {changed} stayed changed" if changed else f"{QUIET_CYCLES} cycles"

    def _is_handed_back(self) -> str:
        self._own_ids += self.account.tag(self.offer, self._fresh(), _BOTH)
        wait = self._until("Active")
        for _ in Wait(LISTED_SECONDS):
            seen = self._fresh()
            if seen.protocol == stamp(self.live_system) and not self._drift(seen):
                break
            self.product.agent.run_once()
        self._has_tags(self._fresh())
        self._has_no_drift()
        return str(wait)

    # --- preconditions

    def _refuses_late_update(self) -> str:
        name = self.example.guarded
        seen = self._fresh()
        if not name or seen.revision is None:
            raise _NotClaimed("updates carry no precondition: the window is the one call after a fresh read")
        wanted = self._wanted({name: self.example.changes[name]})
        was_refused = self._is_overtaken(lambda cloud: self.offer.update(cloud, seen, wanted, {name}), seen)
        was_written = name in self._drift(self._fresh())
        self._hand_back()
        if was_written or not was_refused:
            raise NotHeld(f"{name} was written, although managed-by had been removed since the read")
        return "refused, nothing was written"

    def _refuses_late_deletion(self) -> str:
        seen = self._fresh()
        if seen.revision is None or "delete" in self.offer.unguarded:
            raise _NotClaimed("deletions carry no precondition: the window is the one call after a fresh read")
        if not self._is_overtaken(lambda cloud: self.offer.delete(cloud, seen), seen):
            raise NotHeld("it was deleted, although managed-by had been removed since the read")
        self._hand_back()
        return "refused, it still exists"

    def _is_overtaken(self, act: Callable[[Cloud], None], seen: Sighting) -> bool:
        """Take managed-by off between the last read of a verb and its writing call; whether that call was refused."""
        try:
            self._own_ids += self.account.overtake(
                self.offer, act, lambda: self._own_ids.extend(self.account.untag(self.offer, seen, _MANAGED))
            )
        except Overtaken:
            return True
        return False

    def _hand_back(self) -> None:
        self._own_ids += self.account.tag(self.offer, self._fresh(), _BOTH)
        self._until("ManualOverride", "Active", "ReconcileRequested")
        self._until("Active")

    # --- deleted

    def _is_deleted(self) -> str:
        self.product.delete(self.live_system)
        wait, left = Wait(self._seconds), [self._id]
        for _ in wait:
            self.product.agent.run_once()
            left = [one["id"] for one in [*self._parents, self._declared] if self._find(str(one["id"])) is not None]
            if not left:
                return str(wait)
        raise NotHeld(f"{', '.join(left)} still there {wait}: {self._status()}")

    def _is_gone(self) -> str:
        wait, read = Wait(LISTED_SECONDS), None
        for _ in wait:
            read = self.account.read(self.offer, self.resource_id)
            if read is None and not any(one.resource_id == self.resource_id for one in self._listed()):
                return str(wait)
        where = "the list still shows it" if read is None else f"a read by its id shows it as {read.condition}"
        raise NotHeld(f"{where} {wait}")

    # --- what is seen

    def _find(self, component: str) -> dict[str, Any] | None:
        return self.product.find_component(self.live_system, component)

    def _shown(self) -> dict[str, Any]:
        found = self._find(self._id)
        if found is None:
            raise NotHeld("the control plane does not know it any more")
        return found

    def _status(self) -> str:
        parts = [self._find(str(one["id"])) for one in [*self._parents, self._declared]]
        return "; ".join(f"{one['componentId']} is {one['status']}: {one['message']}" for one in parts if one)

    def _until(self, *statuses: str) -> Wait:
        """Run cycles until the component has one of these statuses and the agent has nothing left to do."""
        stuck, wait, before = 0, Wait(self._seconds), len(self._own_writes())
        for _ in wait:
            results = self.product.agent.run_once()
            settled = bool(results) and all(result.settled for result in results)
            status = self._shown()["status"]
            if status in statuses and settled:
                return wait
            stuck = stuck + 1 if settled and status in _AT_AN_END else 0
            if stuck >= _STUCK or len(self._own_writes()) - before > MOST_WRITES:
                break
        raise NotHeld(self._status())

    def _journal(self) -> list[dict[str, Any]]:
        """The writes for the component, newest first."""
        answer = self.product.api.get(f"/livesystems/{self.live_system}/components/{self._id}/journal")
        return list(answer.json()["items"]) if answer.status_code == 200 else []

    def _writes(self) -> list[Write]:
        """The agent's writes for this trial, parents included."""
        return [one for one in self.product.writes() if one.live_system == self.live_system]

    def _own_writes(self) -> list[Write]:
        return [one for one in self._writes() if one.component == self._id]

    def _listed(self) -> list[Sighting]:
        parents: frozenset[str] = frozenset()
        if self.offer.parent:
            parents = frozenset({str(self._wanted({}).parent_id)})
        return self.account.listed(self.offer, Query(frozenset({self._name}), parents))

    @property
    def _name(self) -> str:
        return str(self._declared["parameters"].get("name", self._id))

    def _fresh(self) -> Sighting:
        compared = ComparedType(self.offer.facts())
        swept = [name for name in self._declared["parameters"] if name in compared.swept]
        wait = Wait(self._seconds)
        for _ in wait:
            seen = self.account.read(self.offer, self.resource_id, swept)
            if seen is None and wait.passed > LISTED_SECONDS:
                raise NotHeld(f"a read by its id does not find it {wait}")
            if seen is not None and (seen.condition is not Condition.CHANGING or seen.is_open):
                return self.offer.as_declared(seen, self._declared["parameters"], self._shown()["outputFields"])
        raise NotHeld(f"the cloud is still at work on it {wait}")

    def _has_tags(self, seen: Sighting) -> None:
        expected = stamp(self.live_system)
        if seen.protocol != expected:
            raise NotHeld(f"its tags are {seen.protocol.to_mapping()}, not {expected.to_mapping()}")

    def _has_no_drift(self) -> None:
        drift = self._drift(self._fresh())
        if drift:
            different = [f"{name} is {one.actual!r}, not {one.declared!r}" for name, one in drift.items()]
            raise NotHeld("; ".join(different))

    # --- what is declared

    def _wanted(self, changes: dict[str, Any]) -> Wanted[Any]:
        """The component ready for the cloud, with other values for some parameters."""
        parameters = self._resolved(changes)
        component = self.offer.component.from_parameters(self._id, parameters)
        parent = parameters[self.offer.parent] if self.offer.parent else None
        return Wanted(component, self.live_system, parent, token=self.live_system)

    def _resolved(self, changes: dict[str, Any]) -> dict[str, Any]:
        references = self.offer.facts().references()
        given = {**self._declared["parameters"], **changes}
        return {
            name: self._output(value, *references[name]) if name in references else value
            for name, value in given.items()
        }

    def _output(self, component: Any, _: str, output: str) -> Any:
        found = self._find(str(component)) or {}
        return (found.get("outputFields") or {}).get(output, component)

    def _drift(self, seen: Sighting, changes: dict[str, Any] | None = None) -> Drift:
        wanted = self._wanted(changes or {}).component.parameters()
        declared = {name: value for name, value in wanted.items() if name in self._declared["parameters"]}
        return find_drift(ComparedType(self.offer.facts()), declared, seen.actual)

    def _change(self, name: str) -> None:
        """Change a parameter as a person would, until the cloud shows its new value."""
        changes = {name: self.example.changes[name]}
        wanted = self._wanted(changes)
        writes = 0
        for _ in Wait(self._seconds):
            seen = self._fresh()
            if name not in self._drift(seen, changes):
                return
            if writes >= WRITES_PER_CHANGE:
                break
            if not seen.accepts_changes:
                continue
            try:
                self._own_ids += self.account.change(self.offer, seen, wanted, name)
                writes += 1
            except Overtaken:
                raise
            except Conflict:  # the cloud is still at work on the last change
                continue
        found = self._drift(self._fresh(), changes).get(name)
        raise NotHeld(
            f"{name} was changed by hand to {changes[name]!r}, and the cloud shows {found and found.actual!r}"
        )


class _NotClaimed(Exception):
    """The offer does not rely on this assumption; the text says why."""
