"""The session at Kubernetes: the one file that knows the official client, and the one door through which calls go.

It finds clusters (the contexts of a kubeconfig, or the one it runs in), reports which are really reached, and sends
single requests. What is asked of a cluster, and why, does not belong here.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode
from uuid import uuid4

from fractal_cloud.model.backoff import Backoff
from fractal_cloud.model.errors import CloudError, Denied, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.wire import Host
from fractal_cloud.offers.call_context import note_request, user_agent
from fractal_cloud.offers.kubernetes.calls import Call, Kubernetes
from fractal_cloud.offers.kubernetes.declared import Vendors, name_of
from fractal_cloud.offers.kubernetes.errors import Answer, error_of
from fractal_cloud.offers.kubernetes.kinds import NAMESPACE
from fractal_cloud.offers.kubernetes.objects import ObjectOffer
from fractal_cloud.offers.kubernetes.watching import Watch
from fractal_cloud.offers.offer import AnyOffer, Session

T = TypeVar("T")
READ_ATTEMPTS: Final = 3
CONNECTIONS: Final = 32
READ_SECONDS: Final = (5.0, 20.0)
WRITE_SECONDS: Final = (5.0, 60.0)
HOME: Final = "kube-system"
REALM_BACKOFF: Final = Backoff.in_seconds(0.1, 0.5, factor=5).waits(3)
BY_AUTHORITY: Final = "ca-"
"""How the realm of a cluster begins that is known by the fingerprint of its authority."""
NAMELESS: Final = (
    f"allow it to get the namespace {HOME!r}, by whose uid a cluster is known, or give its kubeconfig the cluster's "
    "own certificate authority"
)
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
CONTEXTS: Final = "FRACTAL_KUBERNETES_CONTEXTS"
CLUSTER: Final = "FRACTAL_KUBERNETES_CLUSTER"
WATCH: Final = "FRACTAL_KUBERNETES_WATCH"
_SERVICE_HOST: Final = "KUBERNETES_SERVICE_HOST"


class Lines:
    """An answer that is read line by line, as it comes."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[str]:
        """The lines; raises ``Unreadable`` where it breaks off."""
        from urllib3.exceptions import HTTPError

        try:
            for line in self._answer:
                yield line.decode("utf-8", "replace")
        except (HTTPError, OSError, ValueError, AttributeError) as error:  # closing it while it is read raises any
            raise Unreadable(_cause(error)) from error

    def close(self) -> None:
        """End it: who reads it in another thread is woken."""
        with suppress(Exception):
            self._answer.shutdown()
        with suppress(Exception):
            self._answer.close()


@dataclass(slots=True)
class Cluster:
    """One API server, as one context reaches it. ``context``: what a person would call it.

    ``authority``: the fingerprint of the certificate authority that every answer of it is checked against; empty where
    there is none of its own.
    """

    context: str
    authority: str
    reading: Any
    writing: Any

    def send(self, call: Call) -> Answer:
        """Send one request; raises ``Denied`` where there are no credentials, else whatever came is the answer."""
        from kubernetes.config.config_exception import ConfigException
        from urllib3.exceptions import HTTPError

        client = self.reading if call.is_read else self.writing
        # The server takes this id over into its audit log: so it is known even where the answer is lost.
        request_id = "" if call.is_read else str(uuid4())
        note_request(request_id)
        try:
            request = _request(client, call, request_id)
            response = client.call_api(*request, _request_timeout=call.seconds or _seconds(call))
            text = response.read().decode("utf-8", "replace")
        except ConfigException as error:
            raise Denied(f"{error} ({call}): give the agent credentials for {self.context!r}") from error
        except (HTTPError, OSError) as error:
            raise error_of(Answer(0, _cause(error), request_id, str(call), call.is_read)) from error
        return Answer(response.status, text, request_id, str(call), call.is_read)

    def open(self, call: Call) -> Lines:
        """Send a request whose answer is read line by line."""
        from urllib3.exceptions import HTTPError

        try:
            # by the client that never tries again: whoever watches does that, and waits longer each time
            answer = self.writing.call_api(*_request(self.writing, call), _request_timeout=call.seconds).response
        except (HTTPError, OSError) as error:
            raise Unreadable(_cause(error)) from error
        if answer.status != 200:
            answer.close()
            raise Unreadable(f"{call} answers {answer.status}", code=str(answer.status))
        return Lines(answer)

    def realm(self) -> str:
        """What the cluster says it is: the uid of its namespace ``kube-system``, else the fingerprint of its authority.

        The authority counts only after several refusals: one in passing must not make another cluster of it. Its
        address never stands for a cluster, because another one may get it.
        """
        for seconds in (*REALM_BACKOFF, None):
            try:
                return _uid_of(self)
            except Denied as error:
                if seconds is not None:
                    time.sleep(seconds)
                elif self.authority:
                    return self.authority
                else:
                    raise Denied(f"{error.message}; {NAMELESS}") from error
        raise AssertionError("the last attempt always returns or raises")

    def realm_now(self, realm: str) -> str:
        """Which cluster answers now, in one call; in none where its authority says so: every connection proves that."""
        return self.authority if realm.startswith(BY_AUTHORITY) else _uid_of(self)


