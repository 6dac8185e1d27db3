"""AWS in the sandbox, emptied before each test; the agent's session to it, and a person's clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest

from fractal_cloud.model.component import Component
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import stamp
from fractal_cloud.offers.aws.cloud import Aws, AwsSession
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import AnyOffer, Query, Wanted
from fractal_cloud.offers.registry import installed
from fractal_cloud.rules.drift import ComparedType, Drift, find_drift
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.aws import PERSON_ACCESS_KEY
from tests import aws_rights
from tests.offers.aws.example import REGION, Example
from tests.offers.aws.examples import EXAMPLES

LIVE_SYSTEM = "ls-team-a"
ENOUGH = 20


class Person:
    """A person's own boto3 clients."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: dict[str, Any] = {}

    def __call__(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service,  # type: ignore[call-overload]
                endpoint_url=self._url,
                region_name=REGION,
                aws_access_key_id=PERSON_ACCESS_KEY,
                aws_secret_access_key="sandbox",
            )
        return self._clients[service]


class World:
    """Declared components of one LiveSystem, brought into the cloud by their offers alone."""

    def __init__(self, session: AwsSession, person: Person) -> None:
        self.session = session
        self.person = person
        self.account = session.realms()[""]
        self.seen: dict[str, Sighting] = {}
        self.declared: dict[str, dict[str, Any]] = {}

    def cloud(self, place: str = REGION) -> Aws:
        return self.session.at(Scope("aws", self.account, place))

    def cloud_of(self, offer: AnyOffer) -> Aws:
        return self.cloud(REGION if offer.place else "global")

    def resolved(self, offer: AnyOffer, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters with the ids of components replaced by the output that stands for them."""
        references = offer.facts().references()
        return {
            name: self._output(value, references[name][1]) if name in references else value
            for name, value in parameters.items()
        }

    def _output(self, value: Any, output: str) -> Any:
        if isinstance(value, list):
            return [self._output(one, output) for one in value]
        return self.seen[value].outputs[output] if value in self.seen else value

    def wanted(self, declaration: Mapping[str, Any], **changes: Any) -> Wanted[Any]:
        offer = installed()[declaration["type"]]
        parameters = self.resolved(offer, {**declaration["parameters"], **changes})
        component = offer.component.from_parameters(declaration["id"], parameters)
        parent = parameters[offer.parent] if offer.parent else None
        return Wanted(component, LIVE_SYSTEM, parent, token=f"{LIVE_SYSTEM}-{declaration['id']}-1")

    def create(self, declaration: Mapping[str, Any]) -> Sighting:
        offer = installed()[declaration["type"]]
        made = offer.create(self.cloud_of(offer), self.wanted(declaration), stamp(LIVE_SYSTEM))
        self.seen[declaration["id"]] = made
        return made

    def bring(self, example: Example) -> Sighting:
        """Create all components of an example, and correct the last one until it is as declared; its sighting."""
        example.prepare(self.person)
        for declaration in example.components:
            self.create(declaration)
        self.correct(example.components[-1])
        return self.seen[example.components[-1]["id"]]

    def drift(self, declaration: Mapping[str, Any], **changes: Any) -> tuple[Sighting, Drift]:
        """What a fresh read shows, and how it differs from the declaration."""
        offer = installed()[declaration["type"]]
        wanted = self.wanted(declaration, **changes)
        compared = ComparedType(offer.facts())
        swept = [name for name in wanted.component.parameters() if name in compared.swept]
        seen = offer.read(self.cloud_of(offer), self.seen[declaration["id"]].resource_id, swept)
        assert seen is not None
        return seen, find_drift(compared, wanted.component.parameters(), seen.actual)

    def correct(self, declaration: Mapping[str, Any], **changes: Any) -> int:
        """Update until nothing drifts; the number of updates it took."""
        offer = installed()[declaration["type"]]
        wanted = self.wanted(declaration, **changes)
        for count in range(ENOUGH):
            seen, drift = self.drift(declaration, **changes)
            self.seen[declaration["id"]] = seen
            if not drift:
                return count
            offer.update(self.cloud_of(offer), seen, wanted, drift)
        raise AssertionError(f"still drifting after {ENOUGH} updates: {self.drift(declaration, **changes)[1]}")

    def listed(self, offer: AnyOffer, declaration: Mapping[str, Any]) -> list[Sighting]:
        """What the bulk read shows under the declared name."""
        name = declaration["parameters"].get("name", declaration["id"])
        parent = declaration["parameters"].get(offer.parent) if offer.parent else None
        parents = frozenset({self.seen[parent].resource_id}) if parent else frozenset()
        found = all_sightings(offer.sightings(self.cloud_of(offer), Query(frozenset({name}), parents)))
        return [one for one in found if one.name == name]


@pytest.fixture(scope="module")
def running() -> Iterator[Sandbox]:
    with Sandbox(port=0) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def session(running: Sandbox) -> Iterator[AwsSession]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in agent_env(running.url).items():
            patch.setenv(name, value)
        yield AwsSession()


@pytest.fixture(scope="module")
def person(running: Sandbox) -> Person:
    return Person(running.url)


@pytest.fixture
def sandbox(running: Sandbox) -> Sandbox:
    running.reset()
    aws_rights.limit(running)
    return running


@pytest.fixture
def world(sandbox: Sandbox, session: AwsSession, person: Person) -> World:
    return World(session, person)


@pytest.fixture
def with_links(sandbox: Sandbox) -> None:
    """An agent that may also make what links need."""
    aws_rights.limit(sandbox, with_links=True)


@pytest.fixture
def cloud(world: World) -> Aws:
    return world.cloud()


def under_test(kind: type[Component]) -> tuple[AnyOffer, Example, dict[str, Any]]:
    """The offer of a type, its example, and the declaration under test."""
    example = EXAMPLES[kind]
    return installed()[kind.type], example, example.components[-1]
