"""Types of AWS that people use most, and beside them so many more that every shape there is is among them.

Each has an example for the contract of offers: by hand, or made of its schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any, Final

from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.facts import Described
from fractal_cloud.offers.aws.resources.tables.places import home_region
from fractal_cloud.offers.aws.resources.tags import written
from fractal_cloud.rules.drift import ComparedType, find_drift
from fractal_cloud.testing import OfferExample
from fractal_cloud.testing.trial import MINE, OTHERS
from tests import world
from tests.offers.aws_resources.examples import WRITTEN, Written
from tests.offers.aws_resources.generating import NoValue, Values, validator
from tests.offers.aws_resources.people import Names, Person
from tests.world import REGION

_CHANGES: Final = 2
_NAMES: Final = ("one-1", "one1")
Trait = tuple[str, str]

USED: Final = (
    "AWS::ApiGatewayV2::Api",
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::Backup::BackupPlan",
    "AWS::Backup::BackupVault",
    "AWS::CertificateManager::Certificate",
    "AWS::CloudFront::Distribution",
    "AWS::CloudFront::Function",
    "AWS::CloudWatch::Alarm",
    "AWS::Cognito::UserPool",
    "AWS::DynamoDB::Table",
    "AWS::EC2::EIP",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::LaunchTemplate",
    "AWS::EC2::NatGateway",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::ECR::Repository",
    "AWS::ECS::Service",
    "AWS::ECS::TaskDefinition",
    "AWS::EFS::FileSystem",
    "AWS::ElasticLoadBalancingV2::Listener",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "AWS::ElasticLoadBalancingV2::TargetGroup",
    "AWS::Events::Rule",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Role",
    "AWS::IAM::User",
    "AWS::KMS::Key",
    "AWS::Lambda::Function",
    "AWS::Logs::LogGroup",
    "AWS::Route53::HostedZone",
    "AWS::S3::Bucket",
    "AWS::SNS::Topic",
    "AWS::SQS::Queue",
    "AWS::SSM::Parameter",
    "AWS::SecretsManager::Secret",
    "AWS::StepFunctions::StateMachine",
    "AWS::WAFv2::WebACL",
)
"""What real infrastructures have most of."""

RARE: Final = (
    "AWS::ACMPCA::CertificateAuthority",
    "AWS::Amplify::Webhook",
    "AWS::ApiGatewayV2::Stage",
    "AWS::AppConfig::ConfigurationProfile",
    "AWS::AppTest::TestCase",
    "AWS::BackupGateway::Hypervisor",
    "AWS::Batch::ComputeEnvironment",
    "AWS::CE::AnomalyMonitor",
    "AWS::Connect::Rule",
    "AWS::EC2::SubnetCidrReservation",
    "AWS::Glue::Connection",
    "AWS::Glue::Integration",
    "AWS::ImageBuilder::Image",
    "AWS::NetworkManager::Device",
    "AWS::QuickSight::ActionConnector",
    "AWS::QuickSight::Topic",
    "AWS::RefactorSpaces::Environment",
    "AWS::Timestream::Table",
    "AWS::Wisdom::AIAgent",
    "AWS::Wisdom::AssistantAssociation",
)
"""So that every two traits that any type has together are in the sample."""

SAMPLE: Final = (*USED, *RARE)


def described(name: str) -> Described:
    found = types.find(name)
    assert found is not None
    return Described(found)


def traits(name: str) -> Mapping[str, str]:
    """In what the types differ for whoever finds, reads, changes and tags their resources."""
    one = described(name)
    kind = one.type
    only_written = {path.partition(".")[0] for path in kind.write_only}
    if kind.tags is not None:
        tags = f"{kind.tags.shape}{' with more' if kind.tags.extra else ''}"
        tags += "" if kind.tags.updatable else " frozen"
        tags += "" if kind.tags.on_create else " not said to be taken at creation"
    else:
        assert kind.adapter is not None
        tags = f"by its service, {'with' if kind.adapter.at_creation else 'after'} the creation"
    return {
        "named by": kind.named_by,
        "identifier": "joined" if len(kind.identifier) > 1 else "single",
        "identity": "returns" if one.ids_return else "shown by a property" if one.incarnation else "never returns",
        "key": "several properties" if one.key else "one name",
        "tags": tags,
        "in bulk": "by the tagging API" if one.is_listed_by_tags else "one by one",
        "list": "in a parent" if kind.list_parents else "plain",
        "update": "in place" if "update" in kind.handlers else "never",
        "only written": "required" if only_written & set(kind.required) else "some" if only_written else "nothing",
        "place": "a region" if kind.place else "none",
    }


def pairs(names: Collection[str]) -> set[frozenset[Trait]]:
    """Every two traits that a type among these has together."""
    return {frozenset(two) for name in names for two in combinations(traits(name).items(), 2)}


def usable() -> tuple[str, ...]:
    """Every usable type that carries tags itself."""
    return tuple(name for name in types.names() if described(name).type.part is None)


@cache
def find_example(name: str) -> Written | None:
    """Values for an example; None where names like those of components do not fit the type."""
    if name in WRITTEN:
        return WRITTEN[name]
    one = described(name)
    kind, own = one.type, _own_name(one)
    if own is None or not _accepts_tags(one):
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
    left_out = {own, *(kind.write_only - set(kind.required)), *kind.read_only}
    declared = {key: value for key, value in made.items() if key in known and key not in left_out}
    changes = dict(list(_changes(one, values, declared))[:_CHANGES])
    fixed = dict(list(_fixed(one, values, declared))[:1])
    return Written({**place, **declared}, lambda text: {own: text} if own else {}, changes, fixed)


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
    yield from _others(one, values, declared, [name for name in sorted(declared) if not compared.is_immutable(name)])


def _fixed(one: Described, values: Values, declared: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Another value of what can only be set at the creation."""
    compared = ComparedType(one.facts())
    yield from _others(one, values, declared, [name for name in sorted(declared) if compared.is_immutable(name)])


def _others(
    one: Described, values: Values, declared: Mapping[str, Any], names: Collection[str]
) -> Iterator[tuple[str, Any]]:
    compared = ComparedType(one.facts())
    for name in names:
        if name in one.key or name in one.type.write_only or not isinstance(declared[name], str | int | bool):
            continue
        try:
            other = values.another(name, declared[name])
        except NoValue:
            continue
        if list(find_drift(compared, declared, {**declared, name: other})) == [name]:
            yield name, other


def person_at(name: str, person: world.Person, names: Names) -> Person:
    """A person where the resources of a type are: in their region, or at the home of those that are in none."""
    where = REGION if described(name).type.place else home_region(name, REGION)
    return Person(name, replace(person, region=where), names)


def example_of(name: str, person: world.Person) -> OfferExample:
    """The example of one type."""
    one, made = described(name), find_example(name)
    assert made is not None
    subject = {"id": "one", "type": name, "provider": "aws", "parameters": dict(made.parameters)}
    return OfferExample(
        components=(*made.parents, subject),
        changes=made.changes,
        immutable_changes=made.immutable,
        operator=person_at(name, person, made.named),
        name_tag="Name" if one.is_named_by_tag else None,
        name_parameter=next(iter(made.named("")), "name"),
        own=made.named,
        tags_follow=made.tags_follow,
    )
