"""The words of the code, its messages and its documentation are those of the field: a private language stays out."""

from __future__ import annotations

from scripts.words import places


# Folders that still have private words. One that has none is taken out, and never comes back.
def test_names_messages_and_pages_say_what_the_field_says() -> None:
    found = [f"{place.path}:{place.line}: {place.word!r}: say {place.instead}" for place in places(["."])]
    assert not found, "\n".join(found)
