"""The control plane as the commands see it: HTTP in the words of the API, and errors a person can act on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import stamina

from fractal_cloud.agent.trust import BadAuthority, plain_text_warning, trusted
from fractal_cloud.cli.errors import Broken, CommandError, Exit, Unreachable
from fractal_cloud.cli.options import CA_FILE
from fractal_cloud.model.backoff import Backoff

# A plan waits up to 60 s for the agents' answers.
_TIMEOUT = httpx2.Timeout(75.0, connect=5.0)
# A stream is never silent for longer than 15 s: one that is for three times as long was cut without a word.
_STREAM_TIMEOUT = httpx2.Timeout(5.0, read=45.0)
_PAGE = 200
_BACKOFF = Backoff.in_seconds(0.2, 2.0, jitter=0.1)
_AGAIN = stamina.RetryingCaller(attempts=4, timeout=15.0, **_BACKOFF.for_stamina()).on(Broken)
# What the API asks of programs, and what people type instead.
_LISTS = {"livesystems": "fractal status", "tokens": "fractal token list"}

Json = Any


class ControlPlane:
    """A connection to one control plane with one token; use it as a context manager."""

    def __init__(self, url: str, token: str, transport: httpx2.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            # A redirect is never followed: the token is for this address alone.
            self._http = httpx2.Client(
                base_url=self.url,
                headers=headers,
                timeout=_TIMEOUT,
                transport=transport,
                verify=trusted(os.environ.get(CA_FILE, "")),
                follow_redirects=False,
            )
        except BadAuthority as error:
            raise CommandError(str(error), advice=f"Give one with --ca-file or {CA_FILE}.", code=Exit.USAGE) from None
        except (httpx2.InvalidURL, ValueError) as error:
            raise self._bad_address(str(error)) from None

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, **query: str | int | list[str]) -> Json:
        """Read one thing; where the control plane cannot just now, or the connection breaks, a few times."""
        return _AGAIN(self._ask, "GET", path, params=query)

    def post(self, path: str, body: Json = None) -> Json:
        """Ask for something to be done."""
        return self._ask("POST", path, json=body) if body is not None else self._ask("POST", path)

    def put(self, path: str, body: Json) -> Json:
        """Put a declaration where it belongs."""
        return self._ask("PUT", path, json=body)

    def delete(self, path: str, **query: str | list[str]) -> Json:
        """Ask for something to be taken away."""
        return self._ask("DELETE", path, params=query)

    def every(self, path: str, limit: int | None = None, **query: str | int | list[str]) -> Iterator[Json]:
        """All entries of a list, page by page; at most ``limit`` of them."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            more = {"cursor": cursor} if cursor else {}
            page = self.get(path, limit=_PAGE if left is None else min(left, _PAGE), **more, **query)
            items, cursor = _page(page)
            yield from items if left is None else items[:left]
            left = None if left is None else left - len(items)
            if not cursor or cursor == more.get("cursor"):
                return

    def stream(self, path: str, after: int) -> Iterator[Json]:
        """Events as they happen, from the one after ``after`` on, until the connection ends.

        Raises ``Unreachable`` where it breaks, or nobody is there.
        """
        accept = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        try:
            with self._http.stream("GET", path, headers=accept, timeout=_STREAM_TIMEOUT) as answer:
                if answer.is_error:
                    answer.read()
                    refusal = self._refusal(answer)
                    raise Unreachable(refusal.cause) if answer.is_server_error or _is_busy(answer) else refusal
                for event in httpx2.EventSource(answer):
                    if event.data:
                        yield json.loads(event.data)
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from None

    def _ask(self, method: str, path: str, **request: Any) -> Json:
        try:
            answer = self._http.request(method, path, **request)
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from None
        if answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE or _is_busy(answer):
            raise self._unavailable(answer, is_read=method == "GET")
        if answer.is_error:
            raise self._refusal(answer)
        if answer.is_redirect:
            where = answer.headers.get("location", "")
            raise self._bad_address(f"it leads to {where!r}, where the token is not sent")
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError:
            raise self._bad_address("what answers there does not speak JSON") from None

    def _bad_address(self, cause: str) -> CommandError:
        return CommandError(
            f"{self.url!r} is no control plane: {cause}",
            advice="Give its address with --url or FRACTAL_URL.",
            code=Exit.FAILED,
        )

    def _unreachable(self, error: httpx2.HTTPError) -> Unreachable:
        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                return Unreachable(
                    f"the certificate of {self.url} is not trusted: {error}",
                    advice=f"Give the authority that signed it with --ca-file or {CA_FILE}.",
                )
            return Unreachable(
                f"no control plane answers at {self.url}",
                advice="Start one with `fractal up` or `fractal serve`, or give its address with --url or FRACTAL_URL.",
            )
        if isinstance(error, httpx2.TimeoutException):
            return Unreachable(f"the control plane at {self.url} took too long to answer", advice="Try again.")
        return Broken(f"the connection to {self.url} broke: {error}", advice="Try again.")

    def _unavailable(self, answer: httpx2.Response, *, is_read: bool) -> Unreachable:
        """The control plane or its database cannot now; of a write nobody knows the end of, say what to do."""
        problem = _problem(answer)
        cause = str(problem.get("detail") or "the control plane cannot answer now")
        is_unsure = str(problem.get("type", "")).endswith(":unsure") and not is_read
        advice = "See with `fractal status` whether it was done; deploying the same again does no harm."
        return Broken(cause, advice=advice if is_unsure else "Nothing was changed: try again in a moment.")

    def _refusal(self, answer: httpx2.Response) -> CommandError:
        problem = _problem(answer)
        cause = str(problem.get("detail") or problem.get("title") or f"HTTP {answer.status_code}")
        if answer.status_code == httpx2.codes.UNAUTHORIZED:
            return CommandError(
                f"the control plane at {self.url} refuses the token: {cause}",
                advice="Give a token with --token or FRACTAL_TOKEN; `fractal up` and `fractal serve` print theirs.",
            )
        if answer.status_code == httpx2.codes.FORBIDDEN:
            return CommandError(cause, advice="Use a token of another role: `fractal token create --role …` makes one.")
        details = [_error_text(error) for error in problem.get("errors") or []]
        if details:
            return CommandError(cause, details=details)
        said, _, route = cause.partition(": GET /")
        command = _LISTS.get(route.removesuffix(" lists them"))
        return CommandError(said, advice=f"`{command}` lists them.") if command else CommandError(cause)


