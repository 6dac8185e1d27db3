"""A declaration in Python is the same as its JSON, and quick to load."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import fractal_cloud
from fractal_cloud import Component, DeclarationError, LiveSystem, api_management, custom_workloads, network, storage
from fractal_cloud import network_and_compute as nc
from fractal_cloud.model.identity import ID_TWICE
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.short_names import categories
from fractal_cloud.offers.validation import check

API_PAGE = """{
  "id": "ls-team-a",
  "environment": "default",
  "description": "",
  "readoption": "handshake",
  "components": [
    {"id": "shared-vpc", "type": "NetworkAndCompute.IaaS.AwsVpc", "provider": "aws",
     "parameters": {"name": "shared-vpc", "region": "eu-west-1", "cidrBlock": "10.0.0.0/16"},
     "dependencies": [], "links": []},
    {"id": "team-a-subnet", "type": "NetworkAndCompute.IaaS.AwsSubnet", "provider": "aws",
     "parameters": {"cidrBlock": "10.0.10.0/24", "vpc": "shared-vpc"},
     "dependencies": ["shared-vpc"], "links": []}
  ]
}"""


def team_a() -> LiveSystem:
    shared_vpc = nc.aws.vpc(id="shared-vpc", name="shared-vpc", region="eu-west-1", cidr_block="10.0.0.0/16")
    subnet = nc.aws.subnet(id="team-a-subnet", vpc=shared_vpc, cidr_block="10.0.10.0/24")
    return LiveSystem(id="ls-team-a", components=[shared_vpc, subnet])


@pytest.mark.rule("C1")
def test_a_declaration_in_python_is_the_json_of_the_api_page() -> None:
    assert team_a().to_json() == json.loads(API_PAGE)


@pytest.mark.rule("C1")
def test_the_json_is_taken_as_it_is() -> None:
    assert check(team_a().to_json(), installed().catalog()) == team_a().to_declaration()


def test_a_reference_may_be_an_id_and_a_component_may_say_more() -> None:
    vpc = nc.aws.vpc(id="net", region="eu-west-1", cidr_block="10.0.0.0/16", import_only=True)
    group = nc.aws.security_group(id="rules", vpc="net", ignore_drift=["ingress"], links_from=["ls-b"])
    subnet = nc.aws.subnet(id="sub", vpc="net", cidr_block="10.0.1.0/24", dependencies=[group.id])
    found = LiveSystem(id="ls", components=[vpc, group, subnet], readoption="tag").to_json()
    assert found["readoption"] == "tag"
    net, rules, sub = found["components"]
    assert net["importOnly"] is True
    assert rules["ignoreDrift"] == ["ingress"]
    assert rules["linksFrom"] == ["ls-b"]
    assert "ignoreDrift" not in net
    assert sub["dependencies"] == ["rules", "net"]
    assert "name" not in net["parameters"], "a name that was not declared is not sent"


SPELLINGS = [
    (api_management.kubernetes, "ambassador", "APIManagement.CaaS.Ambassador"),
    (custom_workloads.kubernetes, "workload", "CustomWorkloads.CaaS.KubernetesWorkload"),
    (nc.gcp, "vm", "NetworkAndCompute.IaaS.GcpVm"),
    (nc.gcp, "vpc", "NetworkAndCompute.IaaS.GcpVpc"),
    (nc.gcp, "subnet", "NetworkAndCompute.IaaS.GcpSubnet"),
    (nc.gcp, "firewall", "NetworkAndCompute.IaaS.GcpFirewall"),
    (nc.gcp, "gke", "NetworkAndCompute.PaaS.GcpGke"),
    (storage.gcp, "bucket", "Storage.PaaS.GcpGcsBucket"),
    (storage.gcp, "postgres_dbms", "Storage.PaaS.GcpPostgresDbms"),
    (custom_workloads.gcp, "cloud_run", "CustomWorkloads.PaaS.GcpCloudRun"),
    (nc.kubernetes, "service", "NetworkAndCompute.CaaS.KubernetesService"),
    (nc.kubernetes, "network_policy", "NetworkAndCompute.CaaS.KubernetesNetworkPolicy"),
    (nc.kubernetes, "virtual_machine", "NetworkAndCompute.CaaS.KubernetesVirtualMachine"),
    (storage.kubernetes, "persistent_volume_claim", "Storage.CaaS.KubernetesPersistentVolumeClaim"),
    (nc.hetzner, "server", "NetworkAndCompute.IaaS.HetznerServer"),
    (nc.hetzner, "network", "NetworkAndCompute.IaaS.HetznerNetwork"),
    (nc.hetzner, "firewall", "NetworkAndCompute.IaaS.HetznerFirewall"),
    (nc.hetzner, "load_balancer", "NetworkAndCompute.IaaS.HetznerLoadBalancer"),
    (storage.hetzner, "volume", "Storage.IaaS.HetznerVolume"),
    (nc.azure, "vnet", "NetworkAndCompute.IaaS.AzureVnet"),
    (nc.azure, "subnet", "NetworkAndCompute.IaaS.AzureSubnet"),
    (nc.azure, "nsg", "NetworkAndCompute.IaaS.AzureNsg"),
    (nc.azure, "vm", "NetworkAndCompute.IaaS.AzureVm"),
    (nc.azure, "aks", "NetworkAndCompute.PaaS.AzureAks"),
    (storage.azure, "storage_account", "Storage.PaaS.AzureStorageAccount"),
    (storage.azure, "postgres_dbms", "Storage.PaaS.AzurePostgresDbms"),
    (nc.vsphere, "vm", "NetworkAndCompute.IaaS.VsphereVm"),
    (nc.aruba, "vpc", "NetworkAndCompute.IaaS.ArubaVpc"),
    (nc.aruba, "subnet", "NetworkAndCompute.IaaS.ArubaSubnet"),
    (nc.aruba, "security_group", "NetworkAndCompute.IaaS.ArubaSecurityGroup"),
    (nc.aruba, "cloud_server", "NetworkAndCompute.IaaS.ArubaCloudServer"),
    (nc.aruba, "kaas", "NetworkAndCompute.PaaS.ArubaKaas"),
    (storage.aruba, "block_storage", "Storage.IaaS.ArubaBlockStorage"),
    (nc.oci, "vcn", "NetworkAndCompute.IaaS.OciVcn"),
    (nc.oci, "subnet", "NetworkAndCompute.IaaS.OciSubnet"),
    (nc.oci, "instance", "NetworkAndCompute.IaaS.OciInstance"),
    (storage.oci, "bucket", "Storage.PaaS.OciBucket"),
    (nc.aws, "vpc", "NetworkAndCompute.IaaS.AwsVpc"),
    (nc.aws, "subnet", "NetworkAndCompute.IaaS.AwsSubnet"),
    (nc.aws, "security_group", "NetworkAndCompute.IaaS.AwsSecurityGroup"),
    (nc.aws, "ec2", "NetworkAndCompute.IaaS.AwsEc2Instance"),
    (nc.aws, "eks", "NetworkAndCompute.PaaS.AwsEks"),
    (custom_workloads.aws, "ecs_cluster", "CustomWorkloads.PaaS.AwsEcsCluster"),
    (custom_workloads.aws, "ecs_service", "CustomWorkloads.PaaS.AwsEcsService"),
    (storage.aws, "s3", "Storage.PaaS.AwsS3"),
    (storage.aws, "rds_postgres", "Storage.PaaS.AwsRdsPostgres"),
    (storage.postgres, "server", "Storage.SelfHosted.Postgres"),
]


@pytest.mark.parametrize(("module", "name", "kind"), SPELLINGS)
def test_every_type_has_its_short_name(module: ModuleType, name: str, kind: str) -> None:
    spelled = getattr(module, name)
    assert issubclass(spelled, Component)
    assert spelled.type == kind
    assert name in module.__all__


def test_every_installed_type_has_a_short_name() -> None:
    modules = [
        getattr(package, provider)
        for package in (import_module(f"fractal_cloud.{name}") for name in categories().values())
        for provider in package.__all__
    ]
    named = {getattr(module, name) for module in modules for name in module.__all__}
    assert {offer.component for offer in installed()} <= named


@pytest.mark.parametrize(("category", "package"), categories().items())
def test_a_category_is_a_package_with_or_without_types(category: str, package: str) -> None:
    found = getattr(fractal_cloud, package)
    assert category == found.CATEGORY
    assert package in dir(fractal_cloud)
    assert set(found.__all__) <= set(dir(found))
    with pytest.raises(AttributeError, match="has no attribute 'nowhere'"):
        _ = found.nowhere


def test_messaging_security_and_observability_are_categories() -> None:
    assert {"Messaging", "Security", "Observability"} <= set(categories())


def test_network_is_another_name() -> None:
    assert network.aws is nc.aws
    assert network.kubernetes is nc.kubernetes
    assert fractal_cloud.network.aws.vpc is fractal_cloud.network_and_compute.aws.vpc
    assert storage.aws is fractal_cloud.storage.aws


def test_an_unknown_name_of_the_package_says_what_there_is() -> None:
    assert set(dir(fractal_cloud)) >= {"LiveSystem", "__version__"}
    with pytest.raises(AttributeError, match="has no attribute 'livesystems': it offers Component"):
        _ = fractal_cloud.livesystems


def errors_of(error: pytest.ExceptionInfo[DeclarationError]) -> list[str]:
    return [str(fault) for fault in error.value.errors]


def test_a_bad_component_is_refused_where_it_is_written_in_pythons_names() -> None:
    with pytest.raises(DeclarationError) as caught:
        nc.aws.vpc(id="Net", regio="eu-west-1", cidr_block=5, instance_tenancy="own")  # type: ignore[call-arg, arg-type]
    errors = errors_of(caught)
    assert [error.partition(": ")[0] for error in errors] == [
        "AwsVpc[Net].id",
        "AwsVpc[Net].region",
        "AwsVpc[Net].cidr_block",
        "AwsVpc[Net].instance_tenancy",
        "AwsVpc[Net].regio",
    ]
    assert "must be one of 'default', 'dedicated'" in errors[3]
    assert "did you mean 'region'?" in errors[4]
    assert "pydantic" not in str(caught.value)


def test_what_a_type_refuses_on_its_own_is_reported_in_its_words() -> None:
    with pytest.raises(DeclarationError, match=r"has bits set behind its prefix: write '10.0.0.0/16'"):
        nc.aws.vpc(id="net", region="eu-west-1", cidr_block="10.0.0.1/16")


def test_a_bad_live_system_is_refused_with_every_fault() -> None:
    vpc = nc.aws.vpc(id="net", region="eu-west-1", cidr_block="10.0.0.0/16")
    lost = nc.aws.subnet(id="sub", vpc="nett", cidr_block="10.0.1.0/24")
    with pytest.raises(DeclarationError) as caught:
        LiveSystem(
            id="LS",
            components=[vpc, vpc, lost, "odd"],  # type: ignore[list-item]
            environment=7,  # type: ignore[arg-type]
            readoption="never",  # type: ignore[arg-type]
        )
    assert errors_of(caught) == [
        "id: is 'LS': must be 1 to 63 of a-z, 0-9 and -, starting and ending with a letter or digit",
        "environment: is 7: must be text",
        "readoption: is 'never': must be 'handshake' or 'tag'",
        f"components[1].id: is 'net', {ID_TWICE}",
        "components[3]: is 'odd': must be a component",
        "components[sub].vpc: is 'nett', which is no component of this LiveSystem: did you mean 'net'?",
    ]


def test_loading_the_sdk_loads_no_program_and_no_vendor() -> None:
    """The heavy ones would make every declaration slow to read, and need packages a declaration does not."""
    program = (
        "import sys; from fractal_cloud import LiveSystem, network_and_compute, storage, custom_workloads, network;"
        "heavy = {'boto3', 'botocore', 'fastapi', 'sqlalchemy', 'typer', 'rich', 'httpx2', 'jsonschema', 'moto',"
        "'azure.identity'};"
        "heavy = {'boto3', 'botocore', 'fastapi', 'google', 'sqlalchemy', 'typer', 'rich', 'httpx2', 'jsonschema'};"
        "heavy |= {'moto'};"
        "heavy = {'boto3', 'botocore', 'fastapi', 'sqlalchemy', 'typer', 'rich', 'httpx2', 'jsonschema', 'moto'};"
        "heavy |= {'cryptography'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_loading_the_sdk_is_quick() -> None:
    """Measured in processor time: how long a busy machine lets it wait is not the program's doing."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    subprocess.run([sys.executable, "-c", "from fractal_cloud import LiveSystem, network_and_compute"], check=True)
    assert spent() - before < 1.0
