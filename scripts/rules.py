"""Says which test proves which rule of docs/protocol.md, and fails where a rule claims a proof that is not there.

It reads the sources and runs nothing, so it is quick and needs no cloud; whether the tests pass is pytest's matter.
A test that is always skipped, or expected to fail, proves nothing and is not counted.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULE_LINE = re.compile(r"^- \*\*(?P<id>[A-Z]\d*[a-z]?)\*\* \*\((?P<state>[^)]*)\)\* ", re.MULTILINE)
STATES = ("done", "planned")

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Proof:
    """One test, and the rules it says it proves."""

    test: str
    rules: frozenset[str]


def read_rules(text: str) -> tuple[dict[str, str], list[str]]:
    """Return every rule's state by its id, in the order of the page, and the errors of the page."""
    found = [(match["id"], match["state"]) for match in RULE_LINE.finditer(text)]
    errors = [
        f"docs/protocol.md: {id_} is written {n} times" for id_, n in Counter(i for i, _ in found).items() if n > 1
    ]
    errors += [
        f"docs/protocol.md: the state of {id_} is '{state}', not one of {', '.join(STATES)}"
        for id_, state in found
        if state not in STATES
    ]
    if not found:
        errors.append("docs/protocol.md: no rule found; a rule begins like `- **S9** *(done)* `")
    return dict(found), errors


def mark_name(node: ast.AST) -> str | None:
    """Return «rule» for the expression `pytest.mark.rule` or `mark.rule`, called or not; None for anything else."""
    if isinstance(node, ast.Call):
        node = node.func
    if not isinstance(node, ast.Attribute):
        return None
    owner = node.value
    is_mark = (isinstance(owner, ast.Attribute) and owner.attr == "mark") or (
        isinstance(owner, ast.Name) and owner.id == "mark"
    )
    return node.attr if is_mark else None


class TestFile:
    """The rules that the tests of one file name, and what is wrong with how they name them."""

    def __init__(self, path: Path, source: str) -> None:
        self.name = path.as_posix()
        self.tree = ast.parse(source, filename=self.name)
        self.errors: list[str] = []
        self._named: dict[str, ast.expr] = dict(self._assignments(self.tree.body))

    def proofs(self) -> list[Proof]:
        """Return the tests of this file that name a rule."""
        if self._never_runs(self._pytestmark(self.tree.body)):
            return []
        return list(self._collect(self.tree.body, self.name, self._rules(self._pytestmark(self.tree.body))))

    def _collect(self, body: list[ast.stmt], prefix: str, inherited: frozenset[str]) -> Iterator[Proof]:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
                    if not self._never_runs(node.decorator_list):
                        rules = inherited | self._rules(node.decorator_list)
                        if rules:
                            yield Proof(f"{prefix}::{node.name}", rules)
                case ast.ClassDef() if node.name.startswith("Test"):
                    marks = [*node.decorator_list, *self._pytestmark(node.body)]
                    if self._never_runs(marks):
                        continue
                    rules = inherited | self._rules(marks)
                    own = list(self._collect(node.body, f"{prefix}::{node.name}", rules))
                    # A class whose tests come from a suite it inherits is listed as a whole.
                    has_tests = any(isinstance(n, FUNCTIONS) and n.name.startswith("test") for n in node.body)
                    if rules and not has_tests:
                        own.append(Proof(f"{prefix}::{node.name}", rules))
                    yield from own
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.startswith("Test"):
                    # `TestGlass = GlassMachine.TestCase`: how Hypothesis' state machines become tests.
                    if not self._never_runs([value]):
                        rules = inherited | self._rules([value])
                        if rules:
                            yield Proof(f"{prefix}::{name}", rules)
                case _:
                    pass

    def _rules(self, expressions: Iterable[ast.expr]) -> frozenset[str]:
        """Return the ids in every rule mark within the expressions, marks of parametrize's rows included."""
        found: set[str] = set()
        for node in self._walk(expressions):
            if isinstance(node, ast.Call) and mark_name(node) == "rule":
                found.update(self._ids(node))
        return frozenset(found)

    def _ids(self, mark: ast.Call) -> Iterator[str]:
        if not mark.args or mark.keywords:
            self.errors.append(f"{self.name}:{mark.lineno}: a rule mark names its rules, like rule('S9', 'T6')")
        for argument in mark.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value
            else:
                self.errors.append(
                    f"{self.name}:{mark.lineno}: a rule mark takes literal ids, so that they can be found"
                )

    def _walk(self, expressions: Iterable[ast.expr]) -> Iterator[ast.AST]:
        """Walk the expressions, and the values of the file's own constants that they mention."""
        seen: set[str] = set()
        waiting = list(expressions)
        while waiting:
            for node in ast.walk(waiting.pop()):
                yield node
                if isinstance(node, ast.Name) and node.id in self._named and node.id not in seen:
                    seen.add(node.id)
                    waiting.append(self._named[node.id])

    @staticmethod
    def _never_runs(marks: Iterable[ast.expr]) -> bool:
        """Whether a mark stands directly there that keeps the test from ever proving anything."""
        return any(
            mark_name(m) == "skip" or (mark_name(m) == "xfail" and not (isinstance(m, ast.Call) and m.args))
            for mark in marks
            for m in (mark.elts if isinstance(mark, ast.List | ast.Tuple) else [mark])
        )

    @classmethod
    def _pytestmark(cls, body: list[ast.stmt]) -> list[ast.expr]:
        return [value for name, value in cls._assignments(body) if name == "pytestmark"]

    @staticmethod
    def _assignments(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
        for node in body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    yield name, value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    yield name, value
                case _:
                    pass


def test_files(folder: Path) -> Iterator[Path]:
    """Yield the files in which pytest looks for tests, in a steady order."""
    yield from sorted({*folder.rglob("test_*.py"), *folder.rglob("*_test.py")})


def check(rules: dict[str, str], proofs: Iterable[Proof]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the tests of every rule, and the errors: unknown rules named, rules called done without a test."""
    by_rule: dict[str, list[str]] = defaultdict(list)
    for proof in proofs:
        for id_ in sorted(proof.rules):
            by_rule[id_].append(proof.test)
    errors = [
        f"{test}: names rule '{id_}', which docs/protocol.md does not have"
        for id_, tests in by_rule.items()
        if id_ not in rules
        for test in tests
    ]
    errors += [
        f"docs/protocol.md: {id_} is called done, and no test proves it; write one, or call it planned"
        for id_, state in rules.items()
        if state == "done" and not by_rule.get(id_)
    ]
    return by_rule, errors


def print_table(rules: dict[str, str], by_rule: dict[str, list[str]]) -> None:
    """Print every rule with its state and its tests."""
    for id_, state in rules.items():
        tests = by_rule.get(id_, [])
        print(f"{id_:<5} {state:<8} {tests[0] if tests else '-'}")
        for test in tests[1:]:
            print(f"{'':<14} {test}")


def main() -> int:
    """Print the table, then every error; return 1 if there is any."""
    rules, errors = read_rules((ROOT / "docs" / "protocol.md").read_text(encoding="utf-8"))
    proofs: list[Proof] = []
    for path in test_files(ROOT / "tests"):
        file = TestFile(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        proofs += file.proofs()
        errors += file.errors
    by_rule, more = check(rules, proofs)
    errors += more
    print_table(rules, by_rule)
    proved = sum(1 for id_ in rules if by_rule.get(id_))
    print(f"\n{len(rules)} rules, {sum(s == 'done' for s in rules.values())} called done, {proved} with tests")
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
