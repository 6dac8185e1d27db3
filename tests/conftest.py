"""What holds for every test: Hypothesis' profiles, time limits, and fixtures that all tests share."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from fractal_sandbox import Sandbox
from tests import library_caches, rule_coverage
from tests.change_detection import collect_missed_components
from tests.housekeeping_interval import OFTEN, RARELY, housekeeping_every
from tests.offers.kubernetes.real import over_a_real_server
from tests.world import World
from tests.world import world as make_world

COUNTED = ("crash points", "processes killed", "faults of real processes")
SOAK = os.environ.get("FRACTAL_SOAK") == "1"
PROOFS = os.environ.get("FRACTAL_PROOFS", "")

# No deadline: on a busy machine a slow example is no error of the code; pytest-timeout catches what hangs.
settings.register_profile("default", deadline=None, max_examples=100, print_blob=True)
settings.register_profile(
    "soak", parent=settings.get_profile("default"), max_examples=5_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("soak" if SOAK else "default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Record the rules that each test proves; give every test an hour in `make soak`."""
    rule_coverage.record_rules(items)
    if SOAK:
        for item in items:
            item.add_marker(pytest.mark.timeout(3_600))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what a worker of pytest-xdist deselects: pytest-xdist itself does not report it."""
    if items and hasattr(items[0].config, "workeroutput"):
        output = items[0].config.workeroutput
        output["deselected"] = output.get("deselected", 0) + len(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Show the number of deselected tests in pytest's last line; every worker deselects the same ones."""
    reporter = node.config.pluginmanager.get_plugin("terminalreporter")
    count = getattr(node, "workeroutput", {}).get("deselected", 0)
    reporter.stats["deselected"] = [SimpleNamespace() for _ in range(count)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freeze what was imported and collected: it lives until the end, and the garbage collector need not scan it."""
    if session.config.getoption("loadgroup", default=False):
        grouped = [item.nodeid for item in session.items if item.get_closest_marker("xdist_group")]
        assert all("@" in name for name in grouped), "pytest-xdist keeps no groups together with this pytest"
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how often the agent was made to fail: tests report it as properties, whichever worker they ran on."""
    counts: Counter[str] = Counter()
    if PROOFS:
        rule_coverage.write_matrix(Path(PROOFS), terminalreporter.getreports("passed"))
    for report in terminalreporter.getreports("passed"):
        counts.update({name: value for name, value in report.user_properties if name in COUNTED})
    if counts:
        terminalreporter.section("faults survived")
        terminalreporter.line(", ".join(f"{count} {name}" for name, count in counts.items()))


@pytest.fixture(scope="session", autouse=True)
def cached_libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Cache what vendors' libraries build slowly, for all tests of a process."""
    folder = tmp_path_factory.mktemp("library-caches")
    with library_caches.botocore(), library_caches.fastapi(), library_caches.sqlalchemy(folder):
        yield


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Agents that run as processes keep their state in a folder of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FRACTAL_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def rare_housekeeping() -> Iterator[None]:
    """Run housekeeping once a second at most: with cycles this short it would run five times as often."""
    with housekeeping_every(RARELY):
        yield


@pytest.fixture
def frequent_housekeeping() -> Iterator[None]:
    """Run housekeeping often, for tests that wait for its effects or prove that there are none."""
    with housekeeping_every(OFTEN):
        yield


@pytest.fixture(autouse=True)
def usual_file_modes() -> Iterator[None]:
    """Undo what programs do that run inside a test: they make every file of their process their user's alone."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def change_detection_misses_nothing() -> Iterator[None]:
    """In every test, a component that a cycle skipped would have been judged as before (S20)."""
    with collect_missed_components() as missed:
        yield
    assert not missed, "\n".join(missed)


@pytest.fixture(scope="session")
def session_sandbox() -> Iterator[Sandbox]:
    """One sandbox for all tests of a worker; every world resets it."""
    with over_a_real_server(Sandbox(port=0)) as sandbox:
        yield sandbox


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The whole product in one process, with an empty cloud and an empty database."""
    with make_world(session_sandbox, tmp_path, monkeypatch) as made:
        yield made
