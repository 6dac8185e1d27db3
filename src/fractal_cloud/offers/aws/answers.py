"""What an answer of AWS is, before the SDK takes it apart: whether it is one at all, what it lists, and the rest.

The SDK finds nothing in an answer of another format (a page of HTML, an empty body) and calls that an empty result. So
every answer is checked first: the root element, or that it is a JSON object.

The SDK's parser is nine tenths of what reading costs. What an answer lists is the same, byte for byte, until something
of it changes; request ids and cursors stand outside of it, and are parsed from every answer. Where an answer cannot be
cut for certain, it is parsed whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from fractal_cloud.model.errors import Transient, Unreadable
from fractal_cloud.offers.seen_pages import SeenPages, fingerprint

_XML: Final = frozenset({"query", "rest-xml", "ec2"})
_JSON: Final = frozenset({"json", "rest-json"})
_LONGEST_CURSOR: Final = 8192
_PROLOG: Final = rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml.*?\?>\s*)?(?:<!--.*?-->\s*)*"
_ROOT: Final = re.compile(_PROLOG + rb"<(?:[\w.-]+:)?([\w.-]+)", re.DOTALL)
_HTML: Final = re.compile(_PROLOG + rb"<(?:!doctype\s+html|html)\b", re.DOTALL | re.IGNORECASE)


@dataclass(slots=True)
class Expected:
    """The answer this thread waits for: what it lists under ``key``, its cursor, and the pages already known."""

    seen_pages: SeenPages
    about: str
    key: str
    cursor: str
    print_of_page: bytes | None = None


_expected: ContextVar[Expected | None] = ContextVar("fractal_cloud_expected_answer", default=None)


@contextmanager
def expecting(answer: Expected) -> Iterator[None]:
    """Let ``leave_out_known`` read the answers this thread gets inside."""
    token = _expected.set(answer)
    try:
        yield
    finally:
        _expected.reset(token)


def check_read(*, operation_model: Any, response_dict: dict[str, Any], **_: Any) -> None:
    """Raise ``Unreadable`` where the answer to a read is none of AWS. Bound to the SDK's event ``before-parse``."""
    problem = _foreign(operation_model, response_dict)
    if problem:
        raise Unreadable(f"{problem}: nothing is decided from it, and it is read again", code="ForeignAnswer")


def check_write(*, operation_model: Any, response_dict: dict[str, Any], **_: Any) -> None:
    """Raise ``Transient`` where the answer to a write is none of AWS: whether AWS ever got it is unknown."""
    problem = _foreign(operation_model, response_dict)
    if problem:
        raise Transient(f"{problem}: whether it took effect is unknown until it is read again", code="ForeignAnswer")


def _foreign(operation_model: Any, response_dict: Mapping[str, Any]) -> str:
    """What came instead of an answer of AWS, in a few words; empty where it is one, as far as can be seen from here."""
    status, body = int(response_dict["status_code"]), response_dict["body"]
    if not isinstance(body, bytes) or (status >= 300 and status != 404):  # a stream; a refusal, known by its status
        return ""
    # Of a 404: somebody else's page, so that it is not AWS who says that something is not there.
    is_own = _HTML.match(body) is None if status == 404 else _is_expected(operation_model, body)
    if is_own:
        return ""
    headers = {str(name).lower(): str(value) for name, value in dict(response_dict["headers"]).items()}
    kind = headers.get("content-type", "no content type")
    return f"{operation_model.name} was answered by something that is not AWS (status {status}, {kind}, {_begin(body)})"


def _is_expected(operation_model: Any, body: bytes) -> bool:
    protocol, name = operation_model.service_model.resolved_protocol, operation_model.name
    shape = operation_model.output_shape
    if protocol in ("ec2", "query"):
        root = _ROOT.match(body)
        return root is not None and root[1].decode() == f"{name}Response"
    if shape is None or not any(_is_in_body(member) for member in shape.members.values()):
        return True  # nothing is read from it
    if protocol in _JSON:
        return body.lstrip()[:1] == b"{"
    if protocol == "rest-xml":
        return not body.strip() or (_ROOT.match(body) is not None and _HTML.match(body) is None)
    return True


def _is_in_body(member: Any) -> bool:
    return "location" not in member.serialization


def _begin(body: bytes) -> str:
    text = body[:80].decode("utf-8", "replace")
    shown = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return f"beginning with {shown!r}" if shown else "empty"


def leave_out_known(*, operation_model: Any, response_dict: dict[str, Any], **_: Any) -> None:
    """Take the fingerprint of what a page lists; where it is known, leave only the rest for the SDK to parse.

    Bound to the SDK's event ``before-parse``.
    """
    expected = _expected.get()
    if expected is None:
        return
    expected.print_of_page = None
    if response_dict["status_code"] != 200:
        return
    cut = _cut(response_dict["body"], operation_model, expected)
    if cut is None:
        return
    listed, rest = cut
    expected.print_of_page = fingerprint(expected.about, listed)
    if expected.seen_pages.has_page(expected.print_of_page):
        response_dict["body"] = rest


def _cut(body: bytes, operation_model: Any, expected: Expected) -> tuple[bytes, bytes] | None:
    protocol = operation_model.service_model.resolved_protocol
    if protocol in _JSON:
        return cut_json(body, expected.cursor)
    members: Mapping[str, Any] = operation_model.output_shape.members
    if protocol not in _XML or expected.key not in members:
        return None
    return cut_xml(body, members[expected.key].serialization.get("name", expected.key))


def cut_xml(body: bytes, element: str) -> tuple[bytes, bytes] | None:
    """Everything between the first opening and the last closing of the element that holds the list, and the rest."""
    opening, closing = f"<{element}>".encode(), f"</{element}>".encode()
    start, end = body.find(opening) + len(opening), body.rfind(closing)
    if start < len(opening) or end < start:
        return None
    return body[start:end], body[:start] + body[end:]


def cut_json(body: bytes, cursor: str) -> tuple[bytes, bytes] | None:
    """Everything but the cursor, and an object that holds the cursor alone.

    The cursor is taken out only as the first or the last member of the outermost object: a member of that name inside
    of something listed (a tag) is followed or preceded by more than one brace, and stays.
    """
    at_the_start, at_the_end = _cursors(cursor)
    last = at_the_end.search(body, max(0, len(body) - _LONGEST_CURSOR))
    if last is not None:
        return body[: last.start()], b"{" + last[1] + b"}"
    first = at_the_start.match(body)
    if first is not None:
        return body[first.end() :], b"{" + first[1] + b"}"
    return (body, b"{}") if f'"{cursor}"'.encode() not in body else None


@cache
def _cursors(cursor: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    pair = rb'"' + re.escape(cursor.encode()) + rb'"\s*:\s*(?:"(?:[^"\\]|\\.)*"|null)'
    return re.compile(rb"\s*\{\s*(" + pair + rb")\s*,"), re.compile(rb"\s*,\s*(" + pair + rb")\s*\}\s*\Z")
