"""A third party's Spark jobs, as a package of theirs would bring them: a provider, a type, and one half of a link.

The service lives in memory, and nothing here knows of AWS: the job declares itself the source of storage links to
whatever object store there is, and gets bucket, address and key from what that store's half published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from fractal_cloud.model.component import parameter
from fractal_cloud.offers.link import OutboundLink, Published, outbound
from fractal_cloud.offers.link_types import STORAGE_LINK, StorageLink, WorkloadSource
from fractal_cloud.offers.offer import LinkFields, Provider
from tests.links.clouds import Store, ToySession
from tests.links.offers import ToyOffer

SERVICE = Store("spark")
spark = Provider("spark", "Spark", lambda: ToySession(SERVICE))

Link = OutboundLink[StorageLink]


class SparkJob(WorkloadSource):
    """A job that reads and writes object stores."""

    type = "BigData.PaaS.SparkJob"
    provider = "spark"

    main_class: str = parameter(description="What it runs.")
    spark_conf: dict[str, str] | None = parameter(
        default=None, linked=True, description="Settings that its links bring."
    )


class SparkJobOffer(ToyOffer[SparkJob]):
    """How jobs are kept."""

    component = SparkJob
    title = "Spark job"
    outputs: ClassVar[Mapping[str, str]] = {"endpoint": "where its page is"}

    def linked_parameters(self, links: Sequence[LinkFields]) -> Mapping[str, Any]:
        """What Hadoop's client for S3 asks for, bucket by bucket; the secret key stays in Spark's own store."""
        conf: dict[str, str] = {}
        for one in links:
            base = f"spark.hadoop.fs.s3a.bucket.{one.fields['bucket']}"
            conf[f"{base}.endpoint"] = str(one.fields["endpoint"])
            conf[f"{base}.access.key"] = str(one.fields["accessKeyId"])
            conf[f"{base}.secret.key"] = "{{" + str(one.fields["secretName"]) + "}}"
        return {"sparkConf": conf}


@outbound(source=SparkJob, target="*", link_type=STORAGE_LINK, settings=StorageLink)
def use_store(link: Link) -> Published | None:
    """Keep the key that came sealed in Spark's own store, and pass the place of its bucket to the job."""
    service: Store = link.cloud.store
    published, name = link.published, f"spark-secrets:{link.mark}"
    version = published.get("accessKeyId")
    is_kept = name in service.secrets and link.fields.get("received") == version
    if version is None or not (is_kept or "sealed" in published):
        return None
    if not is_kept:
        service.put_secret(name, link.open(published["sealed"]).reveal(), link.mark)
    plain = {key: published[key] for key in ("bucket", "region", "endpoint", "access", "accessKeyId")}
    return {**plain, "secretName": name, "received": version}


@use_store.revokes
def forget_key(link: Link) -> None:
    """Forget the key."""
    link.cloud.store.drop_secret(f"spark-secrets:{link.mark}")


@use_store.verifies
def keys_there(links: Sequence[Link]) -> Iterator[Link]:
    """Those whose key is still kept."""
    for link in links:
        if f"spark-secrets:{link.mark}" in link.cloud.store.secrets:
            yield link
