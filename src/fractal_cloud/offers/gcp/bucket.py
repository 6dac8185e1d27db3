"""Cloud Storage buckets: found by their name, which is unique in all of Google; the location is a parameter.

Every write carries the metageneration that was read: whoever edits the bucket or its labels in between wins (S16).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Conflict, Overtaken
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.nesting import dug, nested
from fractal_cloud.offers.gcp.resources import GcpOffer, Raw
from fractal_cloud.offers.gcp.tags import glass, interned, labels_of, one_way
from fractal_cloud.offers.gcp.value_types import GcpComponent, bucket_name
from fractal_cloud.offers.offer import Wanted

StorageClass = Literal["STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"]
_UPDATE: Final = "gcloud storage buckets update {bucketUrl}"
LONGEST_SOFT_DELETE: Final = 90 * 86_400


class GcpGcsBucket(GcpComponent):
    """A bucket for objects. It is never emptied: one that holds anything is not deleted."""

    type = "Storage.PaaS.GcpGcsBucket"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique among all buckets of all projects; the component's id if not given.",
    )
    location: str = parameter(
        immutable=True,
        compare="caseless",
        pattern=r"^[A-Za-z]+(-[A-Za-z]+\d+)?\d*$",
        description="Region, dual-region or multi-region its objects lie in, such as EU or europe-west1.",
    )
    storage_class: StorageClass | None = parameter(
        default=None, description="Storage class of objects that name none; Google starts with STANDARD."
    )
    versioning: bool | None = parameter(
        default=None, description="Whether old versions of objects are kept; Google starts with false."
    )
    uniform_bucket_level_access: bool | None = parameter(
        default=None,
        description="Whether only IAM, and no list at an object, says who may; fixed 90 days after it is on.",
    )
    public_access_prevention: Literal["enforced", "inherited"] | None = parameter(
        default=None, description="Whether the bucket refuses to be made public; Google starts with inherited."
    )
    soft_delete_seconds: int | None = parameter(
        default=None,
        ge=0,
        le=LONGEST_SOFT_DELETE,
        description="How long deleted objects can be brought back: 0, or 7 to 90 days in seconds.",
    )

    @field_validator("name")
    @classmethod
    def _is_bucket_name(cls, name: str) -> str:
        return bucket_name(name)


# How each parameter stands in Google's bucket: the path to it.
_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "storageClass": ("storageClass",),
    "versioning": ("versioning", "enabled"),
    "uniformBucketLevelAccess": ("iamConfiguration", "uniformBucketLevelAccess", "enabled"),
    "publicAccessPrevention": ("iamConfiguration", "publicAccessPrevention"),
    "softDeleteSeconds": ("softDeletePolicy", "retentionDurationSeconds"),
}


class GcpGcsBucketOffer(GcpOffer[GcpGcsBucket]):
    """How buckets are read and changed."""

    component = GcpGcsBucket
    short_name = "bucket"
    title = "Cloud Storage bucket"
    service = "storage"
    rights = tuple(f"storage.buckets.{verb}" for verb in ("create", "delete", "get", "list", "update"))
    holds_data = True
    outputs: ClassVar[Mapping[str, str]] = {
        "bucketName": "name of the bucket",
        "bucketUrl": "the bucket as `gs://…`",
        "selfLink": "its address in Google's API",
        "location": "where its objects lie",
        "timeCreated": "when it was created",
        "projectNumber": "number of the project it is in",
    }
    glass = glass(f"{_UPDATE} --remove-labels", f"{_UPDATE} --update-labels")
    guard = "`ifMetagenerationMatch` on every write: there is no window"

    def collection(self, cloud: Gcp) -> str:
        """All buckets there are."""
        del cloud
        return "/b"

    def listed(self, cloud: Gcp) -> Iterator[Raw]:
        """All buckets of the project, a thousand a call."""
        for page in cloud.pages(
            self.service, "/b", "items", project=cloud.project, maxResults="1000", projection="noAcl"
        ):
            yield from page

    def raw(self, cloud: Gcp, name: str) -> Raw | None:
        """One bucket, unless it is in another project: whoever took a name that became free is a stranger."""
        raw = super().raw(cloud, name)
        return raw if raw is not None and cloud.is_home(str(raw["projectNumber"])) else None

    def sighting(self, cloud: Gcp, raw: Raw) -> Sighting:
        """What a bucket shows."""
        del cloud
        name = raw["name"]
        labels = labels_of(raw.get("labels"))
        location = interned(raw["location"])
        return Sighting(
            type=GcpGcsBucket.type,
            name=name,
            resource_id=name,
            incarnation=raw.get("timeCreated", ""),
            protocol=ProtocolTags.from_mapping(labels),
            tags=labels,
            actual={"location": location, **_actual(raw)},
            outputs={
                "bucketName": name,
                "bucketUrl": f"gs://{name}",
                "selfLink": raw.get("selfLink", ""),
                "location": location,
                "timeCreated": raw.get("timeCreated", ""),
                "projectNumber": str(raw.get("projectNumber", "")),
            },
            revision=str(raw["metageneration"]),
        )

    def create(self, cloud: Gcp, wanted: Wanted[GcpGcsBucket], tags: ProtocolTags) -> Sighting:
        """Create it with all its settings and labels."""
        bucket = wanted.component
        body = {
            "name": bucket.name,
            "location": bucket.location,
            "labels": tags.to_mapping(),
            **_settings(bucket, _PATHS),
        }
        made = cloud.write(self.service, "POST", "/b", body, {"project": cloud.project})
        return self.sighting(cloud, made)

    def update(self, cloud: Gcp, sighting: Sighting, wanted: Wanted[GcpGcsBucket], drift: Collection[str]) -> None:
        """Change all settings in one call."""
        changes = _settings(wanted.component, [name for name in _PATHS if name in drift])
        if changes:
            self._patch(cloud, sighting, changes)

    def delete(self, cloud: Gcp, sighting: Sighting) -> None:
        """Delete it if it is empty."""
        try:
            cloud.remove(self.service, self.path(cloud, sighting.name), _unchanged(sighting))
        except Overtaken:
            raise
        except Conflict as refusal:
            raise Conflict(
                f"bucket {sighting.name!r} is not empty ({refusal.code}), and a bucket is never emptied for you: "
                "empty it yourself, old versions and unfinished uploads too, and it is tried again",
                code=refusal.code,
                request_id=refusal.request_id,
            ) from refusal

    def tag(self, cloud: Gcp, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Change single labels: null takes one off, and those that are not named stay."""
        adding, removing = one_way(add, remove)
        if adding or removing:
            self._patch(cloud, sighting, {"labels": adding or dict.fromkeys(removing)})

    def _patch(self, cloud: Gcp, sighting: Sighting, body: Mapping[str, Any]) -> None:
        cloud.write(self.service, "PATCH", self.path(cloud, sighting.name), body, _unchanged(sighting))


def _unchanged(sighting: Sighting) -> dict[str, str]:
    return {"ifMetagenerationMatch": sighting.revision or ""}


def _settings(bucket: GcpGcsBucket, names: Collection[str]) -> dict[str, Any]:
    """Those parameters that are declared, as Google's bucket has them."""
    declared = bucket.model_dump(mode="json", by_alias=True)
    if declared["softDeleteSeconds"] is not None:
        declared["softDeleteSeconds"] = str(declared["softDeleteSeconds"])  # 64 bits are text in Google's JSON
    return nested({name: declared[name] for name in names}, _PATHS)


def _actual(raw: Raw) -> dict[str, Any]:
    found = dug(raw, _PATHS)
    return {
        **found,
        "versioning": bool(found["versioning"]),
        "uniformBucketLevelAccess": bool(found["uniformBucketLevelAccess"]),
        "publicAccessPrevention": interned(found["publicAccessPrevention"] or "inherited"),
        "softDeleteSeconds": int(found["softDeleteSeconds"] or 0),
    }
