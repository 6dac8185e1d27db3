"""The session at Google Cloud: the one file that knows google-auth, and the doors through which every call goes.

Credentials are those Google's own tools find (application default credentials). What is asked of Google, and why, does
not belong here.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fractal_cloud.model.errors import CloudError, Denied, NotFound, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.gcp.faults import GoogleDialect, check_operation, check_whole
from fractal_cloud.offers.offer import Cloud, Session
from fractal_cloud.offers.rest import Answer, Door

PROJECTS: Final = "FRACTAL_GCP_PROJECTS"
UNIVERSE: Final = "GOOGLE_CLOUD_UNIVERSE_DOMAIN"
OVERRIDE: Final = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
TOKEN_SECONDS: Final = 20.0
_PROJECT_ID: Final = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]\Z")

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


class GcpSession(Session):
    """The projects these credentials are meant for. Safe to share by threads."""

    def __init__(self) -> None:
        try:
            import google.auth
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name!r} is not installed: `pip install 'fractal-cloud[gcp]'` brings it", name=missing.name
            ) from missing
        self._auth: Any = google.auth
        self._lock = threading.Lock()
        self._credentials: Any = None
        self._default_project = ""
        self._transport = _transport()
        self._doors: dict[str, Door] = {}
        self._missing: dict[str, str] = {}
        self.numbers: dict[str, str] = {}

    # --- who we are

    def _token(self) -> str:
        with self._lock:  # credentials are not safe to share while they are made new
            credentials = self._found()
            if not credentials.valid:
                self._refresh(credentials)
            return str(credentials.token)

    def _found(self) -> Any:
        if self._credentials is None:
            from google.auth.exceptions import GoogleAuthError

            try:
                found, project = self._auth.default(scopes=[SCOPE], request=self._transport)
            except (GoogleAuthError, ValueError) as error:
                raise _no_credentials(error) from error
            self._credentials, self._default_project = found, project or ""
        return self._credentials

    def _refresh(self, credentials: Any) -> None:
        from google.auth.exceptions import GoogleAuthError, TransportError

        try:
            credentials.refresh(self._transport)
        except TransportError as error:
            raise Unreadable(f"{_cause(error)}: whoever gives out tokens does not answer, it is asked again") from error
        except (GoogleAuthError, OSError, ValueError) as error:
            raise _no_credentials(error) from error

    # --- what is reached

    def realms(self) -> Mapping[str, str]:
        """The ids of the projects that are meant, by the names declarations call them; the empty name is the default.

        A project's id is unique and never changes. Where the credentials may not ask for it, it is taken as given.
        """
        self._token()  # without credentials nothing is reached, whatever is named
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
        with self._lock:
            self._found()
        listed = [name.strip() for name in os.environ.get(PROJECTS, "").split(",") if name.strip()]
        meant = self._default_project or os.environ.get("CLOUDSDK_CORE_PROJECT", "")
        if not listed and not meant:
            raise Denied(f"no project is named: set GOOGLE_CLOUD_PROJECT, or {PROJECTS} for several")
        if not listed:
            return [meant], meant
        return listed, meant if meant in listed else listed[0]

    def _project(self, name: str) -> str:
        try:
            told = self.door("cloudresourcemanager").read(f"/v3/projects/{name}").item()
        except Denied:
            if _PROJECT_ID.match(name):
                return name
            raise
        project = str(told["projectId"])
        self.numbers[project] = str(told.get("name", "")).rpartition("/")[2]
        return project

    def at(self, scope: Scope) -> Gcp:
        """One place of one project."""
        return Gcp(self, scope)

    def door(self, service: str) -> Door:
        """The connections to one API: at Google, in another universe, or where gcloud's own setting leads."""
        with self._lock:
            door = self._doors.get(service)
            if door is None:
                self._found()
                door = self._doors[service] = Door(_address(service, self._credentials), self._dialect())
        return door

    def _dialect(self) -> GoogleDialect:
        paying = getattr(self._credentials, "quota_project_id", None)
        return GoogleDialect(self._token, {"x-goog-user-project": paying} if paying else {})


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
        return self._session.door("storage").base.removesuffix(_SERVICES["storage"][1])

    def find(self, service: str, path: str, **query: str) -> dict[str, Any] | None:
        """One thing; None where Google says that it is not there."""
        answer = self._session.door(service).find(path, query)
        return None if answer is None else answer.item()

    def pages(self, service: str, path: str, key: str, **query: str) -> Iterator[list[dict[str, Any]]]:
        """The pages of a list, each as the list under ``key``. Raises rather than end early, or leave a zone out."""

        def following(answer: Answer) -> tuple[str, Mapping[str, str]] | None:
            token = answer.item().get("nextPageToken")
            return (path, {**query, "pageToken": str(token)}) if token else None

        for answer in self._session.door(service).pages(path, query, following):
            page = answer.item()
            check_whole(page, str(answer.call))
            yield page.get(key) or []

    def write(
        self, service: str, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send one writing request; returns what Google says of it, mostly an operation that has begun."""
        answer = self._session.door(service).write(method, path, body, query)
        said = answer.body()
        told: dict[str, Any] = said if isinstance(said, dict) else {}
        check_operation(told, str(answer.call))
        return told

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


def _no_credentials(error: Exception) -> Denied:
    advice = "give the agent application default credentials: a service account, or a workload identity"
    return Denied(f"{_cause(error)} ({type(error).__name__}): {advice}", code=type(error).__name__)


def _cause(error: Exception) -> str:
    return " ".join(str(error.args[0] if error.args else error).split()).rstrip(". ")


def _transport() -> Any:
    """What google-auth asks for tokens with: the HTTP client that is here already."""
    import httpx2
    from google.auth import transport
    from google.auth.exceptions import TransportError

    unanswered: Any = TransportError

    class Answered(transport.Response):
        def __init__(self, response: httpx2.Response) -> None:
            self._response = response

        @property
        def status(self) -> int:
            return self._response.status_code

        @property
        def headers(self) -> Mapping[str, str]:
            return self._response.headers

        @property
        def data(self) -> bytes:
            return self._response.content

    def request(
        url: str,
        method: str = "GET",
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: Any,
    ) -> Answered:
        try:
            return Answered(
                httpx2.request(method, url, content=body, headers=headers, timeout=timeout or TOKEN_SECONDS)
            )
        except httpx2.HTTPError as error:
            raise unanswered(str(error) or type(error).__name__) from error

    return request
