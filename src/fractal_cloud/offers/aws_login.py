"""Who calls an EKS cluster: the token that AWS's own command line makes of the credentials boto3 finds.

It is a signed question, «who am I?», to AWS's token service, which the cluster asks in our name: the name of the
cluster is part of what is signed, so that it is good for that one alone.
"""

from __future__ import annotations

import base64
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.model.errors import Denied

PREFIX: Final = "k8s-aws-v1."
CLUSTER_HEADER: Final = "x-k8s-aws-id"
SIGNED_SECONDS: Final = 60
KEPT_SECONDS: Final = 30.0


class EksTokens:
    """Tokens for one cluster: made here, without a call, and anew every half minute."""

    def __init__(self, region: str, cluster: str) -> None:
        try:
            import boto3
        except ModuleNotFoundError as missing:
            raise Denied(
                f"{missing.name!r} is not installed, which EKS clusters need: "
                "`pip install 'fractal-cloud[aws]'` brings it"
            ) from missing
        self._cluster = cluster
        self._lock = threading.Lock()
        self._token, self._made_at = "", 0.0
        self._sts: Any = boto3.session.Session().client("sts", region_name=region)
        self._sts.meta.events.register("before-sign.sts.GetCallerIdentity", self._name_cluster)

    def token(self) -> str:
        """A token that is still good for a while; raises ``Denied`` where there are no credentials."""
        with self._lock:
            if not self._token or time.monotonic() >= self._made_at + KEPT_SECONDS:
                self._token, self._made_at = self._made(), time.monotonic()
            return self._token

    def _name_cluster(self, request: Any, **_: Any) -> None:
        request.headers[CLUSTER_HEADER] = self._cluster

    def _made(self) -> str:
        from botocore.exceptions import BotoCoreError

        try:
            url = self._sts.generate_presigned_url("get_caller_identity", ExpiresIn=SIGNED_SECONDS, HttpMethod="GET")
        except BotoCoreError as error:
            raise Denied(f"{error}: give the agent credentials for AWS that boto3 can find") from error
        return PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def secrets_client(region: str) -> Any:
    """A client of AWS Secrets Manager; in the region that boto3 is configured for where none is named."""
    import boto3

    return boto3.session.Session().client("secretsmanager", region_name=region or None)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why AWS did not answer, by AWS's own code; what is no answer of AWS's has its class's name."""

    code: str

    @classmethod
    def of(cls, error: Exception) -> Refusal:
        """The refusal in an error of boto3."""
        response = getattr(error, "response", None)
        found = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
        return cls(str(found or type(error).__name__))
