"""What the suites over the whole registry need to know of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fractal_cloud.model.component import Component
from fractal_sandbox import Sandbox
from tests.offers.kubernetes import operator_actions
from tests.offers.kubernetes.examples import EXAMPLES
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world
from tests.offers.suites import Case, Stage, Suite

KINDS = {kind.type: kind for kind in operator_actions.CASES}


@contextmanager
def stage(sandbox: Sandbox, folder: Path, kind: type[Component]) -> Iterator[Stage]:
    """One type, in the first cluster."""
    with kubernetes_world(sandbox, folder, KubernetesWorld) as world:
        example = operator_actions.example_of(kind, world.kube)
        yield Stage(
            world,
            example,
            {str(one["id"]): operator_actions.example_of(KINDS[one["type"]], world.kube) for one in example.parents},
        )


SUITE = Suite(
    provider="kubernetes",
    cases={
        kind: Case(
            only_up=bool(case.only_up),
            immutable=bool(EXAMPLES[kind].immutable_changes),
            is_slow=case.is_slow,
            hazardous=bool(case.hazards),
        )
        for kind, case in operator_actions.CASES.items()
    },
    stage=stage,
    effects={kind.__name__: case.effects for kind, case in operator_actions.CASES.items()},
    # One of each way of being: changed freely, and growing only.
    always=("KubernetesWorkload", "KubernetesPersistentVolumeClaim"),
    whole=("KubernetesService", 12),
    machine="KubernetesService",
)
