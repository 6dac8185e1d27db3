"""Which pairs can be linked: those with both handlers in the registry; a pair with one handler is warned about."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud import storage
from fractal_cloud.custom_workloads import kubernetes
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.offers.link_validation import LinkChecks
from fractal_cloud.offers.registry import installed
from scripts.reference import FOLDER, pages

WORKLOAD = "CustomWorkloads.CaaS.KubernetesWorkload"
EC2, ECS = "NetworkAndCompute.IaaS.AwsEc2Instance", "CustomWorkloads.PaaS.AwsEcsService"
DATABASES = (
    "Storage.PaaS.AwsRdsPostgres",
    "Storage.PaaS.AzurePostgresDbms",
    "Storage.PaaS.GcpPostgresDbms",
    "Storage.SelfHosted.Postgres",
)
BUCKETS = ("Storage.PaaS.AwsS3", "Storage.PaaS.GcpGcsBucket", "Storage.PaaS.OciBucket")
MACHINE = "NetworkAndCompute.IaaS.GcpVm"


@pytest.mark.rule("L3", "L6")
@pytest.mark.parametrize("target", [*DATABASES, *BUCKETS])
@pytest.mark.parametrize("source", [WORKLOAD, EC2, ECS])
def test_databases_and_buckets_are_used_from_all_that_runs_there(source: str, target: str) -> None:
    handlers = installed().handlers
    inbound, outbound = (handlers.find(half, source, target) for half in ("inbound", "outbound"))
    assert inbound is not None
    assert outbound is not None
    assert inbound.link_type == outbound.link_type == ("databaseLink" if target in DATABASES else "storageLink")


def declared(source: str, target: str) -> LiveSystemDeclaration:
    link: dict[str, Any] = {"target": "b", "settings": {"database": "orders"} if target in DATABASES else {}}
    parts = [{"id": "a", "type": source, "links": [link]}, {"id": "b", "type": target}]
    return LiveSystemDeclaration.model_validate({"id": "ls-a", "components": parts})


@pytest.mark.rule("L7")
def test_a_link_whose_secret_no_handler_would_store_is_warned_about() -> None:
    checks = LinkChecks(installed().catalog())
    for target in (*DATABASES, *BUCKETS):
        (warning,) = checks.warnings(declared(MACHINE, target))
        assert f"nobody here takes over for {MACHINE} the secret that {target} hands out" in warning
        assert not list(checks.warnings(declared(WORKLOAD, target)))


def test_the_table_shows_a_pair_as_the_registry_has_it() -> None:
    (head, _, *rows) = [line for line in pages()[FOLDER / "links.md"].splitlines() if line.startswith("|")]
    (row,) = [row for row in rows if "oci/bucket.md" in row]
    cells = dict(zip(head.split("|"), row.split("|"), strict=True))
    of = {name.partition("](")[2].partition(")")[0]: cell.strip() for name, cell in cells.items()}
    assert of["kubernetes/workload.md"] == of["aws/ec2.md"] == "`storageLink`"
    assert of["gcp/vm.md"] == "`storageLink` ◐"


@pytest.mark.rule("L1")
def test_a_bucket_is_linked_to_in_python_by_a_method_of_its_own() -> None:
    files = storage.oci.bucket(id="files", compartment="team", region="eu-frankfurt-1")
    shop = kubernetes.workload(id="shop", image="nginx:1.29").link_to_storage(files, access="read-only")
    assert shop.links == [{"target": "files", "settings": {"access": "read-only"}}]
