"""Adding a type is what CONTRIBUTING says: an offer and its example, of a new service also its descriptor.

The steps are taken in a copy of the tree, git counts the files, and the contract runs there. The files that a person
would write are those in ``adding``; everything else must follow from them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OURS = Path(__file__).parent / "adding"
OFFERS, EXAMPLES = Path("src/fractal_cloud/offers/aws"), Path("tests/offers/aws/examples")
# A short part of the contract, every step of a life: created, silent, drifted, handed over, deleted.
PARTS = ("created_once", "is_silent", "changed_comes_back", "glass_breaks", "it_is_deleted")
# What else a new type must not break: its calls are granted, its example is whole.
AROUND = (
    "everything_the_offers_call",
    "a_document_iam_accepts",
    "tied_to_the_tag",
    "has_an_example",
    "covers_every_parameter",
)


class Copy:
    """A copy of the tree with a history of its own, in which programs use the copy's code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        tracked = self._git("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
        for name in filter(None, tracked):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, folder / name)
        self._git("init", "--quiet")
        self.commit()

    def _git(self, *arguments: str, cwd: Path | None = None) -> str:
        named = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.hooksPath=/dev/null"]
        done = subprocess.run(
            ["git", *named, *arguments], cwd=cwd or self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(self) -> None:
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", "a step")

    def changed(self) -> list[str]:
        """The files that differ from the last commit, by git."""
        return [line[3:] for line in self._git("status", "--porcelain", "--untracked-files=all").splitlines()]

    def write(self, source: str, target: Path) -> None:
        """Write a file by hand."""
        (self.folder / target).write_text((OURS / f"{source}.py.txt").read_text("utf-8"), encoding="utf-8")

    def run(self, *arguments: str) -> str:
        """Run Python on the copy's code; what it printed."""
        path = os.pathsep.join([str(self.folder / "src"), str(self.folder)])
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def make_docs(self) -> None:
        """Run `make docs`, but for the check of links."""
        self.run("scripts/generate.py")
        self.run("scripts/reference.py")


@pytest.mark.timeout(180)
def test_a_type_of_a_known_service_is_two_files_and_one_of_a_new_service_three(tmp_path: Path) -> None:
    copy = Copy(tmp_path)

    copy.write("volume_offer", OFFERS / "volume.py")
    copy.write("volume_example", EXAMPLES / "volume.py")
    assert len(copy.changed()) == 2
    copy.commit()

    copy.write("topic_service", OFFERS / "services" / "sns.py")
    copy.write("topic_offer", OFFERS / "sns_topic.py")
    copy.write("topic_example", EXAMPLES / "topic.py")
    assert len(copy.changed()) == 3
    copy.commit()

    copy.make_docs()
    assert {"docs/reference/aws/ebs-volume.md", "src/fractal_cloud/messaging/aws.py"} <= set(copy.changed())
    copy.commit()
    copy.run("-m", "ruff", "check", "src", "tests/offers/aws")
    copy.run("-m", "ruff", "format", "--check", "src", "tests/offers/aws")
    types = "(AwsEbsVolume or AwsSnsTopic)"
    said = copy.run(
        *("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "soak or not soak"),
        *("-k", f"{types} and ({' or '.join(PARTS)}) or {' or '.join(AROUND)}"),
        *("tests/offers/test_contract.py", "tests/offers/aws/test_policy.py", "tests/offers/aws/test_examples.py"),
    )
    assert " passed" in said
    assert copy.changed() == []
