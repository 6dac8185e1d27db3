"""The commands of the guide «Least privilege on AWS», pasted into a shell with the vendor's own command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fractal_cloud.offers.aws.policy import boundary, documents
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox, sandbox_env
from tests.aws_rights import ACCOUNT
from tests.offers.aws.conftest import Person

GUIDE = Path(__file__).parents[3] / "docs" / "operating.md"
PROGRAMS = Path(sys.executable).parent
pytestmark = [pytest.mark.clis, pytest.mark.timeout(300)]


def blocks(heading: str) -> list[str]:
    """The shell blocks below a heading."""
    section = GUIDE.read_text("utf-8").split(f"\n### {heading}\n")[1].split("\n### ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


@pytest.mark.rule("A7")
def test_the_commands_of_the_guide_prepare_an_account(sandbox: Sandbox, person: Person, tmp_path: Path) -> None:
    iam = person("iam")
    iam.delete_policy(PolicyArn=f"arn:aws:iam::{ACCOUNT}:policy/fractal-cloud/boundary")
    iam.create_role(RoleName="AGENT", AssumeRolePolicyDocument="{}")
    iam.create_user(UserName="old", Path="/fractal-cloud/")
    iam.create_role(RoleName="old", Path="/fractal-cloud/", AssumeRolePolicyDocument="{}")
    service_roles = re.search(r"`(for one in ecs eks rds;.*?)`", GUIDE.read_text("utf-8"))
    assert service_roles is not None
    pasted = [*blocks("Least privilege on AWS"), service_roles[1], *blocks("Rights for links on AWS")]
    assert len(pasted) == 4
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    script = "set -e\n" + "\n".join(pasted).replace("ACCOUNT", ACCOUNT)
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **sandbox_env(sandbox.url), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    attached = {one["PolicyName"] for one in iam.list_attached_role_policies(RoleName="AGENT")["AttachedPolicies"]}
    assert attached == {"fractal-cloud-agent", "fractal-cloud-changes", "fractal-cloud-links"}
    limit = f"arn:aws:iam::{ACCOUNT}:policy/fractal-cloud/boundary"
    made = iam.get_policy_version(PolicyArn=limit, VersionId="v1")["PolicyVersion"]["Document"]
    assert (json.loads(made) if isinstance(made, str) else made) == boundary(["orders-*"])
    assert json.loads((tmp_path / "links.json").read_text()) == documents(PolicyOptions(with_links=True))[2]
    for found in (iam.get_user(UserName="old")["User"], iam.get_role(RoleName="old")["Role"]):
        assert found["PermissionsBoundary"]["PermissionsBoundaryArn"] == limit
    assert {one["RoleName"] for one in iam.list_roles(PathPrefix="/aws-service-role/")["Roles"]}
