"""`docs/write-your-own-agent.md` shows what stands in the files, and names no command that is not there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from fractal_cloud.cli.app import app
from tests.thirdparty.conftest import ROOT

PAGE = ROOT / "docs" / "write-your-own-agent.md"
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`(examples/[\w./-]+\.(?:py|toml|yaml))`")
LEFT_OUT = re.compile(r"^\s*# …\n", re.MULTILINE)


def shown() -> list[tuple[str, str]]:
    """Every piece of code on the page, with the file that was named last before it."""
    page = PAGE.read_text()
    found = []
    for block in BLOCK.finditer(page):
        if block["language"] in ("python", "toml", "yaml"):
            named = FILE.findall(page, 0, block.start())
            found.append((named[-1], block["text"]))
    return found


SHOWN = shown()


@pytest.mark.parametrize(
    ("file", "text"), SHOWN, ids=[f"{number}-{Path(file).name}" for number, (file, _) in enumerate(SHOWN)]
)
def test_the_code_shown_stands_in_the_file_word_by_word(file: str, text: str) -> None:
    content = (ROOT / file).read_text()
    for part in LEFT_OUT.split(text):
        assert part in content, f"{file} does not have:\n{part}"
        content = content.partition(part)[2]


def test_it_shows_a_piece_of_every_file_an_author_writes() -> None:
    files = {Path(file).name for file, _ in SHOWN}
    assert files >= {
        "pyproject.toml",
        "__init__.py",
        "component.py",
        "cloud.py",
        "offer.py",
        "links.py",
        "workloads.py",
    }


def test_every_command_it_types_is_one_of_the_program() -> None:
    known = set(typer.main.get_group(app).commands)
    lines = [
        line
        for block in BLOCK.finditer(PAGE.read_text())
        if block["language"] == "sh"
        for line in block["text"].splitlines()
    ]
    typed = [words[words.index(word) + 1] for words in map(_words, lines) for word in words if word.endswith("fractal")]
    assert len(typed) > 10
    assert set(typed) <= known


def _words(line: str) -> list[str]:
    return shlex.split(line.replace("$(", " ").replace(")", " ").replace('"', " ").replace("'", " "))
