"""Only what drifted is written (G15, C7): what a person left in `ignoreDrift` stays, whatever is corrected beside it.

Every offer of the registry is tried. The quick run corrects two parameters of each while all others are ignored and
edited at once; the long run every parameter, and every pair by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.registry import installed
from fractal_cloud.rules.drift import ComparedType, find_drift
from fractal_sandbox import Sandbox
from tests.offers.suites import Stage, kinds
from tests.offers.test_identity import Reads, reads_of

LIVE_SYSTEM = "ls-drifted"
RUN_STATE = "state"
QUICK = 2
LOAD_BALANCER = "NetworkAndCompute.IaaS.HetznerLoadBalancer"
ENTANGLED: dict[tuple[str, str], tuple[frozenset[str], str]] = {
    # Hetzner changes how a target is reached only by taking it off,
    (LOAD_BALANCER, "usePrivateIp"): (frozenset({"servers", "labelSelectors"}), "ignoreDrift"),
    # and refuses to close the public interface while targets are reached through it.
    (LOAD_BALANCER, "publicInterface"): (frozenset({"usePrivateIp"}), "privately"),
}
"""Parameters that cannot be corrected beside those that are ignored, and a word of the message that says so."""
RESTS_ON = {
    ("Storage.PaaS.AwsRdsPostgres", "performanceInsightsRetentionPeriod"): "enablePerformanceInsights",
    ("Storage.PaaS.AwsRdsPostgres", "performanceInsightsKMSKeyId"): "enablePerformanceInsights",
    ("Storage.PaaS.AwsRdsPostgres", "storageThroughput"): "storageType",
}
"""Parameters that mean something only beside one value of another, which the example's other value is not."""
MEANS = {(LOAD_BALANCER, "usePrivateIp"): ("servers", "labelSelectors")}
"""What is taken off and put back to correct a parameter, where it is not ignored; the journal names that too."""
TYPES = [
    pytest.param(name, id=name, marks=[pytest.mark.xdist_group(f"drifted {suite.provider}"), *suite.marks()])
    for name, (suite, _) in kinds().items()
]


class Trial:
    """One resource, a person who edits it, and the agent that may correct one parameter of it."""

    def __init__(self, stage: Stage, reads: Reads) -> None:
        self.world, self.example, self.reads = stage.world, stage.example, reads
        self.offer = reads.offer
        self.declaration = self.example.under_name(f"{self.example.declaration['id']}-one")
        self.compared = ComparedType(self.offer.facts())
        self.references = self.offer.facts().references()
        self.deploy(())

    @property
    def name(self) -> str:
        return str(self.declaration["id"])

    def deploy(self, ignored: Sequence[str]) -> None:
        self.world.deploy(LIVE_SYSTEM, *self.example.parents, {**self.declaration, "ignoreDrift": list(ignored)})
        self.settle()
        assert self.world.status(LIVE_SYSTEM, self.name) == "Active", self.shown()["message"]

    def settle(self) -> None:
        try:
            self.world.settle()
        except AssertionError as error:
            raise AssertionError(f"not settled: {self.shown()['message']}") from error

    def edit(self, *parameters: str) -> None:
        [found] = self.example.operator.find(self.name)
        for parameter in parameters:
            value = self.resolved(parameter, self.example.changes[parameter])
            self.example.operator.edit(found.resource_id, parameter, value)

    def resolved(self, parameter: str, value: Any) -> Any:
        if parameter not in self.references:
            return value
        output = self.references[parameter][1]
        many = value if isinstance(value, list) else [value]
        ids = [self.world.component(LIVE_SYSTEM, one)["outputFields"][output] for one in many]
        return ids if isinstance(value, list) else ids[0]

    def shown(self) -> dict[str, Any]:
        return self.world.component(LIVE_SYSTEM, self.name)

    def seen(self) -> Sighting:
        """The resource as it is, with everything that is read one by one."""
        cloud, query = self.reads.asked[-1]
        [listed] = [
            one
            for one in all_sightings(self.offer.sightings(cloud, Query(query.names, query.parent_ids)))
            if one.name == self.name
        ]
        swept = self.compared.swept & set(self.declaration["parameters"])
        read = self.offer.read(cloud, listed.resource_id, swept)
        assert read is not None
        return read

    def differing(self) -> dict[str, Any]:
        """What differs from the declaration, each with its actual value."""
        schema = self.offer.facts().parameter_schema["properties"]
        given = {name: schema[name].get("default") for name in self.example.changes} | self.declaration["parameters"]
        declared = {name: self.resolved(name, given[name]) for name in self.example.changes}
        found = find_drift(self.compared, declared, self.seen().actual, ())
        return {name: difference.actual for name, difference in found.items()}

    def entries(self) -> list[dict[str, Any]]:
        path = f"/livesystems/{LIVE_SYSTEM}/components/{self.name}/journal"
        found: list[dict[str, Any]] = self.world.api.get(path, params={"limit": 500}).json()["items"]
        return found

    def all_beside(self, drifted: str) -> list[str]:
        """All other parameters, but for sizes that the cloud may raise: beside their switch they do not drift."""
        names = [name for name in self.example.changes if name != drifted and name not in self.compared.grows]
        return [name for name in names if not self.is_silenced(name, drifted, names)]

    def is_silenced(self, name: str, drifted: str, others: Sequence[str]) -> bool:
        """Whether a parameter would not drift beside the others, or would keep the one that is tried from drifting."""
        return self.rests_on(name) in {drifted, *others} or name == self.rests_on(drifted)

    def rests_on(self, name: str) -> str | None:
        """The switch without which a parameter means nothing."""
        return RESTS_ON.get((self.offer.type, name))

    def corrects(self, drifted: str, beside: Sequence[str]) -> None:
        """A person edits all of them; the agent corrects the one that is not ignored, and says so."""
        blocking, word = ENTANGLED.get((self.offer.type, drifted), (frozenset(), ""))
        is_blocked = bool(blocking & set(beside))
        if is_blocked:
            self.restore()
        self.deploy(beside)
        for _ in range(2):  # an edit may undo another one: start a machine again, reach targets in another way
            differs = self.differing()
            names = [name for name in (*beside, drifted) if name not in differs]
            self.edit(*sorted(names, key=lambda name: name == RUN_STATE))
        left = self.differing()
        missing = {drifted, *beside} - set(left)
        assert not missing, f"the example's other values make no difference for {missing}"
        known = {entry["id"] for entry in self.entries()}
        if is_blocked:
            self.is_refused(word, left)
            return
        self.settle()
        assert self.world.status(LIVE_SYSTEM, self.name) == "Active", self.shown()["message"]
        now = self.differing()
        assert now == {name: left[name] for name in beside}, f"correcting {drifted} beside {list(beside)}"
        named = {name for entry in self.entries() if entry["id"] not in known for name in entry["after"]}
        means = {RUN_STATE, *MEANS.get((self.offer.type, drifted), ())} - set(beside)
        assert drifted in named, f"the journal does not name {drifted}"
        assert named <= {drifted, *means}, f"the journal names {named}"

    def is_refused(self, word: str, left: dict[str, Any]) -> None:
        """What cannot be corrected without changing what is ignored is left, and said."""
        self.world.cycle(3)
        shown = self.shown()
        assert shown["status"] == "Failed", shown
        assert word in shown["message"], shown["message"]
        assert self.differing() == left
        self.restore()

    def restore(self) -> None:
        """The person brings back what is declared; the way in which targets are reached before what rests on it."""
        [found] = self.example.operator.find(self.name)
        for name in reversed(self.differing()):
            value = self.resolved(name, self.declaration["parameters"][name])
            self.example.operator.edit(found.resource_id, name, value)
        self.deploy(())


