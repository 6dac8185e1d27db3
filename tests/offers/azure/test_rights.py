"""What the agent may do in a subscription, as `fractal agent policy --provider azure` prints it, and the published ways
from there to more rights (A7).

All other tests of this provider run under the printed role too: see ``rights.py``.
"""

from __future__ import annotations

from typing import Final

import pytest

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.azure.policy import policy
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox.azure.permissions import needs_of
from tests.offers.azure.examples import EXAMPLES
from tests.offers.azure.operator_actions import CASES
from tests.offers.azure.rights import actions

VM, AKS = "Microsoft.Compute/virtualMachines", "Microsoft.ContainerService/managedClusters"
STORAGE, POSTGRES = "Microsoft.Storage/storageAccounts", "Microsoft.DBforPostgreSQL/flexibleServers"
IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities"
AUTHORIZATION = "Microsoft.Authorization"
# HackTricks Cloud, «Azure Privilege Escalation», and Microsoft's own list of privileged actions of built-in roles.
PATHS: Final[dict[str, tuple[str, ...]]] = {
    "give itself a role": (f"{AUTHORIZATION}/roleAssignments/write",),
    "write a role": (f"{AUTHORIZATION}/roleDefinitions/write",),
    "rule all subscriptions": (f"{AUTHORIZATION}/elevateAccess/action",),
    "activate a role": (f"{AUTHORIZATION}/roleAssignmentScheduleRequests/write",),
    "have a policy remediate": (f"{AUTHORIZATION}/policyAssignments/write",),
    "take a lock away": (f"{AUTHORIZATION}/locks/delete",),
    "trust a foreign identity": (f"{IDENTITY}/federatedIdentityCredentials/write",),
    "put an identity on a machine": (f"{VM}/write", f"{IDENTITY}/assign/action"),
    "put an identity on a cluster": (f"{AKS}/write", f"{IDENTITY}/assign/action"),
    "run a command in a machine": (f"{VM}/runCommand/action",),
    "run a kept command in a machine": (f"{VM}/runCommands/write",),
    "put an extension into a machine": (f"{VM}/extensions/write",),
    "log in to a machine": (f"{VM}/login/action",),
    "log in to a machine as root": (f"{VM}/loginAsAdmin/action",),
    "start machines of a gallery": ("Microsoft.Compute/galleries/applications/versions/write",),
    "download a disk": ("Microsoft.Compute/disks/beginGetAccess/action",),
    "download a snapshot": ("Microsoft.Compute/snapshots/beginGetAccess/action",),
    "a cluster's admin": (f"{AKS}/listClusterAdminCredential/action",),
    "a cluster's user": (f"{AKS}/listClusterUserCredential/action",),
    "run a command in a cluster": (f"{AKS}/runcommand/action",),
    "a storage account's keys": (f"{STORAGE}/listKeys/action",),
    "new keys of a storage account": (f"{STORAGE}/regenerateKey/action",),
    "a storage account's signature": (f"{STORAGE}/listAccountSas/action",),
    "a storage account's local user": (f"{STORAGE}/localUsers/write",),
    "open a container": (f"{STORAGE}/blobServices/containers/write",),
    "a database's administrator": (f"{POSTGRES}/administrators/write",),
    "a deployment with somebody's rights": ("Microsoft.Resources/deployments/write",),
    "a script with somebody's rights": ("Microsoft.Resources/deploymentScripts/write",),
    "a runbook": ("Microsoft.Automation/automationAccounts/runbooks/write",),
    "a function app's secrets": ("Microsoft.Web/sites/host/listKeys/action",),
    "a vault's rules": ("Microsoft.KeyVault/vaults/accessPolicies/write",),
    "a vault": ("Microsoft.KeyVault/vaults/write",),
    "a registry's password": ("Microsoft.ContainerRegistry/registries/listCredentials/action",),
    "a container with an identity": ("Microsoft.ContainerInstance/containerGroups/write",),
    # What whoever manages a resource can do with it: the bound is where the role is assigned.
    "set a database's password": (f"{POSTGRES}/read", f"{POSTGRES}/write"),
    "exchange a machine's system disk": (f"{VM}/write", f"{VM}/deallocate/action", f"{VM}/start/action"),
    "name the admins of a cluster": (f"{AKS}/write",),
}
BOUND_BY_SCOPE: Final = (
    "set a database's password",
    "exchange a machine's system disk",
    "name the admins of a cluster",
)


