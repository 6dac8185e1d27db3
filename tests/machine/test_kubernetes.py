"""The same as `test_machine`, in a cluster: people with kubectl, an agent that dies at random, an API with moods.

There is one thing more to ask for here: the guard is atomic, so nobody ever loses a race, whatever the moment (S16).
And one less: names are unique, so nothing can exist twice.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from hypothesis.strategies import SearchStrategy

from fractal_cloud.offers.kubernetes import cloud as cloud_module
from fractal_cloud.sandbox import Sandbox, agent_env
from fractal_cloud.sandbox.calls import Call
from tests.conftest import SOAK
from tests.machine.deeds import Deed, Interruption
from tests.machine.rest import assert_fits, come_to_rest, components, line
from tests.machine.test_machine import Dying
from tests.offers.kubernetes.declaring import Declaration, policy, service, workload
from tests.offers.kubernetes.person import MANAGED_BY, OWNER, RECONCILE, KubernetesPerson
from tests.world import World

LIVE_SYSTEMS = ("ls-a", "ls-b")
PLURALS = ("deployments", "services", "networkpolicies")
BY_TYPE = {"KubernetesWorkload": PLURALS[0], "KubernetesService": PLURALS[1], "KubernetesNetworkPolicy": PLURALS[2]}
COMPONENTS = ("web", "front", "fence", "own")
THEIRS = "team.example/name"
ON_OBJECTS = (
    *("edit", "edit", "edit", "untag", "untag", "hand_back", "hand_back", "hand_back"),
    *("tag_foreign", "wipe", "give_to_helm", "ask_reconcile", "put_managed_by"),
    *("own_a", "own_b", "disown", "destroy", "make_anew"),
)
AT_THE_WRONG_MOMENT = ("untag", "untag", "give_to_helm", "own_a", "own_b", "disown", "wipe", "destroy", "make_anew")
MOODS = (
    *("well", "well", "well", "slow", "late", "lost", "lost", "lost and late", "denied", "throttled"),
    *("list", "get"),
)
Where = tuple[str, str]


# --- what people do


def on_objects(words: tuple[str, ...] = ON_OBJECTS) -> SearchStrategy[Deed]:
    """Somebody with kubectl does something to one object."""
    return st.builds(Deed, st.sampled_from(words), st.integers(0, 7))


def deployments() -> SearchStrategy[Deed]:
    """A declaration of one of the two LiveSystems; they overlap in the workload and the service."""
    maybe = st.sampled_from([None, 1, 2])
    chosen = st.fixed_dictionaries(
        {
            "image": st.sampled_from(["web:1", "web:2"]),
            "replicas": maybe,
            "front": st.sampled_from([True, True, False]),
            "port": st.sampled_from([80, 81]),
            "fence": st.booleans(),
            "own": st.booleans(),
            "tag": st.sampled_from([False, False, True]),
            "import_only": st.sampled_from([False, False, False, True]),
            "other_id": st.sampled_from([False, False, True]),
        }
    )
    return st.builds(
        lambda live_system, choices: Deed("deploy", body=declaration(live_system, **choices)),
        st.sampled_from(LIVE_SYSTEMS),
        chosen,
    )


def declaration(live_system: str, **chosen: Any) -> Declaration:
    """One LiveSystem: its workload, and what of the rest is chosen."""
    web = "shop" if chosen["other_id"] else "web"
    scale = {} if chosen["replicas"] is None else {"replicas": chosen["replicas"]}
    parts = [{**workload(web, name="web", image=chosen["image"], **scale), "importOnly": chosen["import_only"]}]
    if chosen["front"]:
        parts.append(service("front", workload=web, port=chosen["port"]))
    if chosen["fence"]:
        parts.append(policy("fence", workload=web, ingress=[{"port": chosen["port"]}]))
    if chosen["own"]:
        parts.append(workload("own", name=f"own-{live_system}", image=chosen["image"]))
    return {"id": live_system, "readoption": "tag" if chosen["tag"] else "handshake", "components": parts}


def anything() -> SearchStrategy[Deed]:
    """Two deeds of three are done with kubectl."""
    about = st.sampled_from([f"{ls}/{component}" for ls in LIVE_SYSTEMS for component in COMPONENTS])
    asked = st.builds(
        lambda word, what: Deed(word, body={"about": what}), st.sampled_from(["force_push", "break_glass"]), about
    )
    deleted = st.sampled_from(LIVE_SYSTEMS).map(lambda ls: Deed("delete", body={"id": ls}))
    ways = (on_objects(), on_objects(), on_objects(), on_objects(), deployments(), asked, deleted)
    return st.sampled_from(range(len(ways))).flatmap(ways.__getitem__)


def interruptions() -> SearchStrategy[list[Interruption]]:
    """What people do during a cycle: often to what the agent has in its hands at that moment."""
    aimed = st.builds(
        Interruption,
        st.sampled_from(["look", "write"]),
        st.integers(1, 3),
        on_objects(AT_THE_WRONG_MOMENT),
        st.just(True),
    )
    anyhow = st.builds(Interruption, st.just("call"), st.integers(1, 12), anything(), st.just(False))
    ways = (aimed, aimed, anyhow)
    return st.lists(st.sampled_from(range(len(ways))).flatmap(ways.__getitem__), max_size=2)


class People:
    """Everybody but the agent."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._lock = threading.Lock()
        self.foreign: dict[str, str] = {}

    def objects(self) -> list[Where]:
        found = [(plural, one) for plural in PLURALS for one in self._world.cloud.objects(plural, "default")]
        return [(plural, one["metadata"]["name"]) for plural, one in found if one["metadata"]["name"] != "kubernetes"]

    def do(self, deed: Deed) -> None:
        """Do one deed; refusals are no fault."""
        with self._lock:
            if deed.body:
                getattr(self, f"_{deed.word}")(**deed.body)
                return
            standing = self.objects()
            if standing:
                self._on_object(deed, standing[deed.number % len(standing)])

    def do_to(self, deed: Deed, where: Where) -> None:
        """Do one deed to one object, if it is still there."""
        with self._lock:
            if where in self.objects():
                self._on_object(deed, where)

    def _on_object(self, deed: Deed, where: Where) -> None:
        try:
            getattr(self, f"_{deed.word}")(where, deed.number)
        except HTTPError as refusal:
            if refusal.code not in (404, 409):
                raise

    # with kubectl

    def _merge(self, where: Where, **metadata: Any) -> None:
        self._world.kube.merge(*where, {"metadata": metadata})

    def _untag(self, where: Where, _: int) -> None:
        self._merge(where, labels={MANAGED_BY: None})

    def _hand_back(self, where: Where, _: int) -> None:
        self._world.kube.hand_back(*where)

    def _give_to_helm(self, where: Where, _: int) -> None:
        self._merge(where, labels={MANAGED_BY: "Helm"})

    def _ask_reconcile(self, where: Where, _: int) -> None:
        self._merge(where, annotations={RECONCILE: "reconcile"})

    def _put_managed_by(self, where: Where, _: int) -> None:
        self._merge(where, labels={MANAGED_BY: "fractal-cloud"})

    def _own_a(self, where: Where, _: int) -> None:
        self._merge(where, labels={OWNER: "ls-a"})

    def _own_b(self, where: Where, _: int) -> None:
        self._merge(where, labels={OWNER: "ls-b"})

    def _disown(self, where: Where, _: int) -> None:
        self._merge(where, labels={OWNER: None})

    def _wipe(self, where: Where, _: int) -> None:
        self._merge(where, labels={MANAGED_BY: None, OWNER: None}, annotations={RECONCILE: None})

    def _tag_foreign(self, where: Where, number: int) -> None:
        self._merge(where, annotations={THEIRS: f"team {number}"})
        item = self._world.kube.get(*where)
        if item is not None:
            self.foreign[item["metadata"]["uid"]] = f"team {number}"

    def _edit(self, where: Where, number: int) -> None:
        plural, name = where
        if plural == "deployments":
            self._world.kube.merge(plural, name, {"spec": {"replicas": 3 + number}})
        elif plural == "services":
            ports = [{"port": 8000 + number, "protocol": "TCP"}]
            self._world.kube.merge(plural, name, {"spec": {"ports": ports}})
        else:
            self._world.kube.merge(plural, name, {"spec": {"ingress": []}})

    def _destroy(self, where: Where, _: int) -> None:
        self._world.kube.delete(*where)

    def _make_anew(self, where: Where, _: int) -> None:
        """Delete and create under the same name: another object, with nobody's tags."""
        item = self._world.kube.get(*where)
        if item is not None:
            self._world.kube.delete(*where)
            spec = {key: value for key, value in item["spec"].items() if not key.startswith("clusterIP")}
            again = {**item, "metadata": {"name": item["metadata"]["name"]}, "spec": spec}
            again.pop("status", None)
            self._world.kube.create(where[0], again)

    # through the product

    def _deploy(self, **body: Any) -> None:
        self._world.api.put(f"/livesystems/{body['id']}", json=body)

    def _delete(self, id: str) -> None:
        self._world.api.delete(f"/livesystems/{id}")

    def _force_push(self, about: str) -> None:
        live_system, component = about.split("/")
        self._world.force_push(live_system, component)

    def _break_glass(self, about: str) -> None:
        live_system, component = about.split("/")
        self._world.glass(live_system, component, "break", reason="because")

    def assert_foreign_tags_survive(self) -> None:
        """SAFETY: nobody else's annotations are lost (T1)."""
        for plural in PLURALS:
            for item in self._world.cloud.objects(plural, "default"):
                expected = self.foreign.get(item["metadata"]["uid"])
                found = (item["metadata"].get("annotations") or {}).get(THEIRS)
                assert expected is None or found == expected, f"{plural} {item['metadata']['name']} has {found!r}"


