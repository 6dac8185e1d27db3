"""What AcmeDB may answer, in the closed set of errors by which Fractal Cloud decides."""

from __future__ import annotations

import socket

import pytest

from acmedb.cloud import Acme, AcmeSession
from acmedb.server import AcmeServer
from fractal_cloud.model.errors import Conflict, Denied, Invalid, Overtaken, Protected, Transient, Unreadable
from fractal_cloud.model.identity import Scope


def acme(monkeypatch: pytest.MonkeyPatch, url: str, token: str = "of-the-agent") -> Acme:
    monkeypatch.setenv("ACMEDB_URL", url)
    monkeypatch.setenv("ACMEDB_TOKEN", token)
    return AcmeSession().at(Scope("acme", "acme-0001", "global"))


def test_without_an_answer_nothing_is_absent_and_a_write_may_have_had_its_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    cloud = acme(monkeypatch, f"http://127.0.0.1:{port}")
    with pytest.raises(Unreadable):
        cloud.database("db-1")
    with pytest.raises(Transient):
        cloud.delete("db-1", None)


def test_every_refusal_has_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    with AcmeServer(["of-the-agent"]) as server:
        cloud = acme(monkeypatch, server.url)
        made = cloud.create({"name": "orders", "deletionProtection": True})
        assert cloud.database("db-nowhere") is None
        cloud.delete("db-nowhere", None)
        with pytest.raises(Conflict, match="there is a database 'orders' already"):
            cloud.create({"name": "orders"})
        with pytest.raises(Invalid, match="size is 'huge'"):
            cloud.change(made["id"], made["etag"], {"size": "huge"})
        with pytest.raises(Protected, match="deletionProtection"):
            cloud.delete(made["id"], made["etag"])
        cloud.change(made["id"], made["etag"], {"size": "large"})
        with pytest.raises(Overtaken):
            cloud.change(made["id"], made["etag"], {"size": "small"})
        with pytest.raises(Denied):
            list(acme(monkeypatch, server.url, "of-nobody").databases())


def test_a_list_goes_on_over_all_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    with AcmeServer(["of-the-agent"]) as server:
        cloud = acme(monkeypatch, server.url)
        names = {f"db-{number}" for number in range(101)}
        for name in names:
            server.create({"name": name})
        assert {found["name"] for found in cloud.databases()} == names


def test_a_session_without_address_or_token_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Denied, match="ACMEDB_URL and ACMEDB_TOKEN"):
        acme(monkeypatch, "")