@pytest.mark.rule("A7")
@pytest.mark.parametrize("flags", [(), ("--with-links",)], ids=["plain", "with-links"])
@pytest.mark.parametrize("path", [one for one in PATHS if one not in BOUND_BY_SCOPE])
def test_no_published_way_to_more_rights_is_granted(path: str, flags: tuple[str, ...]) -> None:
    assert not set(PATHS[path]) <= actions(*flags)


@pytest.mark.rule("A7")
@pytest.mark.parametrize("path", BOUND_BY_SCOPE)
def test_what_managing_a_resource_brings_along_is_bound_by_the_groups_that_the_role_is_for(path: str) -> None:
    """These stay open, and the guide says so: whoever changes a server sets its password."""
    assert set(PATHS[path]) <= actions()
    role = policy(PolicyOptions(resource_groups=("shop", "web")))
    assert role["AssignableScopes"] == [
        f"/subscriptions/<subscription id>/resourceGroups/{one}" for one in ("shop", "web")
    ]


@pytest.mark.rule("A7")
def test_links_need_no_right_in_azure() -> None:
    assert policy(PolicyOptions(with_links=True)) == policy()


@pytest.mark.rule("A7")
@pytest.mark.parametrize("name", ["", "a/b", "*", "shop\n", "a b", "x" * 91, "shop."])
def test_what_is_no_name_of_a_resource_group_is_refused(name: str) -> None:
    with pytest.raises(PolicyOptionError, match="is no name of a resource group"):
        policy(PolicyOptions(resource_groups=(name,)))


@pytest.mark.rule("A7")
def test_the_role_allows_what_is_done_and_no_data_plane() -> None:
    role = policy()
    assert role["DataActions"] == []
    found = role["Actions"]
    assert not [
        one for one in found if "*" in one or "list" in one or one.startswith(("Microsoft.Auth", "Microsoft.Man"))
    ]
    for kind in CASES:
        assert {f"{EXAMPLES[kind].kind}/{verb}" for verb in ("read", "write", "delete")} <= set(found)
    assert "Microsoft.Resources/tags/write" in found


CONTAINERS, TAGS = "blobServices/default/containers", "Microsoft.Resources/tags"
IN_GROUP: Final = "/subscriptions/s/resourceGroups/g/providers"


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/subscriptions", None, ["Microsoft.Resources/subscriptions/read"]),
        ("GET", "/subscriptions/s/resourceGroups/g", None, ["Microsoft.Resources/subscriptions/resourceGroups/read"]),
        ("GET", f"{IN_GROUP}/{VM}", None, [f"{VM}/read"]),
        ("PUT", f"{IN_GROUP}/{VM}/box", {}, [f"{VM}/write"]),
        ("PATCH", f"{IN_GROUP}/{VM}/box", {}, [f"{VM}/write"]),
        ("DELETE", f"{IN_GROUP}/{VM}/box", None, [f"{VM}/delete"]),
        ("POST", f"{IN_GROUP}/{VM}/box/start", None, [f"{VM}/start/action"]),
        ("POST", f"{IN_GROUP}/{VM}/box/runCommand", None, [f"{VM}/runCommand/action"]),
        ("PUT", f"{IN_GROUP}/{VM}/box/extensions/x", {}, [f"{VM}/extensions/write"]),
        ("POST", f"{IN_GROUP}/{STORAGE}/a/listKeys", None, [f"{STORAGE}/listKeys/action"]),
        (
            "GET",
            f"{IN_GROUP}/{STORAGE}/a/blobServices/default/containers",
            None,
            [f"{STORAGE}/blobServices/containers/read"],
        ),
        (
            "PATCH",
            f"{IN_GROUP}/{VM}/box/providers/Microsoft.Resources/tags/default",
            {},
            ["Microsoft.Resources/tags/write"],
        ),
        (
            "PUT",
            f"{IN_GROUP}/{VM}/box",
            {"identity": {"userAssignedIdentities": {f"{IN_GROUP}/{IDENTITY}/admin": {}}}},
            [f"{VM}/write", f"{IDENTITY}/assign/action"],
        ),
        (
            "PUT",
            f"{IN_GROUP}/Microsoft.Network/networkInterfaces/n",
            {"subnet": {"id": f"{IN_GROUP}/Microsoft.Network/virtualNetworks/v/subnets/s"}},
            ["Microsoft.Network/networkInterfaces/write", "Microsoft.Network/virtualNetworks/subnets/join/action"],
        ),
    ],
)
def test_actions_follow_from_method_and_path(method: str, path: str, body: object, expected: list[str]) -> None:
    assert list(needs_of(method, path, body)) == expected
