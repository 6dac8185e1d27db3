"""What goes over the wire: verified by others' implementations, bounded in time, and to allowed addresses only."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.control.notifying.addresses import is_allowed
from fractal_cloud.control.notifying.delivery import BadAuthority, send, trusted
from fractal_cloud.control.notifying.payloads import Payload, payload, slack, slack_text
from fractal_cloud.control.notifying.sealing import new_secret
from fractal_cloud.control.notifying.settings import NotificationSettings
from fractal_cloud.control.store.notification_queue import Delivery
from fractal_cloud.model.notification import NotificationFormat, NotificationKind
from fractal_sandbox.certificates import Authority
from tests.notifications.receiver import Receiver, in_thread
from tests.notifications.subscribing import LOOPBACK, SETTINGS
from tests.ports import free_port

CONTEXT = trusted("")
SOURCE = "urn:fractal-cloud:0123"


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with in_thread(tmp_path / "receiver") as made:
        yield made


def _delivery(kind: NotificationKind = NotificationKind.FAILED, count: int = 1, **item: Any) -> Delivery:
    item_json = {"liveSystemId": "ls-a", "componentId": "web", "event": 7, "at": "2026-11-15T12:00:00Z", "by": "a1"}
    item_json |= {"message": "quota reached", "before": "Active", "after": "Failed"}
    now = datetime.now(UTC)
    return Delivery("0a1b", kind, "ls-a", [{**item_json, **item}], count, now, 0, now)


def _sent(receiver: Receiver, made: Payload, **settings: Any) -> Any:
    return send(receiver.url, made, replace(SETTINGS, **settings), CONTEXT)


def _cloud_event(secret: str = "", delivery: Delivery | None = None) -> Payload:
    return payload(delivery or _delivery(), NotificationFormat.CLOUDEVENTS, SOURCE, secret)


def test_the_signature_is_what_openssl_makes_of_id_time_and_body(receiver: Receiver) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    secret = new_secret()
    assert _sent(receiver, _cloud_event(secret)) is None
    [got] = receiver.received
    headers = got["headers"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{got['body']}".encode()
    key = base64.b64decode(secret.removeprefix("whsec_")).hex()
    made = subprocess.run(
        ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{key}", "-binary"],
        input=signed,
        capture_output=True,
        check=True,
    )
    assert headers["webhook-signature"] == "v1," + base64.b64encode(made.stdout).decode()


def test_the_library_of_standard_webhooks_verifies_it_and_refuses_what_was_changed(receiver: Receiver) -> None:
    library = pytest.importorskip("standardwebhooks")
    secret = new_secret()
    assert _sent(receiver, _cloud_event(secret)) is None
    [got] = receiver.received
    assert library.Webhook(secret).verify(got["body"], got["headers"])["id"] == got["headers"]["webhook-id"]
    failure = library.webhooks.WebhookVerificationError
    with pytest.raises(failure):
        library.Webhook(secret).verify(got["body"].replace("Failed", "Active"), got["headers"])
    with pytest.raises(failure):
        library.Webhook(new_secret()).verify(got["body"], got["headers"])


def test_the_library_of_cloudevents_reads_it(receiver: Receiver) -> None:
    http = pytest.importorskip("cloudevents.core.bindings.http")
    formats = pytest.importorskip("cloudevents.core.formats.json")
    events = pytest.importorskip("cloudevents.core.v1.event")
    assert _sent(receiver, _cloud_event()) is None
    [got] = receiver.received
    message = http.HTTPMessage(headers=got["headers"], body=got["body"].encode())
    event = http.from_structured(message, formats.JSONFormat(), events.CloudEvent)
    assert (event.get_id(), event.get_source(), event.get_type()) == ("0a1b", SOURCE, "cloud.fractal.Failed")
    assert event.get_subject() == "ls-a/web"
    assert event.get_data()["items"][0]["message"] == "quota reached"
    assert got["headers"]["content-type"].startswith("application/cloudevents+json")


def test_what_a_receiver_answers_is_judged_by_its_status_alone(receiver: Receiver) -> None:
    for status in (200, 201, 202, 204):
        receiver.answers(status=status, body="" if status == 204 else "thank you")
        assert _sent(receiver, _cloud_event()) is None
    receiver.answers(status=500, body="a stack trace with <secrets>")
    failed = _sent(receiver, _cloud_event())
    assert (failed.error, failed.is_refused) == ("answered 500", False)
    receiver.answers(status=422)
    assert _sent(receiver, _cloud_event()).is_refused
    receiver.answers(status=200, body="x" * 5_000_000)
    assert _sent(receiver, _cloud_event()) is None


def test_a_redirect_is_not_followed(receiver: Receiver, tmp_path: Path) -> None:
    with in_thread(tmp_path / "elsewhere") as elsewhere:
        receiver.answers(status=307, headers={"Location": elsewhere.url})
        failed = _sent(receiver, _cloud_event(new_secret()))
        assert failed.error.startswith("answered 307: redirects are not followed")
        assert elsewhere.received == []


def test_a_receiver_that_answers_too_late_is_given_up(receiver: Receiver) -> None:
    receiver.answers(seconds=2)
    began = time.monotonic()
    assert _sent(receiver, _cloud_event(), timeout_seconds=0.3).error == "no answer within 0.3 s"
    assert time.monotonic() - began < 1.5


@contextmanager
def _dripping(greeting: bytes) -> Iterator[int]:
    """A server that feeds its answer byte by byte, for ever."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            try:
                connection.recv(65_536)
                connection.sendall(greeting)
                while not done.wait(0.05):
                    connection.sendall(b"x")
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        done.set()
        listener.close()
        thread.join(10)


