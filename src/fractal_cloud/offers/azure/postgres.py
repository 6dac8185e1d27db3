"""Azure Database for PostgreSQL, flexible server: found by its name, which is unique in the world.

There is no password to declare or to keep: people and programs come with identities of Entra, and roles with passwords
only where that is declared. Azure keeps nothing of a deleted server that would outlive it for long, so one that still
has databases is left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Conflict, Invalid
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.kinds import Item, ResourceGroup, ResourceKind, server_name
from fractal_cloud.offers.azure.resources import OUTPUTS, AzureResource, ResourceOffer, State
from fractal_cloud.offers.azure.tags import UNGUARDED
from fractal_cloud.offers.offer import Wanted
from fractal_cloud.offers.secret import Secret

POSTGRES: Final = ResourceKind("Microsoft.DBforPostgreSQL", "flexibleServers", "2024-08-01")

_OF_THE_SERVER: Final = frozenset({"azure_maintenance", "azure_sys", "postgres"})
_STATES: Final[Mapping[str, Condition]] = {
    "Ready": Condition.SETTLED,
    "Stopped": Condition.SETTLED,
    "Provisioning": Condition.CREATING,
    "Dropping": Condition.DYING,
    "Disabled": Condition.BROKEN,
    "Inaccessible": Condition.BROKEN,
}
_ONLY_UP: Final = ("storageSizeGB", "version")


class AzurePostgresDbms(AzureResource):
    """A PostgreSQL server. It is deleted only once its databases are gone."""

    type = "Storage.PaaS.AzurePostgresDbms"

    name: str = parameter(
        default="", validate_default=True, description="Its name, unique in the world; the component's id if not given."
    )
    resource_group: ResourceGroup = parameter(
        immutable=True, description="Resource group it lies in, which must exist; in small letters."
    )
    version: str = parameter(pattern=r"^\d+$", description="PostgreSQL's major version, such as 16; it can only rise.")
    sku_name: str = parameter(
        description="Its size. Changing it restarts the server.",
        examples=["Standard_D2ds_v5"],
        pattern=r"^[A-Z]\w+_\w+$",
    )
    sku_tier: Literal["Burstable", "GeneralPurpose", "MemoryOptimized"] = parameter(
        description="The tier its size belongs to."
    )
    storage_size_gb: int = parameter(
        declared_as="storageSizeGB",
        ge=32,
        le=32_768,
        grows_while="storageAutoGrow",
        description="Storage in GiB; it can grow and never shrink.",
    )
    storage_auto_grow: Literal["Enabled", "Disabled"] | None = parameter(
        default=None, description="Whether Azure lets the storage grow as it fills up; Azure starts with Disabled."
    )
    backup_retention_days: int | None = parameter(
        default=None, ge=7, le=35, description="Days for which backups are kept; Azure starts with 7."
    )
    geo_redundant_backup: Literal["Enabled", "Disabled"] | None = parameter(
        default=None,
        immutable=True,
        description="Whether backups are copied to another region; Azure starts with Disabled.",
    )
    high_availability: Literal["Disabled", "SameZone", "ZoneRedundant"] | None = parameter(
        default=None, description="Whether a standby is kept, and where; Azure starts with Disabled."
    )
    public_network_access: Literal["Enabled", "Disabled"] = parameter(
        default="Disabled", description="Whether it is reached from outside its private endpoints."
    )
    password_auth: Literal["Enabled", "Disabled"] = parameter(
        default="Disabled",
        description=(
            "Whether roles log in with passwords, beside identities of Entra; links need it. Azure then asks for an "
            "administrator with a password: its login is `fractal_admin`, its password random and kept by nobody."
        ),
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return server_name(name)


class AzurePostgresDbmsOffer(ResourceOffer[AzurePostgresDbms]):
    """How PostgreSQL servers are read and changed."""

    component = AzurePostgresDbms
    title = "Azure Database for PostgreSQL"
    service = "dbforpostgresql"
    kind = POSTGRES
    rights = (f"{POSTGRES.type}/databases/read",)  # that it holds one keeps it from being deleted
    place = ()
    holds_data = True
    guard = UNGUARDED
    outputs: ClassVar[Mapping[str, str]] = {
        **{name: text for name, text in OUTPUTS.items() if name != "provisioningState"},
        "state": "Provisioning, Ready, Updating, Stopped, Dropping, …",
        "fullyQualifiedDomainName": "host name of the server, once it has one",
        "minorVersion": "PostgreSQL's minor version",
        "activeDirectoryAuth": "whether identities of Entra are let in",
        "administratorLogin": "login of the administrator with a password, where there is one",
    }

    def actual(self, item: Item) -> dict[str, Any]:
        """Its size and settings."""
        properties = item.get("properties") or {}
        backup = properties.get("backup") or {}
        return {
            "version": properties.get("version"),
            "skuName": (item.get("sku") or {}).get("name"),
            "skuTier": (item.get("sku") or {}).get("tier"),
            "storageSizeGB": (properties.get("storage") or {}).get("storageSizeGB"),
            "storageAutoGrow": (properties.get("storage") or {}).get("autoGrow") or "Disabled",
            "backupRetentionDays": backup.get("backupRetentionDays"),
            "geoRedundantBackup": backup.get("geoRedundantBackup"),
            "highAvailability": (properties.get("highAvailability") or {}).get("mode") or "Disabled",
            "publicNetworkAccess": (properties.get("network") or {}).get("publicNetworkAccess"),
            "passwordAuth": _auth(item).get("passwordAuth") or "Enabled",
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Where it is reached."""
        properties = item.get("properties") or {}
        names = ("state", "fullyQualifiedDomainName", "minorVersion", "administratorLogin")
        return {
            **{name: properties.get(name) for name in names},
            "activeDirectoryAuth": _auth(item).get("activeDirectoryAuth") or "Disabled",
        }

    def state(self, item: Item) -> State:
        """The server's own state; it has no other."""
        text = (item.get("properties") or {}).get("state")
        condition = _STATES.get(text or "Provisioning", Condition.CHANGING)
        return condition, "" if condition is Condition.SETTLED else str(text)

    def etag_of(self, item: Item) -> None:
        """It has none."""
        del item

    def group_of(self, wanted: Wanted[AzurePostgresDbms]) -> str:
        """Its name is unique everywhere, so its group is a parameter like any other."""
        return wanted.component.resource_group

    def body(self, wanted: Wanted[AzurePostgresDbms]) -> Item:
        """The server, opened by identities, and by passwords only where that is declared."""
        server = wanted.component
        item: Item = {"properties": {"createMode": "Default"}}
        given = server.model_dump(mode="json", by_alias=True, exclude_none=True)
        _open(item, server, "Enabled", has_login=False)
        _apply(item, server, given)
        if server.geo_redundant_backup is not None:
            item["properties"].setdefault("backup", {})["geoRedundantBackup"] = server.geo_redundant_backup
        return item

    def update(
        self, cloud: Azure, sighting: Sighting, wanted: Wanted[AzurePostgresDbms], drift: Collection[str]
    ) -> None:
        """Change everything that can be changed in one patch, without the tags; what cannot is refused after that."""
        impossible = {name: reason for name in drift if (reason := _impossible(name, sighting, wanted.component))}
        changes = [name for name in drift if name not in impossible]
        if changes:
            body: Item = {"properties": {}}
            # A new major version is a change of its own: Azure takes no other beside it.
            in_one_patch = ["version"] if changes == ["version"] else {*changes} - {"version"}
            _apply(body, wanted.component, in_one_patch, sighting.actual)
            if "passwordAuth" in changes:
                identities = str(sighting.outputs.get("activeDirectoryAuth") or "Enabled")
                has_login = bool(sighting.outputs.get("administratorLogin"))
                _open(body, wanted.component, identities, has_login=has_login)
            cloud.patch(sighting.resource_id, POSTGRES.version, body)
        elif impossible:
            raise Invalid("; ".join(impossible.values()))

    def check_deletion(self, cloud: Azure, sighting: Sighting) -> None:
        """Data is not thrown away (O15)."""
        found = cloud.children(f"{sighting.resource_id}/databases", POSTGRES.version)
        databases = sorted(one["name"] for one in found if one["name"] not in _OF_THE_SERVER)
        if databases:
            names = ", ".join(f"database {name!r}" for name in databases)
            raise Conflict(
                f"server {sighting.name!r} still holds {names}, and no backup outlives it: "
                f"move the data and drop them, and it is tried again"
            )

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What interrupts the server."""
        return [
            f"changing {name} interrupts the server while it is applied"
            for name in ("skuName", "skuTier", "version")
            if name in drift
        ]


ADMINISTRATOR: Final = "fractal_admin"


def _auth(item: Item) -> Item:
    return dict((item.get("properties") or {}).get("authConfig") or {})


def _open(item: Item, server: AzurePostgresDbms, identities: str, *, has_login: bool) -> None:
    """Who is let in. Whoever first lets passwords in must name an administrator who has one."""
    properties = item["properties"]
    properties["authConfig"] = {"activeDirectoryAuth": identities, "passwordAuth": server.password_auth}
    if server.password_auth == "Enabled" and not has_login:
        properties["administratorLogin"] = ADMINISTRATOR
        properties["administratorLoginPassword"] = f"{Secret.new().reveal()}.aA1"  # all kinds of characters, surely


def _impossible(name: str, sighting: Sighting, server: AzurePostgresDbms) -> str:
    """Why a change can never be made, or nothing."""
    if name not in _ONLY_UP:
        return ""
    actual, declared = sighting.actual[name], server.model_dump(by_alias=True)[name]
    if actual is None or int(declared) >= int(actual):
        return ""
    verb = "shrink" if name == "storageSizeGB" else "fall"
    return f"{name} cannot {verb} from {actual!r} to {declared!r}: declare at least {actual!r}, or a new server"


def _apply(
    item: Item, server: AzurePostgresDbms, names: Collection[str], actual: Mapping[str, Any] | None = None
) -> None:
    """Write the declared values of these parameters; where Azure wants two of them together, the other as it is."""
    properties = item["properties"]
    if {"skuName", "skuTier"} & {*names}:
        seen = actual or {}
        item["sku"] = {
            "name": server.sku_name if "skuName" in names else seen["skuName"],
            "tier": server.sku_tier if "skuTier" in names else seen["skuTier"],
        }
    if "version" in names:
        properties["version"] = server.version
    if "storageSizeGB" in names:
        properties["storage"] = {"storageSizeGB": server.storage_size_gb}
    if "storageAutoGrow" in names:
        properties.setdefault("storage", {})["autoGrow"] = server.storage_auto_grow
    if "backupRetentionDays" in names:
        properties["backup"] = {"backupRetentionDays": server.backup_retention_days}
    if "highAvailability" in names:
        properties["highAvailability"] = {"mode": server.high_availability}
    if "publicNetworkAccess" in names:
        properties["network"] = {"publicNetworkAccess": server.public_network_access}
