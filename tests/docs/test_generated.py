"""What `make docs` writes beside the reference pages is as the offers say, and says what is stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import generate


def test_every_generated_file_is_fresh() -> None:
    assert generate.stale(generate.files()) == [], "run make docs"


def test_a_stale_file_is_named_and_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "SDK", tmp_path)
    monkeypatch.setattr(generate, "files", lambda: {tmp_path / "services.json": "{}\n"})
    assert generate.main(["--check"]) == 1
    assert "services.json is stale: run make docs" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert (tmp_path / "services.json").read_text() == "{}\n"
    assert generate.main(["--check"]) == 0