@pytest.fixture
def trial(
    request: pytest.FixtureRequest, session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Trial]:
    suite, kind = kinds()[request.param]
    with (
        suite.stage(session_sandbox, tmp_path, kind) as stage,
        reads_of(installed()[kind.type], monkeypatch) as reads,
    ):
        yield Trial(stage, reads)
        stage.world.assert_safe()


@pytest.mark.rule("G15", "C7")
@pytest.mark.parametrize("trial", TYPES, indirect=True)
def test_a_parameter_is_corrected_and_all_that_are_ignored_stay(trial: Trial) -> None:
    for drifted in trial.example.editable()[:QUICK]:
        trial.corrects(drifted, trial.all_beside(drifted))


@pytest.mark.soak
@pytest.mark.rule("G15", "C7")
@pytest.mark.parametrize("trial", TYPES, indirect=True)
def test_each_parameter_is_corrected_and_all_that_are_ignored_stay(trial: Trial) -> None:
    for drifted in trial.example.editable():
        trial.corrects(drifted, trial.all_beside(drifted))


@pytest.mark.soak
@pytest.mark.rule("G15", "C7")
@pytest.mark.parametrize("trial", TYPES, indirect=True)
def test_each_parameter_is_corrected_beside_each_other_that_is_ignored(trial: Trial) -> None:
    for ignored in trial.example.changes:
        trial.deploy(())
        for drifted in trial.example.editable():
            if drifted not in (ignored, trial.compared.grows.get(ignored), trial.rests_on(ignored)) and (
                trial.rests_on(drifted) != ignored
            ):
                trial.corrects(drifted, [ignored])
        if ignored in trial.example.only_up:
            trial.declaration["parameters"][ignored] = trial.example.changes[ignored]


STOPPED_FOR = {
    "AwsEc2Instance": "instanceType",
    "AzureVm": "vmSize",
    "GcpVm": "machineType",
    "HetznerServer": "serverType",
    "VsphereVm": "numCpus",
}


@pytest.mark.rule("G15")
@pytest.mark.parametrize("trial", [one for one in TYPES if one.values[0] in STOPPED_FOR], indirect=True)
def test_a_machine_whose_run_state_is_ignored_is_never_stopped_for_another_parameter(trial: Trial) -> None:
    parameter = STOPPED_FOR[trial.offer.component.__name__]
    trial.deploy([RUN_STATE])
    trial.edit(parameter)
    running = trial.seen()
    assert running.actual[RUN_STATE] == "running"
    trial.world.cycle(3)
    shown = trial.shown()
    assert shown["status"] == "Failed", shown
    assert f"{parameter} of '{trial.name}' changes only while it is stopped" in shown["message"], shown["message"]
    assert trial.seen().actual == running.actual, "nothing was changed"
