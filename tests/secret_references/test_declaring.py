"""Where references to secrets may stand, where they must, and what is said of what looks like a secret (A8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import fractal_cloud
from fractal_cloud import DeclarationError, LiveSystem, secret
from fractal_cloud import network_and_compute as nc
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.errors import InputError
from fractal_cloud.model.referable import SecretText, SensitiveText, text_of
from fractal_cloud.model.secret_detection import apparent_secret
from fractal_cloud.offers.offer import parameter_schema
from fractal_cloud.offers.reference_validation import clear_secrets
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check

EC2 = "NetworkAndCompute.IaaS.AwsEc2Instance"
WORKLOAD = "CustomWorkloads.CaaS.KubernetesWorkload"
SAFE = "Test.PaaS.Safe"


class Safe(Component):
    """A type of somebody else's that asks for a password."""

    type = SAFE
    provider = "test"

    password: SecretText = parameter(secret=True, min_length=8, description="Its password.")
    note: SensitiveText | None = parameter(default=None, sensitive=True, max_length=20)
    env: Mapping[str, SensitiveText] | None = parameter(default=None, holds_secrets=True)
    size: int = parameter(default=1)
    title: str | None = parameter(default=None)


def _catalog() -> dict[str, TypeFacts]:
    """What the control plane knows, the foreign type as plain data that travelled."""
    facts = TypeFacts(type=SAFE, provider="test", title="Safe", parameter_schema=parameter_schema(Safe))
    return {**installed().catalog(), SAFE: TypeFacts.model_validate_json(facts.model_dump_json(by_alias=True))}


def _errors(**parameters: Any) -> dict[str, str]:
    component = {"id": "box", "type": SAFE, "parameters": parameters}
    try:
        check({"id": "ls-a", "components": [component]}, _catalog())
    except DeclarationError as error:
        return {one.path.removeprefix("components[box].parameters."): one.message for one in error.errors}
    return {}


GOOD = {"password": {"$secret": "box-password"}}


@pytest.mark.rule("A8")
def test_a_reference_stands_where_the_type_asks_for_a_secret_or_a_sensitive_text() -> None:
    assert _errors(**GOOD, note={"$secret": "note"}, env={"A": "plain", "B": {"$secret": "b"}}) == {}
    assert _errors(**GOOD, note="in clear") == {}


@pytest.mark.rule("A8")
def test_a_clear_value_where_a_secret_must_stand_is_refused_with_what_to_write_and_not_quoted() -> None:
    found = _errors(password="hunter2-hunter2")
    assert found.keys() == {"password"}
    assert '{"$secret": "NAME"}' in found["password"]
    assert "hunter2" not in found["password"]


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("parameters", "path", "words"),
    [
        (
            {"note": {"$seek": {"type": "x"}}},
            "note",
            "'$seek', which is no reference: there is $secret, $output, $find",
        ),
        ({"note": {"$secret": "a", "more": 1}}, "note", "a reference has this one alone"),
        ({"note": {"$secret": "Not A Name"}}, "note", "does not name a secret"),
        ({"note": {"$secret": {"generate": 32}}}, "note", "only of aws, kubernetes: keep one where the agent runs"),
        ({"note": {"$secret": {"generate": 4}}}, "note", "has generate 4: give the number of its characters"),
        ({"note": {"$secret": {"make": 32}}}, "note", 'write {"generate": 32} to have one made'),
        ({"title": {"$secret": "a"}}, "title", "cannot stand here: it may stand in password, note, env"),
        ({"size": {"$secret": "a"}}, "size", "cannot stand here"),
        ({"note": "longer than twenty characters"}, "note", "must be text of at most 20 characters"),
    ],
)
def test_what_is_no_reference_or_stands_elsewhere_is_refused(parameters: dict[str, Any], path: str, words: str) -> None:
    found = _errors(**GOOD, **parameters)
    assert found.keys() == {path}, found
    assert words in found[path]
    assert "longer than" not in found[path], "a text that may be secret is not quoted"


@pytest.mark.rule("A8")
def test_other_errors_are_listed_beside_those_of_references() -> None:
    assert _errors(password="clear-as-day", size="big").keys() == {"password", "size"}


@pytest.mark.rule("A8")
def test_a_reference_where_none_may_stand_is_refused_for_our_own_types_too() -> None:
    component = {"id": "web", "type": EC2, "parameters": {"region": {"$secret": "a"}, "imageId": "ami-12c6146b"}}
    with pytest.raises(DeclarationError) as refused:
        check({"id": "ls-a", "components": [component]}, _catalog())
    [said] = [one for one in refused.value.errors if one.path.endswith(".region")]
    assert said == InputError(
        "components[web].parameters.region",
        "is a reference to a secret, which cannot stand here: it may stand in userData",
    )


