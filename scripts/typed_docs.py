"""Runs mypy --strict and pyright over every Python block of the documentation, as a reader who copies it would.

A block is checked as a program of its own. A block that is only part of one says what comes before it, in a comment
that the rendered page does not show:

    <!-- before this block:
    import pytest
    -->

From the programs of the reference pages come the ones that both checkers must reject: a call without a parameter that
is required, with one that does not exist, and with a component of another kind where a component is referred to.

How the blocks run does not belong here: `tests/docs` loads them, and `tests/cli/test_tour.py` types the README's.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
# Both checkers keep what they know of a file by its path, so the path is the same at every run.
WORK: Final = ROOT / ".cache" / "typed-docs"

BLOCK: Final = re.compile(
    r"(?:^<!-- before this block:\n(?P<before>.*?)^-->\n\n?)?^```python\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
HERE_DOCUMENT: Final = re.compile(r"^cat > (?P<name>\w+\.py) <<'EOF'\n(?P<text>.*?)^EOF$", re.DOTALL | re.MULTILINE)
# Their code is cut out of files below examples/, which are checked whole; tests/thirdparty holds the page to them.
CUT_OUT: Final = ("docs/write-your-own-agent.md",)

VPC: Final = 'nc.aws.vpc(id="vpc", region="eu-west-1", cidr_block="10.0.0.0/16")'
BUCKET: Final = 'st.aws.s3(id="bucket", region="eu-west-1")'


class Program(NamedTuple):
    """A Python file made from a page: where it comes from, its text, and the lines that must be rejected."""

    file: str
    page: str
    first_line: int
    text: str
    rejected: dict[int, str]

    def place(self, line: int) -> str:
        """Where a line of the program stands in the documentation."""
        return f"{self.page}:{self.first_line + line}" if not self.rejected else f"{self.page} ({self.file}:{line})"


class Complaint(NamedTuple):
    """What a checker says about one line of a program."""

    checker: str
    file: str
    line: int
    message: str


def programs() -> list[Program]:
    """Every Python block of the README, CONTRIBUTING and docs, and what follows from the reference pages."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    accepted = [program for page in pages for program in _of_page(page)]
    reference = [program for program in accepted if program.page.startswith("docs/reference/")]
    return [*accepted, *(wrong for program in reference if (wrong := _wrong(program)))]


def _of_page(page: Path) -> Iterator[Program]:
    name, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    if name in CUT_OUT:
        return
    stem = re.sub(r"\W", "_", name.removesuffix(".md")).lower()
    for number, match in enumerate([*BLOCK.finditer(text), *HERE_DOCUMENT.finditer(text)], 1):
        before = match.groupdict().get("before") or ""
        skipped = text.count("\n", 0, match.start("text")) - before.count("\n")
        yield Program(f"{stem}_{number}.py", name, skipped, before + match["text"], {})


def _wrong(program: Program) -> Program | None:
    """The program, followed by calls of its own that are each wrong in one way."""
    tree = ast.parse(program.text)
    lines = program.text.splitlines()
    lines += ["from fractal_cloud import network_and_compute as nc, storage as st", f"vpc, bucket = {VPC}, {BUCKET}"]
    lines.append("print(vpc, bucket)")
    rejected = {}
    for call in _declared(tree):
        for why, wrong in _wrong_calls(call):
            lines.append(wrong)
            rejected[len(lines)] = f"{ast.unparse(call.func)} {why}"
    if not rejected:
        return None
    return Program(f"wrong_{program.file}", program.page, 0, "\n".join(lines) + "\n", rejected)


def _declared(tree: ast.Module) -> list[ast.Call]:
    """The calls that declare components: assigned to a name, and of the form `category.provider.type(...)`."""
    return [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).count(".") == 2
    ]


def _wrong_calls(call: ast.Call) -> Iterator[tuple[str, str]]:
    category, provider, name = ast.unparse(call.func).split(".")
    component = getattr(import_module(f"fractal_cloud.{category}.{provider}"), name)
    yield "with an unknown parameter", _call(call, [*call.keywords, ast.keyword("unknown_one", ast.Constant(1))])
    for keyword in call.keywords:
        others = [other for other in call.keywords if other is not keyword]
        if component.model_fields[keyword.arg].is_required():
            yield f"without {keyword.arg}", _call(call, others)
        if isinstance(keyword.value, ast.Name):
            wrong = ast.keyword(keyword.arg, ast.Name("bucket" if keyword.arg == "vpc" else "vpc"))
            yield f"with another kind as {keyword.arg}", _call(call, [*others, wrong])


def _call(call: ast.Call, keywords: list[ast.keyword]) -> str:
    return ast.unparse(ast.Call(call.func, call.args, keywords))


def _write(made: Sequence[Program]) -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "venvPath": str(ROOT),
        "venv": ".venv",
        # Names of a fragment need not be used in it.
        "reportUnusedFunction": "none",
        "reportUnusedClass": "none",
    }
    (WORK / "pyrightconfig.json").write_text(json.dumps(settings))
    # Without the project's own configuration: a reader has neither its plugins nor its exceptions.
    (WORK / "mypy.ini").write_text("[mypy]\nstrict = True\npython_version = 3.11\n")
    for program in made:
        (WORK / program.file).write_text(program.text, encoding="utf-8")


def _mypy() -> list[Complaint]:
    """What mypy --strict says: `file:line: error: message`."""
    cache = ROOT / ".mypy_cache" / "docs"
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(cache), "--no-pretty", "."]
    ran = subprocess.run(command, cwd=WORK, capture_output=True, text=True, check=False)
    found = re.findall(r"^([\w/.]+):(\d+): error: (.*)$", ran.stdout, re.MULTILINE)
    if ran.returncode not in (0, 1) or (ran.returncode == 1 and not found):
        raise SystemExit(f"mypy did not run: {ran.stdout}{ran.stderr}")
    return [Complaint("mypy", file, int(line), message) for file, line, message in found]


def _pyright() -> list[Complaint]:
    """What pyright in strict mode says."""
    program = Path(sys.executable).with_name("basedpyright")
    ran = subprocess.run([program, "--outputjson"], cwd=WORK, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        raise SystemExit(f"pyright did not run: {ran.stdout}{ran.stderr}")
    return [
        Complaint("pyright", Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in json.loads(ran.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    ]


def errors() -> list[str]:
    """What is wrong: lines that a checker rejects and should not, and lines that it should reject and does not."""
    made = programs()
    _write(made)
    with ThreadPoolExecutor() as pool:
        runs = {"mypy": pool.submit(_mypy), "pyright": pool.submit(_pyright)}
        complaints = [complaint for run in runs.values() for complaint in run.result()]
    by_file = {program.file: program for program in made}
    found = [
        f"{by_file[each.file].place(each.line)}: {each.checker}: {each.message}"
        for each in complaints
        if each.line not in by_file[each.file].rejected
    ]
    said = {(each.checker, each.file, each.line) for each in complaints}
    return found + [
        f"{program.page}: {checker} accepts {why}"
        for program in made
        for line, why in program.rejected.items()
        for checker in runs
        if (checker, program.file, line) not in said
    ]


def main() -> int:
    """Print every error; return 1 if there is any."""
    found = errors()
    for error in found:
        print(f"error: {error}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
