"""Whose key signs: found where the vendor's own tools find it, by environment, config file or principal.

How a signature is made, and what is asked of the cloud, does not belong here.
"""

from __future__ import annotations

import json
import os
import threading
import time
from abc import ABC, abstractmethod
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from configparser import ConfigParser, Error
from pathlib import Path
from typing import Any, Final

from fractal_cloud.model.errors import Denied
from fractal_cloud.offers.oci.signing import Key

AUTH: Final = "OCI_CLI_AUTH"
# What a profile of the config file calls it, and the variables that come before the file.
_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "user": ("OCI_CLI_USER",),
    "tenancy": ("OCI_CLI_TENANCY",),
    "fingerprint": ("OCI_CLI_FINGERPRINT",),
    "key_file": ("OCI_CLI_KEY_FILE",),
    "key_content": ("OCI_CLI_KEY_CONTENT",),
    "pass_phrase": ("OCI_CLI_PASSPHRASE",),
    "region": ("OCI_CLI_REGION", "OCI_REGION"),
    "security_token_file": ("OCI_CLI_SECURITY_TOKEN_FILE",),
}
RENEWED_BEFORE: Final = 120.0
"""Seconds before its end at which a token is no longer used."""


class Caller(ABC):
    """Who calls. ``region``: the one that is meant where none is named."""

    tenancy: str
    region: str

    @abstractmethod
    def key(self) -> tuple[str, Key]:
        """The id of the key, and the key, that sign now; raises ``Denied`` where there is none."""


class ApiKey(Caller):
    """A user's API key."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        missing = [name for name in ("tenancy", "user", "fingerprint", "region") if not settings.get(name)]
        if not settings.get("key_content") and not settings.get("key_file"):
            missing.append("key_file")
        if missing:
            raise _nobody(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        self.tenancy = settings["tenancy"]
        self.region = settings["region"]
        self._id = f"{self.tenancy}/{settings['user']}/{settings['fingerprint']}"
        pem = settings.get("key_content") or _text(settings["key_file"], "the private key")
        self._key = Key.from_pem(pem, settings.get("pass_phrase", ""))

    def key(self) -> tuple[str, Key]:
        """The key of the settings."""
        return self._id, self._key


class Token(Caller):
    """A token with the key of its session; both are fetched again shortly before the token ends."""

    def __init__(self, fetch: Callable[[], tuple[str, Key]], region: str, tenancy: str = "") -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._token, self._key = fetch()
        self.region = region
        claims = claims_of(self._token)
        self.tenancy = tenancy or str(claims.get("tenant") or claims.get("res_tenant") or "")
        if not self.region or not self.tenancy:
            raise _nobody("the region or the tenancy is missing")

    def key(self) -> tuple[str, Key]:
        """The token of now."""
        with self._lock:
            if self._is_over():
                self._token, self._key = self._fetch()
                if self._is_over():
                    raise Denied("the token of OCI is over: renew it (`oci session refresh`), and it is read again")
            return f"ST${self._token}", self._key

    def _is_over(self) -> bool:
        ends = claims_of(self._token).get("exp")
        return isinstance(ends, int | float) and ends - RENEWED_BEFORE < time.time()


def find() -> Caller:
    """The caller this process has credentials of; raises ``Denied``, saying what is missing, where there are none."""
    kind = os.environ.get(AUTH, "")
    if not kind and os.environ.get("OCI_RESOURCE_PRINCIPAL_VERSION"):
        kind = "resource_principal"
    if kind == "resource_principal":
        return _resource_principal()
    settings = _settings()
    if kind == "instance_principal":
        from fractal_cloud.offers.oci.principals import instance_principal

        return instance_principal(settings.get("region", ""))
    if kind == "security_token" or (not kind and settings.get("security_token_file") and not settings.get("user")):
        return _session(settings)
    if kind in ("", "api_key"):
        return ApiKey(settings)
    known = "api_key, security_token, instance_principal and resource_principal"
    raise _nobody(f"{AUTH} is {kind!r}, which is not known here: {known} are")


def claims_of(token: str) -> dict[str, Any]:
    """What a token says of itself; nothing where it cannot be read. It is not verified: OCI does that."""
    try:
        middle = token.split(".")[1]
        found = json.loads(urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _settings() -> dict[str, str]:
    found = _profile()
    for name, variables in _VARIABLES.items():
        value = next((os.environ[variable] for variable in variables if os.environ.get(variable)), "")
        if value:
            found[name] = value
    if os.environ.get("OCI_CLI_KEY_FILE") and not os.environ.get("OCI_CLI_KEY_CONTENT"):
        found.pop("key_content", None)  # the profile's own: the file that the environment names comes before it
    return found


def _profile() -> dict[str, str]:
    named = os.environ.get("OCI_CLI_CONFIG_FILE") or os.environ.get("OCI_CONFIG_FILE")
    path = Path(named or "~/.oci/config").expanduser()
    profile = os.environ.get("OCI_CLI_PROFILE") or os.environ.get("OCI_CONFIG_PROFILE") or "DEFAULT"
    if not path.is_file():
        if named:
            raise _nobody(f"there is no config file {named!r}")
        return {}
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(path.read_text())
        return dict(parser[profile])
    except (Error, OSError, KeyError, UnicodeDecodeError) as error:
        raise _nobody(f"profile {profile!r} of {str(path)!r} cannot be read: {error}") from error


def _session(settings: Mapping[str, str]) -> Token:
    """A token that somebody got with `oci session authenticate`; renewed by whoever keeps its file fresh."""
    missing = [name for name in ("security_token_file", "key_file") if not settings.get(name)]
    if missing:
        raise _nobody(f"{', '.join(missing)} of the session is missing")

    def fetch() -> tuple[str, Key]:
        token = _text(settings["security_token_file"], "the token").strip()
        return token, Key.from_pem(_text(settings["key_file"], "the private key"), settings.get("pass_phrase", ""))

    return Token(fetch, settings.get("region", ""), settings.get("tenancy", ""))


def _resource_principal() -> Token:
    """The principal of a function or a container, whose token and key are in the environment or in files it names."""
    prefix = "OCI_RESOURCE_PRINCIPAL_"
    version = os.environ.get(f"{prefix}VERSION", "")
    if version != "2.2":
        raise _nobody(f"resource principals of version {version!r} are not known here: 2.2 is")

    def required(name: str) -> str:
        value = os.environ.get(f"{prefix}{name}", "")
        if not value:
            raise _nobody(f"{prefix}{name} is missing")
        return _text(value, name) if value.startswith("/") else value

    def fetch() -> tuple[str, Key]:
        passphrase = required("PRIVATE_PEM_PASSPHRASE") if os.environ.get(f"{prefix}PRIVATE_PEM_PASSPHRASE") else ""
        return required("RPST").strip(), Key.from_pem(required("PRIVATE_PEM"), passphrase.strip())

    return Token(fetch, os.environ.get(f"{prefix}REGION", ""))


def _text(path: str, what: str) -> str:
    try:
        return Path(path).expanduser().read_text()
    except OSError as error:
        raise _nobody(f"{what} cannot be read: {error}") from error


def _nobody(why: str) -> Denied:
    return Denied(
        f"no credentials of OCI are found: {why}; give the agent a config file (`oci setup config`), OCI_CLI_* "
        f"variables, or {AUTH}=instance_principal on a machine of OCI"
    )
