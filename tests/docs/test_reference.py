"""The reference pages say what the offers say, and every example on them can be deployed as it stands."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud import LiveSystem
from fractal_cloud.cli.files import load
from fractal_cloud.model.commands import template_text
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check
from scripts.reference import FOLDER, Sdk, main, pages, stale

OFFERS = {offer.type: offer for offer in installed()}
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)

every_offer = pytest.mark.parametrize("component_type", sorted(OFFERS))


def page_of(component_type: str) -> Path:
    offer = OFFERS[component_type]
    return FOLDER / offer.provider / f"{Sdk().slug(offer)}.md"


def block(component_type: str, language: str) -> str:
    [found] = [m["text"] for m in BLOCK.finditer(page_of(component_type).read_text()) if m["language"] == language]
    return str(found)


@cache
def index() -> str:
    """The page that leads to all others, as it would be written now."""
    return pages()[FOLDER / "README.md"]


def checked(document: object) -> LiveSystemDeclaration:
    return check(document, installed().catalog())


def test_no_page_is_stale() -> None:
    assert [str(path) for path in stale(pages())] == [], "run make docs"


def test_the_check_names_what_is_stale_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("scripts.reference.ROOT", tmp_path)
    monkeypatch.setattr("scripts.reference.FOLDER", tmp_path / "reference")
    left_over = tmp_path / "reference" / "aws" / "gone.md"
    left_over.parent.mkdir(parents=True)
    left_over.write_text("of a type that is no more")

    assert main(["--check"]) == 1
    printed = capsys.readouterr().err
    assert "reference/aws/gone.md is stale" in printed
    assert "reference/aws/vpc.md is stale" in printed
    assert [path.name for path in tmp_path.rglob("*.md")] == ["gone.md"]

    assert main([]) == 0
    assert not left_over.exists()
    assert main(["--check"]) == 0


@every_offer
def test_every_type_has_a_page_that_names_all_its_parameters_and_outputs(component_type: str) -> None:
    facts = OFFERS[component_type].facts()
    text = page_of(component_type).read_text()
    unsaid = [name for name in [*facts.parameter_schema["properties"], *facts.outputs] if f"| `{name}` |" not in text]
    assert unsaid == []
    assert facts.guard in text
    assert all(template_text(command) in text for command in [*facts.glass.break_glass, *facts.glass.readopt])


@every_offer
def test_the_python_and_the_yaml_of_a_page_declare_the_same_and_are_valid(component_type: str, tmp_path: Path) -> None:
    yaml_file = tmp_path / "example.yaml"
    yaml_file.write_text(block(component_type, "yaml"))
    [from_yaml] = load(str(yaml_file))
    names: dict[str, Any] = {}
    exec(compile(block(component_type, "python"), "example.py", "exec"), names)
    [declared] = [value for value in names.values() if isinstance(value, LiveSystem)]

    assert checked(declared.to_json()) == checked(from_yaml.document)
    assert checked(from_yaml.document).components[-1].type == component_type


@every_offer
def test_the_index_leads_to_every_page(component_type: str) -> None:
    offer = OFFERS[component_type]
    assert f"]({offer.provider}/{page_of(component_type).name}) | `{component_type}`" in index()