# --- the world


class ClusterWorld(World):
    """A world whose agent serves the sandbox's first cluster."""

    providers = ("kubernetes",)

    def __init__(self, sandbox: Sandbox, folder: Path, **settings: Any) -> None:
        self.kube = KubernetesPerson(sandbox.url, folder)
        super().__init__(sandbox, folder, **settings)

    @property
    def cloud(self) -> Any:
        return self.sandbox.kubernetes

    def assert_safe(self) -> None:
        super().assert_safe()
        assert not self.cloud.monitor.lost_races, "\n".join(map(str, self.cloud.monitor.lost_races))


class Histories(RuleBasedStateMachine):
    """One history."""

    def __init__(self, made: ClusterWorld) -> None:
        super().__init__()
        self.world = made
        self.people = People(made)
        self.knobs = made.cloud.knobs
        self._new_agent()

    def _new_agent(self) -> None:
        sessions = self.world.agent._sessions
        self.world.restart_agent()
        self.world.agent.close()
        self.world.start_agent(Dying)
        self.world.agent._sessions.update(sessions)

    @initialize(deployed=st.lists(deployments(), min_size=1, max_size=3))
    def live_systems_are_deployed(self, deployed: list[Deed]) -> None:
        for deed in deployed:
            self.people.do(deed)
        self.world.cycle()

    @rule(deeds=st.lists(anything(), min_size=1, max_size=3), during=interruptions())
    def people_act_and_a_cycle_passes(self, deeds: list[Deed], during: list[Interruption]) -> None:
        for deed in deeds:
            self.people.do(deed)
        self.a_cycle_passes(during)

    @rule(during=interruptions())
    def a_cycle_passes(self, during: list[Interruption]) -> None:
        self._interrupt(during)
        self.world.cycle()

    @rule(during=interruptions(), reports=st.none() | st.integers(0, 3))
    def the_agent_dies(self, during: list[Interruption], reports: int | None) -> None:
        """In its sleep, or in a cycle after so many reports."""
        if reports is not None:
            plane = self.world.agent._control
            assert isinstance(plane, Dying)
            plane.reports_left = reports
            self.a_cycle_passes(during)
        self._new_agent()

    def _interrupt(self, during: list[Interruption]) -> None:
        """Do deeds right before calls of the agent in the coming cycle."""
        self.knobs._before_hooks.clear()
        counts: Counter[str] = Counter()

        def act(call: Call) -> None:
            kinds = {"call", "write" if call.is_write else "look" if call.operation == "get" else "call"}
            counts.update(kinds)
            for one in during:
                if one.before not in kinds or counts[one.before] != one.nth:
                    continue
                if not one.aimed:
                    self.people.do(one.deed)
                elif call.resource_ids:
                    self.people.do_to(one.deed, _where(call))

        if during:
            self.knobs.before_call(act, actor="agent")

    @rule(mood=st.sampled_from(MOODS), nth=st.integers(1, 3))
    def the_cluster_has_a_mood(self, mood: str, nth: int) -> None:
        refused = {"status": 403, "code": "Forbidden", "actor": "agent"}
        match mood:
            case "well":
                self.knobs.reset()
            case "slow":
                self.knobs.slow_creation(reads=2)
            case "late":
                self.knobs.late_visibility(reads=1)
            case "lost":
                self.knobs.fail(when="after", cut=True, nth=nth, actor="agent", writes_only=True)
            case "lost and late":
                self.knobs.late_visibility(reads=1)
                self.knobs.fail(when="after", cut=True, nth=nth, actor="agent", operation="create")
            case "denied":
                self.knobs.fail(nth=nth, writes_only=True, **refused)
            case "throttled":
                self.knobs.throttle(next_calls=1, actor="agent", writes_only=True)
            case operation:
                self.knobs.fail(nth=nth, operation=operation, **refused)

    @invariant()
    def nothing_forbidden_was_done(self) -> None:
        self.world.assert_safe()
        self.people.assert_foreign_tags_survive()

    def teardown(self) -> None:
        """All rests at the end; then the world is closed."""
        try:
            self.knobs.reset()
            come_to_rest(self.world)
            self.nothing_forbidden_was_done()
            assert_truth(self.world)
        finally:
            self.world.close()


