"""A noun of the product has the same file name in the routes, in the store and in the dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest

from fractal_cloud import control

CONTROL = Path(control.__file__).parent
# Whether the process answers is nothing that is stored; sessions have pages only, routes.py mounts the others, and the
# API lists overrides as components.
WITHOUT_NOUN = {"health", "sessions", "routes", "overrides"}


def _nouns(folder: str) -> set[str]:
    """The modules of a folder that serve requests."""
    modules = (CONTROL / folder).glob("*.py")
    return {module.stem for module in modules if "= APIRouter(" in module.read_text()} - WITHOUT_NOUN


@pytest.mark.parametrize(("folder", "other"), [("api", "store"), ("dashboard", "api"), ("dashboard", "store")])
def test_a_noun_has_the_same_file_name_everywhere(folder: str, other: str) -> None:
    assert _nouns(folder), "no module was found"
    assert [noun for noun in sorted(_nouns(folder)) if not (CONTROL / other / f"{noun}.py").is_file()] == []
