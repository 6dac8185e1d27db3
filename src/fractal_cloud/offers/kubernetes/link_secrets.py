"""Links from a workload to what needs a secret, wherever that is: the value arrives sealed, is opened here, and goes
into a Secret of the workload's own namespace; the container's environment takes it from there (L9).

The Secret's name bears the version of what it holds: a new version is a new Secret, so that the pods are rolled.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Final

from fractal_cloud.model.component import Component
from fractal_cloud.model.link import LinkSettings
from fractal_cloud.offers.kubernetes.kinds import SECRET
from fractal_cloud.offers.kubernetes.linked import SECRET_PREFIX, bring, check_ours, marked, name_of, remove
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.offers.link import OutboundHandler, OutboundLink, Published, outbound
from fractal_cloud.offers.link_types import DATABASE_LINK, STORAGE_LINK, DatabaseLink, StorageLink
from fractal_cloud.offers.secret import Secret

STORE: Final = "kubernetes-secret"
AnyLink = OutboundLink[Any]
Contents = Callable[[AnyLink, Secret], Mapping[str, str]]


def _received(link: AnyLink, version_key: str, contents: Contents, passed_on: Sequence[str]) -> Published | None:
    """Put a sealed value into a Secret, once per version, and publish where it lies; nothing new: as it was."""
    version, sealed = link.published.get(version_key), link.published.get("sealed")
    plain = {name: link.published[name] for name in passed_on if name in link.published}
    if version is None:
        return None
    name = name_of(link, f"-{str(version)[-12:].lower()}", SECRET_PREFIX)
    there = link.cloud.find(SECRET, name)
    if there is not None:
        check_ours(there, SECRET, link.mark)
    if there is None and sealed is None:
        return plain or None  # it was lost here; the other side will see that nothing is received, and seal it anew
    if there is None:
        values = contents(link, link.open(sealed or ""))
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        bring(link.cloud, SECRET, name, link.mark, {"type": "Opaque", "data": data})
        keys = sorted(values)
    else:
        keys = sorted(there.get("data") or {})
    remove(link.cloud, SECRET, link.mark, keep=[name])
    reference = f"{STORE}:{link.cloud.namespace}/{name}"
    return {**plain, "secretName": reference, "secretKeys": ",".join(keys), "received": version}


def _drop(link: AnyLink) -> None:
    """Delete the Secrets of the link."""
    remove(link.cloud, SECRET, link.mark)


def _still_there(links: Sequence[AnyLink]) -> Iterator[AnyLink]:
    """Those whose Secret is there: one list for all; what has received nothing has nothing to lose."""
    if not links:
        return
    found = {item["metadata"]["name"] for item in marked(links[0].cloud, SECRET, {link.mark for link in links})}
    for link in links:
        reference = str(link.fields.get("secretName", ""))
        if not reference or reference.rpartition("/")[2] in found:
            yield link


def into_secret(
    *,
    target: type[Component] | str,
    link_type: str,
    settings: type[LinkSettings],
    passed_on: Sequence[str],
    version: str = "version",
) -> Callable[[Contents], OutboundHandler]:
    """Make a function the outbound half from workloads to a type, in any package: it says what the Secret holds.

    It gets the link and the opened secret, and returns the Secret's keys and values. ``passed_on``: what the target
    published and the workload gets unchanged; ``version``: the key by which the target counts what it sealed.
    """

    def register(contents: Contents) -> OutboundHandler:
        @wraps(contents)
        def receive(link: AnyLink) -> Published | None:
            return _received(link, version, contents, passed_on)

        handler = outbound(source=KubernetesWorkload, target=target, link_type=link_type, settings=settings)(receive)
        handler.revokes(_drop)
        handler.verifies(_still_there)
        return handler

    return register


def use_database(link: AnyLink, password: Secret) -> dict[str, str]:
    """Put the role's password into a Secret, and publish to the workload where its database is."""
    database = link.published
    address = f"{database['user']}:{password.reveal()}@{database['host']}:{database['port']}/{database['database']}"
    return {"password": password.reveal(), "url": f"postgresql://{address}"}


def _to_database(target: str) -> OutboundHandler:
    passed_on = ("host", "port", "database", "user")
    return into_secret(target=target, link_type=DATABASE_LINK, settings=DatabaseLink, passed_on=passed_on)(use_database)


to_rds = _to_database("Storage.PaaS.AwsRdsPostgres")
to_cloud_sql = _to_database("Storage.PaaS.GcpPostgresDbms")
to_azure_postgres = _to_database("Storage.PaaS.AzurePostgresDbms")
to_postgres_server = _to_database("Storage.SelfHosted.Postgres")


def use_bucket(link: AnyLink, secret: Secret) -> dict[str, str]:
    """Put the access key into a Secret, and publish to the workload which bucket it may use."""
    return {"accessKeyId": str(link.published["accessKeyId"]), "secretAccessKey": secret.reveal()}


def _to_bucket(target: str) -> OutboundHandler:
    """Every object store is reached as S3 is: by an address, a region, and a key that signs."""
    passed_on = ("bucket", "region", "endpoint")
    made = into_secret(
        target=target, link_type=STORAGE_LINK, settings=StorageLink, passed_on=passed_on, version="accessKeyId"
    )
    return made(use_bucket)


to_s3 = _to_bucket("Storage.PaaS.AwsS3")
to_gcs_bucket = _to_bucket("Storage.PaaS.GcpGcsBucket")
to_oci_bucket = _to_bucket("Storage.PaaS.OciBucket")
