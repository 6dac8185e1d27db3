"""Peers at the same work, each in a process of its own: what it costs them, as the operating system counts it.

Those from PyPI get an environment of their own, made at first use below ``.cache/benchmarks`` and kept. What cannot be
had on this machine is listed as such, never left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.stock import REGION, VPC, Declared, cidr_of

CACHE: Final = Path(__file__).parent.parent / ".cache" / "benchmarks"
CUSTODIAN: Final = "c7n==0.9.53"
ANSIBLE: Final = "ansible==12.3.0"
LONGEST: Final = 240.0
"""Seconds an installation may take."""


# A small process between: Linux counts to a program's peak what its parent held when it started it.
_LAUNCH: Final = """
import json, os, subprocess, sys, time
started = time.perf_counter()
with open(sys.argv[1], "w") as output:
    process = subprocess.Popen(sys.argv[2:], stdout=output, stderr=output)
    _, status, used = os.wait4(process.pid, 0)
wall = time.perf_counter() - started
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1e3]))
"""


class NotHere(Exception):
    """A peer that this machine does not have; the message says why."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process and its children took; memory is the most that any one of them held."""

    cpu: float
    wall: float
    peak: float

    def figures(self, **more: float) -> dict[str, float]:
        """As figures of a result."""
        return {**more, "CPU s": self.cpu, "wall s": self.wall, "peak MB": self.peak}


def spend(command: Sequence[str | Path], folder: Path, more: Mapping[str, str] | None = None) -> Spent:
    """Run a command to its end; one that fails is not measured, but reported with the end of its output."""
    log = folder / "output.txt"
    asked = [sys.executable, "-S", "-c", _LAUNCH, str(log), *map(str, command)]
    ran = subprocess.run(asked, cwd=folder, env={**os.environ, **(more or {})}, check=True, stdout=subprocess.PIPE)
    code, cpu, wall, peak = json.loads(ran.stdout)
    if code:
        said = " ".join(log.read_text()[-300:].split())
        raise NotHere(f"{Path(command[0]).name} ended with {code}: {said}")
    return Spent(cpu, wall, peak)


def environment(requirement: str, *more: str) -> Path:
    """The ``bin`` of an environment with one package in it."""
    folder = CACHE / requirement.replace("==", "-")
    ready = folder / "ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, timeout=LONGEST)
            # uv, which development has: these are hundreds of megabytes.
            uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
            subprocess.run([*uv, requirement, *more], check=True, capture_output=True, timeout=LONGEST)
        except subprocess.TimeoutExpired as error:
            raise NotHere(f"{requirement} cannot be installed here within {LONGEST:.0f} s: try again") from error
        except (subprocess.SubprocessError, OSError) as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
            raise NotHere(f"{requirement} cannot be installed here: {said[-1] if said else error}") from error
        ready.touch()
    return folder / "bin"


def custodian(folder: Path) -> Spent:
    """Cloud Custodian looks for VPCs that lack the tags, and finds none."""
    program = environment(CUSTODIAN) / "custodian"
    lacking = [{f"tag:{key}": "absent"} for key in ("managed-by", "fractal-cloud-owner", "Name")]
    policy = {"policies": [{"name": "nets", "resource": "aws.vpc", "filters": [{"or": lacking}]}]}
    (folder / "policy.json").write_text(json.dumps(policy))
    asked: list[str | Path] = [program, "run", "--cache-period", "0", "--region", REGION, "-s", "out", "policy.json"]
    spent = spend(asked, folder)
    found = json.loads((folder / "out" / "nets" / "resources.json").read_text())
    assert found == [], "every VPC has its tags"
    return spent


def ansible(folder: Path, count: int, *, check: bool) -> Spent:
    """Ansible brings so many VPCs to their declaration, one module run each; with ``check`` it only looks."""
    program = environment(ANSIBLE, "boto3")
    lot = Declared(VPC, count).lot
    nets = [{"name": lot.name(n), "cidr": cidr_of(n), "owner": lot.owner(n)} for n in range(count)]
    tags = {"managed-by": "fractal-cloud", "fractal-cloud-owner": "{{ item.owner }}", "cost-center": "4711"}
    module = {"name": "{{ item.name }}", "cidr_block": "{{ item.cidr }}", "region": REGION, "tags": tags}
    task = {"amazon.aws.ec2_vpc_net": module, "check_mode": check, "loop": "{{ nets }}"}
    play = {"hosts": "localhost", "gather_facts": False, "vars": {"nets": nets}, "tasks": [task]}
    (folder / "play.json").write_text(json.dumps([play]))
    python = f"ansible_python_interpreter={program / 'python'}"
    return spend([program / "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", python, "play.json"], folder)


def terraform_subject() -> str:
    """Terraform's engine with its version, where it is on this machine."""
    program = shutil.which("terraform")
    if program is None:
        return "Terraform's engine alone"
    version: dict[str, Any] = json.loads(subprocess.check_output([program, "version", "-json"]))
    return f"Terraform's engine alone ({version['terraform_version']})"


@dataclass(frozen=True, slots=True)
class Terraform:
    """Terraform's engine alone: so many ``terraform_data``, which no provider and no cloud stands behind."""

    folder: Path
    count: int
    latency: float = 0.0

    def create(self, concurrency: int) -> Spent:
        """Apply into an empty state; each takes ``latency`` seconds, as a cloud's call would."""
        slow = f'\n  provisioner "local-exec" {{ command = "sleep {self.latency}" }}' if self.latency else ""
        value = '{ name = "net-${count.index}", cidr = "10.0.${count.index % 256}.0/24" }'
        body = f'resource "terraform_data" "net" {{\n  count = {self.count}\n  input = {value}{slow}\n}}\n'
        (self.folder / "main.tf").write_text(body)
        self._run("init")
        return self._run("apply", "-auto-approve", f"-parallelism={concurrency}")

    def check(self) -> Spent:
        """Plan, with nothing changed."""
        return self._run("plan", "-detailed-exitcode")

    def _run(self, verb: str, *options: str) -> Spent:
        return spend([self._program(), verb, "-input=false", "-no-color", *options], self.folder)

    @staticmethod
    def _program() -> str:
        program = shutil.which("terraform")
        if program is None:
            raise NotHere("not on this machine")
        return program
