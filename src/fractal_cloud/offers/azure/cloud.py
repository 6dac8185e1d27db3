"""The session at Azure: who calls, where, and which subscriptions are reached.

Credentials are found as every tool of the vendor's finds them: a service principal in the environment, a workload's or
a machine's own identity, or somebody who has logged in with ``az``.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.errors import CloudError, Denied
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers import azure_login
from fractal_cloud.offers.azure.arm import VERSION, Azure, next_page
from fractal_cloud.offers.azure.errors import code_and_words, kind_of
from fractal_cloud.offers.offer import Session
from fractal_cloud.offers.rest import Answer, Dialect, RestClient
from fractal_cloud.offers.secret import Secret

SUBSCRIPTION: Final = "AZURE_SUBSCRIPTION_ID"
SUBSCRIPTIONS_VERSION: Final = "2022-12-01"
# For whom a token is made that opens a database, where somebody from Entra administers it.
DATABASES: Final[Mapping[str, str]] = {
    "AZURE_US_GOVERNMENT": "https://ossrdbms-aad.database.usgovcloudapi.net",
    "AZURE_CHINA_CLOUD": "https://ossrdbms-aad.database.chinacloudapi.cn",
}
PUBLIC_DATABASES: Final = "https://ossrdbms-aad.database.windows.net"


class ArmDialect(Dialect):
    """How Resource Manager is spoken to."""

    provider = "azure"
    request_id_header = "x-ms-request-id"

    def __init__(self, credential: Any, audience: str) -> None:
        self._credential = credential
        self._audience = audience

    def authorise(self, method: str, url: str, headers: dict[str, str], content: bytes) -> None:
        """Add a token."""
        del method, url, content
        headers["authorization"] = f"Bearer {azure_login.token(self._credential, self._audience)}"

    def code_and_message(self, answer: Answer) -> tuple[str, str]:
        """The code and the words of the usual envelope."""
        return code_and_words(answer.body())

    def kind_of(self, answer: Answer, code: str) -> type[CloudError]:
        """By its code, where that says more than the status."""
        return kind_of(answer.status, code, answer.call.method, self.code_and_message(answer)[1])


class AzureSession(Session):
    """All subscriptions these credentials reach. Safe to share by threads."""

    def __init__(self) -> None:
        try:
            credential = azure_login.credential()
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name!r} is not installed: `pip install 'fractal-cloud[azure]'` brings it", name=missing.name
            ) from missing
        weakref.finalize(self, credential.close)  # it has connections of its own
        self._credential = credential
        self._client = RestClient(azure_login.endpoint(), ArmDialect(credential, azure_login.audience()))

    def realms(self) -> Mapping[str, str]:
        """The subscriptions reached, by their ids and by their names; the empty name is the one that is meant.

        That is the one the environment names, else the only one there is.
        """
        found: dict[str, str] = {}
        names: dict[str, set[str]] = {}
        for page in self._client.pages("/subscriptions", {VERSION: SUBSCRIPTIONS_VERSION}, next_page):
            for one in page.item().get("value") or ():
                found[one["subscriptionId"].lower()] = one["subscriptionId"].lower()
                names.setdefault(str(one.get("displayName") or ""), set()).add(one["subscriptionId"].lower())
        if not found:
            raise Denied("these credentials reach no subscription: give the agent a role in one")
        meant = os.environ.get(SUBSCRIPTION, "").lower() or (next(iter(found)) if len(found) == 1 else "")
        if meant and meant not in found:
            raise Denied(f"{SUBSCRIPTION} is {meant!r}, which these credentials do not reach: correct it")
        called = {name: ids.pop() for name, ids in names.items() if name and len(ids) == 1}
        return {**called, **found, **({"": meant} if meant else {})}

    def realm_now(self, scope: Scope) -> str:
        """The subscription, as Azure itself calls the one that every path of the scope names."""
        subscription = self._client.read(f"/subscriptions/{scope.realm}", {VERSION: SUBSCRIPTIONS_VERSION}).item()
        return str(subscription["subscriptionId"]).lower()

    def at(self, scope: Scope) -> Azure:
        """One resource group of one subscription, or all of it."""
        return Azure(self._client, scope, self.database_token)

    def database_token(self) -> Secret:
        """What opens a database whose administrator these credentials are: a token, good for an hour or so."""
        audience = DATABASES.get(os.environ.get(azure_login.CLOUD, ""), PUBLIC_DATABASES)
        return Secret(azure_login.token(self._credential, audience))
