"""The session at Hetzner Cloud: the one file that knows the vendor's client, and the one door through which calls go.

The client is used for its transport, not for its models: they read on their own when an attribute is accessed, and
they drop request ids and limits. What is asked of the cloud, and why, does not belong here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from fractal_cloud.model.errors import Transient, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.call_context import user_agent
from fractal_cloud.offers.hetzner.allowance import Allowance
from fractal_cloud.offers.hetzner.credentials import Credentials, credentials
from fractal_cloud.offers.hetzner.errors import HetznerDialect
from fractal_cloud.offers.offer import Cloud, Session
from fractal_cloud.offers.rest import (
    CONNECT_SECONDS,
    CONNECTIONS,
    READ_SECONDS,
    WRITE_SECONDS,
    Answer,
    Call,
    RestClient,
)

PAGE: Final = "50"  # the most that Hetzner gives
Item: TypeAlias = dict[str, Any]


class HetznerClient(RestClient):
    """Connections to one project through the vendor's client, shared by threads."""

    def __init__(self, found: Credentials) -> None:
        import hcloud
        from requests.adapters import HTTPAdapter

        self.base = found.endpoint
        self.dialect = HetznerDialect()
        self._allowance = Allowance()
        self._client: Any = hcloud.Client(found.token, api_endpoint=found.endpoint)
        inner = self._client._client  # noqa: SLF001
        # It would send a write again after a lost answer or a conflict, on a read that is no longer the last moment
        # (S16), and sleep for minutes over a limit. There is no public option for it; a test holds it to this.
        inner._retry_max_retries = 0  # noqa: SLF001
        inner._session.mount(found.endpoint, HTTPAdapter(pool_maxsize=CONNECTIONS))  # noqa: SLF001

    def close(self) -> None:
        """Nothing to do: connections end with the client."""

    def send(self, call: Call) -> Answer:
        """Send one request; whatever came is the answer. Raises ``Throttled`` where it would be refused anyway."""
        import hcloud
        import requests

        self._allowance.check()
        seen: list[Any] = []

        def sign(request: Any) -> Any:
            request.headers["User-Agent"] = user_agent()
            request.register_hook("response", lambda response, **_: seen.append(response))
            return request

        try:
            self._client.request(
                call.method,
                call.path,
                params=dict(call.query),
                json=call.body,
                auth=sign,
                timeout=(CONNECT_SECONDS, READ_SECONDS if call.is_read else WRITE_SECONDS),
                allow_redirects=False,
            )
        except requests.RequestException as error:
            return Answer(call, 0, {}, b"", str(error) or type(error).__name__)
        except hcloud.APIException:
            pass  # the answer itself says more: its status, its headers
        response = seen[-1]
        headers = {str(name).lower(): str(value) for name, value in response.headers.items()}
        self._allowance.note(headers)
        return Answer(call, response.status_code, headers, response.content)


class Hetzner(Cloud):
    """One project: lists, single resources, and the calls that change them."""

    def __init__(self, client: HetznerClient, scope: Scope) -> None:
        self.scope = scope
        self._client = client

    def items(self, plural: str, **query: str) -> Iterator[Item]:
        """Everything of a kind, fifty a call; raises rather than end early."""
        first = {**query, "page": "1", "per_page": PAGE, "sort": "id:asc"}
        for answer in self._client.pages(f"/{plural}", first, lambda page: _following(page, plural, first)):
            found = answer.item().get(plural)
            if not isinstance(found, list):
                raise Unreadable(f"the answer to {answer.call} has no list of {plural}")
            yield from found

    def find(self, plural: str, resource_id: str) -> Item | None:
        """One resource by its id; None where Hetzner says that it is not there."""
        answer = self._client.find(f"/{plural}/{resource_id}")
        return None if answer is None else _only(answer, plural)

    def create(self, plural: str, body: Mapping[str, Any]) -> Item:
        """Make a resource; returns it as Hetzner shows it at once."""
        return _only(self._client.write("POST", f"/{plural}", dict(body)), plural)

    def put(self, plural: str, resource_id: str, body: Mapping[str, Any]) -> None:
        """Set what a resource has beside its actions: its labels, say, all of them."""
        self._client.write("PUT", f"/{plural}/{resource_id}", dict(body))

    def act(self, plural: str, resource_id: str, action: str, body: Mapping[str, Any]) -> None:
        """Begin one action; the next observation shows its result."""
        self._client.write("POST", f"/{plural}/{resource_id}/actions/{action}", dict(body))

    def delete(self, plural: str, resource_id: str) -> None:
        """Delete a resource; raises ``NotFound`` where it is gone already."""
        self._client.write("DELETE", f"/{plural}/{resource_id}")


def _only(answer: Answer, plural: str) -> Item:
    """The resource in an answer, which stands beside its actions under its singular name."""
    singular = plural.removesuffix("s")
    found = answer.item().get(singular)
    if isinstance(found, dict):
        return found
    kind = Unreadable if answer.call.is_read else Transient
    raise kind(f"the answer to {answer.call} has no {singular}")


def _following(answer: Answer, plural: str, query: Mapping[str, str]) -> tuple[str, Mapping[str, str]] | None:
    meta = answer.item().get("meta")
    pagination = meta.get("pagination") if isinstance(meta, dict) else None
    if not isinstance(pagination, dict) or "next_page" not in pagination:
        raise Unreadable(f"the answer to {answer.call} does not say whether it is the last page")
    after = pagination["next_page"]
    return None if after is None else (f"/{plural}", {**query, "page": str(after)})


class HetznerSession(Session):
    """The one project that these credentials open. Safe to share by threads."""

    def __init__(self, found: Credentials | None = None) -> None:
        try:
            import hcloud  # noqa: F401
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name!r} is not installed: `pip install 'fractal-cloud[hetzner]'` brings it",
                name=missing.name,
            ) from missing
        found = found or credentials()
        self._realm = found.realm
        self._client = HetznerClient(found)

    def realms(self) -> Mapping[str, str]:
        """The project, once it has answered with this token."""
        self._client.read("/locations", {"per_page": "1"})
        return {"": self._realm}

    def realm_now(self, scope: Scope) -> str:
        """The project that this process was given a token for. Hetzner has no call that says which one a token opens.

        A token never opens another project than its own, and this one stays the same as long as the process lives. So
        without a name, the realm is certain; where people gave the project a name, it is as true as what they said.
        """
        del scope
        return self._realm

    def at(self, scope: Scope) -> Hetzner:
        """The project as one scope."""
        if scope.realm != self._realm:
            raise Unreadable(f"project {scope.realm!r} is not reached with these credentials")
        return Hetzner(self._client, scope)
