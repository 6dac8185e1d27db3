"""The commands that break the glass and re-adopt, run with the vendor's own command line."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fractal_cloud.model.commands import Filling, shell_text
from fractal_cloud.model.component import Component
from fractal_sandbox import Sandbox, sandbox_env
from tests.offers.aws.conftest import World, under_test
from tests.offers.aws.examples import EXAMPLES

AWS = Path(sys.executable).with_name("aws")
# moto's tagging API does not know EKS, but its commands are EKS's own.
KINDS = [pytest.param(kind, id=kind.__name__) for kind in EXAMPLES]
# That they work, `tests/glass` shows for every type with the whole product; here the one whose commands are the oddest.
QUICK = [
    pytest.param(kind, id=kind.__name__, marks=() if kind.__name__ == "AwsS3" else pytest.mark.soak)
    for kind in EXAMPLES
]


def _run(command: str, url: str) -> None:
    program, *words = shlex.split(command)
    assert program == "aws"
    done = subprocess.run(
        [AWS, *words], capture_output=True, text=True, check=False, env={**os.environ, **sandbox_env(url)}
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.rule("G12")
@pytest.mark.skipif(not AWS.exists(), reason="the aws command line is not installed: `make setup` installs it")
@pytest.mark.parametrize("kind", QUICK)
def test_the_printed_commands_work_and_keep_all_other_tags(
    kind: type[Component], world: World, sandbox: Sandbox
) -> None:
    offer, example, _ = under_test(kind)
    seen = world.bring(example)
    fields = {**seen.outputs, "resourceId": seen.resource_id}
    for command in offer.glass.break_glass:
        _run(shell_text(command, Filling(fields)), sandbox.url)
    broken = offer.read(world.cloud_of(offer), seen.resource_id)
    assert broken is not None
    assert broken.tags == {key: value for key, value in seen.tags.items() if key != "managed-by"}
    for command in offer.glass.readopt:
        _run(shell_text(command, Filling(fields)), sandbox.url)
    again = offer.read(world.cloud_of(offer), seen.resource_id)
    assert again is not None
    assert again.tags == {**seen.tags, "fractal-cloud": "reconcile"}