@dataclass(slots=True)
class _Entrance:
    """A way into a declared cluster, and whether it was asked into which one."""

    cluster: Cluster
    is_sure: bool = False


class DeclaredCluster:
    """A cluster that is declared as a component: entered anew where it lets nobody in, and asked again who it is.

    A new way into it may lead into another cluster, in which nothing of ours is, or everything of somebody else's: it
    is asked before the first request that goes there (S0). ``identity``: which one it must be, once that is known.
    """

    def __init__(self, context: str, enter: Callable[[], Cluster]) -> None:
        self.context = context
        self.identity = ""
        self._enter = enter
        self._lock = threading.Lock()
        self._entrance: _Entrance | None = None

    def send(self, call: Call) -> Answer:
        """Send one request, into the cluster that was meant."""
        return self._used(lambda cluster: cluster.send(call))

    def open(self, call: Call) -> Lines:
        """Send a request whose answer is read line by line."""
        return self._used(lambda cluster: cluster.open(call))

    def realm(self) -> str:
        """What the cluster says it is. Its address stands for nothing here: a cluster made anew may get it again."""
        return self._used(_uid_of, is_asking=True)

    def realm_now(self, realm: str) -> str:
        """Which cluster answers now, in one call, or in a few where it has to be entered first."""
        del realm
        return self.realm()

    def _used(self, use: Callable[[Cluster], T], *, is_asking: bool = False) -> T:
        with self._lock:
            entrance = self._entrance = self._entrance or _Entrance(self._enter())
            self.context = entrance.cluster.context
        try:
            if self.identity and not is_asking and not entrance.is_sure:
                self._make_sure(entrance)
            answer = use(entrance.cluster)
        except CloudError:
            self._leave(entrance)  # a new certificate, a new address: what let us in may have changed
            raise
        if isinstance(answer, Answer) and answer.status == 401:
            self._leave(entrance)
        entrance.is_sure = entrance.is_sure or (is_asking and answer == self.identity)
        return answer

    def _make_sure(self, entrance: _Entrance) -> None:
        here = _uid_of(entrance.cluster)
        if here != self.identity:
            raise Unreadable(f"another cluster answers for {self.context!r}: {here!r}, and not {self.identity!r}")
        entrance.is_sure = True

    def _leave(self, entrance: _Entrance) -> None:
        with self._lock:
            if self._entrance is entrance:
                self._entrance = None


def _uid_of(cluster: Cluster) -> str:
    """The uid of a cluster's namespace ``kube-system``, which no other cluster has; raises where it does not say."""
    home = Kubernetes(cluster, Scope("kubernetes", "", HOME)).find(NAMESPACE, HOME)
    uid = home.get("metadata", {}).get("uid") if home is not None else None
    if not isinstance(uid, str) or not uid:
        raise Unreadable(f"it has no namespace {HOME!r} with a uid, by which it would be known")
    return uid


def _fingerprint(settings: Any) -> str:
    """The fingerprint of the authority that a cluster's answers are checked against; empty where nothing is checked."""
    import ssl

    is_checked = settings.verify_ssl and settings.ssl_ca_cert and str(settings.host).startswith("https:")
    if not is_checked:
        return ""
    text = Path(settings.ssl_ca_cert).read_text(encoding="ascii", errors="replace")
    found = sorted(ssl.PEM_cert_to_DER_cert(one) for one in _CERTIFICATE.findall(text))
    return f"{BY_AUTHORITY}{hashlib.sha256(b''.join(found)).hexdigest()}" if found else ""


AnyCluster = Cluster | DeclaredCluster


def _seconds(call: Call) -> tuple[float, float]:
    return READ_SECONDS if call.is_read else WRITE_SECONDS


def _request(client: Any, call: Call, request_id: str = "") -> Any:
    headers = {"Accept": call.accept, "User-Agent": user_agent()}
    if request_id:
        headers["Audit-ID"] = request_id
    if call.body is not None:
        headers["Content-Type"] = call.content_type
    path = call.path + (f"?{urlencode(call.query)}" if call.query else "")
    return client.param_serialize(
        call.method, path, header_params=headers, body=call.body, auth_settings=["BearerToken"]
    )


