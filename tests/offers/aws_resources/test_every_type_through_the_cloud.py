"""Over the types of AWS, by our offer and the sandbox's Cloud Control: what comes back in another shape is no drift,
what a person changes is the one thing that drifts, and the patch that corrects it touches nothing else.

The values are made of the schemas (`generating`), the shapes of public reports (`docs/aws-shapes.md`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import stamp
from fractal_cloud.offers.aws.cloud import Aws, AwsSession
from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.offer import AnyOffer, Wanted
from fractal_cloud.offers.registry import installed
from fractal_cloud.rules.drift import ComparedType, find_drift
from fractal_cloud.rules.nested.path import root
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.aws.cloudcontrol.schemas import catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE
from fractal_sandbox.aws.cloudcontrol.twins import find_twin
from tests import world
from tests.offers.aws_resources.generating import NoValue, Values
from tests.offers.aws_resources.people import Person
from tests.offers.aws_resources.sampling import described, person_at
from tests.offers.aws_resources.test_alternatives import changes
from tests.world import REGION

LIVE_SYSTEM = "shop"
FEW = 32
PARTS_OF_ALL = 8
SEED = 5
FEWEST_OF_THE_FEW = 25
OF_ALTERNATIVES = (
    "AWS::KafkaConnect::Connector",
    "AWS::QBusiness::Retriever",
    "AWS::SSMContacts::Rotation",
    "AWS::SageMaker::Pipeline",
    "AWS::VpcLattice::ResourceConfiguration",
)


class Tried:
    """One resource of a type, made by our offer of a generated value."""

    def __init__(self, sandbox: Sandbox, session: AwsSession, name: str, **chosen: Any) -> None:
        self.name = name
        self.offer: AnyOffer = installed()[name]
        one = described(name)
        realm = session.realms()[""]
        self.cloud: Aws = session.at(Scope("aws", realm, REGION if one.type.place else "global"))
        self.sandbox = sandbox
        self.values = Values(name, SEED, full=0.6)
        facts = self.offer.facts()
        known = facts.parameter_schema["properties"]
        made = {key: value for key, value in self.values.properties().items() if key in known} | chosen
        if facts.name_parameter and facts.name_parameter not in made:
            made[facts.name_parameter] = self.values.another(facts.name_parameter, None)
        self.compared = ComparedType(facts)
        place = {"region": REGION} if one.type.place else {}
        component = self.offer.component.from_parameters("one", {**place, **made})
        self.declared = made
        self.wanted: Wanted[Any] = Wanted(component, LIVE_SYSTEM, token=f"{name}-1")
        self.seen = self.offer.create(self.cloud, self.wanted, stamp(LIVE_SYSTEM))

    def read(self) -> Sighting:
        """The resource as our offer reads it now."""
        found = self.offer.read(self.cloud, self.seen.resource_id)
        assert found is not None, "it is not there"
        return found

    def drift(self, seen: Sighting) -> dict[str, Any]:
        """What differs, but for what AWS never returns."""
        shown = self.offer.as_declared(seen, self.declared, {})
        found = find_drift(self.compared, self.declared, shown.actual)
        return {name: one for name, one in found.items() if not self.compared.is_write_only(name)}

    def edit(self, person: Person) -> str | None:
        """A person gives one property another value; which one. None where nothing can be changed."""
        for name in self.values.shuffled(self.declared):
            if name in self.compared.never_compared or self.compared.is_write_only(name) or self.is_fixed(name):
                continue
            try:
                other = self.values.another(name, self.declared[name])
            except NoValue:
                continue
            if not find_drift(self.compared, self.declared, {**self.declared, name: other}):
                continue
            with suppress(ClientError):  # what AWS refuses from everybody in this combination
                person.edit(self.seen.resource_id, name, other)
                return name
        return None

    def kept(self) -> dict[str, Any]:
        """What the sandbox keeps of it, in no other shape."""
        schema = catalog().find(self.name)
        assert schema is not None
        return deepcopy(dict(STORE.find(schema, self.seen.resource_id, self.cloud.region) or {}))

    def is_fixed(self, name: str) -> bool:
        """Whether a property, or something in it, cannot be changed: AWS would refuse the person's change as well."""
        kind = described(self.name).type
        return any(path.partition(".")[0] == name for path in kind.create_only | kind.conditional_create_only)

    def is_changeable(self) -> bool:
        """Whether a person may change it without saying again what AWS never returns."""
        kind = described(self.name).type
        return "update" in kind.handlers and not any(one in kind.write_only for one in kind.required)

    def patched(self) -> list[dict[str, Any]]:
        """The operations of our last patch."""
        calls = self.sandbox.aws.calls.find(actor="agent", writes_only=True)
        patches = [one.call.parameters["PatchDocument"] for one in calls if one.call.operation == "UpdateResource"]
        found: list[dict[str, Any]] = json.loads(patches[-1]) if isinstance(patches[-1], str) else patches[-1]
        return found


