"""Type checkers accept what the documentation shows, and reject what would be refused at run time."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import typed_docs
from scripts.typed_docs import Program, programs

MADE = programs()


def test_the_programs_of_the_readme_and_of_the_guides_are_among_those_checked() -> None:
    pages = [program.page for program in MADE if not program.rejected]
    assert pages.count("README.md") >= 2
    assert {"CONTRIBUTING.md", "docs/declaring.md", "docs/links.md", "docs/providers/azure.md"} <= set(pages)


def test_calls_that_are_wrong_in_every_way_are_among_those_that_must_be_rejected() -> None:
    wrong = [why for program in MADE for why in program.rejected.values()]
    assert "network_and_compute.aws.vpc without cidr_block" in wrong
    assert "network_and_compute.aws.vpc with an unknown parameter" in wrong
    assert "network_and_compute.aws.ec2 with another kind as subnet" in wrong


def test_a_program_that_a_checker_rejects_and_one_that_it_accepts_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = [
        Program("accepted.py", "docs/one.md", 10, "x: int = 'text'\n", {}),
        Program("wrong.py", "docs/two.md", 0, "y: int = 1\n", {1: "a wrong call"}),
    ]
    monkeypatch.setattr(typed_docs, "programs", lambda: made)
    monkeypatch.setattr(typed_docs, "WORK", tmp_path / "work")

    found = typed_docs.errors()

    assert [error.split(": ")[:2] for error in found[:2]] == [["docs/one.md:11", "mypy"], ["docs/one.md:11", "pyright"]]
    assert found[2:] == ["docs/two.md: mypy accepts a wrong call", "docs/two.md: pyright accepts a wrong call"]