def _cause(error: BaseException) -> str:
    reason = getattr(error, "reason", None)
    return str(reason if isinstance(reason, Exception) else error) or type(error).__name__


class _NoneNamed(Denied):
    """There is no kubeconfig: that is no error where all clusters are declared."""


class KubernetesSession(Session):
    """All clusters these credentials name. Safe to share by threads."""

    def __init__(self) -> None:
        try:
            import kubernetes
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name!r} is not installed: `pip install 'fractal-cloud[kubernetes]'` brings it",
                name=missing.name,
            ) from missing
        self._sdk: Any = kubernetes
        self._lock = threading.Lock()
        self._by_realm: dict[str, AnyCluster] = {}
        self._missing: dict[str, str] = {}
        self._hosts: dict[str, DeclaredCluster] = {}
        self._vendors = Vendors()

    def realms(self) -> Mapping[str, str]:
        """The clusters that answer, by their contexts; the empty name is the current one.

        A cluster that does not answer keeps nobody waiting for the others: see ``missing``. None at all is no error:
        clusters may be declared later.
        """
        missing: dict[str, str] = {}
        try:
            named, current = self._named()
        except _NoneNamed as error:
            named, current = {}, ""
            missing[""] = error.message
        with self._lock:
            hosts = dict(self._hosts)
        asked: dict[str, Callable[[], AnyCluster]] = {**named, **{name: _itself(host) for name, host in hosts.items()}}
        with ThreadPoolExecutor(min(len(asked), CONNECTIONS) or 1, thread_name_prefix="clusters") as pool:
            results = dict(zip(asked, pool.map(_reached, asked.values()), strict=True))
        found: dict[str, str] = {}
        for name, result in results.items():
            if isinstance(result, str):
                missing[name] = result
                continue
            cluster, realm = result
            found[name] = realm
            with self._lock:
                self._keep(cluster, realm, is_meant=name == current)
        self._missing = missing
        return {**found, "": found[current]} if current in found else found

    def _keep(self, cluster: AnyCluster, realm: str, *, is_meant: bool) -> None:
        """Which way leads to a cluster: by the current context, else by any, else by what was declared last."""
        known = self._by_realm.get(realm)
        if isinstance(cluster, DeclaredCluster):
            cluster.identity = realm
        if known is None or is_meant or isinstance(known, DeclaredCluster):
            self._by_realm[realm] = cluster

    @property
    def accepts_hosts(self) -> bool:
        """Clusters may be declared."""
        return True

    def set_hosts(self, hosts: Sequence[Host]) -> None:
        """Reach these clusters, too; ways to those that are no longer declared are given up."""
        with self._lock:
            self._hosts = {host.name: self._hosts.get(host.name) or self._declared(host) for host in hosts}
            kept = set(map(id, self._hosts.values()))
            self._by_realm = {
                realm: cluster
                for realm, cluster in self._by_realm.items()
                if not isinstance(cluster, DeclaredCluster) or id(cluster) in kept
            }

    def _declared(self, host: Host) -> DeclaredCluster:
        def enter() -> Cluster:
            way = self._vendors.access(host)
            settings = self._sdk.client.Configuration()
            self._sdk.config.load_kube_config_from_dict(
                way.kubeconfig(), client_configuration=settings, persist_config=False
            )
            if way.token is not None:
                settings.api_key["BearerToken"] = ""
                settings.refresh_api_key_hook = partial(_renew, way.token)
            return self._cluster(way.context, settings)

        return DeclaredCluster(name_of(host), enter)

    def missing(self) -> Mapping[str, str]:
        """The contexts that did not answer when they were last asked, each with the reason."""
        return self._missing

    def at(self, scope: Scope) -> Kubernetes:
        """One namespace of one cluster."""
        with self._lock:
            cluster = self._by_realm.get(scope.realm)
        if cluster is None:
            raise Unreadable(f"cluster {scope.realm!r} is not reached with these credentials")
        return Kubernetes(cluster, scope)

    def realm_now(self, scope: Scope) -> str:
        """The cluster that answers now where this one was reached: the uid of its ``kube-system`` (S26)."""
        with self._lock:
            cluster = self._by_realm.get(scope.realm)
        if cluster is None:
            raise Unreadable(f"cluster {scope.realm!r} is not reached with these credentials")
        return cluster.realm_now(scope.realm)

    def watch(self, scope: Scope, offers: Iterable[AnyOffer], wake: Callable[[], None]) -> Callable[[], None] | None:
        """Call ``wake`` when something of ours changes in a namespace; None where that is switched off."""
        if os.environ.get(WATCH, "1").lower() in ("0", "false", "no", "off"):
            return None
        kinds = {offer.object_kind for offer in offers if isinstance(offer, ObjectOffer)}
        return Watch(self.at(scope), kinds, wake).stop

    def enter(self, name: str) -> Cluster:
        """The cluster of that name, whether it answers or not; without a name, the one that is meant then."""
        from kubernetes.config.config_exception import ConfigException

        named, current = self._named()
        connect = named.get(name or current)
        if connect is None:
            raise Denied(f"the kubeconfig has no context {name!r}: correct it")
        try:
            return connect()
        except (ConfigException, OSError) as error:
            raise Denied(f"{error}: give the agent credentials for {name or current!r}") from error

    # --- which clusters there are

    def _named(self) -> tuple[dict[str, Callable[[], Cluster]], str]:
        """How to connect to each cluster, by its name, and which of them is meant where none is named.

        An agent that runs in a cluster serves that one, unless it was given a kubeconfig. A setting gives it a name, so
        that agents in several clusters can serve one environment.
        """
        if os.environ.get("KUBECONFIG") or not os.environ.get(_SERVICE_HOST):
            return self._contexts()
        name = os.environ.get(CLUSTER, "")
        return {name: lambda: self._inside(name)}, ""

    def _inside(self, name: str) -> Cluster:
        settings = self._sdk.client.Configuration()
        self._sdk.config.load_incluster_config(client_configuration=settings)
        return self._cluster(name, settings)

    def _contexts(self) -> tuple[dict[str, Callable[[], Cluster]], str]:
        from kubernetes.config.config_exception import ConfigException

        paths = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
        try:
            contexts, current = self._sdk.config.list_kube_config_contexts(config_file=paths)
        except (ConfigException, OSError) as error:
            raise _NoneNamed(f"no cluster is named: {error}; set KUBECONFIG, or run the agent in a cluster") from error
        names = [str(context["name"]) for context in contexts]
        wanted = [name.strip() for name in os.environ.get(CONTEXTS, "").split(",") if name.strip()] or names
        unknown = sorted(set(wanted) - set(names))
        if unknown:
            raise Denied(f"{CONTEXTS} names {', '.join(unknown)}, which the kubeconfig does not have: correct it")
        meant = str((current or {}).get("name", "")) if len(wanted) > 1 else wanted[0]
        return {name: self._context(paths, name) for name in wanted}, meant

    def _context(self, paths: str, name: str) -> Callable[[], Cluster]:
        def connect() -> Cluster:
            settings = self._sdk.client.Configuration()
            self._sdk.config.load_kube_config(config_file=paths, context=name, client_configuration=settings)
            return self._cluster(name, settings)

        return connect

    def _cluster(self, context: str, settings: Any) -> Cluster:
        from urllib3.util.retry import Retry

        settings.connection_pool_maxsize = CONNECTIONS
        # 429 is not among them: the agent itself backs off, per type.
        reading = Retry(
            total=READ_ATTEMPTS - 1,
            redirect=0,  # an answer never says where credentials go (A6)
            backoff_factor=0.2,
            status_forcelist=(500, 502, 503, 504),
            allowed_methods={"GET"},
            respect_retry_after_header=False,
            raise_on_status=False,
        )
        # Writes are sent once. A second try after a lost answer would rest on a read that is no longer the last moment
        # (S16); and what the first did is not known. The agent reads it and decides anew.
        writing = Retry(total=0, redirect=0, respect_retry_after_header=False, raise_on_status=False)
        clients = (self._client(settings, reading), self._client(settings, writing))
        return Cluster(context, _fingerprint(settings), *clients)

    def _client(self, settings: Any, retries: Any) -> Any:
        from copy import copy

        own = copy(settings)
        own.retries = retries
        client = self._sdk.client.ApiClient(own)
        client.default_headers.pop("User-Agent", None)  # it would replace the one each call is signed with
        return client


def _renew(token: Callable[[], str], settings: Any) -> None:
    settings.api_key["BearerToken"] = f"Bearer {token()}"


def _itself(cluster: AnyCluster) -> Callable[[], AnyCluster]:
    return lambda: cluster


def _reached(connect: Callable[[], AnyCluster]) -> tuple[AnyCluster, str] | str:
    from kubernetes.config.config_exception import ConfigException

    try:
        cluster = connect()
        return cluster, cluster.realm()
    except CloudError as error:
        return error.message
    except (ConfigException, OSError, ValueError) as error:
        return " ".join(str(error).split())
