"""Break the glass with Google's own command line, with the commands that the product prints."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.component import Component
from fractal_cloud.model.tags import MANAGED_BY, OWNER, RECONCILE
from fractal_cloud.offers.gcp.gke import GcpGke
from fractal_cloud.offers.gcp.vm import GcpVm
from fractal_sandbox import Sandbox, sandbox_env
from tests.glass.override_scenario import OverrideScenario, not_ours, play
from tests.glass.printed_commands import Run, commands, terminal
from tests.offers.gcp.examples import EXAMPLES
from tests.offers.gcp.operator_actions import CASES, GcpActions
from tests.offers.gcp.person import ZONE, GcpPerson
from tests.offers.gcp.suite import GcpWorld
from tests.offers.worlds import provider_world

PROVIDER = "gcp"

pytestmark = pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")

OTHERS = {"team": "payments"}


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[GcpWorld]:
    with provider_world(session_sandbox, tmp_path, GcpWorld) as made:
        yield made


@pytest.fixture
def gcloud(world: GcpWorld, tmp_path: Path) -> Run:
    """Runs one command line as a person with a shell would; nothing but the sandbox is reached."""
    return terminal(tmp_path, sandbox_env(world.sandbox.url, tmp_path), seconds=110)


@pytest.mark.timeout(300)
@pytest.mark.rule("G1", "G7", "G12", "T1", "T8")
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param((GcpVm, GcpGke), id="the plainest and the trickiest"),
        pytest.param(tuple(CASES), id="all", marks=pytest.mark.soak),
    ],
)
def test_every_type_is_let_go_and_handed_back_by_the_printed_commands(
    world: GcpWorld, gcloud: Run, kinds: tuple[type[Component], ...]
) -> None:
    examples = {kind: EXAMPLES[kind] for kind in kinds}
    declared = {str(one["id"]): one for example in examples.values() for one in example.components}
    world.deploy("ls-a", *declared.values())
    world.settle()
    person = GcpPerson(world.sandbox.url)
    operators = {
        str(example.components[-1]["id"]): GcpActions(person, kind, example) for kind, example in examples.items()
    }
    for name, one in operators.items():
        one.tag(one.find(name)[0], OTHERS)

    printed = {name: commands(world, name) for name in operators}

    def type_all(lines: Iterable[str]) -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(gcloud, lines))

    type_all(line for break_glass, _ in printed.values() for line in break_glass)
    world.cycle()
    assert {world.status("ls-a", name) for name in operators} == {"ManualOverride"}
    for name, one in operators.items():
        assert one.find(name)[0].tags == {OWNER: "ls-a", **OTHERS}, name

    type_all(line for _, readopt in printed.values() for line in readopt)
    asked = {OWNER: "ls-a", MANAGED_BY: "fractal-cloud", RECONCILE: "reconcile", **OTHERS}
    for name, one in operators.items():
        assert one.find(name)[0].tags == asked, name
    world.settle()
    assert {world.status("ls-a", name) for name in operators} == {"Active"}
    for name, one in operators.items():
        assert one.find(name)[0].tags == {OWNER: "ls-a", MANAGED_BY: "fractal-cloud", **OTHERS}, name
    world.assert_safe()


@pytest.mark.soak
@pytest.mark.rule("G12", "T1")
def test_a_cluster_whose_labels_cannot_be_read_keeps_them_all(world: GcpWorld, gcloud: Run) -> None:
    """gcloud's update of a cluster's labels replaces them all; a list that came out empty must not do that."""
    kind, example = next((kind, one) for kind, one in EXAMPLES.items() if kind.__name__ == "GcpGke")
    world.deploy("ls-a", *example.components)
    world.settle()
    operator = GcpActions(GcpPerson(world.sandbox.url), kind, example)
    before = operator.find("kube")[0].tags
    _, [line] = commands(world, "kube")
    broken = line.replace("clusters describe kube", "clusters describe nowhere")
    assert broken != line
    with pytest.raises(AssertionError, match="update-labels"):
        gcloud(broken)
    assert operator.find("kube")[0].tags == before


@pytest.mark.clis
@pytest.mark.timeout(300)
@pytest.mark.rule("G1", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "P")
def test_a_whole_manual_override_of_one_machine(world: GcpWorld, gcloud: Run) -> None:
    person = GcpPerson(world.sandbox.url)
    example = EXAMPLES[GcpVm].components[-1]

    def declare(name: str, **parameters: Any) -> dict[str, Any]:
        kept = {key: value for key, value in example["parameters"].items() if key in ("zone", "machineType", "image")}
        return {**example, "id": name, "parameters": {**kept, **parameters}}

    def labels(_: str) -> dict[str, str]:
        return dict(person.call("GET", person.instance("mine"))["labels"])

    size = f"--machine-type {example['parameters']['machineType']} --image {example['parameters']['image']}"
    scenario = OverrideScenario(
        declare=declare,
        parameter="networkTags",
        declared=["web"],
        edited=["night", "web"],
        third=["day"],
        edit=lambda _: [f"gcloud compute instances add-tags mine --zone {ZONE} --tags night"],
        delete=lambda _: [f"gcloud compute instances delete mine --zone {ZONE} --quiet"],
        create=[f"gcloud compute instances create legacy --zone {ZONE} --tags web {size}"],
        label=lambda _: gcloud(f"gcloud compute instances add-labels mine --zone {ZONE} --labels team=payments"),
        others=lambda found: not_ours(labels(found)),
    )
    play(world, gcloud, scenario)
