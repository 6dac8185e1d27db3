"""Storage accounts: found by their name, which is unique in the world.

Deleting one throws all its data away at once: one that holds a container, a share, a queue or a table is left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import CloudError, Conflict
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.kinds import Item, ResourceGroup, ResourceKind, storage_name
from fractal_cloud.offers.azure.resources import OUTPUTS, AzureResource, ResourceOffer, State
from fractal_cloud.offers.azure.tags import UNGUARDED
from fractal_cloud.offers.offer import Wanted

STORAGE: Final = ResourceKind("Microsoft.Storage", "storageAccounts", "2024-01-01")

_SERVICES: Final = (
    ("blobServices", "containers", "container"),
    ("fileServices", "shares", "share"),
    ("queueServices", "queues", "queue"),
    ("tableServices", "tables", "table"),
)
# Not every kind of account has every service: asking for one it lacks is refused with one of these.
_LACKING: Final = frozenset({"FeatureNotSupportedForAccount", "ResourceNotFound"})
_PROPERTIES: Final[Mapping[str, str]] = {
    "accessTier": "accessTier",
    "minimumTlsVersion": "minimumTlsVersion",
    "allowBlobPublicAccess": "allowBlobPublicAccess",
    "allowSharedKeyAccess": "allowSharedKeyAccess",
    "publicNetworkAccess": "publicNetworkAccess",
    "enableHttpsTrafficOnly": "supportsHttpsTrafficOnly",
}
_AT_WORK: Final = frozenset({"Creating", "ResolvingDNS"})
_SHOWN: Final = 5


class AzureStorageAccount(AzureResource):
    """A storage account. It is deleted only once it is empty."""

    type = "Storage.PaaS.AzureStorageAccount"

    name: str = parameter(
        default="", validate_default=True, description="Its name, unique in the world: 3 to 24 letters and digits."
    )
    resource_group: ResourceGroup = parameter(
        immutable=True, description="Resource group it lies in, which must exist; in small letters."
    )
    kind: Literal["StorageV2", "BlockBlobStorage", "FileStorage"] = parameter(
        default="StorageV2", immutable=True, description="What it can hold."
    )
    sku: Literal["Standard_LRS", "Standard_ZRS", "Standard_GRS", "Standard_RAGRS", "Premium_LRS", "Premium_ZRS"] = (
        parameter(default="Standard_LRS", description="How its data is copied; not every one can become every other.")
    )
    access_tier: Literal["Hot", "Cool", "Cold"] | None = parameter(
        default=None, description="How blobs are billed that say nothing themselves; Azure starts with Hot."
    )
    minimum_tls_version: Literal["TLS1_2", "TLS1_3"] | None = parameter(
        default="TLS1_2", description="The oldest TLS that is accepted."
    )
    allow_blob_public_access: bool | None = parameter(
        default=False, description="Whether containers may be opened to everybody."
    )
    allow_shared_key_access: bool | None = parameter(
        default=None, description="Whether the account's keys open it; Azure starts with true."
    )
    public_network_access: Literal["Enabled", "Disabled"] | None = parameter(
        default=None, description="Whether it is reached from outside its private endpoints; Azure starts with Enabled."
    )
    enable_https_traffic_only: bool | None = parameter(
        default=None, description="Whether plain HTTP is refused; Azure starts with true."
    )
    is_hns_enabled: bool | None = parameter(
        default=None, immutable=True, description="Whether it has folders (Data Lake); Azure starts with false."
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return storage_name(name)


class AzureStorageAccountOffer(ResourceOffer[AzureStorageAccount]):
    """How storage accounts are read and changed."""

    component = AzureStorageAccount
    title = "Storage account"
    service = "storage"
    kind = STORAGE
    rights = tuple(  # that it holds something keeps it from being deleted: what it holds is never read
        f"{STORAGE.type}/{held}/read"
        for held in ("blobServices/containers", "fileServices/shares", "queueServices/queues", "tableServices/tables")
    )
    place = ()
    holds_data = True
    guard = UNGUARDED
    outputs: ClassVar[Mapping[str, str]] = {
        **OUTPUTS,
        "primaryEndpointBlob": "address of its blobs",
        "primaryEndpointFile": "address of its files",
        "primaryLocation": "where its first copy is",
        "creationTime": "when it was created",
    }

    def actual(self, item: Item) -> dict[str, Any]:
        """Its settings."""
        properties = item.get("properties") or {}
        return {
            "kind": item.get("kind"),
            "sku": (item.get("sku") or {}).get("name"),
            "isHnsEnabled": bool(properties.get("isHnsEnabled")),
            **{name: properties.get(key) for name, key in _PROPERTIES.items()},
            # Azure leaves these out of older accounts' answers where they have their first value.
            "allowSharedKeyAccess": properties.get("allowSharedKeyAccess") is not False,
            "publicNetworkAccess": properties.get("publicNetworkAccess") or "Enabled",
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its addresses."""
        properties = item.get("properties") or {}
        endpoints = properties.get("primaryEndpoints") or {}
        return {
            "primaryEndpointBlob": endpoints.get("blob"),
            "primaryEndpointFile": endpoints.get("file"),
            "primaryLocation": properties.get("primaryLocation"),
            "creationTime": properties.get("creationTime"),
        }

    def incarnation_of(self, item: Item) -> str:
        """When it was created."""
        return str((item.get("properties") or {}).get("creationTime") or "")

    def state(self, item: Item) -> State:
        """It is being created until its name is known everywhere."""
        text = (item.get("properties") or {}).get("provisioningState")
        return (Condition.CREATING, str(text)) if text in _AT_WORK else super().state(item)

    def etag_of(self, item: Item) -> None:
        """It has none."""
        del item

    def group_of(self, wanted: Wanted[AzureStorageAccount]) -> str:
        """Its name is unique everywhere, so its group is a parameter like any other."""
        return wanted.component.resource_group

    def body(self, wanted: Wanted[AzureStorageAccount]) -> Item:
        """The account with all its settings."""
        account = wanted.component
        properties = _settings(account, _PROPERTIES)
        if account.is_hns_enabled is not None:
            properties["isHnsEnabled"] = account.is_hns_enabled
        return {"kind": account.kind, "sku": {"name": account.sku}, "properties": properties}

    def update(
        self, cloud: Azure, sighting: Sighting, wanted: Wanted[AzureStorageAccount], drift: Collection[str]
    ) -> None:
        """Change everything that differs in one patch, without the tags."""
        body: Item = {}
        settings = _settings(wanted.component, [name for name in _PROPERTIES if name in drift])
        if settings:
            body["properties"] = settings
        if "sku" in drift:
            body["sku"] = {"name": wanted.component.sku}
        if body:
            cloud.patch(sighting.resource_id, STORAGE.version, body)

    def check_deletion(self, cloud: Azure, sighting: Sighting) -> None:
        """Data is not thrown away (O15)."""
        held = [
            f"{noun} {one['name']!r}"
            for service, plural, noun in _SERVICES
            for one in _children(cloud, f"{sighting.resource_id}/{service}/default/{plural}")
        ]
        if held:
            more = f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
            raise Conflict(
                f"{sighting.name!r} still holds {', '.join(held[:_SHOWN])}{more}: "
                f"it is never emptied; remove them, and it is tried again"
            )


def _children(cloud: Azure, path: str) -> list[Item]:
    try:
        return list(cloud.children(path, STORAGE.version))
    except CloudError as error:
        if error.code in _LACKING:
            return []
        raise


def _settings(account: AzureStorageAccount, names: Collection[str]) -> Item:
    values = account.model_dump(mode="json", by_alias=True)
    return {_PROPERTIES[name]: values[name] for name in names if values[name] is not None}
