"""The session at AWS: the one file that knows boto3, and the one door through which every call goes.

What is asked of AWS, and why, does not belong here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit

from fractal_cloud.model.catalog import GLOBAL_PLACE
from fractal_cloud.model.errors import CloudError, Denied, Invalid, NotFound, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.offers.aws.accounts import AccountCredentials, AwsRealm, Pace, acting_in
from fractal_cloud.offers.aws.answers import Expected, check_read, check_write, expecting, leave_out_known
from fractal_cloud.offers.aws.descriptors import Resource, method
from fractal_cloud.offers.aws.errors import Answer, error_of
from fractal_cloud.offers.aws.models import Models
from fractal_cloud.offers.aws.services import services
from fractal_cloud.offers.call_context import note_request, user_agent
from fractal_cloud.offers.items import parse_each, text_at
from fractal_cloud.offers.offer import Cloud, Query, Session
from fractal_cloud.offers.seen_pages import SeenPages

M = TypeVar("M")
HOME_REGION: Final = "us-east-1"
READ_ATTEMPTS: Final = 3
CONNECTIONS: Final = 32
ASKED_AT_ONCE: Final = 16
"""How many accounts of a file of realms are asked at once who they are."""

_READS: Final = ("describe_", "get_", "list_", "head_", "lookup_")


def is_read(operation: str) -> bool:
    """Whether an operation, in the SDK's spelling, only reads."""
    return operation.startswith(_READS)


