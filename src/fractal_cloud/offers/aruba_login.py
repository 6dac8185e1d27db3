"""Who calls Aruba Cloud: client credentials where the vendor's command line has them, and the token they are worth.

The environment comes first, then ``~/.acloud.yaml``, setting by setting, as `acloud` itself reads them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import yaml

from fractal_cloud.model.errors import CloudError, Denied, Throttled, Unreadable
from fractal_cloud.offers.rest import Answer, Call, Dialect, RestClient

BASE: Final = "https://api.arubacloud.com"
ISSUER: Final = "https://mylogin.aruba.it/auth/realms/cmp-new-apikey/protocol/openid-connect/token"
FILE: Final = ".acloud.yaml"
EARLY_SECONDS: Final = 60.0
_SETTINGS: Final[Mapping[str, tuple[str, str]]] = {
    "clientId": ("ACLOUD_CLIENT_ID", ""),
    "clientSecret": ("ACLOUD_CLIENT_SECRET", ""),
    "baseUrl": ("ACLOUD_BASE_URL", BASE),
    "tokenIssuerUrl": ("ACLOUD_TOKEN_ISSUER_URL", ISSUER),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """An API key of Aruba Cloud, and where it is good for something."""

    client_id: str
    client_secret: str
    base: str
    issuer: str


def find() -> Caller:
    """The credentials of this process; raises ``Denied``, saying what is missing."""
    from_file = _read_config_file()
    found = {
        name: os.environ.get(variable) or from_file.get(name) or usual for name, (variable, usual) in _SETTINGS.items()
    }
    missing = [_SETTINGS[name][0] for name, value in found.items() if not value]
    if missing:
        raise Denied(
            f"no credentials for Aruba Cloud: set {' and '.join(missing)}, or run `acloud config set`, which writes "
            f"~/{FILE}"
        )
    return Caller(found["clientId"], found["clientSecret"], found["baseUrl"], found["tokenIssuerUrl"])


def _read_config_file() -> dict[str, str]:
    path = Path.home() / FILE
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Denied(f"{path} cannot be read: {error.strerror}") from error
    try:
        settings: Any = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise Denied(f"{path} is no YAML: write it again with `acloud config set`") from error
    return {name: str(settings[name]) for name in _SETTINGS if settings.get(name)} if isinstance(settings, dict) else {}


class _Issuer(Dialect):
    """The token endpoint: nobody is authorised yet, and a refusal has OAuth's form."""

    provider = "aruba"

    def authorise(self, method: str, url: str, headers: dict[str, str], content: bytes) -> None:
        """Nothing: the request itself holds the secret."""

    def code_and_message(self, answer: Answer) -> tuple[str, str]:
        """OAuth's error and its description."""
        body = answer.body()
        error = body if isinstance(body, dict) else {}
        return str(error.get("error") or ""), str(error.get("error_description") or "no token was issued")

    def kind_of(self, answer: Answer, code: str) -> type[CloudError]:
        """Wrong credentials are a matter of rights; anything else says nothing about anything."""
        del code
        if answer.status == 429:
            return Throttled
        return Denied if 400 <= answer.status < 500 else Unreadable


class Tokens:
    """The token of one caller, asked for when the last one is about to expire. Shared by threads."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._client = RestClient(caller.issuer, _Issuer())
        self._lock = threading.Lock()
        self._token = ""
        self._good_until = 0.0

    def token(self) -> str:
        """A token that is still good for a while."""
        with self._lock:
            if time.monotonic() >= self._good_until:
                self._renew()
            return self._token

    def forget(self, token: str) -> None:
        """The cloud no longer takes a token: the next call asks for another one."""
        with self._lock:
            if token == self._token:
                self._good_until = 0.0

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def _renew(self) -> None:
        form = {
            "grant_type": "client_credentials",
            "client_id": self._caller.client_id,
            "client_secret": self._caller.client_secret,
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        call = Call("POST", "", headers=headers, content=urlencode(form).encode(), is_question=True)
        answer = self._client.send(call)
        if not answer.is_good:
            raise self._client.dialect.error_of(answer)
        issued = answer.item()
        if not isinstance(issued.get("access_token"), str):
            raise Unreadable("the token endpoint of Aruba Cloud answered without a token")
        self._token = issued["access_token"]
        seconds = float(issued.get("expires_in") or 0.0)
        self._good_until = time.monotonic() + max(seconds - EARLY_SECONDS, seconds / 2)