# --- in Python


@pytest.mark.rule("A8")
def test_python_spells_it_secret_and_the_document_is_the_same_as_yaml() -> None:
    web = nc.aws.ec2(
        id="web", region="eu-west-1", image_id="ami-12c6146b", instance_type="t3.micro", user_data=secret("boot")
    )
    box = Safe(id="box", password=secret("box-password"), env={"A": "1", "B": secret("b")})
    document = LiveSystem(id="ls-a", components=[web, box]).to_json()
    parameters = {one["id"]: one["parameters"] for one in document["components"]}
    assert parameters["web"]["userData"] == {"$secret": "boot"}
    assert parameters["box"] == {"password": {"$secret": "box-password"}, "env": {"A": "1", "B": {"$secret": "b"}}}
    assert fractal_cloud.secret("boot") == fractal_cloud.SecretReference("boot")


@pytest.mark.rule("A8")
def test_python_refuses_what_the_control_plane_refuses() -> None:
    with pytest.raises(DeclarationError, match="it is a secret: write") as refused:
        Safe(id="box", password="hunter2-hunter2")  # type: ignore[arg-type]  # that is the point
    assert "hunter2" not in str(refused.value)
    with pytest.raises(DeclarationError, match=r"Safe\[box\].title: is a reference to a secret, which cannot stand"):
        Safe(id="box", password=secret("a"), title=secret("b"))  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ValueError, match="and never its value"):
        secret("Not A Name")


@pytest.mark.rule("A8")
def test_a_component_shows_no_value_and_gives_it_only_where_it_was_resolved() -> None:
    declared = Safe(id="box", password=secret("a"), note="in clear")
    with pytest.raises(TypeError, match="'a' was not resolved"):
        text_of(declared.password)
    resolved = Safe.from_resolved("box", {"password": "hunter2-hunter2", "note": "in clear"})
    assert text_of(resolved.password) == "hunter2-hunter2"
    assert "hunter2" not in repr(resolved) + str(resolved)
    assert "in clear" not in repr(resolved)


# --- what looks like a secret


@pytest.mark.rule("A8", "C10")
def test_a_deploy_warns_of_what_seems_to_be_a_secret_without_quoting_it() -> None:
    env = {"LOG_LEVEL": "info", "DB_PASSWORD": "hunter2", "URL": "postgres://app:hunter3@db/x", "B": {"$secret": "b"}}
    workload = {"id": "app", "type": WORKLOAD, "parameters": {"image": "app:1", "env": env}}
    script = "#!/bin/sh\nexport AWS=AKIAIOSFODNN7EXAMPLE"
    machine = {
        "id": "web",
        "type": EC2,
        "parameters": {"region": "eu-west-1", "imageId": "ami-12c6146b", "userData": script},
    }
    machine["parameters"]["instanceType"] = "t3.micro"  # type: ignore[index]
    declaration = check({"id": "ls-a", "components": [workload, machine]}, _catalog())
    said = clear_secrets(declaration, _catalog())
    paths = [line.partition(" looks like ")[0] for line in said]
    assert paths == [
        "components[app].parameters.env.DB_PASSWORD",
        "components[app].parameters.env.URL",
        "components[web].parameters.userData",
    ]
    assert all('{"$secret": "NAME"}' in line for line in said)
    assert not any(value in line for line in said for value in ("hunter2", "hunter3", "AKIA"))


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("name", "value", "is_one"),
    [
        ("DB_PASSWORD", "x", True),
        ("dbPassword", "x", True),
        ("GITHUB_TOKEN", "x", True),
        ("SIGNING_KEY", "x", True),
        ("API_KEY", "x", True),
        ("CLIENT_SECRET", "x", True),
        ("SSH_PUBLIC_KEY", "ssh-ed25519 AAAA", False),
        ("PASSWORD_FILE", "/run/secrets/db", False),
        ("TOKEN_URL", "https://auth.example.com", False),
        ("MONKEY", "banana", False),
        ("DB_PASSWORD", "", False),
        ("A", "-----BEGIN RSA PRIVATE KEY-----\nMII", True),
        ("A", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc", True),
        ("A", "https://user:pass@example.com/", True),
        ("A", "https://example.com/user:pass", False),
        ("A", "ASIAIOSFODNN7EXAMPLE", True),
        ("A", "ghp_" + "a" * 36, True),
        ("LOG_LEVEL", "info", False),
    ],
)
def test_names_and_values_that_seem_to_be_secrets_are_recognised(name: str, value: str, is_one: bool) -> None:
    assert bool(apparent_secret(name, value)) is is_one
