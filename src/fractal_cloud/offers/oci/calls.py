"""One compartment in one region, as offers see it: the few requests there are, and what a «not found» is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import quote

from fractal_cloud.model.errors import Denied, Invalid, NotFound, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.oci.errors import HIDDEN
from fractal_cloud.offers.offer import Cloud
from fractal_cloud.offers.rest import Answer, RestClient

LIMIT: Final = 1000
CORE: Final = "/20160918"
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Vnic:
    """The primary network interface of an instance: it stays the same, with its address, for the instance's life."""

    id: str
    subnet_id: str
    private_ip: str


@dataclass(frozen=True, slots=True)
class Subscription:
    """A region of the tenancy: its key is what policies call it; identities are written in the home region alone."""

    key: str
    is_home: bool


class Clients(Protocol):
    """A session, as far as a compartment needs it."""

    vnics: dict[str, Vnic]

    def client(self, service: str, region: str) -> RestClient:
        """The way to one service in one region."""

    def namespace(self, region: str) -> str:
        """The tenancy's namespace of buckets."""

    def tenancy(self) -> str:
        """The OCID of the tenancy."""

    def subscribed(self) -> Mapping[str, Subscription]:
        """The regions of the tenancy, by their names."""


def next_page(query: Mapping[str, str], path: str = "") -> Callable[[Answer], tuple[str, Mapping[str, str]] | None]:
    """How OCI continues a list: the same request with the token of a header."""

    def following(answer: Answer) -> tuple[str, Mapping[str, str]] | None:
        token = answer.headers.get("opc-next-page")
        return (path or answer.call.path, {**query, "page": token}) if token else None

    return following


class Oci(Cloud):
    """One compartment in one region."""

    def __init__(self, clients: Clients, scope: Scope) -> None:
        self.scope = scope
        self.region = scope.place
        self.compartment = scope.realm
        self._clients = clients

    @property
    def vnics(self) -> dict[str, Vnic]:
        """The primary network interfaces known so far, by the ids of their instances."""
        return self._clients.vnics

    def buckets(self, name: str = "") -> str:
        """Where buckets are."""
        path = f"/n/{quote(self._clients.namespace(self.region), safe='')}/b"
        return f"{path}/{quote(name, safe='')}" if name else path

    @property
    def namespace(self) -> str:
        """The tenancy's namespace of buckets."""
        return self._clients.namespace(self.region)

    @property
    def tenancy(self) -> str:
        """The OCID of the tenancy, where users and groups are."""
        return self._clients.tenancy()

    @property
    def region_key(self) -> str:
        """What policies call this region: three letters."""
        found = self._clients.subscribed().get(self.region)
        if found is None:
            raise Invalid(f"the tenancy is not subscribed to {self.region!r}: subscribe it, or declare another region")
        return found.key

    def list(self, service: str, path: str, **query: str) -> Iterator[Item]:
        """Everything of one collection in this compartment, a thousand a call. Raises rather than end early."""
        asked = {"compartmentId": self.compartment, "limit": str(LIMIT), **query}
        try:
            for page in self._client(service).pages(path, asked, next_page(asked)):
                items = page.body()
                if not isinstance(items, list):
                    raise Unreadable(f"the answer to {page.call} is no list: {page.content[:80]!r}")
                yield from items
        except NotFound as hidden:
            # The compartment, or the right to look into it: OCI does not say which.
            raise Denied(hidden.message, code=hidden.code, request_id=hidden.request_id) from hidden

    def whole(self, service: str, path: str) -> Sequence[Item]:
        """A list that OCI returns in one piece, of something inside something else; raises where that is not there."""
        items = self._client(service).read(path).body()
        if not isinstance(items, Sequence):
            raise Unreadable(f"the answer to {path} is no list")
        return items

    def find(self, service: str, path: str) -> tuple[Item, str] | None:
        """One resource and its etag; None where it is not there, or may not be seen: OCI says the same of both."""
        answer = self._client(service).find(path)
        return None if answer is None else (answer.item(), answer.headers.get("etag", ""))

    def create(self, service: str, path: str, body: Item, token: str = "") -> tuple[Item, str]:
        """Make something; the same token never makes a second one, within a day."""
        headers = {"opc-retry-token": token[:64]} if token else {}
        try:
            answer = self._client(service).write("POST", path, body, headers=headers)
        except Denied as refusal:
            if refusal.code not in HIDDEN:
                raise
            cause = f"{refusal.message}; or correct the OCIDs in the declaration: one may name what is not there"
            raise Denied(cause, code=refusal.code, request_id=refusal.request_id) from refusal
        return answer.item(), answer.headers.get("etag", "")

    def change(
        self, service: str, method: str, path: str, revision: str | None, body: Any = None, **query: str
    ) -> None:
        """Change or delete something as it was last read, and not otherwise."""
        if not revision:
            raise Unreadable(f"{path} was read without an etag: nothing is written without a precondition")
        self._client(service).write(method, path, body, query, {"if-match": revision})

    def drop(self, service: str, path: str) -> None:
        """Delete something that has no etag and that nobody can change; gone already is success."""
        try:
            self._client(service).write("DELETE", path)
        except Denied as refusal:
            if refusal.code not in HIDDEN:
                raise

    def _client(self, service: str) -> RestClient:
        return self._clients.client(service, self._home() if service == "identity" else self.region)

    def _home(self) -> str:
        """Where identities are written: OCI takes them in the tenancy's home region alone."""
        regions = self._clients.subscribed()
        return next((name for name, one in regions.items() if one.is_home), self.region)