def _where(call: Call) -> Where:
    """The plural and the name of the object a call is about."""
    return call.service.partition(".")[0], call.resource_ids[0].rpartition("/")[2]


def assert_truth(world: ClusterWorld) -> None:
    """At rest every status says what the cluster shows (S1 to S12), judged from names and tags alone."""
    for component in components(world):
        if component["deleting"]:
            continue
        plural = BY_TYPE[component["type"].rpartition(".")[2]]
        component_id, live_system = component["componentId"], component["liveSystemId"]
        name = {"shop": "web", "own": f"own-{live_system}"}.get(component_id, component_id)
        item = world.kube.get(plural, name)
        if item is None:
            allowed = ("Missing", "ManualOverride", "Failed", "Instantiating")
            assert component["status"] in allowed, f"absent, yet {line(component)}"
            continue
        labels, notes = item["metadata"].get("labels") or {}, item["metadata"].get("annotations") or {}
        spelled = {"managed-by": labels.get(MANAGED_BY), "fractal-cloud-owner": labels.get(OWNER)}
        spelled["fractal-cloud"] = notes.get(RECONCILE)
        assert_fits(component, f"{plural} {name}", {key: value for key, value in spelled.items() if value is not None})


HISTORIES = settings(
    settings.get_profile("soak" if SOAK else "default"),
    max_examples=int(os.environ.get("FRACTAL_HISTORIES", "2000" if SOAK else "4")),
    stateful_step_count=20,
    derandomize=not SOAK,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def new_world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[Callable[[], ClusterWorld]]:
    """Makes one world after the other on one cluster; the sessions of the first serve all."""
    numbers = count()
    sessions: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in agent_env(session_sandbox.url, tmp_path).items():
            patch.setenv(name, value)
        patch.setenv(cloud_module.WATCH, "0")
        patch.setenv(cloud_module.CONTEXTS, "sandbox")

        def new() -> ClusterWorld:
            session_sandbox.kubernetes.reset()
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            made = ClusterWorld(session_sandbox, folder, concurrency=1, cycle_seconds=0.02)
            made.agent._sessions = sessions
            return made

        yield new


@pytest.mark.hypothesis
@pytest.mark.timeout(6 * 3_600 if SOAK else 600)
@pytest.mark.rule("S15", "S16", "S17", "S20", "T1", "T3", "T4", "O2", "O3")
def test_whatever_people_do_in_a_cluster_nothing_forbidden_happens_and_nobody_loses_a_race(new_world: Any) -> None:
    run_state_machine_as_test(lambda: Histories(new_world()), settings=HISTORIES)  # type: ignore[arg-type]
