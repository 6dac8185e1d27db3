"""Aruba's HTTP: bearer tokens, problem documents, and what they mean in our closed set."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from fractal_cloud.model.errors import CloudError, Conflict, LimitReached
from fractal_cloud.offers.rest import Answer, Dialect

# Aruba has no code for it: only the words of the problem say that a limit is reached.
_LIMIT: Final = re.compile(
    r"\bquota|\blimits? (?:is |was |has been )?(?:reached|exceeded)|\bexceed\w* the (?:\w+ )*limit", re.IGNORECASE
)


class ArubaDialect(Dialect):
    """``token``: whose bearer token is sent. ``forget``: called with a token that was refused."""

    provider = "aruba"

    def __init__(self, token: Callable[[], str], forget: Callable[[str], None]) -> None:
        self._token = token
        self._forget = forget

    def authorise(self, method: str, url: str, headers: dict[str, str], content: bytes) -> None:
        """Add the token."""
        del method, url, content
        headers["authorization"] = f"Bearer {self._token()}"

    def code_and_message(self, answer: Answer) -> tuple[str, str]:
        """The title of the problem, and every field that is wrong."""
        problem = _problem(answer)
        fields = problem.get("errors") or ()
        wrong_fields = [f"{one.get('field', '')}: {one.get('message', '')}" for one in fields if isinstance(one, dict)]
        summary = [str(problem.get(name) or "") for name in ("title", "detail")]
        return str(answer.status) if problem else "", "; ".join(part for part in (*summary, *wrong_fields) if part)

    def kind_of(self, answer: Answer, code: str) -> type[CloudError]:
        """A 400 that names no field means «not yet»: something it depends on is not ready, or still in use."""
        if answer.status == 401:
            self._forget(self._token())
        if 400 <= answer.status < 500 and _LIMIT.search(self.code_and_message(answer)[1]) and answer.status != 429:
            return LimitReached
        is_for_now = answer.call.method == "DELETE" or not _problem(answer).get("errors")
        if answer.status == 400 and is_for_now and not answer.call.is_read:
            return Conflict
        return super().kind_of(answer, code)

    def request_id(self, answer: Answer) -> str:
        """Return the trace id, which Aruba sends with refusals only."""
        return "" if answer.is_good else str(_problem(answer).get("traceId") or "")


def _problem(answer: Answer) -> dict[str, Any]:
    body = answer.body()
    return body if isinstance(body, dict) else {}