def path_of(live_system: str, component: str = "", *rest: str) -> str:
    """The path of a LiveSystem, of one of its components, or of something below."""
    parts = ["livesystems", quote(live_system, safe="")]
    if component:
        parts += ["components", quote(component, safe="")]
    return "/" + "/".join([*parts, *rest])


def _page(page: Json) -> tuple[list[Json], str | None]:
    if isinstance(page, list):
        return page, None
    return list(page.get("items", [])), page.get("next", page.get("cursor"))


def _problem(answer: httpx2.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {"title": f"HTTP {answer.status_code}: {answer.text[:200]}"}
    return found if isinstance(found, dict) else {"title": f"HTTP {answer.status_code}"}


def _error_text(error: object) -> str:
    if isinstance(error, dict):
        return ": ".join(str(error[key]) for key in ("path", "message") if error.get(key))
    return str(error)


def connect(url: str, token: str) -> ControlPlane:
    """The control plane at an address; says so where the token is sent in plain text."""
    from fractal_cloud.cli.output import warn

    warning = plain_text_warning(url, token)
    if warning:
        warn(warning)
    return ControlPlane(url, token)


def _is_busy(answer: httpx2.Response) -> bool:
    """Whether this token or this machine asks for more than its share just now."""
    return answer.status_code == httpx2.codes.TOO_MANY_REQUESTS
