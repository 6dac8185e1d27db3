"""The one door to clouds that are reached over plain HTTP: it signs, sends, retries reads, and classifies refusals.

A vendor differs by its ``Dialect``: how it authorises a request, where its request ids and error codes stand, and what
they mean. What is asked of a cloud, and why, does not belong here.
"""

from __future__ import annotations

import json
import os
import ssl
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from fractal_cloud.model.backoff import Backoff
from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Overtaken,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.offers.call_context import note_request, user_agent
from fractal_cloud.offers.refusals import refusal, when_read

READ_ATTEMPTS: Final = 3
READ_BACKOFF: Final = Backoff.in_seconds(0.2, 0.6, factor=3).waits(READ_ATTEMPTS)
CONNECTIONS: Final = 32
CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 20.0
WRITE_SECONDS: Final = 60.0
MOST_PAGES: Final = 10_000
MAX_RETRY_AFTER: Final = 3_600.0
_BY_STATUS: Final[Mapping[int, type[CloudError]]] = {
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    412: Overtaken,
    423: Conflict,
    429: Throttled,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``path`` may be a whole address, where the vendor gave one (a next page).

    ``is_question``: it only reads, though its method does not say so (a query that is posted).
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    is_question: bool = False

    @property
    def is_read(self) -> bool:
        """Whether it only reads."""
        return self.is_question or self.method in ("GET", "HEAD")

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. ``status`` is 0, and ``failure`` says why, where there was no answer at all."""

    call: Call
    status: int
    headers: Mapping[str, str]
    content: bytes
    failure: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it was carried out, or begun."""
        return 200 <= self.status < 300

    @property
    def is_page(self) -> bool:
        """Whether it is a page for people, which no API of a cloud answers."""
        return self.content.lstrip()[:1] == b"<" and b"<html" in self.content[:1024].lower()

    def body(self) -> Any:
        """What it holds, read as JSON; None where it is empty or no JSON."""
        try:
            return json.loads(self.content) if self.content else None
        except ValueError:
            return None

    def item(self) -> dict[str, Any]:
        """The object it holds; raises where it holds none."""
        found = self.body()
        if isinstance(found, dict):
            return found
        kind = Unreadable if self.call.is_read else Transient
        raise kind(f"the answer to {self.call} is no object: {self.content[:80]!r}")


class Dialect(ABC):
    """What one vendor's HTTP looks like."""

    provider: str
    request_id_header: str = ""

    @abstractmethod
    def authorise(self, method: str, url: str, headers: dict[str, str], content: bytes) -> None:
        """Add to the headers what proves who calls; raises ``Denied``, saying what is missing, where nothing can."""

    @abstractmethod
    def code_and_message(self, answer: Answer) -> tuple[str, str]:
        """The vendor's error code and message in a refusal."""

    def kind_of(self, answer: Answer, code: str) -> type[CloudError]:
        """The error of the closed set that a refusal is; vendors override where a code says more than the status."""
        del code
        if answer.status == 0 or answer.status >= 500:
            return Transient
        return _BY_STATUS.get(answer.status, Invalid)

    def request_id(self, answer: Answer) -> str:
        """The vendor's id of a request, from its answer."""
        return answer.headers.get(self.request_id_header.lower(), "") if self.request_id_header else ""

    def error_of(self, answer: Answer) -> CloudError:
        """The error to raise for an answer that is not good."""
        code, words = self.code_and_message(answer) if answer.status else ("", answer.failure)
        kind = self.kind_of(answer, code)
        if issubclass(kind, NotFound) and answer.is_page:
            # A proxy or a portal on the way says so: whether it is there, the cloud has not said.
            kind, words = Transient, f"a page of HTML came instead of an answer: {answer.content[:80]!r}"
        if kind is NotFound and answer.call.is_read and not code:
            kind = Unreadable  # not in the vendor's format: something in between answered, and proves nothing (S0)
        error = refusal(
            when_read(kind) if answer.call.is_read else kind,
            words,
            provider=self.provider,
            code=code or str(answer.status or ""),
            call=str(answer.call),
            request_id=self.request_id(answer),
        )
        if isinstance(error, Throttled):
            error.after_seconds = self.retry_after(answer)
        return error

    def retry_after(self, answer: Answer) -> float:
        """For how many seconds the vendor asks to be left alone, at most an hour; some have a header of their own."""
        said = answer.headers.get("retry-after", "")
        return min(float(said), MAX_RETRY_AFTER) if said.isascii() and said.isdigit() else 0.0


@cache
def _trusted(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Whom all doors trust, as the environment says it: reading the authorities takes longer than many a call."""
    import httpx2

    del file, folder  # the library reads them itself: where they change, so does the answer
    return httpx2.create_ssl_context()


class RestClient:
    """Connections to one API, shared by threads. ``base``: the address every path is put behind."""

    def __init__(self, base: str, dialect: Dialect) -> None:
        import httpx2

        self.base = base.rstrip("/")
        self.dialect = dialect
        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        trusted = _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        self._client = httpx2.Client(limits=limits, follow_redirects=False, verify=trusted)
        weakref.finalize(self, self._client.close)  # whoever forgets it lets its connections go, too

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    # --- reading: retried where there was no answer, or an error of the server

    def read(self, path: str, query: Mapping[str, str] | None = None, **headers: str) -> Answer:
        """Read once and for all; raises an error of the closed set, ``NotFound`` where the cloud says so."""
        return self._good(self._read(Call("GET", path, query or {}, headers=headers)))

    def find(self, path: str, query: Mapping[str, str] | None = None, **headers: str) -> Answer | None:
        """The same; None where the cloud says that it is not there."""
        try:
            return self.read(path, query, **headers)
        except NotFound:
            return None

    def ask(self, path: str, body: Any, query: Mapping[str, str] | None = None, **headers: str) -> Answer:
        """Post a question that changes nothing; tried again as every other read."""
        return self._good(self._read(Call("POST", path, query or {}, body, headers, is_question=True)))

    def pages(
        self, path: str, query: Mapping[str, str], following: Callable[[Answer], tuple[str, Mapping[str, str]] | None]
    ) -> Iterator[Answer]:
        """Every page of a list. ``following``: path and query of the next one, from a page; None after the last.

        Raises rather than end early (S0).
        """
        here: tuple[str, Mapping[str, str]] = (path, query)
        for _ in range(MOST_PAGES):
            answer = self.read(*here)
            yield answer
            after = following(answer)
            if after is None:
                return
            if after == here:
                raise Unreadable(f"{path} answers the same page again and again: it cannot be read to the end")
            here = after
        raise Unreadable(f"{path} has more than {MOST_PAGES:,} pages: it cannot be read to the end")

    # --- writing: one request, sent once

    def write(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one writing request, once: after a lost answer, what it did is looked for and never guessed (S16)."""
        answer = self.send(Call(method, path, query or {}, body, headers or {}))
        note_request(self.dialect.request_id(answer))
        return self._good(answer)

    # --- how

    def send(self, call: Call) -> Answer:
        """Send one request; whatever came is the answer."""
        import httpx2

        content = call.content or (b"" if call.body is None else json.dumps(call.body).encode())
        headers = {"user-agent": user_agent(), "accept": "application/json", **call.headers}
        if call.body is not None:
            headers.setdefault("content-type", "application/json")
        url = str(httpx2.URL(self._address(call.path)).copy_merge_params(dict(call.query)))
        self.dialect.authorise(call.method, url, headers, content)
        seconds = httpx2.Timeout(READ_SECONDS if call.is_read else WRITE_SECONDS, connect=CONNECT_SECONDS)
        try:
            response = self._client.request(call.method, url, headers=headers, content=content, timeout=seconds)
        except httpx2.HTTPError as error:
            return Answer(call, 0, {}, b"", str(error) or type(error).__name__)
        return Answer(call, response.status_code, dict(response.headers.items()), response.content)

    def _address(self, path: str) -> str:
        if not path.startswith(("http://", "https://")):
            return f"{self.base}{path}"
        if not path.startswith(f"{self.base}/"):  # our credentials go to nobody else
            raise Unreadable(f"the cloud sent us on to {path.partition('?')[0]}, which is not below {self.base}")
        return path

    def _read(self, call: Call) -> Answer:
        for seconds in (*READ_BACKOFF[: READ_ATTEMPTS - 1], None):
            answer = self.send(call)
            if seconds is None or 0 < answer.status < 500:
                return answer
            time.sleep(seconds)
        raise AssertionError("the last attempt always returns")

    def _good(self, answer: Answer) -> Answer:
        if answer.is_good:
            return answer
        raise self.dialect.error_of(answer)
