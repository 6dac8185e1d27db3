"""The program as its user sees it: arguments in, exit code and output out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from fractal_cloud.cli import client, waiting
from fractal_cloud.cli.app import run
from tests.cli.fake import FakeControlPlane


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """All that was printed, with line breaks and table lines taken out: where it wraps does not matter."""
        return " ".join("".join(char for char in self.out + self.err if char not in "│┃┏┓━┳┡╇┩└┘─┴┌┐").split())


Fractal = Callable[..., Ran]


@pytest.fixture
def fractal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fractal:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FRACTAL_URL", "FRACTAL_TOKEN", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.0)

    def ran(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["fractal", *arguments])
        code: object = 0
        try:
            run()
        except SystemExit as ended:
            code = ended.code
        seen = capsys.readouterr()
        return Ran(int(str(code or 0)), seen.out, seen.err)

    return ran


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> FakeControlPlane:
    fake = FakeControlPlane()
    monkeypatch.setattr(client, "connect", fake.connect)
    return fake
