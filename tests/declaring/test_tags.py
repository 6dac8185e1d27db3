"""Tags of the user's own in declarations: where they may stand, what is refused, and what of them is compared."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud import LiveSystem
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.model.tag_rules import TagRules, ignored_keys, tag_key, tag_path
from fractal_cloud.model.tags import ProtocolTags, stamp
from fractal_cloud.network_and_compute import aws
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check
from fractal_cloud.rules.drift import ComparedType, Difference, correctable, find_tag_drift, in_turn, left_tags

CATALOG = {offer.type: offer.facts() for offer in installed()}
NET = {
    "id": "net",
    "type": "NetworkAndCompute.IaaS.AwsVpc",
    "parameters": {"region": "eu-west-1", "cidrBlock": "10.0.0.0/16"},
}
AZURE_NET = {
    "id": "vnet",
    "type": "NetworkAndCompute.IaaS.AzureVnet",
    "parameters": {"resourceGroup": "rg", "location": "westeurope", "addressPrefixes": ["10.0.0.0/16"]},
}
GROUP = {"id": "gate", "type": "NetworkAndCompute.IaaS.AwsSecurityGroup", "parameters": {"vpc": "net"}}


def errors(*components: dict[str, Any], **more: Any) -> dict[str, str]:
    with pytest.raises(DeclarationError) as refused:
        check({"id": "ls-a", "components": list(components), **more}, CATALOG)
    return {error.path: error.message for error in refused.value.errors}


@pytest.mark.rule("T1")
def test_they_are_kept_as_declared_on_components_and_on_the_live_system() -> None:
    document = {"id": "ls-a", "tags": {"team": "shop"}, "components": [{**NET, "tags": {"cost": "1", "a/b": ""}}]}
    found = check(document, CATALOG)
    assert (found.tags, found.components[0].tags) == ({"team": "shop"}, {"cost": "1", "a/b": ""})


@pytest.mark.rule("T1", "T8")
@pytest.mark.parametrize(
    ("component", "tags", "path", "reason"),
    [
        (NET, {"managed-by": "me"}, "tags.managed-by", "belongs to the product"),
        (NET, {"fractal-cloud-owner": "me"}, "tags.fractal-cloud-owner", "belongs to the product"),
        (AZURE_NET, {"Managed-By": "me"}, "tags.Managed-By", "belongs to the product"),
        (NET, {"AWS:x": "y"}, 'tags["AWS:x"]', "AWS's own"),
        (NET, {"Name": "x"}, "tags.Name", "parameter `name`"),
        (NET, {"team": "{}"}, "tags.team", "does not take"),
        (NET, {"x" * 129: ""}, f"tags.{'x' * 129}", "no key that this type takes"),
        (AZURE_NET, {"a/b": "x"}, 'tags["a/b"]', "no key that this type takes"),
        (AZURE_NET, {"Team": "a", "team": "b"}, "tags.team", "the same key as 'Team'"),
        (NET, {"team": 3}, "tags.team", "must be text"),
    ],
)
def test_what_is_not_theirs_to_say_is_refused_with_its_path(
    component: dict[str, Any], tags: dict[str, Any], path: str, reason: str
) -> None:
    found = errors({**component, "tags": tags})
    assert reason in found[f"components[{component['id']}].{path}"]


@pytest.mark.rule("T1")
def test_those_of_the_live_system_are_refused_where_a_component_cannot_have_them() -> None:
    assert "for 'net'" in errors(NET, tags={"Name": "x"})["tags.Name"]
    assert "belongs to the product" in errors(tags={"managed-by": "x"})["tags.managed-by"]
    assert check({"id": "ls-a", "components": [NET, {**GROUP, "tags": {"Name": "x"}}]}, CATALOG).components[1].tags


@pytest.mark.rule("T1")
def test_a_type_that_carries_no_tags_refuses_its_own_and_passes_over_the_live_systems() -> None:
    part = {"id": "part", "type": "NetworkAndCompute.IaaS.AzureSubnet", "parameters": {"vnet": "vnet"}}
    assert "carries no tags" in errors(AZURE_NET, {**part, "tags": {"team": "shop"}})["components[part].tags"]
    check({"id": "ls-a", "tags": {"team": "shop"}, "components": [AZURE_NET, part]}, CATALOG)


@pytest.mark.rule("G15")
def test_one_or_all_can_be_left_alone() -> None:
    check({"id": "ls-a", "components": [{**NET, "ignoreDrift": ["tags", "tags.team", 'tags["a/b"]']}]}, CATALOG)
    assert "no parameter" in errors({**NET, "ignoreDrift": ["tag.team"]})["components[net].ignoreDrift[0]"]
    assert ignored_keys(["tags.team"], ["team", "a/b"]) == {"team"}
    assert ignored_keys(["tags"], ["team", "a/b"]) == {"team", "a/b"}


@pytest.mark.rule("T1")
def test_python_says_the_same() -> None:
    net = aws.vpc(id="net", region="eu-west-1", cidr_block="10.0.0.0/16", tags={"cost": "1"})
    document = LiveSystem(id="ls-a", components=[net], tags={"team": "shop"}).to_json()
    assert (document["tags"], document["components"][0]["tags"]) == ({"team": "shop"}, {"cost": "1"})
    assert "tags" not in LiveSystem(id="ls-a", components=[]).to_json()


@pytest.mark.parametrize("key", ["team", "a/b", 'q"[]', "a.b", "", "ü"])
def test_the_name_of_its_drift_says_the_key(key: str) -> None:
    assert tag_key(tag_path(key)) == key
    assert tag_key(f"parameters.{key}") is None


def _compared(**facts: Any) -> ComparedType:
    return ComparedType(TypeFacts(type="T", provider="p", title="t", parameter_schema={}, **facts))


@pytest.mark.rule("T1", "T8")
def test_only_declared_keys_are_compared_and_as_the_provider_compares_them() -> None:
    seen = {"Team": "shop", "other": "theirs"}
    assert find_tag_drift(_compared(), {"team": "shop"}, seen) == {"tags.team": Difference("shop", None)}
    assert not find_tag_drift(_compared(tag_rules=TagRules(caseless=True)), {"team": "shop"}, seen)
    assert not find_tag_drift(_compared(taggable=False), {"team": "shop"}, {})


@pytest.mark.rule("T10")
def test_what_replaces_all_tags_is_written_in_a_handshake_alone_and_frozen_tags_never() -> None:
    drift = {"tags.team": Difference("a", "b"), "size": Difference(1, 2)}
    once, frozen = _compared(tag_rules=TagRules(written_once=True)), _compared(tags_frozen=True)
    assert correctable(once, drift).keys() == {"size"}
    assert correctable(once, drift, in_handshake=True) == drift
    assert correctable(frozen, drift, in_handshake=True).keys() == {"size"}
    assert left_tags(once, drift) == ["tags.team"]
    assert in_turn(_compared(), drift).keys() == {"size"}, "tags are a call of their own"


@pytest.mark.rule("T2")
def test_they_stand_beside_the_three_and_never_in_their_place() -> None:
    tags = stamp("ls-a", {"team": "shop", "managed-by": "me"}).to_mapping()
    assert tags == {"team": "shop", "managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"}
    assert ProtocolTags(declared={"team": "shop"}).to_mapping() == {"team": "shop"}
