"""The session at Google Cloud: who calls, and the doors through which every call goes.

Credentials are those Google's own tools find (application default credentials). What is asked of Google, and why, does
not belong here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.errors import CloudError, Denied, NotFound, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.gcp.errors import GoogleDialect, check_operation, check_whole
from fractal_cloud.offers.google_login import GoogleTokens
from fractal_cloud.offers.offer import Cloud, Session
from fractal_cloud.offers.rest import Answer, RestClient

PROJECTS: Final = "FRACTAL_GCP_PROJECTS"
UNIVERSE: Final = "GOOGLE_CLOUD_UNIVERSE_DOMAIN"
OVERRIDE: Final = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"

# Each API's host and the path its calls begin with, as gcloud's endpoint overrides spell them.
_SERVICES: Final[Mapping[str, tuple[str, str]]] = {
    "compute": ("compute", "/compute/v1"),
    "storage": ("storage", "/storage/v1"),
    "run": ("run", ""),
    "container": ("container", ""),
    "sql": ("sqladmin", ""),
    "cloudresourcemanager": ("cloudresourcemanager", ""),
    "iam": ("iam", ""),
}


# Google leaves an empty list out. These say even then what they are; the others answer with an empty object.
_SAYS_KIND: Final = frozenset({"compute", "storage", "sql"})


class GcpSession(Session):
    """The projects these credentials are meant for, or those listed. Safe to share by threads."""

    def __init__(self, projects: Sequence[str] = ()) -> None:
        self._listed = list(projects)
        try:
            self._login = GoogleTokens()
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name!r} is not installed: `pip install 'fractal-cloud[gcp]'` brings it", name=missing.name
            ) from missing
        self._lock = threading.Lock()
        self._clients: dict[str, RestClient] = {}
        self._missing: dict[str, str] = {}
        self.numbers: dict[str, str] = {}

    # --- what is reached

    def realms(self) -> Mapping[str, str]:
        """The ids of the projects that are meant, by the names declarations call them; the empty name is the default.

        A project's id is unique and never changes. What the credentials may not ask for is not reached.
        """
        self._login.token()  # without credentials nothing is reached, whatever is named
        named, meant = self._named()
        found: dict[str, str] = {}
        missing: dict[str, str] = {}
        for name in named:
            try:
                found[name] = self._project(name)
            except CloudError as error:
                missing[name] = error.message
        self._missing = missing
        if not found:
            raise Unreadable("; ".join(f"{name!r}: {why}" for name, why in missing.items()))
        return {**found, "": found[meant]} if meant in found else found

    def missing(self) -> Mapping[str, str]:
        """The projects that did not answer when they were last asked, each with the reason."""
        return self._missing

    def _named(self) -> tuple[list[str], str]:
        self._login.found()
        said = os.environ.get(PROJECTS, "").split(",")
        listed = self._listed or [name.strip() for name in said if name.strip()]
        meant = self._login.default_project or os.environ.get("CLOUDSDK_CORE_PROJECT", "")
        if not listed and not meant:
            raise Denied(f"no project is named: set GOOGLE_CLOUD_PROJECT, or {PROJECTS} for several")
        if not listed:
            return [meant], meant
        return listed, meant if meant in listed else listed[0]

    def realm_now(self, scope: Scope) -> str:
        """The project, as Google itself calls the one that every path of the scope names."""
        return self._project(scope.realm)

    def _project(self, name: str) -> str:
        found = self.client("cloudresourcemanager").read(f"/v3/projects/{name}").item()
        project = str(found["projectId"])
        self.numbers[project] = str(found.get("name", "")).rpartition("/")[2]
        return project

    def at(self, scope: Scope) -> Gcp:
        """One place of one project."""
        return Gcp(self, scope)

    def client(self, service: str) -> RestClient:
        """The connections to one API: at Google, in another universe, or where gcloud's own setting leads."""
        with self._lock:
            client = self._clients.get(service)
            if client is None:
                client = self._clients[service] = RestClient(_address(service, self._login.found()), self._dialect())
        return client

    def _dialect(self) -> GoogleDialect:
        paying = getattr(self._login.found(), "quota_project_id", None)
        return GoogleDialect(self._login.token, {"x-goog-user-project": paying} if paying else {})


class Gcp(Cloud):
    """One project of Google Cloud, and one place in it: a zone, a region, or `global`."""

    def __init__(self, session: GcpSession, scope: Scope) -> None:
        self.scope = scope
        self.project = scope.realm
        self.place = scope.place
        self._session = session

    def is_home(self, number: str) -> bool:
        """Whether a project's number is this project's, as far as it could be asked for."""
        return self._session.numbers.get(self.project, number) == number

    @property
    def s3_address(self) -> str:
        """Where Cloud Storage speaks as S3 does, for those who sign with an HMAC key."""
        return self._session.client("storage").base.removesuffix(_SERVICES["storage"][1])

    def find(self, service: str, path: str, **query: str) -> dict[str, Any] | None:
        """One thing; None where Google says that it is not there."""
        answer = self._session.client(service).find(path, query)
        return None if answer is None else answer.item()

    def pages(self, service: str, path: str, key: str, **query: str) -> Iterator[list[dict[str, Any]]]:
        """The pages of a list, each as the list under ``key``. Raises rather than end early, or leave a zone out."""

        def following(answer: Answer) -> tuple[str, Mapping[str, str]] | None:
            token = answer.item().get("nextPageToken")
            return (path, {**query, "pageToken": str(token)}) if token else None

        for answer in self._session.client(service).pages(path, query, following):
            page = answer.item()
            check_whole(page, str(answer.call))
            found = page.get(key)
            if found is None and service in _SAYS_KIND and "kind" not in page:
                raise Unreadable(f"the answer to {answer.call} is no list: {answer.content[:80]!r}")
            if found is not None and not isinstance(found, list):
                raise Unreadable(f"the answer to {answer.call} has no list of {key}: {answer.content[:80]!r}")
            yield found or []

    def write(
        self, service: str, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send one writing request; returns what Google says of it, mostly an operation that has begun."""
        answer = self._session.client(service).write(method, path, body, query)
        said = answer.body()
        operation: dict[str, Any] = said if isinstance(said, dict) else {}
        check_operation(operation, str(answer.call))
        return operation

    def remove(self, service: str, path: str, query: Mapping[str, str] | None = None) -> None:
        """Delete one thing; absent is success."""
        try:
            self.write(service, "DELETE", path, query=query)
        except NotFound:
            return


def _address(service: str, credentials: Any) -> str:
    override = os.environ.get(f"{OVERRIDE}{service.upper()}")
    if override:
        return override.rstrip("/")
    host, path = _SERVICES[service]
    universe = os.environ.get(UNIVERSE) or getattr(credentials, "universe_domain", None) or "googleapis.com"
    return f"https://{host}.{universe}{path}"
