"""Who calls Google Cloud: application default credentials, as Google's own tools find them, and their tokens."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.errors import Denied, Unreadable

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
TOKEN_SECONDS: Final = 20.0


class GoogleTokens:
    """The credentials of this process, found when they are first needed. Safe to share by threads."""

    def __init__(self) -> None:
        import google.auth

        self._auth: Any = google.auth
        self._lock = threading.RLock()
        self._credentials: Any = None
        self._transport = _transport()
        self.default_project = ""

    def token(self) -> str:
        """A token that is still good; raises ``Denied`` where there are no credentials."""
        with self._lock:  # credentials are not safe to share while they are made new
            credentials = self.found()
            if not credentials.valid:
                self._refresh(credentials)
            return str(credentials.token)

    def found(self) -> Any:
        """The credentials themselves."""
        with self._lock:
            if self._credentials is None:
                self._credentials, self.default_project = self._find()
            return self._credentials

    def _find(self) -> tuple[Any, str]:
        from google.auth.exceptions import GoogleAuthError

        try:
            found, project = self._auth.default(scopes=[SCOPE], request=self._transport)
        except (GoogleAuthError, ValueError) as error:
            raise _no_credentials(error) from error
        return found, project or ""

    def _refresh(self, credentials: Any) -> None:
        from google.auth.exceptions import GoogleAuthError, TransportError

        try:
            credentials.refresh(self._transport)
        except TransportError as error:
            raise Unreadable(f"{_cause(error)}: whoever gives out tokens does not answer, it is asked again") from error
        except (GoogleAuthError, OSError, ValueError) as error:
            raise _no_credentials(error) from error


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
