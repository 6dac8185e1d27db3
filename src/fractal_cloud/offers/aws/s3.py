"""S3 buckets: found by their name, which is unique in the whole partition; the region is a parameter.

AWS lists buckets without their tags. The tags come in bulk from the tagging API, region by region. It lags behind, so
a declared bucket that does not look like a managed one there is asked itself before anything is concluded from it.

A bucket is distinguished from a later one of its name by the time of its creation, which only the list of buckets
shows. AWS says that this time can change when the bucket's policy is edited: a deletion asked for before then leaves
the bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

from pydantic import field_serializer, field_validator, model_validator

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import CloudError, Conflict, Denied, NotFound
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.model.wording import counted
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.cloud import HOME_REGION, Aws
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.kinds import AwsComponent, EncryptionKey, Region, bucket_name
from fractal_cloud.offers.aws.s3_lifecycle import AwsLifecycleRule, Rule
from fractal_cloud.offers.aws.s3_logging import AwsBucketLogging
from fractal_cloud.offers.aws.s3_settings import SETTINGS, calls_for, read_settings
from fractal_cloud.offers.aws.services.s3 import S3, S3_CONTROL
from fractal_cloud.offers.aws.tags import GUARD, NONE, from_list, interned, moment, to_list, write_tags
from fractal_cloud.offers.offer import Query, Wanted

_AT: Final = "--region={region} --resource-arn-list={bucketArn}"


class AwsS3(AwsComponent):
    """A bucket for objects. It is never emptied: one that holds anything is not deleted."""

    type = "Storage.PaaS.AwsS3"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique among all buckets of all accounts; the component's id if not given.",
    )
    region: Region = parameter(immutable=True, description="AWS region its objects lie in.")
    versioning: Literal["Enabled", "Suspended"] | None = parameter(
        default=None,
        swept=True,
        description="Whether old versions of objects are kept; it can be suspended, never undone.",
    )
    sse_algorithm: Literal["AES256", "aws:kms", "aws:kms:dsse"] | None = parameter(
        default=None, swept=True, description="How objects are encrypted by default; AWS starts with AES256."
    )
    kms_master_key_id: EncryptionKey | None = parameter(
        default=None,
        swept=True,
        compare="arn",
        declared_as="kmsMasterKeyID",
        description="The KMS key of sseAlgorithm aws:kms and aws:kms:dsse: its ARN, its id or an alias, or the output "
        "of a component; AWS's own key if not given.",
    )
    bucket_key_enabled: bool | None = parameter(
        default=None, swept=True, description="Whether a key of the bucket spares calls to KMS; AWS starts with false."
    )
    blocked_encryption_types: list[Literal["SSE-C"]] | None = parameter(
        default=None, swept=True, compare="unordered", description="How objects must not be encrypted; [] allows all."
    )
    lifecycle_rules: list[AwsLifecycleRule] | None = parameter(
        default=None,
        swept=True,
        compare="identified",
        description="All rules by which S3 moves and deletes objects by itself; [] for none.",
    )
    logging: AwsBucketLogging | None = parameter(
        default=None, swept=True, description="Where S3 writes what was asked of it; {} for nowhere."
    )
    block_public_access: bool | None = parameter(
        default=None, swept=True, description="Whether all four blocks of public access are on; AWS starts with true."
    )
    object_ownership: Literal["BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"] | None = parameter(
        default=None, swept=True, description="Who owns uploaded objects; AWS starts with BucketOwnerEnforced."
    )

    @field_validator("name")
    @classmethod
    def _is_bucket_name(cls, name: str) -> str:
        return bucket_name(name)

    @field_validator("lifecycle_rules")
    @classmethod
    def _has_each_id_once(cls, rules: list[AwsLifecycleRule] | None) -> list[AwsLifecycleRule] | None:
        ids = [rule.id for rule in rules or () if rule.id is not None]
        if twice := sorted({one for one in ids if ids.count(one) > 1}):
            raise ValueError(f"several rules have the id {twice[0]!r}: ids are unique in a bucket")
        return rules

    @model_validator(mode="after")
    def _has_a_key_only_with_kms(self) -> Self:
        if self.kms_master_key_id is not None and self.sse_algorithm not in ("aws:kms", "aws:kms:dsse"):
            raise ValueError("kmsMasterKeyID goes with sseAlgorithm aws:kms or aws:kms:dsse: declare it too")
        return self

    @field_serializer("lifecycle_rules")
    def _in_one_spelling(self, rules: list[Any] | None) -> list[Rule] | None:
        if rules is None:
            return None
        # What holds a reference to an output is kept as it was written until the agent fills it in.
        return [rule.flat() if isinstance(rule, AwsLifecycleRule) else rule for rule in rules]

    @field_serializer("logging")
    def _without_what_is_usual(self, logging: Any) -> dict[str, Any] | None:
        return logging.flat() if isinstance(logging, AwsBucketLogging) else logging


_BY_ENCRYPTION: Final = ("PutBucketEncryption", "DeleteBucketEncryption")
_OF_ENCRYPTION: Final = ("sseAlgorithm", "kmsMasterKeyID", "bucketKeyEnabled", "blockedEncryptionTypes")

BUCKET = Resource(
    service=S3,
    kind="bucket",
    named_by=("Bucket",),
    creates={"CreateBucket": ""},
    modifies=(
        "DeleteBucketLifecycle",
        "PutBucketEncryption",
        "PutBucketLifecycleConfiguration",
        "PutBucketLogging",
        "PutBucketOwnershipControls",
        "PutBucketVersioning",
        "PutPublicAccessBlock",
    ),
    deletes=("DeleteBucket",),
    also_modifies=("DeleteBucketEncryption", "DeleteBucketOwnershipControls", "DeletePublicAccessBlock"),
    set_by={
        "versioning": ("PutBucketVersioning",),
        **dict.fromkeys(_OF_ENCRYPTION, _BY_ENCRYPTION),
        "lifecycleRules": ("PutBucketLifecycleConfiguration", "DeleteBucketLifecycle"),
        "logging": ("PutBucketLogging",),
        "blockPublicAccess": ("PutPublicAccessBlock", "DeletePublicAccessBlock"),
        "objectOwnership": ("PutBucketOwnershipControls", "DeleteBucketOwnershipControls"),
    },
    held_by_tags=("DeleteBucketLifecycle", "PutBucketLifecycleConfiguration", "PutBucketLogging"),
    replaces_tags=("DeleteBucketTagging", "PutBucketTagging"),
    listings=(Listing(operation="ListBuckets", path="Buckets", id="Name", tags="never"),),
    reads=(
        "GetBucketEncryption",
        "GetBucketLifecycleConfiguration",
        "GetBucketLocation",
        "GetBucketLogging",
        "GetBucketOwnershipControls",
        "GetBucketTagging",
        "GetBucketVersioning",
        "GetPublicAccessBlock",
        "HeadBucket",
        "ListObjectVersions",
    ),
    not_found=("NoSuchBucket", 404, "The specified bucket does not exist: '{id}'"),
    name_key="Name",
)


class AwsS3Offer(AwsOffer[AwsS3]):
    """How buckets are read and changed."""

    component = AwsS3
    title = "S3 bucket"
    vendor_type = "AWS::S3::Bucket"
    resource = BUCKET
    arn_output = "bucketArn"
    holds_data = True
    outputs: ClassVar[Mapping[str, str]] = {
        "bucketName": "name of the bucket",
        "bucketArn": "its ARN",
        "region": "region it lies in",
        "bucketDomainName": "host name under which its objects are reached",
    }
    glass = GlassCommands(
        break_glass=[f"aws resourcegroupstaggingapi untag-resources {_AT} --tag-keys managed-by"],
        readopt=[
            f"aws resourcegroupstaggingapi tag-resources {_AT} --tags managed-by=fractal-cloud,fractal-cloud=reconcile"
        ],
        caveat="not `aws s3api delete-bucket-tagging` or `put-bucket-tagging`: those also take everybody else's tags",
    )
    guard = f"{GUARD}, on buckets with ABAC switched on"

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All buckets of the regions in which there are declared ones; of all regions where none is named."""
        buckets = list(_buckets(cloud))
        regions = {one.region for one in buckets if not query.names or one.name in query.names}
        tags = {region: _bulk_tags(cloud.elsewhere(region)) for region in sorted(regions)}
        for name, region, born in buckets:
            if region in regions:
                there = cloud.elsewhere(region)
                found = tags[region].get(name, NONE)
                if name in query.names and not _seems_managed(found):
                    confirmed = _bucket_tags(there, name)
                    if confirmed is None:
                        continue
                    found = confirmed
                yield _sighting(there, name, found, born=born)

    def sweep(self, cloud: Aws, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """The settings named; those of one call are read together."""
        return read_settings(cloud.elsewhere(sighting.outputs["region"]), sighting.resource_id, names)

    def sweep_calls(self, names: Collection[str]) -> int:
        """Encryption is one call."""
        return calls_for(names)

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One bucket by its name, with its tags as the bucket itself reports them."""
        region = region_of_bucket(cloud, resource_id)
        if region is None:
            return None
        there = cloud.elsewhere(region)
        # The tags come last but for the settings: a guard decides by them.
        born = next((moment(one.get("CreationDate")) for one in _listed(cloud, resource_id)), "")
        tags = _bucket_tags(there, resource_id)
        if tags is None:
            return None
        swept = read_settings(there, resource_id, sweep)
        return _sighting(there, resource_id, tags, swept, born)

    def create(self, cloud: Aws, wanted: Wanted[AwsS3], tags: ProtocolTags) -> Sighting:
        """Create it; its settings are left to ``update``, but for the ownership of objects."""
        bucket = wanted.component
        there = cloud.elsewhere(bucket.region)
        # The home region is the one that must not be named.
        located = {} if bucket.region == HOME_REGION else {"LocationConstraint": bucket.region}
        owned = {"ObjectOwnership": bucket.object_ownership} if bucket.object_ownership else {}
        pairs = to_list(tags)
        configuration = {**located, "Tags": pairs}
        there.call("s3", "create_bucket", Bucket=bucket.name, CreateBucketConfiguration=configuration, **owned)
        return _sighting(there, bucket.name, from_list(pairs))

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsS3], drift: Collection[str]) -> None:
        """Set the next setting; public access is closed before anything else is opened."""
        there = cloud.elsewhere(sighting.outputs["region"])
        declared = wanted.component.parameters()
        for setting in SETTINGS:
            changed = {name: declared[name] for name in setting.names if name in drift}
            if changed:
                try:
                    setting.write(there, sighting.resource_id, changed)
                except Denied as refusal:
                    raise _held(sighting.resource_id, changed, refusal) from refusal
                return

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What deletes objects."""
        return ["S3 deletes and moves objects by lifecycleRules"] if "lifecycleRules" in drift else []

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Delete it if it is empty."""
        there = cloud.elsewhere(sighting.outputs["region"])
        try:
            there.find("s3", "delete_bucket", Bucket=sighting.resource_id)
        except Conflict as refusal:
            if refusal.code == "BucketNotEmpty":
                raise _not_empty(there, sighting.resource_id, refusal) from refusal
            raise

    def tag(self, cloud: Aws, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Change single tags; the calls that replace the whole set are never used."""
        there = cloud.elsewhere(sighting.outputs["region"])
        arn = there.arn(BUCKET, sighting.resource_id)
        write_tags(there, S3_CONTROL, arn, add, remove, AccountId=cloud.account)


def _seems_managed(tags: Mapping[str, str]) -> bool:
    protocol = ProtocolTags.from_mapping(tags)
    return protocol.is_managed and protocol.owner is not None


class _Bucket(NamedTuple):
    name: str
    region: str
    born: str


def _buckets(cloud: Aws) -> Iterator[_Bucket]:
    """Every bucket of the account. AWS returns regions only where a parameter of the list is given."""
    for page in cloud.pages("s3", "list_buckets", "Buckets", MaxBuckets=10_000):
        for bucket in page:
            name = bucket["Name"]
            region = interned(bucket.get("BucketRegion") or _location(cloud, name))
            yield _Bucket(name, region, moment(bucket.get("CreationDate")))


def _listed(cloud: Aws, name: str) -> Iterator[Mapping[str, Any]]:
    """One bucket as the list shows it: nothing else reports when it was created."""
    pages = cloud.pages("s3", "list_buckets", "Buckets", Prefix=name, MaxBuckets=10_000)
    return (bucket for page in pages for bucket in page if bucket["Name"] == name)


def bucket_regions(cloud: Aws) -> dict[str, str]:
    """The regions of all buckets of the account, by name."""
    return {one.name: one.region for one in _buckets(cloud)}


def region_of_bucket(cloud: Aws, name: str) -> str | None:
    """The region of one bucket, fresh; None where there is none of that name."""
    head = cloud.find("s3", "head_bucket", Bucket=name)
    return None if head is None else _region_of_head(head) or _location(cloud, name)


def _location(cloud: Aws, name: str) -> str:
    reported = cloud.call("s3", "get_bucket_location", Bucket=name).get("LocationConstraint")
    return {None: HOME_REGION, "": HOME_REGION, "EU": "eu-west-1"}.get(reported) or str(reported)


def _region_of_head(head: Mapping[str, Any]) -> str | None:
    headers = head.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region: str | None = head.get("BucketRegion") or headers.get("x-amz-bucket-region")
    return region


def _bulk_tags(cloud: Aws) -> dict[str, Mapping[str, str]]:
    """The tags of all buckets of a region that have or had any, by name."""
    pages = cloud.pages(
        "resourcegroupstaggingapi",
        "get_resources",
        "ResourceTagMappingList",
        ResourceTypeFilters=["s3"],
        ResourcesPerPage=100,
    )
    return {one["ResourceARN"].rpartition(":")[2]: from_list(one.get("Tags")) for page in pages for one in page}


def _bucket_tags(cloud: Aws, name: str) -> Mapping[str, str] | None:
    """The tags as the bucket reports them; None where there is no such bucket."""
    try:
        return from_list(cloud.call("s3", "get_bucket_tagging", Bucket=name)["TagSet"])
    except NotFound as absent:
        return NONE if absent.code == "NoSuchTagSet" else None


def _not_empty(cloud: Aws, name: str, refusal: Conflict) -> Conflict:
    count = "something"
    try:
        page = cloud.call("s3", "list_object_versions", Bucket=name, MaxKeys=1000)
        kinds = (("Versions", "object version"), ("DeleteMarkers", "delete marker"))
        held = [counted(len(page[key]), word) for key, word in kinds if page.get(key)]
        if held:
            count = f"{'at least ' if page.get('IsTruncated') else ''}{' and '.join(held)}"
    except CloudError:
        pass  # the number is a courtesy; the refusal stands without it
    return Conflict(
        f"bucket {name!r} still holds {count} ({refusal.code}), and a bucket is never emptied for you: "
        "empty it yourself, unfinished uploads too, and it is tried again",
        code=refusal.code,
        request_id=refusal.request_id,
    )


def _held(name: str, changed: Collection[str], refusal: Denied) -> Denied:
    """A refusal that says how the rights for this bucket are given, where they are not those of every bucket."""
    if not {"lifecycleRules", "logging"} & set(changed):
        return refusal
    return Denied(
        f"{refusal.message}. The rights for {' and '.join(sorted(changed))} hold for buckets named there "
        f"(`--bucket {name}`), and for those with ABAC switched on",
        code=refusal.code,
        request_id=refusal.request_id,
    )


def _sighting(
    cloud: Aws, name: str, tags: Mapping[str, str], swept: Mapping[str, Any] | None = None, born: str = ""
) -> Sighting:
    region = interned(cloud.region)
    suffix = "amazonaws.com.cn" if cloud.partition == "aws-cn" else "amazonaws.com"
    return Sighting(
        type=AwsS3.type,
        name=name,
        resource_id=name,
        incarnation=born,
        protocol=ProtocolTags.from_mapping(tags),
        tags=tags,
        actual={"region": region, **(swept or {})},
        outputs={
            "bucketName": name,
            "bucketArn": cloud.arn(BUCKET, name),
            "region": region,
            "bucketDomainName": f"{name}.s3.{region}.{suffix}",
        },
    )