@pytest.mark.rule("A9")
@pytest.mark.parametrize("greeting", [b"HTTP/1.1 200 OK\r\nx-", b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n"])
def test_a_receiver_that_answers_byte_by_byte_does_not_get_more_time(greeting: bytes) -> None:
    with _dripping(greeting) as port:
        began = time.monotonic()
        settings = replace(SETTINGS, timeout_seconds=0.5)
        failed = send(f"http://127.0.0.1:{port}/", _cloud_event(), settings, CONTEXT)
        assert time.monotonic() - began < 5
    assert failed is not None
    assert failed.error == "no answer within 0.5 s"


def test_nobody_there_and_no_such_name_are_said() -> None:
    gone = send(f"http://127.0.0.1:{free_port()}/", _cloud_event(), SETTINGS, CONTEXT)
    assert gone is not None
    assert gone.error == "nobody listens there"
    unknown = send("https://no-such-host.invalid/", _cloud_event(), SETTINGS, CONTEXT)
    assert unknown is not None
    assert unknown.error == "its name cannot be resolved"


@pytest.mark.rule("A6")
def test_a_name_that_leads_inside_is_refused_where_it_is_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name passes when it is subscribed; what it resolves to counts when something is sent."""
    settings = NotificationSettings(allows_http=True, timeout_seconds=2.0)
    asked: list[str] = []

    def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        if host != "127.0.0.1":
            asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", resolve)
    url = f"http://hooks.example.com:{receiver.port}/x"
    failed = send(url, _cloud_event(), settings, CONTEXT)
    assert failed is not None
    assert "inside a network that is not public (127.0.0.1)" in failed.error
    assert receiver.received == []
    assert send(url, _cloud_event(), replace(settings, networks=LOOPBACK), CONTEXT) is None
    assert asked == ["hooks.example.com", "hooks.example.com"]
    assert receiver.received[0]["headers"]["host"] == f"hooks.example.com:{receiver.port}"


@pytest.mark.rule("A6")
@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::"),
    ],
)
def test_addresses_that_are_not_public_are_not_allowed_unless_their_network_is_named(address: str) -> None:
    assert not is_allowed(ip_address(address), ())
    assert not is_allowed(ip_address(address), (ip_network("10.99.0.0/16"),))
    assert is_allowed(ip_address("93.184.215.14"), ())
    assert is_allowed(ip_address("2606:2800:220:1::1"), ())
    assert is_allowed(ip_address("::ffff:10.99.1.1"), (ip_network("10.99.0.0/16"),))


def test_a_private_authority_is_trusted_where_its_file_is_given(tmp_path: Path) -> None:
    authority = Authority()
    file = tmp_path / "authority.pem"
    file.write_text(authority.certificate)
    with in_thread(tmp_path / "receiver", authority.context) as receiver:
        url = f"https://localhost:{receiver.port}/x"
        loopback = replace(SETTINGS, networks=(*LOOPBACK, ip_network("::1/128")), allows_http=False)
        failed = send(url, _cloud_event(), loopback, CONTEXT)
        assert failed is not None
        assert failed.error.startswith("its certificate is not trusted: ")
        assert send(url, _cloud_event(), loopback, trusted(str(file))) is None
        assert len(receiver.received) == 1
    with pytest.raises(BadAuthority, match="cannot be used"):
        trusted(str(tmp_path / "nowhere"))


# --- Slack


@pytest.mark.rule("A6")
def test_slack_finds_no_link_no_mention_and_no_control_character_in_what_a_cloud_said() -> None:
    hostile = "<!channel> <https://evil.example|click> & @here @Channel anna@example.com \x1b[31m\nnew line\u202e"
    made = slack(_delivery(message=hostile, by="<@U123>"))
    text = json.dumps(made, ensure_ascii=False)
    assert "<" not in text
    assert ">" not in text
    assert "&lt;!channel&gt;" in text
    assert "&amp; @\u200bhere @\u200bChannel anna@example.com" in text
    assert "\\\\x1b[31m\\\\nnew line\\\\u202e" in text
    assert all(block["text"]["verbatim"] for block in made["blocks"])
    assert made["text"] == "Failed: ls-a/web"
    assert slack_text("@everyone's @allison") == "@\u200beveryone's @allison"


def test_a_message_for_slack_stays_within_its_limits() -> None:
    one = _delivery().items[0]
    items = [{**one, "componentId": f"c{number}", "message": "&" * 500} for number in range(20)]
    delivery = replace(_delivery(count=400), items=items)
    made = slack(delivery)
    assert all(len(block["text"]["text"]) <= 3_000 for block in made["blocks"] if block["type"] == "section")
    assert made["text"] == "Failed: 400 components of ls-a: c0, c1, c2, c3, c4 and 395 more"
    assert made["blocks"][-1]["elements"][0]["text"].startswith("and ")
