"""A shell in which nothing but recorders can be run: what a line would have run is known exactly, word by word."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SHELLS = [name for name in ("bash", "dash") if shutil.which(name)]
PROGRAMS = (
    *("aws", "az", "gcloud", "oci", "hcloud", "kubectl", "govc", "fractal"),
    *("curl", "jq", "sed", "base64", "install", "acme"),
    *("touch", "rm", "id", "cat", "sh", "bash", "dash", "python3"),  # which no command of ours runs
)
# Builtins only: so one run is one process. What it says stands for a token, an etag, a body, a context.
_RECORDER = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" > "$RECORD/$RUN.$$"
echo answered
"""

Argv = list[str]


@dataclass(frozen=True)
class Ran:
    """What lines did: the programs they ran with their arguments, sorted, since those of a pipeline start in no order.

    ``files``: what lies in the folder afterwards; ``errors``: what the shell and its programs complained about.
    """

    argvs: list[Argv]
    files: list[str]
    errors: str


class RecordingShell:
    """Runs lines in a real shell, in an empty folder, with recorders in place of every program."""

    def __init__(self, shell: str, home: Path) -> None:
        self._shell = shutil.which(shell) or shell
        self._bin, self._work, self._record = home / "bin", home / "work", home / "record"
        self._bin.mkdir(parents=True)
        for program in PROGRAMS:
            path = self._bin / program
            path.write_text(_RECORDER, encoding="utf-8")
            path.chmod(0o755)

    def run(self, lines: Sequence[str]) -> Ran:
        """Run lines one after the other in one shell, as a person would paste them."""
        return self.run_each([lines])[0]

    def run_each(self, several: Sequence[Sequence[str]]) -> list[Ran]:
        """Run several groups of lines, all in one shell, which also shows that none of them leaves a quote open."""
        for folder in (self._work, self._record):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        script = [line for number, lines in enumerate(several) for line in (f"export RUN={number}", *lines)]
        done = subprocess.run(
            [self._shell, "-c", "\n".join(script)],
            cwd=self._work,
            env={"PATH": str(self._bin), "HOME": str(self._work), "RECORD": str(self._record), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
        files = sorted(str(path.relative_to(self._work)) for path in self._work.rglob("*"))
        errors = done.stderr.decode(errors="replace")
        return [Ran(self._recorded(number), files, errors) for number in range(len(several))]

    def _recorded(self, number: int) -> list[Argv]:
        texts = [os.fsdecode(path.read_bytes()) for path in self._record.glob(f"{number}.*")]
        return sorted(text.split("\0")[:-1] for text in texts)
