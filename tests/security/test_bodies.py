"""Bodies are read before a route is asked: so large, in a form that is understood, and not too many at once (A9)."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.raw_http import TOKEN, Plane, eventually, plane

pytestmark = [pytest.mark.rule("A9"), pytest.mark.xdist_group("floods of bodies")]  # they share their servers
AUTHORIZED = f"Authorization: Bearer {TOKEN}"
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with the usual limits."""
    with plane(tmp_path_factory.mktemp("usual")) as found:
        yield found


@pytest.mark.parametrize(
    ("method", "path", "most"),
    [
        ("POST", "/ui/login", "16 KiB"),
        ("PUT", "/livesystems/ls-a", "8 MiB"),
        ("GET", "/livesystems", "64 KiB"),
        ("DELETE", "/livesystems/ls-a", "64 KiB"),
        ("POST", "/agent/report", "64 MiB"),
    ],
)
def test_a_body_that_is_announced_too_large_is_answered_413_before_it_comes(
    usual: Plane, method: str, path: str, most: str
) -> None:
    wire = usual.wire()
    wire.request(path, AUTHORIZED, "Content-Length: 70000000", method=method)
    answer = wire.answer()
    assert answer.status == 413
    assert f"the body is larger than {most}: send less at once" in answer.body.decode()


def test_a_body_that_becomes_too_large_is_answered_413_while_it_comes(usual: Plane) -> None:
    wire = usual.wire()
    wire.request("/ui/login", FORM, "Transfer-Encoding: chunked", method="POST")
    wire.send(b"10000\r\n" + b"a" * 65_536 + b"\r\n")
    assert wire.answer().status == 413


def test_half_sent_log_ins_keep_next_to_nothing(usual: Plane) -> None:
    wires = [usual.wire() for _ in range(50)]
    for wire in wires:
        wire.request("/ui/login", FORM, "Content-Length: 16000", method="POST")
        wire.send(b"a" * 15_999)
    bodies = usual.middleware("Bodies")
    eventually(lambda: bodies._under_way == 50 * 15_999, "every byte that is kept is counted")
    assert usual.ask("/healthz").status == 200
    for wire in wires:
        wire.socket.close()
    eventually(lambda: bodies._under_way == 0 and not bodies._of_caller, "nothing is kept of who went away")


def test_the_bodies_of_one_token_and_of_all_are_bounded(tmp_path: Path) -> None:
    with plane(tmp_path, bodies_bytes=30_000, body_bytes=20_000, report_bytes=20_000) as small:
        tokens = [small.token(name, "operator") for name in ("first", "second")]
        held = []
        for token in tokens:
            for _ in range(2 if token is tokens[0] else 1):
                held.append(small.wire())
                held[-1].request(
                    "/livesystems/x/plan", f"Authorization: Bearer {token}", "Content-Length: 10000", method="POST"
                )
                held[-1].send(b"a" * 9_000)
        bodies = small.middleware("Bodies")
        eventually(lambda: bodies._under_way == 27_000, "all are under way")
        one_more = small.wire()
        one_more.request(
            "/livesystems/x/plan", f"Authorization: Bearer {tokens[0]}", "Content-Length: 5000", method="POST"
        )
        one_more.send(b"a" * 2_500)
        answer = one_more.answer()
        assert (answer.status, answer.detail) == (
            429,
            "your bodies under way have more than 19 KiB: send fewer at once",
        )
        another = small.wire()
        another.request(
            "/livesystems/x/plan", f"Authorization: Bearer {tokens[1]}", "Content-Length: 5000", method="POST"
        )
        another.send(b"a" * 3_500)
        answer = another.answer()
        assert (answer.status, answer.detail) == (503, "the bodies under way have more than 29 KiB: try again")
        assert answer.headers["retry-after"] == "2"
        for wire in held:
            wire.send(b"a" * 1_000)
            assert wire.answer().status == 422
        eventually(lambda: bodies._under_way == 0, "what was answered is not kept")


def test_a_client_that_goes_away_in_the_middle_of_a_body_is_no_error(
    usual: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    bodies = usual.middleware("Bodies")
    with caplog.at_level(logging.DEBUG):
        for path in ("/ui/login", "/livesystems/ls-a/plan"):
            wire = usual.wire()
            wire.request(path, AUTHORIZED, "Content-Length: 1000", method="POST")
            wire.send(b"half")
            eventually(lambda: bodies._under_way == 4, "half of it is here")
            wire.socket.close()
            eventually(lambda: bodies._under_way == 0, "it is given up")
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_compressed_body_is_refused(usual: Plane) -> None:
    wire = usual.wire()
    wire.request(
        "/livesystems/x/plan", AUTHORIZED, "Content-Encoding: gzip", method="POST", body=gzip.compress(b" " * 10**6)
    )
    answer = wire.answer()
    assert answer.status == 415
    assert answer.detail == "the body is encoded as 'gzip': send it as it is"


def test_a_log_in_of_many_parts_is_refused_as_a_page(usual: Plane) -> None:
    wire = usual.wire()
    body = b"--x\r\nContent-Disposition: form-data; name=token\r\n\r\n1\r\n" * 100 + b"--x--"
    wire.request("/ui/login", "Content-Type: multipart/form-data; boundary=x", method="POST", body=body)
    answer = wire.answer()
    assert answer.status == 415
    assert answer.headers["content-type"].startswith("text/html")
    assert b"send application/x-www-form-urlencoded" in answer.body


def test_a_log_in_of_many_fields_is_refused(usual: Plane) -> None:
    wire = usual.wire()
    wire.request("/ui/login", FORM, method="POST", body=b"a=1&" * 3_000)
    assert wire.answer().status == 400


def test_absurdly_many_parameters_and_cookies_are_refused(usual: Plane) -> None:
    answer = usual.ask("/livesystems?" + "a=1&" * 101)
    assert (answer.status, answer.detail) == (400, "the address has more than 100 query parameters: send fewer")
    answer = usual.ask("/livesystems", "Cookie: " + "a=1; " * 101)
    assert (answer.status, answer.detail) == (431, "the request has more than 100 cookies: delete those of this host")
