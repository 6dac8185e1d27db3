"""Links from machines and services on AWS to what lies elsewhere: the secret arrives sealed, is opened here, and goes
into Secrets Manager, where what runs on AWS finds it (L9). One secret a link, with its mark among the tags.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Final

from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.link import LinkSettings
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.link import OutboundHandler, OutboundLink, Published, outbound
from fractal_cloud.offers.link_types import DATABASE_LINK, STORAGE_LINK, DatabaseLink, StorageLink
from fractal_cloud.offers.secret import Secret

STORE: Final = "aws-secrets-manager"
LINK_TAG: Final = "fractal-cloud-link"
EC2: Final = "NetworkAndCompute.IaaS.AwsEc2Instance"
ECS: Final = "CustomWorkloads.PaaS.AwsEcsService"
_SERVICE: Final = "secretsmanager"
AnyLink = OutboundLink[Any]
Contents = Callable[[AnyLink, Secret], Mapping[str, Any]]


def put_secret(cloud: Aws, name: str, mark: str, content: Mapping[str, Any]) -> str:
    """Keep a link's secret under a name, and return its reference; one that another made is left alone."""
    text, tags = json.dumps(content), [{"Key": LINK_TAG, "Value": mark}]
    try:
        cloud.call(_SERVICE, "create_secret", Name=name, SecretString=text, Tags=tags)
    except Conflict:
        if not _is_marked(cloud.find(_SERVICE, "describe_secret", SecretId=name), mark):
            raise Conflict(f"secret {name!r} is there and was not made by this link: rename or delete it") from None
        cloud.call(_SERVICE, "put_secret_value", SecretId=name, SecretString=text)
    return f"{STORE}:{cloud.region}:{name}"


def drop_secret(cloud: Aws, name: str, mark: str) -> None:
    """Delete a link's secret for good; gone already is success, and one of that name that another made is left."""
    if _is_marked(cloud.find(_SERVICE, "describe_secret", SecretId=name), mark):
        cloud.find(_SERVICE, "delete_secret", SecretId=name, ForceDeleteWithoutRecovery=True)


def _is_marked(found: Mapping[str, Any] | None, mark: str) -> bool:
    return any(tag.get("Key") == LINK_TAG and tag.get("Value") == mark for tag in (found or {}).get("Tags") or ())


def tag_of(mark: str) -> str:
    """A mark as a tag of AWS can hold it."""
    return mark.replace("<", "=").replace(">", "=")


def _secret_id(link: AnyLink) -> str:
    return f"fractal-cloud/{link.live_system_id}/{link.own}/uses/{link.other}"


def _is_kept(link: AnyLink, version: object) -> bool:
    if link.fields.get("received") != version:
        return False
    found = link.cloud.find(_SERVICE, "describe_secret", SecretId=_secret_id(link))
    return found is not None and "DeletedDate" not in found


def _received(link: AnyLink, version_key: str, contents: Contents, passed_on: Sequence[str]) -> Published | None:
    """Keep a sealed value, once per version, and publish where it lies; nothing new: as it was."""
    version, sealed = link.published.get(version_key), link.published.get("sealed")
    if version is None:
        return None
    plain = {name: link.published[name] for name in passed_on if name in link.published}
    if _is_kept(link, version):
        return {**plain, "secretName": link.fields["secretName"], "received": version}
    if sealed is None:
        return plain or None  # it was lost here; the other side will see that nothing is received, and seal it anew
    content = contents(link, link.open(sealed))
    return {
        **plain,
        "secretName": put_secret(link.cloud, _secret_id(link), tag_of(link.mark), content),
        "received": version,
    }


def _drop(link: AnyLink) -> None:
    """Delete the secret of the link."""
    drop_secret(link.cloud, _secret_id(link), tag_of(link.mark))


def _still_there(links: Sequence[AnyLink]) -> Iterator[AnyLink]:
    """Those whose secret is there: one list for all; what has received nothing has nothing to lose."""
    if not links:
        return
    asked = {"Filters": [{"Key": "tag-key", "Values": [LINK_TAG]}], "MaxResults": 100}
    pages = links[0].cloud.pages(_SERVICE, "list_secrets", "SecretList", **asked)
    found = {one["Name"] for page in pages for one in page}
    for link in links:
        if "secretName" not in link.fields or _secret_id(link) in found:
            yield link


def into_secret(
    *, source: str, target: str, link_type: str, settings: type[LinkSettings], passed_on: Sequence[str], version: str
) -> Callable[[Contents], OutboundHandler]:
    """Make a function the outbound half from a type on AWS to one elsewhere: it says what the secret holds."""

    def register(contents: Contents) -> OutboundHandler:
        @wraps(contents)
        def receive(link: AnyLink) -> Published | None:
            return _received(link, version, contents, passed_on)

        handler = outbound(source=source, target=target, link_type=link_type, settings=settings)(receive)
        handler.revokes(_drop)
        handler.verifies(_still_there)
        return handler

    return register


def use_database(link: AnyLink, password: Secret) -> dict[str, Any]:
    """Keep all that is needed to log in in one secret, in the form in which RDS keeps its own."""
    published = link.published
    where = {
        "engine": "postgres",
        "host": published["host"],
        "port": published["port"],
        "dbname": published["database"],
    }
    return {**where, "username": published["user"], "password": password.reveal()}


def use_bucket(link: AnyLink, secret: Secret) -> dict[str, Any]:
    """Keep the key, and where the bucket is, in one secret."""
    where = {name: link.published[name] for name in ("bucket", "region", "endpoint", "accessKeyId")}
    return {**where, "secretAccessKey": secret.reveal()}


def _to_database(source: str, target: str) -> OutboundHandler:
    passed_on = ("host", "port", "database", "user", "access")
    made = into_secret(
        source=source,
        target=target,
        link_type=DATABASE_LINK,
        settings=DatabaseLink,
        passed_on=passed_on,
        version="version",
    )
    return made(use_database)


def _to_bucket(source: str, target: str) -> OutboundHandler:
    passed_on = ("bucket", "region", "endpoint", "access")
    made = into_secret(
        source=source,
        target=target,
        link_type=STORAGE_LINK,
        settings=StorageLink,
        passed_on=passed_on,
        version="accessKeyId",
    )
    return made(use_bucket)


ec2_to_postgres_server = _to_database(EC2, "Storage.SelfHosted.Postgres")
ecs_to_postgres_server = _to_database(ECS, "Storage.SelfHosted.Postgres")
ec2_to_cloud_sql = _to_database(EC2, "Storage.PaaS.GcpPostgresDbms")
ecs_to_cloud_sql = _to_database(ECS, "Storage.PaaS.GcpPostgresDbms")
ec2_to_azure_postgres = _to_database(EC2, "Storage.PaaS.AzurePostgresDbms")
ecs_to_azure_postgres = _to_database(ECS, "Storage.PaaS.AzurePostgresDbms")
ec2_to_oci_bucket = _to_bucket(EC2, "Storage.PaaS.OciBucket")
ecs_to_oci_bucket = _to_bucket(ECS, "Storage.PaaS.OciBucket")
ec2_to_gcs_bucket = _to_bucket(EC2, "Storage.PaaS.GcpGcsBucket")
ecs_to_gcs_bucket = _to_bucket(ECS, "Storage.PaaS.GcpGcsBucket")
