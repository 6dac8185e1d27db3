"""Every line of the threat model names the test that proves it, and that test exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.api.test_access import ADMIN, AGENT, API, NONE, OPERATOR, PAGES, READER

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+(?:::\w+)?)`")


def _rows() -> list[str]:
    """The rows of all tables, without their headings and rules."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    tables = [line for line in lines if line.startswith("|")]
    below = {index + 1 for index, line in enumerate(tables) if set(line) <= set("|-: ")}
    return [line for index, line in enumerate(tables) if index + 1 not in below and index not in {n - 2 for n in below}]


def _names(path: Path) -> set[str]:
    """The tests of a file, those in classes with the class before them."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def _routes_and_roles() -> list[str]:
    """The table of routes and roles, as the rows that are tried say it."""
    kinds = {READER: "reader", OPERATOR: "operator", ADMIN: "admin", AGENT: "agent"}
    proof = "`tests/api/test_access.py::test_each_kind_of_token_reaches_its_own_routes_and_no_other`"
    by_roles: dict[tuple[str, ...], list[str]] = {}
    for row in (*API, *PAGES):
        roles = tuple(word for kind, word in kinds.items() if kind in row.lets_in)
        by_roles.setdefault(("anybody",) if NONE in row.lets_in else roles, []).append(f"`{row.method} {row.path}`")
    lines = ["| who | routes | test |", "|---|---|---|"]
    return lines + [f"| {', '.join(roles)} | {', '.join(paths)} | {proof} |" for roles, paths in by_roles.items()]


def test_the_table_of_routes_and_roles_is_what_is_tried() -> None:
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- routes and roles -->\n", "<!-- end of routes and roles -->"
    stands = text.partition(begin)[2].partition(end)[0].strip().splitlines()
    wanted = _routes_and_roles()
    assert stands == wanted, "put this between the two comments:\n" + "\n".join(wanted)


def test_every_line_of_the_threat_model_names_a_test() -> None:
    without = [row for row in _rows() if not TEST.search(row)]
    assert not without, "\n".join(without)


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = TEST.findall(PAGE.read_text(encoding="utf-8"))
    missing = [
        f"{file}::{test}" for file, test in named if not (ROOT / file).is_file() or test not in _names(ROOT / file)
    ]
    assert not missing, "\n".join(missing)
