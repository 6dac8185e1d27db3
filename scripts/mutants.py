"""Breaks the pure centre on purpose, and fails where no test notices: `make mutants`.

Three parts, each in a copy of the tree under `.cache/mutants`, so that nothing here is ever changed:

- the centre: every mutant that mutmut makes of the rules, of access, and of the agent's guard and deadlines, by the
  direct tests. Survivors are listed in `tests/mutants/survivors.toml`, each with its reason;
- the named changes of `tests/mutants/named.py`: each is applied, and the tests named for it must fail;
- a sample with a fixed seed of mutants of the store and of the cycle, against the direct tests and those of the store.
  Its score is stated, and fails nothing.

Run it with the names of parts (`centre`, `named`, `sample`) to run only those; with a pattern of mutmut's after
`centre`, only these mutants are tried, and no score is demanded.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
WORK: Final = ROOT / ".cache" / "mutants"
PACKAGE: Final = "src/fractal_cloud"
SURVIVORS: Final = ROOT / "tests" / "mutants" / "survivors.toml"
WORKERS: Final = 2
LOWEST_SCORE: Final = 0.95
MOST_EQUIVALENT: Final = 0.05
SLOWEST_TEST: Final = 0.5
SAMPLE_SIZE: Final = 100
SAMPLE_SEED: Final = 20261118
KILLED: Final = frozenset({"killed", "timeout", "segfault"})


@dataclass(frozen=True)
class Part:
    """What is mutated, and by which tests that must be noticed.

    ``only``: of these files nothing but the mutants whose names fit.
    """

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return WORK / self.name

    def includes(self, mutant: str) -> bool:
        """Whether a mutant belongs to the part."""
        for module, patterns in self.only.items():
            if mutant.startswith(f"{module}."):
                return any(fnmatch(mutant, pattern) for pattern in patterns)
        return True


CENTRE: Final = Part(
    name="centre",
    files=(
        f"{PACKAGE}/rules/*.py",
        f"{PACKAGE}/rules/nested/*.py",
        f"{PACKAGE}/control/auth/*.py",
        f"{PACKAGE}/agent/writing.py",
        f"{PACKAGE}/agent/deadline.py",
        *(f"{PACKAGE}/agent/{name}.py" for name in ("cycle_state", "observing", "waves", "outcomes", "conclusions")),
    ),
    left_out=(f"{PACKAGE}/rules/words.py",),
    tests=(
        "tests/direct",
        "tests/nested/test_comparison.py",
        "tests/nested/test_correction.py",
        "tests/deciding/test_drift.py",
        "tests/deciding/test_paths.py",
        "tests/deciding/test_requests.py",
        "tests/declaring/test_identify.py",
        "tests/declaring/test_order.py",
    ),
    only={
        f"fractal_cloud.agent.{module}": tuple(
            f"fractal_cloud.agent.{module}.xǁ{name}ǁ{method}__mutmut_*" for method in methods
        )
        for module, name, methods in (
            ("cycle_state", "CycleState", ("may_write",)),
            ("observing", "Observer", ("count_absent_reads", "_read_by_id")),
            ("waves", "Waves", ("_may_try", "_without_rivals", "_confirm_gone")),
            ("outcomes", "Outcomes", ("_may_be_its_own_rival",)),
            ("conclusions", "Conclusions", ("_hold_families", "_is_too_early")),
        )
    },
    options=(
        *("--noconftest", "-p", "tests.direct.profile"),
        *("--deselect", "tests/deciding/test_drift.py::test_nothing_ever_drifts_from_itself"),
        *("--deselect", "tests/declaring/test_order.py::test_a_chain_of_ten_thousand_is_ordered"),
    ),
)
SAMPLE: Final = Part(
    name="sample",
    files=(
        *(f"{PACKAGE}/control/store/{name}.py" for name in ("scopes", "claims", "agents", "reports")),
        *(f"{PACKAGE}/agent/{name}.py" for name in ("cycle", "waves", "outcomes", "leases", "main")),
    ),
    tests=("tests/direct", "tests/store"),  # those of whole worlds would notice more, and take an hour
    options=("-p", "no:randomly", "-k", "not postgresql"),  # which notices what SQLite notices, and takes as long again
    settings=('process_isolation = "forkserver"',),
)


@dataclass(frozen=True)
class Mutant:
    """One changed line (or few), and what became of it."""

    name: str
    state: str

    @property
    def is_killed(self) -> bool:
        return self.state in KILLED

    @property
    def file(self) -> str:
        module = self.name.rpartition(".")[0].removeprefix("fractal_cloud.")
        return f"{module.replace('.', '/')}.py"

    @property
    def function(self) -> str:
        mangled = self.name.rpartition(".")[2].rpartition("__mutmut_")[0]
        return mangled.removeprefix("xǁ").replace("ǁ", ".") if "ǁ" in mangled else mangled.removeprefix("x_")


@dataclass(frozen=True)
class Change:
    """A mutation by its text: it keeps its place in the table when mutants are counted otherwise."""

    file: str
    function: str
    old: str
    new: str


# --- running mutmut


def copy_tree(folder: Path, extra: str = "", *, is_kept: bool = False) -> None:
    """A copy of what tests need, without anything compiled; one that is kept gets what changed since."""
    if not is_kept:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("src", "tests", "examples", "docs", "benchmarks", "scripts", "deploy"):
        shutil.copytree(
            ROOT / name,
            folder / name,
            ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"),
            copy_function=_copy_changed,
            dirs_exist_ok=True,
        )
    for name in ("CHANGELOG.md", "README.md", "Makefile", "requirements-dev.txt", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + extra)


def _copy_changed(source: str, target: str) -> None:
    there = Path(target)
    if not there.exists() or there.read_bytes() != Path(source).read_bytes():
        shutil.copy(source, target)


def settings_of(part: Part) -> str:
    """The section of pyproject.toml by which mutmut knows what to do."""
    return "\n".join(
        [
            "",
            "[tool.mutmut]",
            'source_paths = ["src"]',
            f"only_mutate = {json.dumps(part.files)}",
            f"do_not_mutate = {json.dumps(part.left_out)}",
            f"pytest_add_cli_args_test_selection = {json.dumps(part.tests)}",
            f"pytest_add_cli_args = {json.dumps(['-p', 'no:cacheprovider', *part.options])}",
            "track_dependencies = false",
            "use_git_change_detection = false",
            *part.settings,
            "",
        ]
    )


def mutmut(part: Part, names: Sequence[str]) -> None:
    """Run mutmut in the part's folder; all it says goes into a file beside it."""
    log = WORK / f"{part.name}.log"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    with log.open("w") as out:
        command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(WORKERS), *names]
        code = subprocess.run(command, cwd=part.folder, stdout=out, stderr=out, env=environment, check=False).returncode
    if code != 0:
        shown = log.read_text(errors="replace").replace("\r", "\n").splitlines()[-40:]
        sys.exit("\n".join([*shown, f"mutmut failed with {code}: see {log}"]))


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """mutmut reads its settings and its results from where it is run."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def mutants_of(part: Part) -> list[Mutant]:
    """All mutants that were made, with what became of them."""
    states: Mapping[int | None, str] = import_module("mutmut.stats").status_by_exit_code
    found = []
    for meta in sorted((part.folder / "mutants").rglob("*.meta")):
        codes: dict[str, int | None] = json.loads(meta.read_text())["exit_code_by_key"]
        found += [Mutant(name, states[code]) for name, code in codes.items() if part.includes(name)]
    return found


def change_of(part: Part, mutant: Mutant) -> Change:
    """What a mutant changes, as text."""
    diff_apply = import_module("mutmut.mutation.diff_apply")
    with inside(part.folder):
        lines = str(diff_apply.get_diff_for_mutant(mutant.name)).splitlines()
    old = [line[1:].strip() for line in lines if line.startswith("-") and not line.startswith("---")]
    new = [line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++")]
    return Change(mutant.file, mutant.function, "\n".join(old), "\n".join(new))


def slowest_tests(part: Part) -> list[tuple[float, str]]:
    """How long the tests took while nothing was changed, the slowest first."""
    durations: dict[str, float] = json.loads((part.folder / "mutants" / "mutmut-stats.json").read_text())[
        "duration_by_test"
    ]
    return sorted(((seconds, name) for name, seconds in durations.items()), reverse=True)


# --- the centre


@dataclass(frozen=True)
class Table:
    """The survivors that are known: those that change nothing anybody could notice, and those nobody noticed yet."""

    equivalent: Mapping[Change, str]
    open: Mapping[Change, str]

    @classmethod
    def read(cls) -> Table:
        """The table of this tree."""
        listed = tomllib.loads(SURVIVORS.read_text())
        return cls(_changes(listed.get("equivalent", [])), _changes(listed.get("open", [])))


def _changes(rows: Iterable[Mapping[str, Any]]) -> dict[Change, str]:
    found: dict[Change, str] = {}
    for row in rows:
        change = Change(row["file"], row["function"], row["old"].strip(), row["new"].strip())
        assert change not in found, f"listed twice: {change}"
        assert row["reason"].strip(), f"without a reason: {change}"
        found[change] = row["reason"]
    return found


def run_centre(names: Sequence[str]) -> list[str]:
    """Mutate the centre; what is wrong with the outcome."""
    began = time.monotonic()
    copy_tree(CENTRE.folder, settings_of(CENTRE), is_kept=bool(names))
    chosen = names or [
        f"fractal_cloud.{module}.*" for module in ("rules", "control", "agent.writing", "agent.deadline")
    ]
    only = [] if names else [pattern for patterns in CENTRE.only.values() for pattern in patterns]
    mutmut(CENTRE, [*chosen, *only])
    made = mutants_of(CENTRE)
    if names:
        made = [mutant for mutant in made if any(fnmatch(mutant.name, pattern) for pattern in names)]
    survivors = {mutant: change_of(CENTRE, mutant) for mutant in made if not mutant.is_killed}
    if names:
        for mutant, change in survivors.items():
            print(f"{mutant.state}: {mutant.name}\n- {change.old}\n+ {change.new}\n")
        print(f"{len(made)} mutants, {len(made) - len(survivors)} killed, {len(survivors)} survived")
        return []
    return _missed_goals(made, survivors, time.monotonic() - began)


def _missed_goals(made: list[Mutant], survivors: Mapping[Mutant, Change], seconds: float) -> list[str]:
    table = Table.read()
    equivalent = [mutant for mutant, change in survivors.items() if change in table.equivalent]
    killed = len(made) - len(survivors)
    score = killed / (len(made) - len(equivalent))
    slowest = slowest_tests(CENTRE)
    print(
        f"centre: {len(made)} made, {killed} killed, {len(survivors) - len(equivalent)} survived, "
        f"{len(equivalent)} equivalent, {seconds:.0f} s: {score:.1%} of those that are not equivalent are killed; "
        f"{len(slowest)} direct tests, the slowest took {slowest[0][0]:.2f} s"
    )
    wrong = []
    if score < LOWEST_SCORE:
        wrong.append(f"{score:.1%} of the mutants are killed: at least {LOWEST_SCORE:.0%} must be")
    if len(equivalent) > MOST_EQUIVALENT * len(made):
        wrong.append(f"{len(equivalent)} mutants are called equivalent: at most {MOST_EQUIVALENT:.0%} may be")
    wrong += [
        f"takes {took:.2f} s, too long for a direct test: {name}" for took, name in slowest if took > SLOWEST_TEST
    ]
    listed = {**table.equivalent, **table.open}
    there = set(survivors.values())
    wrong += [f"survives, and is not listed: {_shown(change)}" for change in sorted(there - listed.keys(), key=_shown)]
    wrong += [
        f"is listed, but does not survive (any more): {_shown(change)}" for change in listed if change not in there
    ]
    return wrong


def _shown(change: Change) -> str:
    return f"{change.file} {change.function}\n    - {change.old}\n    + {change.new}".replace("\n-", "\n    -")


# --- named changes


def run_named(names: Sequence[str]) -> list[str]:
    """Apply each named change, and let the tests run that must notice it."""
    sys.path.insert(0, str(ROOT))
    from tests.mutants.named import NAMED, Named

    chosen = [named for named in NAMED if not names or any(fnmatch(named.name, pattern) for pattern in names)]
    if not chosen:
        return [f"no named change fits {' '.join(names)}: {', '.join(named.name for named in NAMED)}"]
    began = time.monotonic()
    wrong: list[str] = []
    folders = [WORK / f"named-{index}" for index in range(WORKERS)]
    for folder in folders:
        copy_tree(folder)
    tests = sorted({test for named in chosen for test in named.tests})
    for some in ([t for t in tests if t.startswith("tests/direct/")], [t for t in tests if t[:13] != "tests/direct/"]):
        code, said = _pytest(folders[0], some) if some else (0, "")
        if code != 0:
            return [f"the tests of the named changes fail although nothing is changed:\n{said}"]

    def attempt(named: Named) -> str | None:
        folder = folders.pop()
        file = folder / named.file
        before = file.read_text()
        try:
            if before.count(named.old) != 1:
                return f"{named.name}: {named.file} has its text {before.count(named.old)} times: write the change anew"
            file.write_text(before.replace(named.old, named.new))
            code, said = _pytest(folder, named.tests)
            if code != 1:  # 0: nobody noticed; anything else: no test was even run
                return f"{named.name}: survives (pytest ended with {code}): {' '.join(named.tests)}\n{said}"
            return None
        finally:
            file.write_text(before)
            folders.append(folder)

    with ThreadPoolExecutor(WORKERS) as pool:
        wrong = [found for found in pool.map(attempt, chosen) if found is not None]
    print(f"named: {len(chosen)} made, {len(chosen) - len(wrong)} killed, {time.monotonic() - began:.0f} s")
    return wrong


def _pytest(folder: Path, tests: Sequence[str]) -> tuple[int, str]:
    are_direct = all(
        test.startswith("tests/direct/") for test in tests
    )  # they need nothing of the conftest of all others
    options = CENTRE.options[:3] if are_direct else ()
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options, *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, "\n".join(done.stdout.splitlines()[-15:])


# --- the sample


_ONE_OF_THEM: Final = "fractal_cloud.control.store.scopes.x_wake_number__mutmut_1"


def run_sample(_: Sequence[str]) -> list[str]:
    """Try a few mutants of the store and of the cycle; the score is stated, and none is demanded."""
    began = time.monotonic()
    copy_tree(SAMPLE.folder, settings_of(SAMPLE))
    mutmut(SAMPLE, [_ONE_OF_THEM])  # one is enough to have all of them written down, and the tests measured
    everyone = sorted(mutant.name for mutant in mutants_of(SAMPLE))
    chosen = random.Random(SAMPLE_SEED).sample(everyone, SAMPLE_SIZE)
    mutmut(SAMPLE, chosen)
    made = [mutant for mutant in mutants_of(SAMPLE) if mutant.name in set(chosen)]
    survivors = [mutant for mutant in made if not mutant.is_killed]
    for mutant in survivors:
        print(f"  survived ({mutant.state}): {_shown(change_of(SAMPLE, mutant))}")
    print(
        f"sample: {len(made)} of {len(everyone)} made, {len(made) - len(survivors)} killed, {len(survivors)} survived, "
        f"{time.monotonic() - began:.0f} s"
    )
    return []


PARTS: Final = {"centre": run_centre, "named": run_named, "sample": run_sample}


def main() -> None:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=list(PARTS))
    parser.add_argument("names", nargs="*", help="patterns of mutants, or of named changes")
    given = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    for name in [given.part] if given.part else PARTS:
        wrong += PARTS[name](given.names)
    if wrong:
        sys.exit("\n".join(["", *wrong]))


if __name__ == "__main__":
    main()
