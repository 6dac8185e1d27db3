"""The package AcmeDB as pip installs it, in a place of its own: this project's environment never has it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from tests.thirdparty.stage import Stage, staged

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "acmedb"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed: whoever has this on its path has the package, as if beside it."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    alone = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder), str(EXAMPLE)]
    done = subprocess.run([*pip, *alone], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def with_package(site: Path) -> dict[str, str]:
    """The environment of a process that has the package."""
    return {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def stage(
    session_sandbox: Sandbox, with_package: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Everything as processes of its own: control plane, AcmeDB, an agent for each cloud."""
    session_sandbox.kubernetes.reset()
    with staged(session_sandbox, with_package, tmp_path_factory.mktemp("stage")) as made:
        yield made
