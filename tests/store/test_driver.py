"""The driver package alone knows which database it is; the rest of the control plane is written once for both."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud import control
from fractal_cloud.control.store import driver

CONTROL = Path(control.__file__).parent
DRIVER = Path(driver.__file__).parent
# A migration is history: it says what was done to each database at its time.
MIGRATIONS = CONTROL / "store" / "migrations"
DATABASES = ("postgres", "sqlite", "psycopg", "pg_")
ADDRESSES = {"sqlite:///"}  # the address of a database is a setting, and has a default


def _product_files() -> list[Path]:
    files = sorted(CONTROL.rglob("*.py"))
    return [file for file in files if not file.is_relative_to(DRIVER) and not file.is_relative_to(MIGRATIONS)]


def _words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name and every text of some code, but for docstrings and other texts that stand alone."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)) | ast.alias(name=word):
                yield getattr(node, "lineno", 0), word
            case ast.Constant(value=str(word)) if id(node) not in prose:
                yield node.lineno, word
            case _:
                pass


def _is_about_a_database(word: str) -> bool:
    if word in ADDRESSES:
        return False
    return any(name in word.lower() for name in DATABASES) or word in {"dialect", "driver_connection", "sqlstate"}


def _private_imports(tree: ast.AST) -> Iterator[str]:
    """What is imported of SQLAlchemy that begins with an underscore, or lies in a module that does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy"):
            yield from (f"{node.module}.{name.name}" for name in node.names if "._" in f"{node.module}.{name.name}")


@pytest.mark.parametrize("file", _product_files(), ids=lambda file: str(file.relative_to(CONTROL)))
def test_no_other_code_names_a_database(file: Path) -> None:
    found = [f"{line}: {word}" for line, word in _words(ast.parse(file.read_text())) if _is_about_a_database(word)]
    assert found == [], "ask fractal_cloud.control.store.driver instead"


@pytest.mark.parametrize("file", sorted(DRIVER.glob("*.py")), ids=lambda file: file.name)
def test_the_driver_package_uses_no_internals_of_sqlalchemy(file: Path) -> None:
    tree = ast.parse(file.read_text())
    own = {"self", "cls"}
    used = [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in own)
        and ast.unparse(node) != "self._row._make"  # a named tuple's documented constructor
    ]
    assert used == []
    assert list(_private_imports(tree)) == []
    assert "dispatch" not in {word for _, word in _words(tree)}, "SQLAlchemy's registry of events is its own"


def test_the_public_face_is_complete_and_sorted() -> None:
    assert all(hasattr(driver, name) for name in driver.__all__)
    assert len(set(driver.__all__)) == len(driver.__all__)
