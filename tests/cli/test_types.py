"""`fractal types search`, `show` and `stub`: what is known of types without a control plane, and classes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fractal_cloud import LiveSystem, find
from fractal_cloud.cli.app import app
from fractal_cloud.cli.type_stubs import class_name, stub_of
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.generic_component import GenericComponent
from fractal_cloud.offers.aws.resources import types as aws_types
from tests.families import toys

RUN = CliRunner()
ODD: dict[str, Any] = {
    "description": 'Says "hello"',
    "name_parameter": "",
    "outputs": {"Arn": "its address"},
    "properties": {
        "from": {"type": "string"},
        "x-y": {"$ref": "#/$defs/Tree"},
        "Mode": {"enum": ["on", "off"], "description": 'ends with a "quote"'},
        "Arn": {"type": "string", "x-fractal": {"readOnly": True}},
        "Any": {},
        "Either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]},
        "Back": {"type": "object", "additionalProperties": {"type": "number"}, "description": 'a \\ b\n""" c'},
    },
    "required": ["Mode"],
    "$defs": {
        "Tree": {"type": "object", "properties": {"class": {"type": "string"}, "Below": {"$ref": "#/$defs/Tree"}}}
    },
}


def _run(*arguments: str) -> str:
    done = RUN.invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def _facts(name: str) -> TypeFacts:
    known = aws_types.find(name)
    assert known is not None
    return TypeFacts(
        type=name, provider="aws", title=name, description=known.description, parameter_schema=known.properties
    )


def _loaded(text: str, folder: Path) -> Any:
    file = folder / "written_types.py"
    file.write_text(text, encoding="utf-8")
    spec = spec_from_file_location("written_types", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _checked(checker: list[str], folder: Path) -> str:
    done = subprocess.run([sys.executable, "-m", *checker], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_types_are_found_by_words_in_their_names_and_descriptions() -> None:
    found = json.loads(_run("types", "search", "cronjob", "--provider", "kubernetes", "--output", "json"))
    assert "batch/v1/CronJob" in [one["type"] for one in found]
    assert all(one["provider"] == "kubernetes" for one in found)
    nothing = RUN.invoke(app, ["types", "search", "no-such-thing-anywhere"])
    assert nothing.exit_code != 0


def test_a_type_is_shown_with_its_parameters_outputs_and_how_it_is_found() -> None:
    said = _run("types", "show", "Storage.PaaS.AwsS3")
    assert "by name, within" in said
    assert "owned by tags" in said
    assert "versioning" in said
    assert "cannot change" in said
    full = json.loads(_run("types", "show", "batch/v1/CronJob", "--output", "json"))
    assert full["type"] == "batch/v1/CronJob"
    assert (
        "spec.jobTemplate.spec.template.spec.containers[]"
        in _run("types", "show", "batch/v1/CronJob").replace(" ", "").replace("\n", "")
        or full
    )


def test_an_unknown_type_is_refused_with_what_was_meant() -> None:
    done = RUN.invoke(app, ["types", "show", "Storage.PaaS.AwsS4"])
    assert done.exit_code != 0
    assert "did you mean 'Storage.PaaS.AwsS3'?" in str(done.exception) + done.output


@pytest.mark.parametrize(
    ("component_type", "name"),
    [
        ("AWS::SQS::Queue", "SqsQueue"),
        ("AWS::EC2::VPC", "Ec2Vpc"),
        ("batch/v1/CronJob", "BatchV1CronJob"),
        ("Storage.PaaS.AwsS3", "StoragePaaSAwsS3"),
    ],
)
def test_a_class_is_named_after_its_type(component_type: str, name: str) -> None:
    assert class_name(component_type) == name


def test_names_that_python_does_not_have_are_written_as_keys(tmp_path: Path) -> None:
    facts = toys.facts_of("Toy::Odd::Thing", ODD)
    module = _loaded(stub_of([facts, facts]), tmp_path)
    assert module.__all__ == ["ToyOddThing", "ToyOddThing2"]
    made = module.ToyOddThing("odd", {"Mode": "on", "from": "here", "x-y": {"class": "a", "Below": {"class": "b"}}})
    assert isinstance(made, GenericComponent)
    assert made.parameters() == {"Mode": "on", "from": "here", "x-y": {"class": "a", "Below": {"class": "b"}}}
    assert (type(made).type, type(made).provider) == ("Toy::Odd::Thing", "toys")
    assert "Arn" not in module.ToyOddThingParameters.__annotations__


def test_hundreds_of_types_are_written_as_python(tmp_path: Path) -> None:
    names = aws_types.names()[::4]
    assert len(names) > 300
    module = _loaded(stub_of(_facts(name) for name in names), tmp_path)
    assert len(module.__all__) == len(set(module.__all__)) == len(names)


def _used() -> Iterator[tuple[str, str]]:
    yield "good", 'SqsQueue("jobs", DelaySeconds=3, RedrivePolicy={"deadLetterTargetArn": other.output("Arn")})'
    yield "good", 'SqsQueue("jobs", DelaySeconds=other.output("DelaySeconds"), dependencies=[other])'
    yield "bad", 'SqsQueue("jobs", DelaySeconds="three")'
    yield "bad", 'SqsQueue("jobs", Delay=3)'
    yield "bad", 'SqsQueue("jobs", RedrivePolicy={"maxReceive": 3})'
    yield "good", 'ToyOddThing("odd", {"Mode": "on", "from": "here"}, import_only=True)'
    yield "bad", 'ToyOddThing("odd", {"Mode": "up"})'
    yield "bad", 'ToyOddThing("odd")'


@pytest.mark.parametrize(
    "checker", [["mypy", "--strict"], ["basedpyright", "--pythonpath", sys.executable]], ids=["mypy", "pyright"]
)
def test_type_checkers_accept_what_is_written_and_refuse_what_is_wrong(checker: list[str], tmp_path: Path) -> None:
    names = [*aws_types.names()[::60], "AWS::SQS::Queue"]
    odd = toys.facts_of("Toy::Odd::Thing", ODD)
    (tmp_path / "my_types.py").write_text(stub_of([*map(_facts, names), odd]), encoding="utf-8")
    head = ["from my_types import SqsQueue, ToyOddThing", 'other = SqsQueue("other")']
    lines = [*head, *(line for _, line in _used())]
    (tmp_path / "use.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}', encoding="utf-8")
    said = _checked([*checker, "my_types.py", "use.py"], tmp_path)
    assert "my_types.py:" not in said, said
    wrong = {at for at in range(1, len(lines) + 1) if f"use.py:{at}:" in said}
    assert wrong == {at for at, (kind, _) in enumerate(_used(), len(head) + 1) if kind == "bad"}, said


def test_what_is_written_declares_a_live_system(tmp_path: Path) -> None:
    module = _loaded(stub_of([_facts("AWS::SQS::Queue")]), tmp_path)
    dead = module.SqsQueue("dead")
    jobs = module.SqsQueue(
        "jobs", RedrivePolicy={"deadLetterTargetArn": dead.output("Arn")}, Tags=find("AWS::SQS::Queue", tags={"a": "b"})
    )
    document = LiveSystem(id="shop", components=[dead, jobs]).to_json()
    assert document["components"][1]["dependencies"] == ["dead"]
