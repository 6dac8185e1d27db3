"""The whole product over a cloud and a cluster beside it, with one agent for both."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import boto3
import psycopg
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from fractal_cloud.offers.kubernetes import cloud as kubernetes
from fractal_sandbox import Sandbox
from tests.linking.two_clouds import SECRETS, workload
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.kubernetes.rights import printed_rights
from tests.offers.worlds import ProviderWorld, provider_world

W = TypeVar("W", bound="BesideACluster")


class BesideACluster(ProviderWorld):
    """One agent for a cloud and a cluster."""

    def __init__(self, sandbox: Sandbox, folder: Path, *args: Any, **settings: Any) -> None:
        self.kube = KubernetesPerson(sandbox.url, folder)
        super().__init__(sandbox, folder, *args, **settings)

    def secrets(self) -> list[dict[str, str]]:
        """What the Secrets that links made hold."""
        items = self.kube.call("GET", f"{SECRETS}?labelSelector=fractal.cloud/link")["items"]
        return [{key: base64.b64decode(value).decode() for key, value in one["data"].items()} for one in items]

    def come_to_rest(self, at_most: int = 30) -> None:
        """Cycles until one has nothing to say to anybody: two halves of a link take turns."""
        for _ in range(at_most):
            if all(result.settled and not result.writes and not result.changes for result in self.cycle()):
                return
        raise AssertionError("the link does not come to rest")

    def assert_role_goes_with_the_link(self, live_system: str, server: Mapping[str, Any]) -> None:
        """The workload `shop` logs in, the API shows no password, and when the link goes, its role goes."""
        (kept,) = self.secrets()
        with psycopg.connect(kept["url"], autocommit=True) as connection:
            connection.execute("CREATE TABLE mine (id int)")
        assert kept["password"] not in self.api.get(f"/livesystems/{live_system}").text

        self.deploy(live_system, server, workload("shop"))
        self.come_to_rest()
        assert self.secrets() == []
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(kept["url"])
        self.assert_safe()

    def s3(self, live_system: str, secret: Mapping[str, str]) -> Any:
        """S3's own client for the bucket `files`, configured as the workload `shop` is."""
        fields = self.component(live_system, "shop")["outputFields"]
        return boto3.client(
            "s3",
            endpoint_url=fields["storageLink.files.endpoint"],
            region_name=fields["storageLink.files.region"],
            aws_access_key_id=secret["accessKeyId"],
            aws_secret_access_key=secret["secretAccessKey"],
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )


@contextmanager
def beside_a_cluster(sandbox: Sandbox, folder: Path, kind: type[W]) -> Iterator[W]:
    """A world over a cloud and a cluster that were reset."""
    sandbox.kubernetes.reset()
    with pytest.MonkeyPatch.context() as patch, printed_rights(sandbox):
        patch.setenv(kubernetes.WATCH, "0")
        with provider_world(sandbox, folder, kind) as made:
            yield made


def may(act: Callable[..., Any], **asked: Any) -> bool:
    """Whether a cloud lets somebody do it; anything but a refusal is raised."""
    try:
        act(**asked)
    except ClientError as refusal:
        if refusal.response["ResponseMetadata"]["HTTPStatusCode"] not in (403, 404):
            raise
        return False
    return True
