"""An agent's sealing key outlives the agent, and only its owner reads it (A5)."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fractal_cloud.agent.sealing_key_file import SealingKeyFile
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.model.errors import LinkError
from fractal_cloud.offers.secret import SealingKey


def _settings(folder: Path | None, **more: str) -> AgentSettings:
    return AgentSettings(providers=("aws", "gcp"), state_dir=folder, **more)  # type: ignore[arg-type]  # texts alone


def _file(folder: Path) -> Path:
    (found,) = folder.glob("sealing-*.key")
    return found


@pytest.mark.rule("A5")
def test_an_agent_that_starts_anew_has_the_key_it_had(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    first = SealingKeyFile(_settings(folder)).key
    assert SealingKeyFile(_settings(folder)).key.public == first.public
    assert stat.S_IMODE(_file(folder).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for other in (_settings(folder, environment="lab"), _settings(folder, url="http://127.0.0.1:1")):
        assert SealingKeyFile(other).key.public != first.public, "what another key opens is not for this one"
    assert SealingKeyFile(_settings(None)).key.public != SealingKeyFile(_settings(None)).key.public


@pytest.mark.rule("A5")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    SealingKeyFile(_settings(tmp_path))
    _file(tmp_path).chmod(mode)
    with pytest.raises(LinkError, match="can be read by others: delete the file, and withdraw the key"):
        SealingKeyFile(_settings(tmp_path))


@pytest.mark.rule("A5")
@pytest.mark.parametrize("content", [b"", b"abc", b"\xff\xfe", b"AAAA"])
def test_a_file_that_holds_no_key_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    SealingKeyFile(_settings(tmp_path))
    _file(tmp_path).write_bytes(content)
    with pytest.raises(LinkError, match=str(_file(tmp_path))):
        SealingKeyFile(_settings(tmp_path))


@pytest.mark.rule("A5")
def test_a_folder_that_cannot_be_written_is_said_and_the_agent_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with capture_logs() as logged:
        assert SealingKeyFile(_settings(tmp_path / "file" / "state")).key.public
    assert "the sealing key cannot be kept on disk" in str(logged)


@pytest.mark.rule("A5")
def test_a_withdrawn_key_is_replaced_once_for_all_agents_of_a_machine(tmp_path: Path) -> None:
    one, two = (SealingKeyFile(_settings(tmp_path)) for _ in range(2))
    old = one.key.public
    assert one.key.public == two.key.public
    assert one.replace_withdrawn()
    assert two.replace_withdrawn()
    assert one.key.public == two.key.public != old
    assert SealingKeyFile(_settings(tmp_path)).key.public == one.key.public


@pytest.mark.rule("A5")
def test_a_key_that_a_setting_gives_is_not_replaced_and_never_written(tmp_path: Path) -> None:
    given = SealingKey()
    kept = SealingKeyFile(_settings(tmp_path, sealing_key=given.to_text()))
    with capture_logs() as logged:
        assert not kept.replace_withdrawn()
    assert kept.key.public == given.public
    assert "set FRACTAL_SEALING_KEY to a new one" in str(logged)
    assert given.to_text() not in str(logged)
    assert list(tmp_path.iterdir()) == []
