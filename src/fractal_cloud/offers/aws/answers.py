"""How an answer of AWS is cut into what it lists and the rest, before the SDK takes it apart.

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

from fractal_cloud.offers.recall import Recall, fingerprint

_XML: Final = frozenset({"ec2", "query", "rest-xml"})
_JSON: Final = frozenset({"json", "rest-json"})
_LONGEST_CURSOR: Final = 8192


@dataclass(slots=True)
class Expected:
    """The answer this thread waits for: what it lists under ``key``, its cursor, and the pages already known."""

    recall: Recall
    about: str
    key: str
    cursor: str
    print_of_page: bytes | None = None


_expected: ContextVar[Expected | None] = ContextVar("fractal_cloud_expected_answer", default=None)


@contextmanager
def expecting(answer: Expected) -> Iterator[None]:
    """Let ``leave_out_known`` look at the answers this thread gets inside."""
    token = _expected.set(answer)
    try:
        yield
    finally:
        _expected.reset(token)


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
    if expected.recall.knows(expected.print_of_page):
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
