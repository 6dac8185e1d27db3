"""The README's tour, block by block, with the vendor's own command line: everything it claims comes out."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CYCLE = 1.0
pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

EXPECTED = {
    "Read the sample": ["sample: Active", "AwsEc2Instance"],
    "Deploy your own": ["2 to create", "ls-shop/firewall  Active"],
    "Break the glass": ["aws ec2 delete-tags", "aws ec2 create-tags", "ManualOverride", "enableDnsHostnames"],
    "Revert it": ["GlassBroken", "Readopted", "DriftCorrected"],
    "Or keep it": ["enable_dns_hostnames=False", "ls-shop: Active"],
    "Share it": ["ExternallyManaged", "owned by 'ls-shop'"],
    "Link it": ["storageLink.files.bucket", "shop-files"],
    "Delete": ["owns 1 resource that is imported by 1 other LiveSystem", "to report Missing on that reference"],
}


class Block(NamedTuple):
    """One step of the tour: the bold words that introduce it, what to type, and what the README says it prints."""

    title: str
    script: str
    shown: str


def blocks() -> list[Block]:
    """The steps of the tour, in order."""
    tour = README.split("## Five minutes")[1].split("\n## ")[0]
    found = re.findall(r"\*\*([^*]+?)\.\*\*.*?```sh\n(.*?)```\n\n```text\n(.*?)```", tour, flags=re.DOTALL)
    return [Block(*parts) for parts in found]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[dict[str, str]]:
    """`fractal up` as `make up` runs it, on free ports; the environment of a terminal beside it."""
    env = {
        **os.environ,
        "FRACTAL_TOKEN": "tour",
        "FRACTAL_PORT": (port := str(free_port())),
        "FRACTAL_SANDBOX_PORT": str(free_port()),
        "FRACTAL_DATA_DIR": str(tmp_path / "data"),
        "FRACTAL_CYCLE_SECONDS": str(CYCLE),
        "FRACTAL_URL": f"http://127.0.0.1:{port}",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "160",
    }
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        env.pop(name, None)
    log = tmp_path / "up.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "fractal_cloud.cli", "up"], env=env, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + 120
        while "is deployed: 7 Active" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield env
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@pytest.mark.rule("G1", "G3", "G6", "G7", "G8", "G12", "O1", "O7", "C4", "C6")
@pytest.mark.skipif(shutil.which("bash") is None, reason="the tour is for bash")
def test_the_tour_of_the_readme_prints_what_it_shows(up: dict[str, str], tmp_path: Path) -> None:
    found = blocks()
    assert [block.title for block in found] == list(EXPECTED), "the tour and this test have the same steps"
    exported = _exported(found[0].script, up)
    for title, script, shown in found:
        quick = script.replace("sleep 8", f"sleep {3 * CYCLE:g}")
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", quick],
            cwd=tmp_path,
            env=up | exported,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        said = result.stdout
        assert result.returncode == 0, f"{title}:\n{said}"
        flat = re.sub(r"\s+", " ", said)
        for text in EXPECTED[title]:
            assert re.sub(r"\s+", " ", text) in flat, f"{title}: {text!r} is not in:\n{said}"
        missing = _not_printed(shown, said)
        assert not missing, f"{title}: the README shows {missing!r}, which is not in:\n{said}"


def _not_printed(shown: str, said: str) -> str:
    """The first part of a shown output that the real one lacks; ids, times and lines of tables may differ."""
    rest = _normalized(said)
    for part in shown.split("…"):
        if not (wanted := _normalized(part).strip()):
            continue
        _, found, rest = rest.partition(wanted)
        if not found:
            return part.strip()
    return ""


def _normalized(text: str) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"\b(vpc|sg)-[0-9a-f]{17}\b|\b[0-9a-f]{32}\b|\b[\w.-]+-\d+-[0-9a-f]{6}\b", "ID", text)
    text = re.sub(r"web-files-[0-9a-z-]+", "ID", text)
    return re.sub(r"\s+", " ", re.sub(r"─+", "", text))


def _exported(first: str, env: dict[str, str]) -> dict[str, str]:
    """What the tour's first block leaves in the terminal."""
    script = f"{first}\nenv -0"
    result = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=True)
    lines = result.stdout.split("\0")
    pairs = [line.rsplit("\n", 1)[-1].partition("=") for line in lines]
    return {name: value for name, _, value in pairs if name.startswith("AWS_")}
