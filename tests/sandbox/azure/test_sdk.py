"""The vendor's own SDKs on the sandbox: those that `az` brings along, in its own environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox, sandbox_env
from fractal_sandbox.azure import GROUP, LOCATION, SUBSCRIPTION

AZ = shutil.which("az")
PYTHON = Path(os.path.realpath(AZ)).parent / "python" if AZ else Path("nowhere")
pytestmark = [
    pytest.mark.clis,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PYTHON.exists(), reason="Azure's SDKs are not installed: `make test-clis` does that"),
]

BEGIN = f"""
import json, os
from azure.identity import DefaultAzureCredential
from azure.mgmt.storage import StorageManagementClient
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient
endpoint = os.environ["FRACTAL_AZURE_ENDPOINT"].replace("http://127.0.0.1", "https://localhost")
about = dict(base_url=endpoint, credential_scopes=[endpoint + "/.default"])
credential = DefaultAzureCredential()
storage = StorageManagementClient(credential, {SUBSCRIPTION!r}, **about)
compute = ComputeManagementClient(credential, {SUBSCRIPTION!r}, **about)
resources = ResourceManagementClient(credential, {SUBSCRIPTION!r}, **about)
"""


@pytest.fixture
def sandbox(session_sandbox: Sandbox) -> Iterator[Sandbox]:
    session_sandbox.azure.reset()
    yield session_sandbox
    session_sandbox.azure.reset()


def run(sandbox: Sandbox, folder: Path, program: str) -> Any:
    """What a program with the SDKs prints."""
    nowhere = {
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
        "no_proxy": "localhost,127.0.0.1",
    }
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **nowhere, **sandbox_env(sandbox.url, folder)}
    done = subprocess.run(
        [str(PYTHON), "-c", BEGIN + program], env=env, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_an_account_is_made_tagged_listed_and_deleted(sandbox: Sandbox, tmp_path: Path) -> None:
    program = f"""
account = {{"location": {LOCATION!r}, "kind": "StorageV2", "sku": {{"name": "Standard_LRS"}}, "tags": {{"team": "a"}}}}
made = storage.storage_accounts.begin_create({GROUP!r}, "store1", account).result()
tags = {{"operation": "Merge", "properties": {{"tags": {{"stage": "live"}}}}}}
resources.tags.begin_update_at_scope(made.id, tags).result()
seen = [(one.name, one.tags) for one in storage.storage_accounts.list()]
storage.storage_accounts.delete({GROUP!r}, "store1")
print(json.dumps([seen, len(list(storage.storage_accounts.list()))]))
"""
    assert run(sandbox, tmp_path, program) == [[["store1", {"team": "a", "stage": "live"}]], 0]


def test_long_work_is_followed_to_its_end_and_lists_page_by_page(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.azure.knobs.slow_creation(seconds=0.5)
    sandbox.azure.knobs.page_size = 2
    program = f"""
for number in range(3):
    disk = {{"location": {LOCATION!r}, "properties": {{"creationData": {{"createOption": "Empty"}}, "diskSizeGB": 8}}}}
    made = compute.disks.begin_create_or_update({GROUP!r}, f"disk-{{number}}", disk).result()
states = [one.provisioning_state for one in compute.disks.list_by_resource_group({GROUP!r})]
print(json.dumps(states))
"""
    assert run(sandbox, tmp_path, program) == ["Succeeded"] * 3
