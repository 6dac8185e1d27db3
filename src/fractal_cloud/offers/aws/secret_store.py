"""Secrets in AWS Secrets Manager, read with the credentials that boto3 finds where the agent runs (A8)."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.errors import SecretUnavailable
from fractal_cloud.offers.aws_login import Refusal, secrets_client
from fractal_cloud.offers.secret_stores import SecretStore

_DENIED: Final = frozenset({"AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException"})
_ABSENT: Final = frozenset({"ResourceNotFoundException", "InvalidRequestException", "DecryptionFailure"})


class SecretsManagerStore(SecretStore):
    """``secretId``: a name or an ARN. ``key``: of a secret that is JSON; without it, its whole text. ``region``."""

    required = ("secretId",)
    optional = ("key", "region")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}

    def read(self, where: Mapping[str, str]) -> str | bytes:
        """The current version of the secret."""
        name, region = where["secretId"], where.get("region", "")
        try:
            with self._lock:
                client = self._clients[region] = self._clients.get(region) or secrets_client(region)
            found = client.get_secret_value(SecretId=name)
        except Exception as error:  # noqa: BLE001  # boto3's own, whose words are not for others
            raise _unavailable(name, Refusal.of(error)) from None
        text: str | bytes = found.get("SecretString") or found.get("SecretBinary") or ""
        return _value_of(text, where["key"], name) if "key" in where else text


def _unavailable(name: str, refusal: Refusal) -> SecretUnavailable:
    """What a refusal means; it may quote the secret's name, and never its value."""
    called = f"AWS Secrets Manager refuses {name!r} ({refusal.code})"
    if refusal.code in _DENIED:
        return SecretUnavailable(
            f"{called}: allow the agent to read it, `fractal agent policy --provider aws --secret {name}` prints how"
        )
    if refusal.code in _ABSENT:
        return SecretUnavailable(f"{called}: it is not there, or about to be deleted")
    return SecretUnavailable(called, is_passing=True)


def _value_of(text: str | bytes, key: str, name: str) -> str:
    try:
        found = json.loads(text)[key]
    except (ValueError, LookupError, TypeError):
        raise SecretUnavailable(f"the secret {name!r} in AWS Secrets Manager is no JSON with the key {key!r}") from None
    if not isinstance(found, str):
        raise SecretUnavailable(f"the key {key!r} of {name!r} in AWS Secrets Manager holds no text")
    return found
