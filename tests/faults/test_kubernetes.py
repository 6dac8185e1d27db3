"""The agent of a cluster dies, loses an answer, or cannot read, at every effect it has (S17, S0).

Beside what `test_crash` and `test_unreadable` ask of AWS: the guard of Kubernetes is atomic, so that there are no lost
races either. What only a sandbox can do (refuse, end a list early) is asked of it alone; the rest runs in a real
cluster too, where ``KUBECONFIG_REAL`` names one. The quick run lets the faults take turns; the long run has all of them
at every effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.kubernetes import calls
from fractal_cloud.offers.registry import installed
from fractal_cloud.sandbox import Sandbox
from tests.faults.effects import Fault
from tests.faults.lives import Life, strike_all, strike_whole
from tests.offers.kubernetes.hands import CASES, example_of
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

KINDS = {kind.__name__: kind for kind in CASES}
# The effects of each one's life, at least: what is counted below must not shrink unnoticed.
EFFECTS = {
    "KubernetesWorkload": 20,
    "KubernetesService": 20,
    "KubernetesNetworkPolicy": 20,
    "KubernetesPersistentVolumeClaim": 16,
    "KubernetesVirtualMachine": 20,
    "Ambassador": 20,
}
WHOLE = 12
DEADLY = (Fault.KILLED_AFTER, Fault.ANSWER_LOST)
# One of each way of being: changed freely, and growing only.
ALWAYS = ("KubernetesWorkload", "KubernetesPersistentVolumeClaim")
Strike = Callable[[str, Sequence[Fault]], None]


@pytest.fixture
def strike(session_sandbox: Sandbox, tmp_path: Path, record_property: Callable[[str, object], None]) -> Strike:
    """Have faults happen at every effect of one type's life, and tell how many that were."""

    def run(kind: str, faults: Sequence[Fault]) -> None:
        with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as world:
            example = example_of(KINDS[kind], world.kube)
            offer = installed()[KINDS[kind].type]
            effects = strike_all(lambda number: Life(offer, example, world, number), world, faults)
        points = sum(map(len, effects.values()))
        print(f"{kind}: {points} crash points: {effects}")
        record_property("crash points", points)
        assert points >= EFFECTS[kind]

    return run


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "C7", "T1", "T2", "O10", "G10", "S16")
@pytest.mark.parametrize("kind", ALWAYS)
def test_a_life_goes_on_whatever_effect_is_struck_by_one_fault_or_another(kind: str, strike: Strike) -> None:
    strike(kind, DEADLY)


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "O10")
def test_a_whole_livesystem_comes_and_goes_whatever_effect_is_struck(
    session_sandbox: Sandbox, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as world:
        effects = strike_whole(example_of(KINDS["KubernetesService"], world.kube), world, DEADLY)
    points = sum(map(len, effects.values()))
    print(f"a whole LiveSystem: {points} crash points: {effects}")
    record_property("crash points", points)
    assert points >= WHOLE


@pytest.mark.soak
@pytest.mark.rule("S17")
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("kind", KINDS)
def test_a_life_goes_on_whatever_happens_at_whatever_effect(kind: str, fault: Fault, strike: Strike) -> None:
    strike(kind, [fault])


# --- what cannot be read

REFUSALS: dict[str, dict[str, Any]] = {
    "denied": {"status": 403, "code": "Forbidden"},
    "throttled": {"status": 429, "code": "TooManyRequests"},
    "failing": {"status": 500, "code": "InternalError"},
    "cut off": {"cut": True},
}
LIVE_SYSTEM = "ls-a"


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesWorld]:
    """One attempt per read: how often the SDK tries before it gives up is not what is tested here."""
    monkeypatch.setattr("fractal_cloud.offers.kubernetes.cloud.READ_ATTEMPTS", 1)
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made:
        yield made


def _every(kinds: Sequence[str]) -> list[Any]:
    return [
        pytest.param(kind, refusal, id=f"{kind}-{refusal}", marks=() if kind in kinds else pytest.mark.soak)
        for kind in KINDS
        for refusal in REFUSALS
    ]


@pytest.mark.rule("S0", "S22")
@pytest.mark.parametrize(("kind", "refusal"), _every(("KubernetesWorkload",)))
def test_what_cannot_be_read_is_neither_created_changed_nor_deleted(
    kind: str, refusal: str, world: KubernetesWorld
) -> None:
    example = example_of(KINDS[kind], world.kube)
    name = str(example.declaration["id"])
    drifting, going, coming = (example.under_name(f"{name}-{number}") for number in range(3))
    world.deploy(LIVE_SYSTEM, *example.parents, drifting, going)
    world.settle()
    for parameter in example.editable()[:1]:
        value = example.changes[parameter]
        example.hands.edit(world.component(LIVE_SYSTEM, drifting["id"])["resourceId"], parameter, value)
    before = len(world.writes())
    world.cloud.knobs.fail(operation="list", times=None, actor="agent", **REFUSALS[refusal])
    world.deploy(LIVE_SYSTEM, *example.parents, drifting, coming)
    world.cycle(3)
    assert len(world.writes()) == before, world.writes()[before:]
    shown = world.component(LIVE_SYSTEM, drifting["id"])
    assert shown["status"] == "Active"
    assert shown["observedGeneration"] == 1
    assert world.component(LIVE_SYSTEM, going["id"])["status"] != "Deleted"
    world.cloud.knobs.reset()
    world.survive(at_most=120)
    assert [len(example.hands.find(one["id"])) for one in (drifting, going, coming)] == [1, 0, 1]
    world.assert_safe()


@pytest.mark.rule("S0")
@pytest.mark.parametrize("page", [1, 2])
def test_a_list_that_ends_before_its_last_page_shows_nothing_at_all(
    page: int, world: KubernetesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PAGE", 1)
    example = example_of(KINDS["KubernetesWorkload"], world.kube)
    both = [example.under_name(f"shop-{number}") for number in range(2)]
    world.deploy(LIVE_SYSTEM, *both)
    world.settle()
    world.cloud.knobs.fail_page(page, operation="list", status=500, times=None)
    before = len(world.writes())
    world.deploy(LIVE_SYSTEM, both[0])
    world.cycle(3)
    assert len(world.writes()) == before
    assert len(example.hands.find("shop-1")) == 1
    world.cloud.knobs.reset()
    world.survive(at_most=120)
    assert not example.hands.find("shop-1")
    world.assert_safe()


@pytest.fixture
def anywhere(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    """In the sandbox, or in a real cluster: nothing is asked of it that only a sandbox can do."""
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made:
        yield made


@pytest.mark.rule("C2")
def test_a_wiped_memory_makes_nothing_twice_and_deletes_nothing(anywhere: KubernetesWorld) -> None:
    """With the control plane's database lost and the same declarations deployed again, all is as it was."""
    world = anywhere
    example = example_of(KINDS["KubernetesService"], world.kube)
    world.deploy(LIVE_SYSTEM, *example.components)
    world.settle()
    before = {one["id"]: world.component(LIVE_SYSTEM, one["id"])["resourceId"] for one in example.components}
    world.close()
    world.open_control_plane("another.db")
    writes = len(world.writes())
    world.deploy(LIVE_SYSTEM, *example.components)
    world.settle()
    after = {one["id"]: world.component(LIVE_SYSTEM, one["id"]) for one in example.components}
    assert {name: one["resourceId"] for name, one in after.items()} == before
    assert {one["status"] for one in after.values()} == {"Active"}
    assert len(world.writes()) == writes
    world.assert_safe()
