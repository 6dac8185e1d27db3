"""Cloud SQL instances with PostgreSQL: found by their name, unique in the project; the region is a parameter.

There is no password parameter: roles come from links, or from people. A name that was used stays blocked for days after
a deletion, which Google says when it is tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Invalid, Protected
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.nesting import dug, nested
from fractal_cloud.offers.gcp.resources import GcpOffer, Raw
from fractal_cloud.offers.gcp.tags import check_unchanged, glass, interned, labels_of, one_way
from fractal_cloud.offers.gcp.value_types import GcpComponent, Region, resource_name
from fractal_cloud.offers.offer import Wanted

_PATCH: Final = "gcloud beta sql instances patch {instanceName} --project={project}"
_POSTGRES: Final = "POSTGRES_"
_FINAL_BACKUP: Final = {"enableFinalBackup": "true", "finalBackupTtlDays": "365"}
_CONDITIONS: Final[Mapping[str, Condition]] = {
    "RUNNABLE": Condition.SETTLED,
    "STOPPED": Condition.SETTLED,
    "PENDING_CREATE": Condition.CREATING,
    "PENDING_DELETE": Condition.DYING,
    "FAILED": Condition.BROKEN,
    "SUSPENDED": Condition.BROKEN,
}
# How each parameter stands in Google's settings: the path to it.
_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "tier": ("tier",),
    "edition": ("edition",),
    "diskSizeGb": ("dataDiskSizeGb",),
    "storageAutoResize": ("storageAutoResize",),
    "storageAutoResizeLimit": ("storageAutoResizeLimit",),
    "availabilityType": ("availabilityType",),
    "backupEnabled": ("backupConfiguration", "enabled"),
    "publicIP": ("ipConfiguration", "ipv4Enabled"),
    "databaseFlags": ("databaseFlags",),
    "deletionProtection": ("deletionProtectionEnabled",),
}
_INT64: Final = ("diskSizeGb", "storageAutoResizeLimit")
"""What Google writes as text, in both directions, though it is a number."""
_RESTARTING: Final = ("tier", "edition", "availabilityType", "databaseFlags")


class GcpPostgresDbms(GcpComponent):
    """A PostgreSQL database instance. Deleting it leaves a final backup; deletion protection is respected."""

    type = "Storage.PaaS.GcpPostgresDbms"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in the project; the component's id if not given.",
    )
    region: Region = parameter(immutable=True, description="Region it lies in.")
    database_version: str = parameter(
        immutable=True, pattern=r"^POSTGRES_\d+(_\d+)?$", description="PostgreSQL version, such as POSTGRES_16."
    )
    tier: str = parameter(
        pattern=r"^db-", examples=["db-custom-2-7680"], description="Its size. Changing it restarts the database."
    )
    edition: Literal["ENTERPRISE", "ENTERPRISE_PLUS"] = parameter(
        default="ENTERPRISE", description="Edition, which says what tiers there are. Changing it restarts the database."
    )
    disk_size_gb: int | None = parameter(
        default=None,
        ge=10,
        le=65_536,
        grows_while="storageAutoResize",
        description="Storage in GB; it can grow and never shrink.",
    )
    storage_auto_resize: bool | None = parameter(
        default=None, description="Whether Google lets the storage grow as it fills up; Google starts with true."
    )
    storage_auto_resize_limit: int | None = parameter(
        default=None, ge=0, le=65_536, description="Up to how many GB it grows by itself; 0 is as far as Google allows."
    )
    availability_type: Literal["ZONAL", "REGIONAL"] | None = parameter(
        default=None, description="Whether a standby is kept in another zone; Google starts with ZONAL."
    )
    backup_enabled: bool | None = parameter(
        default=None, description="Whether it is backed up every day; Google starts with false."
    )
    public_ip: bool | None = parameter(
        default=None, declared_as="publicIP", description="Whether it has a public address; Google starts with true."
    )
    database_flags: dict[str, str] | None = parameter(
        default=None, description="All flags of the server that are set. Changing one may restart the database."
    )
    deletion_protection: bool | None = parameter(
        default=None, description="Whether Google refuses to delete it, also to us; Google starts with false."
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return resource_name(name)


class GcpPostgresDbmsOffer(GcpOffer[GcpPostgresDbms]):
    """How PostgreSQL instances are read and changed."""

    component = GcpPostgresDbms
    title = "Cloud SQL for PostgreSQL"
    service = "sql"
    rights = (
        *(f"cloudsql.instances.{verb}" for verb in ("create", "delete", "get", "list", "update")),
        "cloudsql.backupRuns.create",
    )
    holds_data = True
    outputs: ClassVar[Mapping[str, str]] = {
        "instanceName": "name of the instance",
        "connectionName": "project, region and name in one, as connectors want it",
        "selfLink": "its address in Google's API",
        "project": "project it is in",
        "region": "region it lies in",
        "state": "PENDING_CREATE, RUNNABLE, MAINTENANCE, PENDING_DELETE, FAILED, …",
        "ipAddress": "its public address, once it has one",
        "privateIpAddress": "its private address, once it has one",
        "serverCaCert": "certificate of the authority its own certificate is of",
    }
    glass = glass(
        f"{_PATCH} --remove-labels",
        f"{_PATCH} --update-labels",
        caveat="only `gcloud beta` changes the labels of Cloud SQL",
    )
    guard = (
        "`settingsVersion` on every change; a deletion has no precondition: "
        "its window is the one call after a fresh read"
    )

    def collection(self, cloud: Gcp) -> str:
        """All instances of the project."""
        return f"/sql/v1beta4/projects/{cloud.project}/instances"

    def listed(self, cloud: Gcp) -> Iterator[Raw]:
        """All instances of the project, a thousand a call."""
        for page in cloud.pages(self.service, self.collection(cloud), "items", maxResults="1000"):
            yield from page

    def sighting(self, cloud: Gcp, raw: Raw) -> Sighting | None:
        """What an instance shows; None where it is no PostgreSQL."""
        if not str(raw["databaseVersion"]).startswith(_POSTGRES):
            return None
        name, state = raw["name"], interned(raw["state"])
        labels = _labels(raw)
        condition = _CONDITIONS.get(state, Condition.CHANGING)
        addresses = {one["type"]: one["ipAddress"] for one in raw.get("ipAddresses") or ()}
        optional = {
            "ipAddress": addresses.get("PRIMARY"),
            "privateIpAddress": addresses.get("PRIVATE"),
            "serverCaCert": (raw.get("serverCaCert") or {}).get("cert"),
        }
        return Sighting(
            type=GcpPostgresDbms.type,
            name=name,
            resource_id=name,
            incarnation=raw.get("createTime", ""),
            protocol=ProtocolTags.from_mapping(labels),
            tags=labels,
            actual=_actual(raw),
            outputs={
                "instanceName": name,
                "connectionName": raw.get("connectionName", ""),
                "selfLink": raw.get("selfLink", ""),
                "project": interned(cloud.project),
                "region": raw["region"],
                "state": state,
                **{key: value for key, value in optional.items() if value},
            },
            condition=condition,
            detail="" if condition is Condition.SETTLED else state,
        )

    def create(self, cloud: Gcp, wanted: Wanted[GcpPostgresDbms], tags: ProtocolTags) -> Sighting:
        """Begin to make it, with everything."""
        database = wanted.component
        body = {
            "name": database.name,
            "region": database.region,
            "databaseVersion": database.database_version,
            "settings": {**_settings(database, _PATHS), "userLabels": tags.to_mapping()},
        }
        cloud.write(self.service, "POST", self.collection(cloud), body)
        begun = self.sighting(cloud, {**body, "state": "PENDING_CREATE"})
        assert begun is not None
        return begun

    def update(self, cloud: Gcp, sighting: Sighting, wanted: Wanted[GcpPostgresDbms], drift: Collection[str]) -> None:
        """Send everything that can be changed in one call; what cannot is refused once nothing else is left."""
        impossible = _impossible(sighting, wanted.component) if "diskSizeGb" in drift else ""
        names = [name for name in _PATHS if name in drift and not (impossible and name == "diskSizeGb")]
        changes = _settings(wanted.component, names)
        if changes:
            self._patch(cloud, sighting, changes)
        elif impossible:
            raise Invalid(impossible)

    def delete(self, cloud: Gcp, sighting: Sighting) -> None:
        """Delete it, leaving a final backup for as long as Google keeps one; protection is respected."""
        if sighting.actual["deletionProtection"]:
            raise Protected(
                f"database {sighting.name!r} has deletionProtection: switch it off, and it is tried again",
                code="DeletionProtection",
            )
        cloud.remove(self.service, self.path(cloud, sighting.name), _FINAL_BACKUP)

    def tag(self, cloud: Gcp, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Send the labels that were just read with the change made in them; null takes one off, as gcloud does it."""
        adding, removing = one_way(add, remove)
        if not adding and not removing:
            return
        raw = self.raw_or_gone(cloud, sighting.name)
        labels = _labels(raw)
        check_unchanged(sighting, labels)
        self._patch(cloud, sighting, {"userLabels": {**labels, **adding, **dict.fromkeys(removing)}}, raw)

    def _patch(self, cloud: Gcp, sighting: Sighting, settings: Mapping[str, Any], raw: Raw | None = None) -> None:
        if raw is None:
            raw = self.raw_or_gone(cloud, sighting.name)
            check_unchanged(sighting, _labels(raw))
        body = {"settings": {**settings, "settingsVersion": raw["settings"]["settingsVersion"]}}
        cloud.write(self.service, "PATCH", self.path(cloud, sighting.name), body)

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What interrupts the database."""
        return [f"changing {name} restarts the database" for name in _RESTARTING if name in drift]


def _labels(raw: Raw) -> Mapping[str, str]:
    return labels_of((raw.get("settings") or {}).get("userLabels"))


def _settings(database: GcpPostgresDbms, names: Collection[str]) -> dict[str, Any]:
    """Those parameters that are declared, as Google's settings have them."""
    declared = database.model_dump(mode="json", by_alias=True)
    values = {name: declared[name] for name in names}
    if values.get("databaseFlags") is not None:
        values["databaseFlags"] = [{"name": flag, "value": text} for flag, text in values["databaseFlags"].items()]
    for name in _INT64:
        if values.get(name) is not None:
            values[name] = str(values[name])
    return nested(values, _PATHS)


def _impossible(sighting: Sighting, database: GcpPostgresDbms) -> str:
    """Why the storage can never be made so small, or nothing."""
    actual = sighting.actual["diskSizeGb"]
    if database.disk_size_gb is None or database.disk_size_gb >= actual:
        return ""
    return (
        f"diskSizeGb cannot shrink from {actual} to {database.disk_size_gb} GB: "
        f"declare at least {actual}, or a new database"
    )


def _actual(raw: Raw) -> dict[str, Any]:
    found = dug(raw.get("settings") or {}, _PATHS)
    flags = {
        name: bool(found[name]) for name in ("backupEnabled", "publicIP", "deletionProtection", "storageAutoResize")
    }
    return {
        "region": interned(raw["region"]),
        "databaseVersion": raw["databaseVersion"],
        **found,
        **flags,
        "databaseFlags": {flag["name"]: flag.get("value", "") for flag in found["databaseFlags"] or ()},
        **{name: int(found[name] or 0) for name in _INT64},
    }
