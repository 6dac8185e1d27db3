"""Random histories over types of AWS by their own names: people with AWS's tools, an agent that dies, and AWS's moods.

The same histories as on every provider, with what is peculiar to Cloud Control: requests that are slow, under way for
somebody else, or refused when they were taken long ago, short pages, and parts, which are written only while what they
belong to may be (S25).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from fractal_sandbox import Sandbox
from fractal_sandbox.aws.cloudcontrol.schemas import catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE
from tests.conftest import SOAK
from tests.machine.rest import components, line
from tests.machine.test_providers import Existing, Histories, People
from tests.offers.aws_resources.declarations import REGION
from tests.offers.aws_resources.examples import allowing
from tests.offers.aws_resources.sampling import SAMPLE, example_of
from tests.offers.aws_resources.worlds import generic_world
from tests.offers.suites import Stage, Suite

PART = "part"
HOME = "us-east-1"
MOODS = ("slow changes", "slow deletions", "refused later", "denied by a hook", "busy", "failing", "short pages")
HISTORIES = settings(
    settings.get_profile("soak" if SOAK else "default"),
    max_examples=int(os.environ.get("FRACTAL_HISTORIES", "200" if SOAK else "2")),
    stateful_step_count=15,
    derandomize=not SOAK,
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Part:
    """A part of the shared resource. ``parameters``: its own; ``identifier``: what it is known by, of its parent's."""

    type: str
    parent: str
    output: str
    parameters: Mapping[str, Any]
    identifier: str
    value: str
    region: str = REGION

    def declared(self, parent: str) -> dict[str, Any]:
        """The component, in a component."""
        parameters = {self.parent: f"${{{parent}.{self.output}}}", **self.parameters}
        return {"id": PART, "type": self.type, "provider": "aws", "parameters": parameters}

    def find(self, parent_id: str) -> Mapping[str, Any] | None:
        """The part of a parent with this identifier."""
        schema = catalog().find(self.type)
        assert schema is not None
        return STORE.find(schema, self.identifier.format(parent_id), self.region)


# What is refused is the declaration of the part itself, so that what it needs is nothing but its parent.
KINDS: Mapping[str, Part | None] = {
    "AWS::SQS::Queue": Part(
        "AWS::SQS::QueueInlinePolicy",
        "Queue",
        "QueueUrl",
        {"PolicyDocument": allowing("sqs:SendMessage")},
        "{}",
        "PolicyDocument",
    ),
    "AWS::IAM::Role": Part(
        "AWS::IAM::RolePolicy",
        "RoleName",
        "RoleName",
        {"PolicyName": "reads", "PolicyDocument": allowing("s3:GetObject")},
        "reads|{}",
        "PolicyDocument",
        HOME,
    ),
    "AWS::EC2::InternetGateway": None,
    "AWS::SSM::Parameter": None,
    "AWS::KMS::Key": None,
}
SUITE = Suite("aws", {}, None, lists="GetResources", gets="GetResource", creates="CreateResource")  # type: ignore[arg-type]


class GenericPeople(People):
    """People who also change the part."""

    def __init__(self, stage: Stage, part: Part | None) -> None:
        super().__init__(stage)
        self._part, self._stage = part, stage

    def parts_of(self, shared: str) -> list[dict[str, Any]]:
        return [] if self._part is None else [self._part.declared(shared)]

    def _tag_foreign(self, one: Existing, number: int) -> None:
        """Every other time the part is taken away or changed instead: it has no tags."""
        if self._part is None or number % 2 == 0 or self._part.find(one.found.resource_id) is None:
            super()._tag_foreign(one, number)
            return
        control = replace(self._stage.world.person, region=self._part.region).client("cloudcontrol")
        about = {"TypeName": self._part.type, "Identifier": self._part.identifier.format(one.found.resource_id)}
        if number % 4 == 1:
            control.delete_resource(**about)
            return
        change = [{"op": "add", "path": f"/{self._part.value}", "value": allowing("s3:ListBucket")}]
        control.update_resource(**about, PatchDocument=json.dumps(change))


class GenericHistories(Histories):
    """One history of a type and its part."""

    def __init__(self, stage: Stage, part: Part | None) -> None:
        self.part = part
        super().__init__(stage, SUITE)

    def meet(self, stage: Stage) -> People:
        return GenericPeople(stage, self.part)

    @rule(mood=st.sampled_from(MOODS), nth=st.integers(1, 3))
    def cloud_control_has_a_mood(self, mood: str, nth: int) -> None:
        match mood:
            case "slow changes":
                self.knobs.slow_modification(reads=2)
            case "slow deletions":
                self.knobs.slow_deletion(reads=2)
            case "refused later":
                self.knobs.slow_creation(reads=1)
                self.knobs.slow_modification(reads=1)
                self.knobs.refuse_request(nth=nth, code="NotStabilized")
            case "denied by a hook":
                self.knobs.refuse_request(nth=nth, hook="Org::Guard::Hook")
            case "busy":
                self._refuse(nth, "ConcurrentOperationException", 400)
            case "failing":
                self._refuse(nth, "HandlerInternalFailureException", 502)
            case _:
                self.knobs.page_size = 1

    def _refuse(self, nth: int, code: str, status: int) -> None:
        self.knobs.fail(nth=nth, code=code, status=status, actor="agent", writes_only=True, service="cloudcontrol")

    def teardown(self) -> None:
        super().teardown()
        for component in components(self.world):
            if component["componentId"] == PART and component["status"] == "Active" and not component["deleting"]:
                self._is_as_declared(component)

    def _is_as_declared(self, component: dict[str, Any]) -> None:
        """At rest an active part is there, in what it belongs to, and as it is declared (S25)."""
        assert self.part is not None
        shared = [one.found for one in self.people.existing("shared")]
        shown = [model for one in shared if (model := self.part.find(one.resource_id)) is not None]
        assert [model[self.part.value] for model in shown] == [self.part.parameters[self.part.value]], line(component)


def _some(name: str) -> Any:
    """The quick run takes those with parts, the long one the whole sample."""
    return pytest.param(name, marks=[] if KINDS.get(name) is not None else [pytest.mark.soak])


@pytest.mark.hypothesis
@pytest.mark.timeout(600)
@pytest.mark.rule("S7", "S9", "S11", "S12", "S13", "S15", "S16", "S17", "S20", "S25", "G1", "G7", "G10", "O1", "T1")
@pytest.mark.parametrize("name", [_some(name) for name in dict.fromkeys((*KINDS, *SAMPLE))])
def test_whatever_people_do_to_a_type_and_its_part_all_comes_to_rest(
    session_sandbox: Sandbox, tmp_path: Path, name: str
) -> None:
    with generic_world(session_sandbox, tmp_path) as world:
        stage = Stage(world, example_of(name, world.person))
        run_state_machine_as_test(lambda: GenericHistories(stage, KINDS.get(name)), settings=HISTORIES)  # type: ignore[arg-type]