class AwsSession(Session):
    """AWS with the credentials the SDK finds by itself; ``AWS_ENDPOINT_URL`` is honoured. Safe to share by threads.

    ``entries``: the accounts of a file of realms, which are reached instead of the credentials' own.
    """

    def __init__(self, entries: Sequence[AwsRealm] = ()) -> None:
        try:
            import boto3
            import botocore.session
            from botocore.config import Config
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name!r} is not installed: `pip install 'fractal-cloud[aws]'` brings it", name=missing.name
            ) from missing
        core = botocore.session.get_session()
        self._session = boto3.Session(botocore_session=core)
        core.get_component("data_loader").file_loader = Models()
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str, bool], Any] = {}
        self._partitions: dict[str, str] = {}
        has_endpoint = bool(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"))
        common = Config(
            connect_timeout=5,
            max_pool_connections=CONNECTIONS,
            tcp_keepalive=True,
            user_agent=_user_agent(core),
            s3={"addressing_style": "path"} if has_endpoint else None,
        )
        # Few attempts, because the agent backs off by itself, per service: 3 tries of at most 25 s, and 3 s between.
        reading = Config(read_timeout=20, retries={"mode": "standard", "total_max_attempts": READ_ATTEMPTS})
        # Writes are sent once. CreateVpc and CreateSubnet know neither token nor unique name, so a second try after a
        # lost answer would make a second one (S17); and any write sent again after a pause would rest on a guard's
        # read that is no longer the last moment (S16). The agent reads again and decides again.
        writing = Config(read_timeout=60, retries={"mode": "standard", "total_max_attempts": 1})
        self._configs = {True: common.merge(reading), False: common.merge(writing)}
        self._entries = {entry.expected: entry for entry in entries}
        self._paces = {one.expected: Pace(one.calls_per_second) for one in entries if one.calls_per_second is not None}
        self._missing: dict[str, str] = {}
        self._memories: dict[tuple[str, str, type[Any]], Any] = {}
        if entries:
            self._add_accounts(core, entries)

    def _add_accounts(self, core: Any, entries: Sequence[AwsRealm]) -> None:
        """Have every call signed for the account that its thread is acting in."""
        import botocore.session
        from botocore.credentials import DeferredRefreshableCredentials

        own = botocore.session.get_session().get_credentials()
        signing = AccountCredentials(own)
        for entry in entries:
            source = own
            if entry.role:
                refresh = partial(self._assume, entry)
                source = DeferredRefreshableCredentials(refresh_using=refresh, method="assume-role")
            elif entry.profile:
                source = botocore.session.Session(profile=entry.profile).get_credentials()
            signing.add(entry.expected, source)
        core.register_component("credential_provider", signing)

    def _assume(self, entry: AwsRealm) -> dict[str, str]:
        """Fetch credentials of a role with the agent's own; as the SDK keeps and renews them."""
        more = {"ExternalId": entry.external_id} if entry.external_id else {}
        with acting_in(""):
            answer = self._call(
                *(self.home_region, "sts", "assume_role"),
                reads=True,
                RoleArn=entry.role,
                RoleSessionName="fractal-cloud-agent",
                **more,
            )
        found = answer["Credentials"]
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }

    @property
    def home_region(self) -> str:
        """The region for what has none: the environment's own, else the partition's first."""
        return self._session.region_name or HOME_REGION

    def realms(self) -> Mapping[str, str]:
        """The id of the one account these credentials really reach, or of all that the file of realms names."""
        if not self._entries:
            return {"": self._account("")}
        with ThreadPoolExecutor(min(len(self._entries), ASKED_AT_ONCE), thread_name_prefix="accounts") as pool:
            answers = list(pool.map(self._reached, self._entries.values()))
        found: dict[str, str] = {}
        self._missing = {}
        for entry, why in zip(self._entries.values(), answers, strict=True):
            names = {entry.expected, entry.name or entry.expected, *([""] if entry.default else [])}
            if why:
                self._missing[entry.name or entry.expected] = why
            else:
                found.update(dict.fromkeys(names, entry.expected))
        if not found:
            raise Unreadable("; ".join(f"{name!r}: {why}" for name, why in self._missing.items()))
        return found

    def missing(self) -> Mapping[str, str]:
        """The accounts that did not answer when they were last asked, each with the reason."""
        return self._missing

    def _reached(self, entry: AwsRealm) -> str:
        """Why an account is not reached; empty where it is, and is the one that is meant."""
        try:
            account = self._account(entry.expected)
        except CloudError as error:
            return error.message
        if account == entry.expected:
            return ""
        return f"its credentials reach account {account!r}, not {entry.expected!r}: correct the file of realms"

    def realm_now(self, scope: Scope) -> str:
        """The account that the credentials open now: those behind a profile or a role may have been replaced."""
        return self._account(scope.realm if self._entries else "")

    def _account(self, acting: str) -> str:
        with acting_in(acting):
            account = self.call(self.home_region, "sts", "get_caller_identity").get("Account")
        if not account:
            raise Unreadable("sts GetCallerIdentity does not say which account this is")
        return str(account)

    def acting_in(self, account: str) -> AbstractContextManager[None]:
        """Let the calls of this thread be those of an account, at the pace that is set for it."""
        if not self._entries:
            return nullcontext()
        if account not in self._entries:
            raise Unreadable(f"account {account!r} is not in the agent's file of realms")
        if account in self._paces:
            self._paces[account].wait(account)
        return acting_in(account)

    def at(self, scope: Scope) -> Aws:
        """The cloud of one account and region."""
        return Aws(self, scope, self.home_region if scope.place == GLOBAL_PLACE else scope.place)

    def memory(self, account: str, region: str, kind: type[M]) -> M:
        """What offers remember of an account and region for as long as this session lives, made when first asked for.

        It spares calls, and nothing is decided from it: another process does the same without it.
        """
        key = account, region, kind
        with self._lock:
            if key not in self._memories:
                self._memories[key] = kind()
            found: M = self._memories[key]
        return found

    def partition(self, region: str) -> str:
        """The partition of a region as it stands in ARNs."""
        from botocore.exceptions import BotoCoreError

        known = self._partitions.get(region)
        if known is None:
            try:
                with self._lock:
                    known = str(self._session.get_partition_for_region(region))
            except BotoCoreError:
                known = "aws"
            self._partitions[region] = known
        return known

    def call(self, region: str, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """Make one call; whatever goes wrong is raised as one of ``fractal_cloud.model.errors``."""
        return self._call(region, service, operation, reads=is_read(operation), **parameters)

    def _call(self, region: str, service: str, operation: str, /, *, reads: bool, **parameters: Any) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            answer: dict[str, Any] = getattr(self._client(service, region, reads=reads), operation)(**parameters)
        except ClientError as error:
            refused = _refusal(error, reads=reads)
            if not reads:
                note_request(refused.request_id)
            raise refused from error
        except (BotoCoreError, ResponseParserError) as error:
            raise _failure(error, operation, reads=reads) from error
        if not reads:
            note_request(answer.get("ResponseMetadata", {}).get("RequestId", ""))
        return answer

    def _client(self, service: str, region: str, *, reads: bool) -> Any:
        key = (service, region, reads)
        client = self._clients.get(key)
        if client is None:
            with self._lock:  # a boto3 session is not safe to share; the clients it makes are
                client = self._clients.get(key) or self._new_client(service, region, reads=reads)
                self._clients[key] = client
        return client

    def _new_client(self, service: str, region: str, *, reads: bool) -> Any:
        make: Any = self._session.client
        client = make(service, region_name=region, config=self._configs[reads])
        # last of all: the SDK writes its own user agent anew when a request is made, and does not sign it
        client.meta.events.register_last("request-created", _sign_with_purpose)
        client.meta.events.register("before-call", _encode_once)
        client.meta.events.register_first("before-parse", check_read if reads else check_write)
        if reads:
            client.meta.events.register("before-parse", leave_out_known)
        if service == "s3control":
            client.meta.events.register("before-sign.s3-control", _drop_account_from_address)
        return client


class Aws(Cloud):
    """AWS in one account and region."""

    def __init__(self, session: AwsSession, scope: Scope, region: str) -> None:
        self.scope = scope
        self.region = region
        self.account = scope.realm
        self._session = session
        self.partition = session.partition(region)

    def elsewhere(self, region: str) -> Aws:
        """The same account in another region."""
        return self if region == self.region else Aws(self._session, self.scope, region)

    def memory(self, kind: type[M]) -> M:
        """What offers remember of this account and region (see ``AwsSession.memory``)."""
        return self._session.memory(self.account, self.region, kind)

    def arn(self, resource: Resource, resource_id: str) -> str:
        """The ARN of a resource of this account and region, for types whose answers leave it out."""
        names = {"partition": self.partition, "region": self.region, "account": self.account}
        service = resource.service
        return service.arn.format(service=service.name, **names) + resource.arn.format(id=resource_id)

    def call(self, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """Make one call. Raises errors of the closed set only; a failed read is never ``Invalid`` or ``Transient``."""
        with self._session.acting_in(self.account):
            return self._session.call(self.region, service, operation, **parameters)

    def find(self, service: str, operation: str, /, **parameters: Any) -> dict[str, Any] | None:
        """Make one call about one thing; None where AWS says that it is not there, as for a second delete."""
        try:
            return self.call(service, operation, **parameters)
        except NotFound:
            return None

    def pages(self, service: str, operation: str, key: str, /, **parameters: Any) -> Iterator[list[Any]]:
        """The pages of a list, each as the list under ``key``. Raises rather than end early."""
        for answer, _ in self._answers(service, operation, key, SeenPages(), parameters):
            yield answer[key]

    def sightings(
        self,
        query: Query,
        resource: Resource,
        read: Callable[[dict[str, Any]], Iterable[Sighting]],
        /,
        **parameters: Any,
    ) -> Iterator[Sighting | UnreadItem]:
        """Everything of a kind that its listing shows, in the largest pages; ``read`` parses one answer.

        Raises rather than end early. A page that lists the same as the last time is detected instead: ``read`` must
        depend on nothing but the answer and this cloud.
        """
        service, listing = resource.service, resource.listing
        has_size = bool(service.paging.limit) and not listing.is_by_name
        size = {service.paging.limit: service.paging.largest} if has_size else {}
        pages = self._answers(
            service.name, method(listing.operation), listing.key, query.seen_pages, {**size, **parameters}
        )
        for answer, print_of_page in pages:
            yield from query.seen_pages.sightings(print_of_page, partial(_read_page, read, answer, resource))

    def _answers(
        self, service: str, operation: str, key: str, seen_pages: SeenPages, parameters: Mapping[str, Any]
    ) -> Iterator[tuple[dict[str, Any], bytes | None]]:
        """The answers of a list to its end, each with its fingerprint; of one that is known, only the rest is there."""
        asked, answered = services()[service].cursor
        about = f"{self.region} {service} {operation} {key}"
        cursor = ""
        while True:
            expected = Expected(seen_pages, about, key, answered)
            with expecting(expected):
                answer = self.call(service, operation, **parameters, **({asked: cursor} if cursor else {}))
            is_known = expected.print_of_page is not None and seen_pages.has_page(expected.print_of_page)
            if not is_known and not isinstance(answer.get(key), list):
                raise Unreadable(f"the answer to {operation} has no list {key!r}: nothing is decided from it")
            yield answer, expected.print_of_page
            following = answer.get(answered) or ""
            if not following:
                return
            if following == cursor:
                raise Unreadable(
                    f"{operation} answers the same page again and again: the list cannot be read to its end"
                )
            cursor = following


def _read_page(
    read: Callable[[dict[str, Any]], Iterable[Sighting]], answer: dict[str, Any], resource: Resource
) -> Iterable[Sighting | UnreadItem]:
    """What a page shows; where it cannot be parsed as a whole, item by item (S24)."""
    try:
        return list(read(answer))
    except CloudError:
        raise
    except Exception:  # noqa: BLE001  # which item it is shows below
        key, _, inner = resource.listing.path.partition(".")
        items = answer[key]
        if inner:  # machines are listed in groups that mean nothing here
            items = [{**group, inner: [one]} for group in items for one in group[inner]]
        return list(parse_each(items, lambda item: read({**answer, key: [item]}), partial(_shown, resource)))


def _shown(resource: Resource, item: Any) -> tuple[str | None, str | None]:
    """The id and the name an item shows, as its sighting would have them (S24)."""
    inner = resource.listing.path.partition(".")[2]
    if inner:
        [item] = item[inner]
    resource_id = text_at(item, resource.listing.id)
    if resource.name_key:
        return resource_id, text_at(item, resource.name_key)
    tags = item.get("Tags")
    names = [tag["Value"] for tag in tags if tag["Key"] == "Name"] if isinstance(tags, list) else [None]
    return resource_id, (str(names[0]) if names[0] is not None else None) if names else ""


def _refusal(error: Any, *, reads: bool) -> CloudError:
    answered = error.response.get("Error", {})
    about = error.response.get("ResponseMetadata", {})
    return error_of(
        Answer(
            message=str(answered.get("Message") or ""),
            code=str(answered.get("Code") or ""),
            request_id=str(about.get("RequestId") or answered.get("RequestId") or ""),
            operation=str(error.operation_name),
            status=int(about.get("HTTPStatusCode") or 0),
            is_read=reads,
        )
    )


def _failure(error: Exception, operation: str, *, reads: bool) -> CloudError:
    """What never got an answer from AWS, or none that can be understood."""
    from botocore import exceptions as sdk

    cause = " ".join(str(error).split()).rstrip(". ")
    code = type(error).__name__
    credentials = (
        sdk.NoCredentialsError,
        sdk.PartialCredentialsError,
        sdk.CredentialRetrievalError,
        sdk.NoAuthTokenError,
        sdk.SSOError,
        sdk.TokenRetrievalError,
    )
    if isinstance(error, credentials):
        return Denied(f"{cause} ({code}, {operation}): give the agent credentials the AWS SDK can find", code=code)
    never_sent = (sdk.ParamValidationError, sdk.NoRegionError, sdk.InvalidRegionError, sdk.UnknownEndpointError)
    if isinstance(error, never_sent) and not reads:
        return Invalid(f"{cause} ({code}, {operation}): correct the declaration and deploy again", code=code)
    return error_of(Answer(cause, code, "", operation, 0, is_read=reads))


def _user_agent(core: Any) -> str:
    """The SDK's own user agent, said once: left alone, it is put together anew, twice for every call."""
    application = core.get_config_variable("user_agent_appid")
    said = str(core.user_agent()).removesuffix(core.user_agent_extra).strip()  # the SDK adds its own name once more
    return f"{said} app/{application}" if application else said


def _encode_once(params: dict[str, Any], **_: Any) -> None:
    """Write a form out before it is signed: left alone, the SDK does so twice, to sign it and to send it."""
    if isinstance(params["body"], dict):
        params["body"] = urlencode(params["body"], doseq=True).encode()


def _sign_with_purpose(request: Any, **_: Any) -> None:
    agent = request.headers.get("User-Agent", "")
    text = agent.decode("utf-8", "replace") if isinstance(agent, bytes) else agent
    del request.headers["User-Agent"]
    request.headers["User-Agent"] = f"{text} {user_agent()}".strip()


def _drop_account_from_address(request: Any, **_: Any) -> None:
    """Undo the SDK's ``<account>.`` before a host that is an address or the loopback: no name server knows those."""
    parts = urlsplit(request.url)
    account, _dot, rest = parts.netloc.partition(".")
    if account.isdigit() and _is_local(rest):
        request.url = urlunsplit(parts._replace(netloc=rest))


def _is_local(netloc: str) -> bool:
    host = urlsplit(f"//{netloc}").hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
