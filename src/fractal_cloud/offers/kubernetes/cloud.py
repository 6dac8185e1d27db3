"""The session at Kubernetes: the one file that knows the official client, and the one door through which calls go.

It finds clusters (the contexts of a kubeconfig, or the one it runs in), tells which are really reached, and sends
single requests. What is asked of a cluster, and why, does not belong here.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

from fractal_cloud.model.errors import CloudError, Denied, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.acting import note_request, purpose
from fractal_cloud.offers.kubernetes.calls import Call, Kubernetes
from fractal_cloud.offers.kubernetes.faults import Answer, error_of
from fractal_cloud.offers.kubernetes.kinds import NAMESPACE
from fractal_cloud.offers.kubernetes.objects import ObjectOffer
from fractal_cloud.offers.kubernetes.watching import Watch
from fractal_cloud.offers.offer import AnyOffer, Session

READ_ATTEMPTS: Final = 3
CONNECTIONS: Final = 32
READ_SECONDS: Final = (5.0, 20.0)
WRITE_SECONDS: Final = (5.0, 60.0)
HOME: Final = "kube-system"
HOME_PAUSES: Final = (0.1, 0.5)
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
        except (HTTPError, OSError, ValueError, AttributeError) as error:  # closed under its hands, it says anything
            raise Unreadable(_cause(error)) from error

    def close(self) -> None:
        """End it: who reads it in another thread is woken."""
        with suppress(Exception):
            self._answer.shutdown()
        with suppress(Exception):
            self._answer.close()


@dataclass(slots=True)
class Cluster:
    """One API server, as one context reaches it. ``context``: what a person would call it."""

    context: str
    address: str
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
            raise Unreadable(f"{call} answers {answer.status}")
        return Lines(answer)

    def realm(self) -> str:
        """What the cluster says it is: the uid of its namespace ``kube-system``, else the address it is reached at.

        The address is taken only after several refusals: one in passing must not make another cluster of it.
        """
        home = None
        for pause in (*HOME_PAUSES, None):
            try:
                home = Kubernetes(self, Scope("kubernetes", "", HOME)).find(NAMESPACE, HOME)
                break
            except Denied:
                if pause is not None:
                    time.sleep(pause)
        if home is not None:
            return str(home["metadata"]["uid"])
        parts = urlsplit(self.address)
        return f"{parts.netloc}{parts.path}".strip("/").replace("/", "_")


def _seconds(call: Call) -> tuple[float, float]:
    return READ_SECONDS if call.is_read else WRITE_SECONDS


def _request(client: Any, call: Call, request_id: str = "") -> Any:
    headers = {"Accept": "application/json", "User-Agent": purpose()}
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
        self._by_realm: dict[str, Cluster] = {}
        self._missing: dict[str, str] = {}

    def realms(self) -> Mapping[str, str]:
        """The clusters that answer, by their contexts; the empty name is the current one.

        A cluster that does not answer keeps nobody waiting for the others: see ``missing``.
        """
        named, current = self._named()
        with ThreadPoolExecutor(min(len(named), CONNECTIONS), thread_name_prefix="clusters") as pool:
            results = dict(zip(named, pool.map(_reached, named.values()), strict=True))
        found: dict[str, str] = {}
        missing: dict[str, str] = {}
        for name, result in results.items():
            if isinstance(result, str):
                missing[name] = result
                continue
            cluster, realm = result
            found[name] = realm
            with self._lock:
                self._by_realm.setdefault(realm, cluster)
                if name == current:
                    self._by_realm[realm] = cluster
        self._missing = missing
        if not found:
            raise Unreadable("; ".join(f"{name!r}: {why}" for name, why in missing.items()))
        return {**found, "": found[current]} if current in found else found

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

    def watch(self, scope: Scope, offers: Iterable[AnyOffer], wake: Callable[[], None]) -> Callable[[], None] | None:
        """Call ``wake`` when something of ours changes in a namespace; None where that is switched off."""
        if os.environ.get(WATCH, "1").lower() in ("0", "false", "no", "off"):
            return None
        kinds = {offer.object_kind for offer in offers if isinstance(offer, ObjectOffer)}
        return Watch(self.at(scope), kinds, wake).stop

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
            raise Denied(f"no cluster is named: {error}; set KUBECONFIG, or run the agent in a cluster") from error
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
            backoff_factor=0.2,
            status_forcelist=(500, 502, 503, 504),
            allowed_methods={"GET"},
            respect_retry_after_header=False,
            raise_on_status=False,
        )
        # Writes are sent once. A second try after a lost answer would rest on a read that is no longer the last moment
        # (S16); and what the first did is not known. The agent looks again and comes again.
        writing = Retry(total=0, redirect=0, respect_retry_after_header=False, raise_on_status=False)
        return Cluster(context, settings.host, self._client(settings, reading), self._client(settings, writing))

    def _client(self, settings: Any, retries: Any) -> Any:
        from copy import copy

        own = copy(settings)
        own.retries = retries
        client = self._sdk.client.ApiClient(own)
        client.default_headers.pop("User-Agent", None)  # it would replace the one each call is signed with
        return client


def _reached(connect: Callable[[], Cluster]) -> tuple[Cluster, str] | str:
    from kubernetes.config.config_exception import ConfigException

    try:
        cluster = connect()
        return cluster, cluster.realm()
    except CloudError as error:
        return error.message
    except (ConfigException, OSError, ValueError) as error:
        return " ".join(str(error).split())