def problem_of(tried: Tried, person: Person) -> str:
    """What is wrong with how a type is read and corrected; empty where nothing is."""
    if drift := tried.drift(tried.read()):
        return f"phantom drift: {drift}"
    name = tried.edit(person) if tried.is_changeable() else None
    return "" if name is None else problem_of_correction(tried, name)


def problem_of_correction(tried: Tried, name: str) -> str:
    """What is wrong with how a person's change of one property is corrected; empty where nothing is."""
    seen = tried.read()
    drift = tried.drift(seen)
    if {root(path) for path in drift} != {name}:
        return f"{name} was changed, and what drifts is {drift}"
    before = tried.kept()
    tried.offer.update(tried.cloud, seen, tried.wanted, list(drift))
    after = tried.kept()
    if left := tried.drift(tried.read()):
        return f"{name} was changed, and after its correction there is {left}"
    again = set(described(tried.name).type.write_only)
    tags = described(tried.name).type.tags
    for one in tried.patched():
        head = one["path"].split("/")[1]
        is_test_of_tags = one["op"] == "test" and tags is not None and head == tags.property
        if not (is_test_of_tags or head == name or head in again):
            return f"{name} was changed, and the patch touches {one}"
    others = {key for key in {*before, *after} if before.get(key) != after.get(key)} - {name}
    return f"{name} was corrected, and {sorted(others)} changed too" if others else ""


@pytest.fixture
def session(session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsSession]:
    session_sandbox.aws.reset()
    session_sandbox.aws.lift_limits()
    knobs = session_sandbox.aws.knobs
    knobs.checks_references = False
    knobs.reshape = SEED
    for name, value in agent_env(session_sandbox.url).items():
        monkeypatch.setenv(name, value)
    yield AwsSession()
    session_sandbox.aws.reset()


def tried_types(names: tuple[str, ...], sandbox: Sandbox, session: AwsSession) -> tuple[int, Mapping[str, str]]:
    """How many types were tried, and what is wrong with which."""
    tried, wrong = 0, {}
    someone = world.Person(sandbox.url)
    for name in names:
        if find_twin(name) is not None or described(name).type.part is not None:
            continue
        try:
            one = Tried(sandbox, session, name)
        except NoValue:
            continue
        tried += 1
        try:
            found = problem_of(one, person_at(name, someone, lambda _: {}))
        except CloudError as refused:
            found = f"our patch was refused: {refused}"
        if found:
            wrong[name] = found
    return tried, wrong


@pytest.mark.rule("G3", "S12", "T10")
def test_some_types_are_made_read_and_corrected_alone(session_sandbox: Sandbox, session: AwsSession) -> None:
    names = types.names()
    tried, wrong = tried_types(names[:: len(names) // FEW], session_sandbox, session)
    assert wrong == {}
    assert tried >= FEWEST_OF_THE_FEW


def tried_alternatives(names: tuple[str, ...], sandbox: Sandbox, session: AwsSession) -> tuple[int, Mapping[str, str]]:
    """How many changes to another alternative were tried, and what is wrong with which."""
    tried, wrong = 0, {}
    someone = world.Person(sandbox.url)
    for kind, change in [(one, change) for one in names for change in changes(one)]:
        try:
            one = Tried(sandbox, session, kind, **{change.name: change.declared})
            is_hidden = any(root(path) == change.name for path in one.compared.write_only)
            if is_hidden or one.is_fixed(change.name) or not one.is_changeable():
                continue
            person_at(kind, someone, lambda _: {}).edit(one.seen.resource_id, change.name, change.actual)
        except (NoValue, CloudError, ClientError):
            continue  # what does not go together with the other values, and what AWS refuses from everybody
        tried += 1
        try:
            found = problem_of_correction(one, change.name)
        except CloudError as refused:
            found = f"our patch was refused: {refused}"
        if found:
            wrong[f"{kind}.{change.name}"] = found
    return tried, wrong


@pytest.mark.rule("G3", "S12", "T10")
def test_another_alternative_is_corrected_as_aws_accepts_it(session_sandbox: Sandbox, session: AwsSession) -> None:
    tried, wrong = tried_alternatives(OF_ALTERNATIVES, session_sandbox, session)
    assert wrong == {}
    assert tried >= len(OF_ALTERNATIVES)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.rule("G3", "S12", "T10")
def test_every_other_alternative_is_corrected_as_aws_accepts_it(session_sandbox: Sandbox, session: AwsSession) -> None:
    tried, wrong = tried_alternatives(types.names(), session_sandbox, session)
    assert wrong == {}
    assert tried >= 5 * len(OF_ALTERNATIVES)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.rule("G3", "S12", "T10")
@pytest.mark.parametrize("part", range(PARTS_OF_ALL))
def test_every_type_is_made_read_and_corrected_alone(part: int, session_sandbox: Sandbox, session: AwsSession) -> None:
    _, wrong = tried_types(types.names()[part::PARTS_OF_ALL], session_sandbox, session)
    assert wrong == {}
