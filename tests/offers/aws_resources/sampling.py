"""Types of AWS that cover every shape there is, each with an example made of its schema for the contract of offers.

What a person does goes through Cloud Control and the tagging API; who is there is read from the sandbox's own books.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.facts import Described
from fractal_cloud.offers.aws.resources.tables.places import home_region
from fractal_cloud.offers.aws.resources.tags import written
from fractal_cloud.rules.drift import ComparedType, find_drift
from fractal_cloud.testing import Found, OfferExample
from fractal_cloud.testing.trial import MINE, OTHERS
from fractal_sandbox.aws.cloudcontrol.store import STORE
from fractal_sandbox.aws.cloudcontrol.twins import find_twin
from fractal_sandbox.aws.cloudcontrol.values import arn_of
from tests import world
from tests.offers.aws_resources.generating import NoValue, Values, validator
from tests.world import REGION

MOST: Final = 60
_CHANGES: Final = 2
_NAMES: Final = ("one-1", "one1")


SAMPLE: Final = (
    "AWS::APS::AnomalyDetector",
    "AWS::APS::RuleGroupsNamespace",
    "AWS::APS::Scraper",
    "AWS::ARCRegionSwitch::Plan",
    "AWS::AWSExternalAnthropic::Workspace",
    "AWS::AccessAnalyzer::Analyzer",
    "AWS::AgentRegistry::RegistryRecord",
    "AWS::AmazonMQ::Broker",
    "AWS::Amplify::Webhook",
    "AWS::ApiGateway::ClientCertificate",
    "AWS::ApiGateway::DomainName",
    "AWS::ApiGateway::Stage",
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGatewayV2::DomainName",
    "AWS::ApiGatewayV2::Stage",
    "AWS::AppConfig::ConfigurationProfile",
    "AWS::AppConfig::ExperimentDefinition",
    "AWS::AppConfig::ExperimentRun",
    "AWS::AppConfig::ExtensionAssociation",
    "AWS::AppFlow::Flow",
    "AWS::AppStream::AppBlockBuilder",
    "AWS::AppStream::Fleet",
    "AWS::AppTest::TestCase",
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::ApplicationSignals::InstrumentationConfig",
    "AWS::BCMDataExports::Export",
    "AWS::Backup::BackupPlan",
    "AWS::Backup::BackupVault",
    "AWS::Backup::TieringConfiguration",
    "AWS::Batch::ComputeEnvironment",
    "AWS::Bedrock::Agent",
    "AWS::Bedrock::AgentAlias",
    "AWS::Billing::BillingView",
    "AWS::Budgets::BudgetsAction",
    "AWS::CE::AnomalyMonitor",
    "AWS::CE::AnomalySubscription",
    "AWS::CE::CostCategory",
    "AWS::CloudFront::ConnectionFunction",
    "AWS::CloudFront::Function",
    "AWS::CloudFront::KeyValueStore",
    "AWS::CloudFront::VpcOrigin",
    "AWS::CloudWatch::MetricStream",
    "AWS::CustomerProfiles::CalculatedAttributeDefinition",
    "AWS::DRS::LaunchConfigurationTemplate",
    "AWS::EC2::EIP",
    "AWS::GameLiftStreams::Application",
    "AWS::Glue::Connection",
    "AWS::Glue::Integration",
    "AWS::IAM::User",
    "AWS::ImageBuilder::Image",
    "AWS::Kendra::DataSource",
    "AWS::KendraRanking::ExecutionPlan",
    "AWS::LicenseManagerUserSubscriptions::LicenseServerEndpoint",
    "AWS::NetworkManager::ConnectAttachment",
    "AWS::NetworkManager::Device",
    "AWS::Notifications::NotificationConfiguration",
    "AWS::Oam::Link",
    "AWS::Pipes::Pipe",
    "AWS::SageMaker::FeatureGroup",
)
"""What `sample` makes: written down, since finding it takes a while."""


@dataclass(frozen=True)
class Shape:
    """In what the types differ for whoever reads and changes them."""

    named_by: str
    identifiers: int
    tags: str
    is_regional: bool
    has_write_only: bool
    has_incarnation: bool


def described(name: str) -> Described:
    found = types.find(name)
    assert found is not None
    return Described(found)


def shape_of(name: str) -> Shape:
    """The shape of a type that carries tags."""
    one = described(name)
    kind = one.type
    tags: str = "by its service" if kind.tags is None else kind.tags.shape
    tags += " frozen" if one.facts().tags_frozen else ""
    return Shape(
        kind.named_by,
        min(len(kind.identifier), 2),
        tags,
        bool(kind.place),
        bool(kind.write_only),
        bool(one.incarnation),
    )


@cache
def sample() -> tuple[str, ...]:
    """At most so many types, one of every shape before the second of any."""
    by_shape: dict[Shape, list[str]] = {}
    for name in types.names():
        if described(name).type.part is None and find_twin(name) is None and find_example(name) is not None:
            by_shape.setdefault(shape_of(name), []).append(name)
    found: list[str] = []
    rounds = max(len(names) for names in by_shape.values())
    for place in range(rounds):
        found += [names[place] for names in by_shape.values() if place < len(names)]
    return tuple(sorted(found[:MOST]))


@dataclass(frozen=True)
class Person:
    """What a person does to resources of one type."""

    name: str
    person: world.Person

    def find(self, name: str) -> list[Found]:
        return list(self._all(name))

    def _all(self, name: str = "") -> Iterator[Found]:
        for schema, identifier, region, model in STORE.plain():
            if schema.name == self.name:
                tags = STORE.tags(schema, identifier, region) or {}
                if not name or name in (tags.get("Name"), *(str(value) for value in model.values())):
                    yield Found(identifier, tags, arn_of(schema, identifier, model, region))

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        change = json.dumps([{"op": "add", "path": f"/{parameter}", "value": value}])
        control = self.person.client("cloudcontrol")
        made = control.update_resource(TypeName=self.name, Identifier=resource_id, PatchDocument=change)
        self._done(control, made)

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._write_tags(found, {**self._tags(found), **tags})

    def untag(self, found: Found, *keys: str) -> None:
        self._write_tags(found, {key: value for key, value in self._tags(found).items() if key not in keys})

    def _tags(self, found: Found) -> Mapping[str, str]:
        return next(one.tags for one in self._all() if one.resource_id == found.resource_id)

    def _write_tags(self, found: Found, tags: Mapping[str, str]) -> None:
        tagging = described(self.name).type.tags
        assert tagging is not None
        self.edit(found.resource_id, tagging.property, written(tagging, tags))

    def delete(self, found: Found) -> None:
        control = self.person.client("cloudcontrol")
        self._done(control, control.delete_resource(TypeName=self.name, Identifier=found.resource_id))

    def _done(self, control: Any, made: Any) -> None:
        token = made["ProgressEvent"]["RequestToken"]
        event = control.get_resource_request_status(RequestToken=token)["ProgressEvent"]
        assert event["OperationStatus"] == "SUCCESS", event


@dataclass(frozen=True)
class Made:
    """What an example is made of."""

    parameters: Mapping[str, Any]
    own: str
    changes: Mapping[str, Any]


@cache
def find_example(name: str) -> Made | None:
    """Values for an example; None where names like those of components do not fit the type."""
    one = described(name)
    kind, own = one.type, _own_name(one)
    if (
        own is None
        or own in kind.write_only
        or not _accepts_tags(one)
        or any(required in kind.write_only for required in kind.required)
    ):
        return None
    values = Values(name, 1, full=0.4)
    try:
        made = values.properties()
    except NoValue:
        return None
    if "${" in json.dumps(made):
        return None  # a reference to a component, which generated text is not
    known = one.facts().parameter_schema["properties"]
    place = {"region": REGION} if kind.place else {}
    left_out = {own, *kind.write_only, *kind.read_only}
    declared = {key: value for key, value in made.items() if key in known and key not in left_out}
    changes = dict(list(_changes(one, values, declared))[:_CHANGES])
    return Made({**place, **declared}, own, changes)


def _own_name(one: Described) -> str | None:
    """The parameter that holds its name, empty for the tag ``Name``; None where that of a component does not fit."""
    if one.is_named_by_tag:
        return ""
    names = [key for key in (one.key or (one.name_parameter,)) if key.endswith(("Name", "Id", "Identifier"))]
    own = one.name_parameter or (names[-1] if names else "")
    said = one.type.property_schema(own) if own else {}
    most, pattern = int(said.get("maxLength", 64)), str(said.get("pattern", ""))
    if said.get("type") != "string" or said.get("enum") or most < 16:
        return None
    try:
        return own if re.search(pattern, _NAMES[0]) else None
    except re.error:
        return None


def _accepts_tags(one: Described) -> bool:
    """Whether the tags that the contract writes fit the schema, whose service may take fewer letters than AWS does."""
    tagging = one.type.tags
    if tagging is None:
        return False
    tags = {tagging.property: written(tagging, {**OTHERS, **MINE})}
    return not any(list(error.absolute_path) for error in validator(one.type.name).iter_errors(tags))


def _changes(one: Described, values: Values, declared: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    compared = ComparedType(one.facts())
    for name in sorted(declared):
        if compared.is_immutable(name) or name in one.key or not isinstance(declared[name], str | int | bool):
            continue
        try:
            other = values.another(name, declared[name])
        except NoValue:
            continue
        if list(find_drift(compared, declared, {**declared, name: other})) == [name]:
            yield name, other


def person_at(name: str, person: world.Person) -> Person:
    """A person where the resources of a type are."""
    where = REGION if described(name).type.place else home_region(name, REGION)
    return Person(name, replace(person, region=where))


def example_of(name: str, person: world.Person) -> OfferExample:
    """The example of one type."""
    one, made = described(name), find_example(name)
    assert made is not None
    return OfferExample(
        components=({"id": "one", "type": name, "provider": "aws", "parameters": dict(made.parameters)},),
        changes=made.changes,
        immutable_changes={},
        operator=person_at(name, person),
        name_tag="Name" if one.is_named_by_tag else None,
        name_parameter=made.own or "name",
        own=lambda text: {made.own: text} if made.own else {},
    )
