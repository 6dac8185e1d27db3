"""The example's own suite, run as its authors run it: with the package installed, and without this project's tests."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fractal_cloud.testing import OfferContract
from tests.thirdparty.conftest import EXAMPLE

pytestmark = pytest.mark.timeout(300)


@pytest.mark.rule("L16", "S16")
def test_a_third_partys_offer_keeps_the_contract(with_package: dict[str, str]) -> None:
    suite = [sys.executable, *["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pyproject.toml", "tests"]]
    alone = {**with_package, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # this project's plugins are not the author's
    done = subprocess.run(suite, cwd=EXAMPLE, env=alone, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > len(OfferContract.demands())


def test_the_suite_of_the_example_imports_nothing_private() -> None:
    for path in EXAMPLE.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"^\s*(from|import) tests\b", text, re.MULTILINE), f"{path} imports this project's tests"
        assert not re.search(r"fractal_cloud\S* import .*\b_\w", text), f"{path} imports a private name"
