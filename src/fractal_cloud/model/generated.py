"""Secrets that nobody chooses: ``{"$secret": {"generate": 32}}`` is made once, where the vendor keeps secrets (A8).

Each has a name here, like every other secret: before it is known whose it is, its length; then also the component, and
the path of the parameter. Where the value is kept, and how it is made, does not belong here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from fractal_cloud.model.wording import Path, path_text, shown

GENERATE: Final = "generate"
SHORTEST: Final = 12
LONGEST: Final = 128
DEFAULT_LENGTH: Final = 32
_NAME: Final = re.compile(rf"{GENERATE}:(\d+)(?::(.+))?\Z", re.DOTALL)

SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {GENERATE: {"type": "integer", "minimum": SHORTEST, "maximum": LONGEST}},
    "required": [GENERATE],
    "additionalProperties": False,
}
"""The JSON Schema of what stands in the place of a secret's name."""

IN_A_LIST: Final = (
    "is a generated secret inside a list, where nothing says which entry it belongs to once the list changes: take a "
    'secret with a name, {"$secret": "NAME"}, or a parameter that is no list'
)


def name_of(said: object) -> str | None:
    """The name of a generated secret, from what is said in the place of a name; None where that is none."""
    if isinstance(said, str):
        return said if is_generated(said) else None
    length = said.get(GENERATE) if isinstance(said, Mapping) and len(said) == 1 else None
    if not isinstance(length, int) or isinstance(length, bool) or not SHORTEST <= length <= LONGEST:
        return None
    return f"{GENERATE}:{length}"


def is_generated(name: str) -> bool:
    """Whether the name of a secret is that of a generated one."""
    return _NAME.match(name) is not None


def length_of(name: str) -> int:
    """How many characters a generated secret has."""
    found = _NAME.match(name)
    assert found is not None, "only a generated secret has a length"
    return int(found[1])


def place_of(name: str) -> str:
    """The component and the parameter that a generated secret belongs to; empty while that is not known."""
    found = _NAME.match(name)
    return (found[2] or "") if found is not None else ""


def placed(name: str, component: str, path: Path) -> str:
    """The name of a generated secret with the component and the parameter that it belongs to."""
    return f"{GENERATE}:{length_of(name)}:{component}/{path_text(path).removeprefix('.')}"


def said_errors(said: Mapping[object, object]) -> Iterator[str]:
    """What is wrong with an object in the place of a secret's name; it quotes nothing that may be a value."""
    if set(said) != {GENERATE}:
        yield f'asks for no secret: write {{"{GENERATE}": {DEFAULT_LENGTH}}} to have one made, or the name of one'
    elif name_of(said) is None:
        length = said[GENERATE]
        what = f"has {GENERATE} {length}" if isinstance(length, int) else f"has {GENERATE} {shown(length)}"
        yield f"{what}: give the number of its characters, from {SHORTEST} to {LONGEST}"
