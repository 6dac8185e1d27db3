"""`make walk` traces a deploy that ends well, and counts what it went through."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(240)
def test_the_way_of_a_deploy_leads_from_the_request_through_the_rules_to_the_cloud() -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "scripts" / "walk.py"], capture_output=True, text=True, check=False, timeout=200
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr

    assert "net: Active\npart: Active\n" in ran.stdout
    in_all = re.search(r"^in all +(\d+) +(\d+)$", ran.stdout, re.MULTILINE)
    assert in_all, ran.stdout[-2000:]
    files, functions = map(int, in_all.groups())
    assert 0 < files < functions

    steps = ["1. PUT /livesystems/walk", "POST /agent/claim", "rules/judge.py", "CreateVpc", "CreateSubnet"]
    places = [ran.stdout.index(step) for step in steps]
    assert places == sorted(places), "each step is listed where it happens"
    assert "fractal_sandbox" not in ran.stdout
