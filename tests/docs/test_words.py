"""The words of the code, its messages and its documentation are those of the field: a private language stays out."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import words
from scripts.words import places

PRIVATE = '''"""Tells what was told."""
def rouse(lodger: int) -> None:
    raise ValueError("mend it")  # word for word
'''


def test_private_words_are_found_in_names_comments_and_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.py").write_text(PRIVATE)
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "_files", lambda _: ["some.py"])
    found = [place.word for place in places(["."])]
    assert sorted(found) == ["lodger", "mend", "rouse", "tells", "told", "word for word"]


def test_names_messages_and_pages_say_what_the_field_says() -> None:
    found = [f"{place.path}:{place.line}: {place.word!r}: say {place.instead}" for place in places(["."])]
    assert not found, "\n".join(found)
