"""Buckets of Object Storage: their names are unique in the tenancy and region, whatever the compartment.

A list shows names and tags (only if asked for tags); one read of the bucket shows everything else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Conflict, Denied, NotFound
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.items import parse_each, text_at
from fractal_cloud.offers.oci.calls import Item, Oci
from fractal_cloud.offers.oci.core import OciComponent, OciOffer, name_of
from fractal_cloud.offers.oci.tags import WARNING, glass, protocol_of, rewritten, warning
from fractal_cloud.offers.oci.value_types import Region, bucket_name
from fractal_cloud.offers.offer import Query, Wanted

_SETTINGS = ("publicAccessType", "storageTier", "versioning", "objectEventsEnabled", "autoTiering", "kmsKeyId")
# The agent never reads an object, and never makes or deletes one.
_PERMISSIONS = ", ".join(
    f"request.permission='BUCKET_{verb}'" for verb in ("CREATE", "DELETE", "INSPECT", "READ", "UPDATE")
)
_CHANGED = tuple(name for name in _SETTINGS if name != "storageTier")


class OciBucket(OciComponent):
    """A bucket of Object Storage. It is never emptied: what holds objects is not deleted."""

    type = "Storage.PaaS.OciBucket"

    region: Region = parameter(immutable=True, description="Region it lies in.")
    storage_tier: Literal["Standard", "Archive"] | None = parameter(
        default=None, immutable=True, swept=True, description="Where its objects are kept; OCI starts with Standard."
    )
    public_access_type: Literal["NoPublicAccess", "ObjectRead", "ObjectReadWithoutList"] | None = parameter(
        default=None, swept=True, description="Whether everybody may read its objects; OCI starts with NoPublicAccess."
    )
    versioning: Literal["Enabled", "Suspended", "Disabled"] | None = parameter(
        default=None,
        swept=True,
        description="Whether it keeps old versions of objects. Once enabled it can only be suspended.",
    )
    object_events_enabled: bool | None = parameter(
        default=None,
        swept=True,
        description="Whether changes of its objects are emitted as events; OCI starts with false.",
    )
    auto_tiering: Literal["Disabled", "InfrequentAccess"] | None = parameter(
        default=None, swept=True, description="Whether objects that are seldom used move to a cheaper tier."
    )
    kms_key_id: str | None = parameter(
        default=None,
        swept=True,
        description="OCID of the key its objects are encrypted with; Oracle's own if not given.",
    )

    @field_validator("name")
    @classmethod
    def _is_a_bucket_name(cls, name: str) -> str:
        return bucket_name(name)


class OciBucketOffer(OciOffer[OciBucket]):
    """How buckets are read and changed."""

    component = OciBucket
    title = "Bucket"
    service = "objectstorage"
    rights = (
        "read objectstorage-namespaces",
        f"manage buckets where any {{{_PERMISSIONS}}}",
    )
    holds_data = True
    rename_changes_id = True
    outputs: ClassVar[Mapping[str, str]] = {
        "bucketName": "name of the bucket",
        "namespace": "Object Storage namespace of the tenancy",
        "region": "region it lies in",
        "compartmentId": "OCID of its compartment",
        "warning": WARNING,
    }
    glass = glass("os bucket", "--namespace-name={namespace} --bucket-name", "{bucketName}")

    def sightings(self, cloud: Oci, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All buckets of the compartment, a thousand a call, with their tags."""
        del query
        yield from parse_each(
            cloud.list(self.service, cloud.buckets(), fields="tags"),
            lambda item: self._sighting(cloud, item),
            lambda item: (text_at(item, "name"), text_at(item, "name")),
        )

    def listed(self, cloud: Oci) -> Iterator[str]:
        """Their names."""
        return (item["name"] for item in cloud.list(self.service, cloud.buckets()))

    def sweep(self, cloud: Oci, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """Read the settings named: one call returns all of them."""
        found = cloud.find(self.service, cloud.buckets(sighting.resource_id))
        if found is None:
            raise NotFound(f"bucket {sighting.resource_id!r} cannot be read: it is looked for again")
        settings = _settings(found[0])
        return {name: settings[name] for name in names}

    def sweep_calls(self, names: Collection[str]) -> int:
        """One call, whatever is asked."""
        del names
        return 1

    def read(self, cloud: Oci, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One bucket by its name, with its etag."""
        del sweep
        found = cloud.find(self.service, cloud.buckets(resource_id))
        if found is None:
            self.make_sure_of_absence(cloud, resource_id)
            return None
        return self._sighting(cloud, *found)

    def create(self, cloud: Oci, wanted: Wanted[OciBucket], tags: ProtocolTags) -> Sighting:
        """Create it; a name that is taken, in whatever compartment, is refused by the cloud."""
        bucket = wanted.component
        body = {"name": bucket.name, "compartmentId": cloud.compartment, "freeformTags": tags.to_mapping()}
        fields = bucket.parameter_fields()
        settings = {name: getattr(bucket, fields[name]) for name in _SETTINGS}
        given = {name: value for name, value in settings.items() if value is not None}
        return self._sighting(cloud, *cloud.create(self.service, cloud.buckets(), {**body, **given}))

    def update(self, cloud: Oci, sighting: Sighting, wanted: Wanted[OciBucket], drift: Collection[str]) -> None:
        """Change all settings in one call."""
        declared = wanted.component.parameters()
        self._change(cloud, "POST", sighting, {name: declared[name] for name in _CHANGED if name in drift})

    def delete(self, cloud: Oci, sighting: Sighting) -> None:
        """Delete it if it is empty; what is gone already is success, what is only hidden is not."""
        try:
            self._change(cloud, "DELETE", sighting)
        except Denied:
            if self.read(cloud, sighting.resource_id) is not None:
                raise
        except Conflict as refusal:
            if refusal.code == "BucketNotEmpty":
                raise _not_empty(sighting, refusal) from refusal
            raise

    def tag(self, cloud: Oci, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Write the map of free-form tags as it was read, but for the protocol's, and only if it still is so."""
        self._change(cloud, "POST", sighting, {"freeformTags": rewritten(sighting.tags, add, remove)})

    def _change(self, cloud: Oci, method: str, sighting: Sighting, body: Item | None = None) -> None:
        cloud.change(self.service, method, cloud.buckets(sighting.resource_id), sighting.revision, body)

    def _sighting(self, cloud: Oci, item: Item, etag: str | None = None) -> Sighting:
        tags = item.get("freeformTags") or {}
        return Sighting(
            type=self.type,
            name=name_of(cloud, item["name"], item["compartmentId"]),
            resource_id=item["name"],
            incarnation=str(item.get("timeCreated") or ""),
            protocol=protocol_of(tags),
            tags=tags,
            actual={"region": cloud.region, **(_settings(item) if "storageTier" in item else {})},
            outputs={
                "bucketName": item["name"],
                "namespace": item["namespace"],
                "region": cloud.region,
                "compartmentId": item["compartmentId"],
                **warning(item),
            },
            revision=etag or None,
        )


def _settings(item: Item) -> dict[str, Any]:
    return {name: item.get(name) for name in _SETTINGS}


def _not_empty(sighting: Sighting, refusal: Conflict) -> Conflict:
    return Conflict(
        f"bucket {sighting.resource_id!r} still holds something ({refusal.code}), and a bucket is never emptied for "
        "you: empty it yourself (objects, their versions, unfinished uploads, pre-authenticated requests), and it is "
        "tried again",
        code=refusal.code,
        request_id=refusal.request_id,
    )
